// Conditions between axes and formulas of cost columns, in muParser's language: + - * / ^, comparisons, &&
// ||, min, max, sqrt, log2 and the like. Names are keys of axes and options ("ub.link.bandwidth", "ranks"),
// literals may be quantities ("28GB/s") and texts in quotes ("spray"). Quantities count in base units.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cm384::sweeps {

class Expression {
 public:
  // What a name stands for: a number, or a text. Throws InputError for an unknown one.
  struct Meaning {
    std::optional<double> number;
    std::string text;
  };
  using Names = std::function<Meaning(const std::string& name)>;

  // Throws InputError, which quotes the text, if it is malformed.
  explicit Expression(const std::string& text);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  const std::string& text() const { return text_; }
  // Names that it mentions, sorted.
  const std::vector<std::string>& names() const { return names_; }
  // Throws InputError if the value is not finite.
  double value(const Names& names) const;

 private:
  struct Parser;
  std::string text_;
  std::vector<std::string> names_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace cm384::sweeps
