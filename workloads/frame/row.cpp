#include "workloads/frame/row.h"

#include <algorithm>

namespace cm384::studies {

Value::Value(Row v) : held_(std::make_shared<const Row>(std::move(v))) {}

Value::Value(Rows v) : held_(std::make_shared<const Rows>(std::move(v))) {}

Value::Value(Values v) : held_(std::make_shared<const Values>(std::move(v))) {}

const Row* Value::row() const {
  const auto* held = std::get_if<std::shared_ptr<const Row>>(&held_);
  return held == nullptr ? nullptr : held->get();
}

const Rows* Value::rows() const {
  const auto* held = std::get_if<std::shared_ptr<const Rows>>(&held_);
  return held == nullptr ? nullptr : held->get();
}

const Values* Value::values() const {
  const auto* held = std::get_if<std::shared_ptr<const Values>>(&held_);
  return held == nullptr ? nullptr : held->get();
}

double Value::number() const {
  if (const double* value = real()) return *value;
  if (const std::int64_t* value = integer()) return static_cast<double>(*value);
  return 0;
}

Row& Row::set(std::string_view name, Value value) {
  const auto entry = std::ranges::find(entries_, name, &Entry::first);
  if (entry != entries_.end()) {
    entry->second = std::move(value);
  } else {
    entries_.emplace_back(std::string(name), std::move(value));
  }
  return *this;
}

void Row::append(const Row& other) {
  for (const auto& [name, value] : other.entries_) set(name, value);
}

const Value& Row::operator[](std::string_view name) const {
  static const Value none;
  const auto entry = std::ranges::find(entries_, name, &Entry::first);
  return entry == entries_.end() ? none : entry->second;
}

bool Row::contains(std::string_view name) const {
  return std::ranges::find(entries_, name, &Entry::first) != entries_.end();
}

}  // namespace cm384::studies
