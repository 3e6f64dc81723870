#include "app/cli/compiler_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <tuple>
#include <utility>

#include "base/text/nearest_name.h"

namespace cm384::cli {
namespace {

struct Place {
  std::string file;
  int line = 0, column = 0;
};

Place place_of(const std::smatch& found) {
  const auto number = [](const std::string& digits) {
    int value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  return {found[1], number(found[2]), number(found[3])};
}

CompilerError::Kind kind_of(const std::string& text) {
  using Kind = CompilerError::Kind;
  const auto has = [&text](const char* part) { return text.find(part) != std::string::npos; };
  if (has("No such file or directory")) return Kind::header;
  if (has("has no member named")) return Kind::member;
  if (has("no matching function") || has("is ambiguous") || has("cannot convert") || has("could not convert"))
    return Kind::form;
  if (has("was not declared") || has("has not been declared") || has("is not a member of") ||
      has("does not name a type") || has("not there: docs/ascend-c.md"))
    return Kind::name;
  return Kind::other;
}

// Of the text of an error: what is missing.
std::string name_of(CompilerError::Kind kind, const std::string& text) {
  using Kind = CompilerError::Kind;
  static const std::regex header("^(.*): No such file"), quoted("['\"]([A-Za-z_0-9:]+)"),
      member("named '([A-Za-z_0-9]+)'"), refused("([A-Za-z_0-9]+)[^:]*: not there"),
      called("(?:to|of overloaded) '([A-Za-z_0-9:<>, ]*?)\\(");
  std::smatch found;
  const bool is_there = kind == Kind::header   ? std::regex_search(text, found, header)
                        : kind == Kind::member ? std::regex_search(text, found, member)
                        : kind == Kind::form   ? std::regex_search(text, found, called)
                        : kind != Kind::other  ? std::regex_search(text, found, refused) ||
                                                    std::regex_search(text, found, quoted)
                                              : false;
  if (!is_there) return {};
  std::string name = found[1];
  if (kind == Kind::name || kind == Kind::form) name = name.substr(name.rfind(':') + 1);
  return name;
}

// The compiler's own guess, which may be a name of the kernel's, is kept; else the nearest of the runtime's.
std::string with_nearest(const CompilerError& error, const std::vector<std::string>& names) {
  if (error.name.size() < 3 || error.kind == CompilerError::Kind::header ||
      error.kind == CompilerError::Kind::macro || error.text.find("did you mean") != std::string::npos)
    return error.text;
  if (std::ranges::find(names, error.name) != names.end()) return error.text;  // in another form
  return error.text + hw::suggestion(error.name, names);
}

}  // namespace

const char* word_of(CompilerError::Kind kind) {
  switch (kind) {
    case CompilerError::Kind::name:
      return "name";
    case CompilerError::Kind::member:
      return "member";
    case CompilerError::Kind::form:
      return "form";
    case CompilerError::Kind::header:
      return "header";
    case CompilerError::Kind::macro:
      return "macro";
    default:
      return "error";
  }
}

std::string CompilerError::one_line() const {
  return fmt::format("{}:{}:{}: error: {}", file, line, column, text);
}

std::vector<CompilerError> compiler_errors(std::string_view said, const std::filesystem::path& runtime,
                                           const std::vector<std::string>& names) {
  static const std::regex error_line("^([^:\n]+):(\\d+):(\\d+): (?:fatal )?error: (.*)$"),
      undefined("^([^:\n]+):(\\d+):(\\d+): warning: \"(.*)\" is not defined, evaluates to.*$"),
      required("^([^:\n]+):(\\d+):(\\d+):   (?:recursively )?required (?:from|by).*$"),
      expanded("^([^:\n]+):(\\d+):(\\d+): note: in (?:expansion|definition) of macro '(.*)'$"),
      context("^[^:\n]+: (?:In |At ).*$");
  const std::string own = runtime.string();
  const auto is_own = [&own](const std::string& file) { return file.starts_with(own); };
  std::vector<CompilerError> found_errors;
  Place user;         // of the instantiation that the compiler is in
  bool open = false;  // the last error stands in the runtime: an expansion in the kernel may follow
  std::size_t begin = 0;
  while (begin < said.size()) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    const std::string line(said.substr(begin, end - begin));
    begin = end + 1;
    std::smatch found;
    if (std::regex_match(line, found, error_line)) {
      Place at = place_of(found);
      open = is_own(at.file);
      if (open && !user.file.empty()) {
        at = user;
        open = false;
      }
      CompilerError made{.file = at.file, .line = at.line, .column = at.column, .name = {}, .text = found[4]};
      if (const std::string failed = "static assertion failed: "; made.text.starts_with(failed))
        made.text.erase(0, failed.size());
      made.kind = kind_of(made.text);
      made.name = name_of(made.kind, made.text);
      found_errors.push_back(std::move(made));
    } else if (std::regex_match(line, found, undefined)) {
      // Those of the compiler may be left undefined, others are the kernel's own or those of its build.
      if (const std::string name = found[4]; !name.starts_with("__") && !is_own(found[1])) {
        const Place at = place_of(found);
        found_errors.push_back({.kind = CompilerError::Kind::macro,
                                .file = at.file,
                                .line = at.line,
                                .column = at.column,
                                .name = name,
                                .text = fmt::format("macro '{}' is not defined: -D gives it", name)});
      }
    } else if (std::regex_match(line, found, required)) {
      if (Place at = place_of(found); !is_own(at.file)) user = at;
    } else if (std::regex_match(line, found, expanded)) {
      const Place at = place_of(found);
      if (open && !is_own(at.file)) {
        CompilerError& last = found_errors.back();
        last.file = at.file;
        last.line = at.line;
        last.column = at.column;
        if (last.kind == CompilerError::Kind::name &&
            last.text.find(last.name + ": not there") == std::string::npos) {
          last.name = found[4];
          last.text += fmt::format(", in {}", last.name);
        }
        open = false;
      }
    } else if (std::regex_match(line, found, context)) {
      user = {};
    }
  }
  // What is only a consequence: a parse error, or another of the same name, on a line that has one.
  std::set<std::pair<std::string, int>> lines;
  std::set<std::tuple<std::string, int, std::string>> told;
  std::vector<CompilerError> kept;
  for (CompilerError& error : found_errors) {
    const auto line = std::pair(error.file, error.line);
    if (error.name.empty() && lines.contains(line)) continue;
    if (!told.emplace(error.file, error.line, error.name.empty() ? error.text : error.name).second) continue;
    lines.insert(line);
    error.text = with_nearest(error, names);
    kept.push_back(std::move(error));
  }
  std::ranges::stable_sort(kept, {},
                           [](const CompilerError& e) { return std::tuple(e.file, e.line, e.column); });
  return kept;
}

std::vector<std::string> runtime_names(const std::filesystem::path& runtime) {
  static const std::regex word("[A-Za-z_][A-Za-z_0-9]{2,}");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(runtime)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".h") continue;
    std::ifstream in(entry.path());
    std::string line;
    while (std::getline(in, line)) {
      line.erase(std::min(line.find("//"), line.size()));
      if (line.find("_REFUSED") != std::string::npos) continue;
      for (auto it = std::sregex_iterator(line.begin(), line.end(), word); it != std::sregex_iterator(); ++it)
        names.insert(it->str());
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace cm384::cli
