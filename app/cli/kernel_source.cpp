#include "app/cli/kernel_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/trim.hpp>
#include <cctype>
#include <regex>

#include "base/text/error.h"

namespace cm384::cli {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
void blank(std::string& text, std::size_t from, std::size_t to) {
  std::replace_if(
      text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(to),
      [](char c) { return c != '\n'; }, ' ');
}

// Lines of the preprocessor, with those that they go on in, become spaces.
std::string without_directives(std::string masked_source) {
  bool in_directive = false;
  for (std::size_t at = 0; at < masked_source.size();) {
    const std::size_t end = std::min(masked_source.find('\n', at), masked_source.size());
    const std::string_view line = std::string_view(masked_source).substr(at, end - at);
    const std::size_t first = line.find_first_not_of(" \t");
    in_directive = in_directive || (first != std::string_view::npos && line[first] == '#');
    const std::size_t last = line.find_last_not_of(" \t\r");
    const bool goes_on = last != std::string_view::npos && line[last] == '\\';
    if (in_directive) blank(masked_source, at, end);
    in_directive = in_directive && goes_on;
    at = end + 1;
  }
  return masked_source;
}

// A function's definition at namespace scope: from its first word to its last bracket.
struct Definition {
  std::size_t begin, body, end;
  std::string scope;  // "a::b::"
};
// Behind uses of macros on lines of their own, which have no semicolon as a rule.
std::size_t behind_macros(const std::string& code, std::size_t at) {
  static const std::regex use("^[A-Z][A-Z_0-9]*[ \\t]*\\(");
  for (;;) {
    std::smatch found;
    const auto from = code.begin() + static_cast<std::ptrdiff_t>(at);
    if (!std::regex_search(from, code.end(), found, use)) return at;
    const std::size_t behind = behind_bracket(code, at + static_cast<std::size_t>(found.length()) - 1);
    if (behind == std::string::npos) return at;
    const std::size_t next = code.find_first_not_of(" \t\r", behind);
    if (next == std::string::npos || code[next] != '\n') return at;
    at = code.find_first_not_of(" \t\r\n", next);
    if (at == std::string::npos) return next;
  }
}

// Empty where brackets do not match, as they may where a condition of the preprocessor cuts through them.
// `types`: those of classes, too.
std::vector<Definition> definitions(const std::string& code, bool types = false) {
  static const std::regex named_space("(?:^|\\s)namespace\\s+([A-Za-z_0-9:]+)\\s*$"),
      transparent("(?:^|\\s)(?:namespace(?:\\s+[A-Za-z_0-9:]+)?|extern\\s*\"\\s*\")\\s*$"),
      type("(?:^|[\\s>])(?:class|struct|union|enum)\\s[^()]*$");
  std::vector<Definition> found;
  std::vector<std::string> scopes;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    if (c == ';') {
      begin = at + 1;
    } else if (c == '(') {
      const std::size_t behind = behind_bracket(code, at);
      if (behind == std::string::npos) return {};
      at = behind - 1;
    } else if (c == '}') {
      if (scopes.empty()) return {};
      scopes.pop_back();
      begin = at + 1;
    } else if (c == '{') {
      const std::string head = code.substr(begin, at - begin);
      std::smatch name;
      if (std::regex_search(head, transparent)) {
        scopes.push_back(std::regex_search(head, name, named_space) ? name[1].str() + "::" : "");
        begin = at + 1;
        continue;
      }
      const std::size_t behind = behind_bracket(code, at);
      if (behind == std::string::npos) return {};
      if (std::regex_search(head, type) ? types : head.find('(') != std::string::npos) {
        std::string scope;
        for (const std::string& of : scopes) scope += of;
        const std::size_t first = behind_macros(code, code.find_first_not_of(" \t\r\n", begin));
        found.push_back({first, at, behind, std::move(scope)});
        begin = behind;
      }
      at = behind - 1;
    }
  }
  return scopes.empty() ? found : std::vector<Definition>{};
}

bool is_of_host(const std::string& text) {
  static const std::regex core("__aicore__|\\[\\s*aicore\\s*\\]|__global__"), launch("<<<"),
      main("(?:^|\\s)main\\s*\\("),
      library(
          "\\bacl[a-z]*[A-Z]|\\bACL_|\\bstd::(?:vector|string|c?out|cerr|ifstream|ofstream|unique_ptr|"
          "shared_ptr|map|unordered_map|stringstream|function|runtime_error)\\b|\\bat::|\\btorch::|"
          "\\bc10(?:_npu)?::|\\bICPU_RUN_KF\\b|\\bGmAlloc\\b|\\bACLRT_LAUNCH_KERNEL\\b");
  if (std::regex_search(text, core)) return false;
  return std::regex_search(text, launch) || std::regex_search(text, main) || std::regex_search(text, library);
}

// Conditions of the preprocessor inside stay, so that they match.
void blank_definition(std::string& source, std::string& text, const std::string& code,
                      const Definition& one) {
  for (std::size_t at = one.begin; at < one.end;) {
    const std::size_t end = std::min(text.find('\n', at), one.end);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::size_t first = line.find_first_not_of(" \t\r");
    const bool directive = first != std::string_view::npos && code[at + first] == ' ';
    if (!directive) {
      blank(source, at, end);
      blank(text, at, end);
    }
    at = end + 1;
  }
}

// Place of the bracket that opens a function's parameters, behind `from`; npos: there is none.
std::size_t parameter_list(const std::string& head, std::size_t from) {
  std::size_t last = std::string::npos;
  for (std::size_t at = from; at < head.size(); ++at) {
    if (head[at] != '(') continue;
    last = at;
    at = behind_bracket(head, at) - 1;
  }
  return last;
}
// The name before the last list in brackets.
std::string entry_name(const std::string& head) {
  static const std::regex name("([A-Za-z_0-9]+)\\s*$");
  const std::size_t list = parameter_list(head, 0);
  std::smatch found;
  const std::string before = head.substr(0, list == std::string::npos ? 0 : list);
  return std::regex_search(before, found, name) ? found[1].str() : std::string();
}

std::string name_of(const std::string& code, const Definition& one) {
  return entry_name(code.substr(one.begin, one.body - one.begin));
}
// Whose launch `<<<` at `at` begins, and where its name does.
struct Called {
  std::size_t begin = 0;
  TemplateLaunch launch;
};
std::optional<Called> called_before(const std::string& text, std::size_t at) {
  static const std::regex name("([A-Za-z_0-9:]+)\\s*$");
  std::string before = text.substr(0, at);
  Called called;
  const std::size_t last = before.find_last_not_of(" \t\r\n");
  if (last != std::string::npos && before[last] == '>') {
    int depth = 0;
    std::size_t open = last + 1;
    while (open-- > 0) {
      depth += before[open] == '>' ? 1 : before[open] == '<' ? -1 : 0;
      if (depth == 0) break;
    }
    if (depth != 0) return {};
    called.launch.arguments =
        split_arguments(std::string_view(before).substr(open + 1, last - open - 1), true);
    before.erase(open);
  }
  std::smatch found;
  if (!std::regex_search(before, found, name)) return {};
  called.begin = static_cast<std::size_t>(found.position(1));
  const std::string whole = found[1];
  called.launch.kernel = whole.substr(whole.rfind(':') + 1);
  return called;
}
std::vector<Definition> kernel_definitions(const std::string& code) {
  std::vector<Definition> found = definitions(code);
  std::erase_if(found, [&](const Definition& one) {
    return code.substr(one.begin, one.body - one.begin).find("__global__") == std::string::npos;
  });
  return found;
}

}  // namespace

std::string masked(std::string_view source) {
  std::string text(source);
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '/' && at + 1 < text.size() && (text[at + 1] == '/' || text[at + 1] == '*')) {
      const bool line = text[at + 1] == '/';
      std::size_t end = line ? text.find('\n', at) : text.find("*/", at + 2);
      end = end == std::string::npos ? text.size() : line ? end : end + 2;
      blank(text, at, end);
      at = end - 1;
    } else if (text[at] == '"' || (text[at] == '\'' && (at == 0 || !is_word(text[at - 1])))) {
      std::size_t end = at + 1;
      while (end < text.size() && text[end] != text[at] && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end, text.size());
      blank(text, at + 1, end);
      at = end;
    }
  }
  return text;
}

std::size_t behind_bracket(std::string_view text, std::size_t open) {
  const char begin = text[open], end = begin == '(' ? ')' : begin == '{' ? '}' : begin == '<' ? '>' : ']';
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    depth += text[at] == begin ? 1 : text[at] == end ? -1 : 0;
    if (depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

std::vector<std::string> split_arguments(std::string_view text, bool angles) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || (text[at] == ',' && depth == 0)) {
      parts.push_back(boost::algorithm::trim_copy(std::string(text.substr(begin, at - begin))));
      begin = at + 1;
      continue;
    }
    const char c = text[at];
    if (c == '(' || c == '{' || c == '[' || (angles && c == '<')) ++depth;
    if (c == ')' || c == '}' || c == ']' || (angles && c == '>')) --depth;
  }
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

std::string without_aicore(std::string source) {
  // A name follows: of a type, or a specifier.
  static const std::regex attribute("\\[\\s*aicore\\s*\\](?=\\s*[A-Za-z_])");
  std::smatch found;
  auto from = source.cbegin();
  while (std::regex_search(from, source.cend(), found, attribute)) {
    const auto at = static_cast<std::size_t>(found[0].first - source.cbegin());
    const auto length = static_cast<std::size_t>(found.length());
    blank(source, at, at + length);
    from = source.cbegin() + static_cast<std::ptrdiff_t>(at + length);
  }
  return source;
}

std::string without_host(std::string source) {
  std::string text = masked(source);
  const std::string code = without_directives(text);
  for (const Definition& one : definitions(code)) {
    if (is_of_host(code.substr(one.begin, one.end - one.begin))) blank_definition(source, text, code, one);
  }
  for (std::size_t at = 0; (at = text.find("<<<", at)) != std::string::npos;) {
    const std::size_t end = text.find(">>>", at);
    if (end == std::string::npos) break;
    for (std::string* one : {&source, &text}) {
      one->replace(end, 3, ")");
      one->replace(at, 3, " || Cm384Launch(");
    }
    at = end;
  }
  return source;
}

std::string for_host(std::string source, const std::function<bool(const std::string& name)>& is_header) {
  static const std::regex core("__aicore__|\\[\\s*aicore\\s*\\]|__global__"),
      library("\\bAscendC::|\\b(?:Local|Global)Tensor\\s*<|\\bTPipe\\b|\\bTQue\\s*<"),
      statement(
          "(?:^|[;}\\n])([^;{}#\\n]*(?:__global__|__aicore__|\\bAscendC::|\\[\\s*aicore\\s*\\])[^;{}]*;)"),
      include("(?:^|\\n)([ \\t]*#[ \\t]*include[ \\t]*\"([^\"\\n]+)\")");
  std::string text = masked(source);
  std::string code = without_directives(text);
  for (const Definition& one : definitions(code, true)) {
    const std::string whole = code.substr(one.begin, one.end - one.begin);
    if (std::regex_search(whole, core) || (!is_of_host(whole) && std::regex_search(whole, library)))
      blank_definition(source, text, code, one);
  }
  const auto blank_found = [&](const std::string& in, const std::regex& what, const auto& is) {
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (auto it = std::sregex_iterator(in.begin(), in.end(), what); it != std::sregex_iterator(); ++it) {
      const auto at = static_cast<std::size_t>(it->position(1));
      if (is(*it)) places.emplace_back(at, at + static_cast<std::size_t>(it->length(1)));
    }
    for (const auto& [begin, end] : places) {
      blank(source, begin, end);
      blank(text, begin, end);
    }
  };
  blank_found(without_directives(text), statement,
              [](const std::smatch& found) { return found[1].str().find("<<<") == std::string::npos; });
  blank_found(source, include, [&](const std::smatch& found) { return is_header(found[2]); });
  // What is replaced grows, so the last one first.
  for (std::size_t at = text.size(); (at = text.rfind("<<<", at)) != std::string::npos; --at) {
    const std::size_t end = text.find(">>>", at);
    const auto called = called_before(text, at);
    if (end == std::string::npos || !called) break;
    for (std::string* one : {&source, &text}) {
      one->replace(end, 3, ")");
      one->replace(called->begin, at + 3 - called->begin,
                   "::cm384_host::Launch(\"" + called->launch.image() + "\", ");
    }
    at = called->begin;
    if (at == 0) break;
  }
  return source;
}

std::string TemplateLaunch::image() const {
  if (arguments.empty()) return kernel;
  std::string name;
  for (const char c : fmt::format("{}<{}>", kernel, fmt::join(arguments, ","))) {
    if (c == '/' || c == '%' || c == '"' || c == '\\') {
      name += fmt::format("%{:02x}", static_cast<unsigned>(c));
    } else {
      name += c;
    }
  }
  return name;
}

std::vector<TemplateLaunch> template_launches(const std::string& source) {
  static const std::regex words("[A-Za-z_0-9]+"), header("(?:^|\\s)template\\s*<");
  const std::string code = without_directives(masked(source));
  std::vector<TemplateLaunch> launches;
  for (std::size_t at = 0; (at = code.find("<<<", at)) != std::string::npos; at += 3) {
    auto called = called_before(code, at);
    if (!called || called->launch.arguments.empty()) continue;
    const TemplateLaunch& launch = called->launch;
    for (const Definition& one : definitions(code)) {
      const std::string head = code.substr(one.begin, one.body - one.begin);
      std::smatch found;
      if (at < one.begin || at >= one.end || !std::regex_search(head, found, header)) continue;
      const auto open = static_cast<std::size_t>(found.position() + found.length() - 1);
      const std::size_t close = behind_bracket(head, open);
      const std::string own = close == std::string::npos ? "" : head.substr(open, close - open);
      for (const std::string& argument : launch.arguments) {
        if (std::regex_match(argument, words) &&
            std::regex_search(own, std::regex("\\b" + argument + "\\s*[,>=]")))
          throw InputError(fmt::format(
              "kernel build --host: a launch of {}<{}> in a template of the host's: {} is not known before "
              "it is compiled; launch it from a function of each kind",
              launch.kernel, fmt::join(launch.arguments, ", "), argument));
      }
    }
    if (std::ranges::find(launches, launch) == launches.end()) launches.push_back(launch);
  }
  return launches;
}

std::vector<std::string> kernel_names(const std::string& source) {
  const std::string code = without_directives(masked(source));
  std::vector<std::string> names;
  for (const Definition& one : kernel_definitions(code)) {
    const std::string head = code.substr(one.begin, one.body - one.begin);
    static const std::regex header("(?:^|\\s)template\\s*<");
    if (std::regex_search(head, header)) continue;
    if (std::string called = name_of(code, one); !called.empty()) names.push_back(std::move(called));
  }
  return names;
}

bool KernelEntry::takes_words() const {
  static const std::regex word(
      "\\*|\\b(?:GM_ADDR|u?int(?:8_|16_|32_|64_|ptr_|_)?t|int|unsigned|long|short|char|bool|size_t|void)\\b");
  return std::ranges::all_of(parameters, [](const std::string& p) { return std::regex_search(p, word); });
}
std::vector<KernelEntry> kernel_entries(const std::string& source) {
  static const std::regex header("(?:^|\\s)template\\s*<");
  const std::string code = without_directives(masked(source));
  std::vector<KernelEntry> entries;
  for (const Definition& one : kernel_definitions(code)) {
    const std::string head = code.substr(one.begin, one.body - one.begin);
    const std::size_t list = parameter_list(head, 0);
    const std::string called = name_of(code, one);
    if (std::regex_search(head, header) || list == std::string::npos || called.empty()) continue;
    const std::size_t behind = behind_bracket(head, list);
    entries.push_back({one.scope + called,
                       split_arguments(std::string_view(head).substr(list + 1, behind - list - 2), true)});
    std::erase(entries.back().parameters, "");
  }
  return entries;
}

std::string only_kernel(std::string source, const std::string& entry) {
  if (entry.empty()) return source;
  std::string text = masked(source);
  const std::string code = without_directives(text);
  const std::vector<Definition> kernels = kernel_definitions(code);
  const auto is_entry = [&](const Definition& one) { return name_of(code, one) == entry; };
  if (std::ranges::none_of(kernels, is_entry)) return source;
  for (const Definition& one : kernels) {
    if (!is_entry(one)) blank_definition(source, text, code, one);
  }
  return source;
}

bool has_kernel(const std::string& source, const std::string& entry) {
  const std::string code = without_directives(masked(source));
  return std::ranges::any_of(kernel_definitions(code),
                             [&](const Definition& one) { return name_of(code, one) == entry; });
}

std::string for_cores(std::string source) {
  return without_host(without_aicore(std::move(source)));
}

bool is_for_cores(const std::string& source) {
  static const std::regex core("__global__|__aicore__|\\[\\s*aicore\\s*\\]|kernel_operator|kernel_main");
  return std::regex_search(source, core);
}

std::string kind_in_source(std::string_view source) {
  static const std::regex kind(
      "__global__\\s+(__vector__|__cube__|__mix__\\s*\\(\\s*(\\d)\\s*,\\s*(\\d)\\s*\\))");
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(source.begin(), source.end(), found, kind)) return {};
  const std::string word = found[1];
  if (word == "__vector__") return "aiv";
  if (word == "__cube__") return "aic";
  const std::string group = found[2].str() + found[3].str();
  if (group == "12") return "mix";
  if (group == "10") return "aic";
  if (group == "01") return "aiv";
  throw InputError("kernel build: " + word +
                   ": groups are of one cube core and two vector cores: docs/ascend-c.md");
}

std::vector<TemplateEntry> template_entries(std::string_view source) {
  static const std::regex header("(?:^|\\s)template\\s*<"), parameter("^(.*?)\\s*\\b([A-Za-z_0-9]+)$");
  const std::string code = without_directives(masked(source));
  std::vector<TemplateEntry> entries;
  for (const Definition& one : definitions(code)) {
    const std::string head = code.substr(one.begin, one.body - one.begin);
    std::smatch found;
    if (head.find("__global__") == std::string::npos || !std::regex_search(head, found, header)) continue;
    const auto open = static_cast<std::size_t>(found.position() + found.length() - 1);
    const std::size_t close = behind_bracket(head, open);
    if (close == std::string::npos) continue;
    const std::size_t list = parameter_list(head, close);
    const std::string called = entry_name(head);
    if (list == std::string::npos || called.empty()) continue;
    TemplateEntry entry{.name = one.scope + called, .parameters = {}};
    for (std::string text :
         split_arguments(std::string_view(head).substr(open + 1, close - open - 2), true)) {
      TemplateEntry::Parameter made;
      const std::size_t equal = text.find('=');
      made.has_default = equal != std::string::npos;
      text = boost::algorithm::trim_copy(text.substr(0, equal));
      std::smatch parts;
      if (!std::regex_match(text, parts, parameter)) continue;
      made.name = parts[2];
      const std::string type = boost::algorithm::trim_copy(parts[1].str());
      made.is_type = type == "typename" || type == "class";
      entry.parameters.push_back(std::move(made));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace cm384::cli
