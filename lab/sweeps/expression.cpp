#include "lab/sweeps/expression.h"

#include <fmt/format.h>
#include <muParser.h>

#include <cctype>
#include <cmath>
#include <map>

#include "base/text/error.h"
#include "lab/sweeps/scale.h"

namespace cm384::sweeps {
// Texts compare by number: each that is met gets the next one. Above any quantity that makes sense.
class TextNumbers {
 public:
  double operator()(const std::string& text) {
    return 1e300 * (1 + static_cast<double>(known_.try_emplace(text, known_.size()).first->second) * 1e-9);
  }

 private:
  std::map<std::string, std::size_t> known_;
};

namespace {

// A literal with a unit: digits and letters, with "/s" behind them if that is a rate ("28GB/s", but
// "9us/step").
int read_quantity(const char* at, int* position, double* value) {
  const auto is = [at](std::size_t i, auto&& kind) { return kind(static_cast<unsigned char>(at[i])) != 0; };
  std::size_t digits = 0;
  while (is(digits, isdigit) || at[digits] == '.') ++digits;
  std::size_t letters = digits;
  while (is(letters, isalpha)) ++letters;
  if (digits == 0 || letters == digits) return 0;
  const bool rate = at[letters] == '/' && at[letters + 1] == 's' && !is(letters + 2, isalnum);
  for (const std::size_t length : {rate ? letters + 2 : letters, letters}) {
    const auto number = parse_quantity(std::string_view(at, length));
    if (!number) continue;
    *position += static_cast<int>(length);
    *value = *number;
    return 1;
  }
  return 0;
}

// muParser would take "ranks = 64" for an assignment, whose value is 64. Texts in quotes are skipped.
void check_assignments(const std::string& text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote != 0 || text[i] == '"' || text[i] == '\'') {
      quote = quote == 0 ? text[i] : text[i] == quote ? '\0' : quote;
      continue;
    }
    if (text[i] != '=') continue;
    const bool compares = (i > 0 && std::string_view("<>!").find(text[i - 1]) != std::string_view::npos) ||
                          (i + 1 < text.size() && text[i + 1] == '=');
    if (!compares)
      throw InputError(fmt::format("'{}': = would change a value; allowed: == to compare", text));
    if (text[i + 1] == '=') ++i;
  }
}

}  // namespace

struct Expression::Parser {
  mu::Parser parser;
  TextNumbers texts;
  std::map<std::string, double> variables;
};

Expression::Expression(const std::string& text) : text_(text), parser_(std::make_unique<Parser>()) {
  check_assignments(text);
  // Texts in quotes become numbers before muParser sees them.
  std::string prepared;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"' && text[i] != '\'') {
      prepared += text[i];
      continue;
    }
    const std::size_t end = text.find(text[i], i + 1);
    if (end == std::string::npos) throw InputError(fmt::format("'{}': a quote does not end", text));
    prepared += fmt::format("({:.17g})", parser_->texts(text.substr(i + 1, end - i - 1)));
    i = end;
  }
  try {
    mu::Parser& parser = parser_->parser;
    parser.DefineNameChars("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.");
    parser.AddValIdent(read_quantity);
    parser.SetExpr(prepared);
    for (const auto& [name, variable] : parser.GetUsedVar()) names_.push_back(name);
    for (const std::string& name : names_) parser.DefineVar(name, &parser_->variables[name]);
    parser.Eval();  // finds what GetUsedVar() does not
  } catch (const mu::ParserError& error) {
    throw InputError(fmt::format("'{}': {}", text, error.GetMsg()));
  }
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

double Expression::value(const Names& names) const {
  for (auto& [name, variable] : parser_->variables) {
    const Meaning meaning = names(name);
    variable = meaning.number ? *meaning.number : parser_->texts(meaning.text);
  }
  double value = 0;
  try {
    value = parser_->parser.Eval();
  } catch (const mu::ParserError& error) {
    throw InputError(fmt::format("'{}': {}", text_, error.GetMsg()));
  }
  if (!std::isfinite(value)) throw InputError(fmt::format("'{}': has no finite value here", text_));
  return value;
}

}  // namespace cm384::sweeps
