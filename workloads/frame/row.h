// What a study measured: rows of named values, in the order in which they were set.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cm384::studies {

class Row;
class Value;
using Rows = std::vector<Row>;
using Values = std::vector<Value>;

// Nothing, a bool, a number, a text, a row of its own (such as a summary), or a list of rows or of values.
class Value {
 public:
  Value() = default;
  // Rows read as they print: values convert by themselves. NOLINTBEGIN(google-explicit-constructor)
  Value(bool v) : held_(v) {}
  Value(const char* v) : held_(std::string(v)) {}
  Value(std::string_view v) : held_(std::string(v)) {}
  Value(std::string v) : held_(std::move(v)) {}
  Value(double v) : held_(v) {}
  template <std::integral Integer>
  Value(Integer v) : held_(static_cast<std::int64_t>(v)) {}
  Value(Row v);
  Value(Rows v);
  Value(Values v);
  template <class T>
  Value(const std::optional<T>& v) {
    if (v) *this = Value(*v);
  }
  // NOLINTEND(google-explicit-constructor)

  bool empty() const { return std::holds_alternative<std::monostate>(held_); }
  const bool* boolean() const { return std::get_if<bool>(&held_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&held_); }
  const double* real() const { return std::get_if<double>(&held_); }
  const std::string* text() const { return std::get_if<std::string>(&held_); }
  const Row* row() const;
  const Rows* rows() const;
  const Values* values() const;
  // A number of either kind; 0 if it is none.
  double number() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::shared_ptr<const Row>,
               std::shared_ptr<const Rows>, std::shared_ptr<const Values>>
      held_;
};

class Row {
 public:
  using Entry = std::pair<std::string, Value>;

  Row() = default;
  Row(std::initializer_list<Entry> entries) : entries_(entries) {}

  // Sets a value, behind those that are there, or in the place of the one with this name.
  Row& set(std::string_view name, Value value);
  void append(const Row& other);
  // An empty value if there is none of this name.
  const Value& operator[](std::string_view name) const;
  bool contains(std::string_view name) const;
  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace cm384::studies
