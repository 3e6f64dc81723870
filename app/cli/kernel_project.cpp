#include "app/cli/kernel_project.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string_view>

#include "app/cli/kernel_source.h"
#include "base/text/input_file.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;

struct DataType {
  const char* name;
  int number;
  const char* type;
};
// Numbers as in the runtime's template_argument.h.
constexpr DataType kDataTypes[] = {
    {"DT_FLOAT", 0, "float"},      {"DT_FLOAT16", 1, "half"},         {"DT_INT8", 2, "int8_t"},
    {"DT_INT32", 3, "int32_t"},    {"DT_UINT8", 4, "uint8_t"},        {"DT_INT16", 6, "int16_t"},
    {"DT_UINT16", 7, "uint16_t"},  {"DT_UINT32", 8, "uint32_t"},      {"DT_INT64", 9, "int64_t"},
    {"DT_UINT64", 10, "uint64_t"}, {"DT_DOUBLE", 11, "double"},       {"DT_BOOL", 12, "bool"},
    {"DT_BF16", 27, "bfloat16_t"}, {"DT_BFLOAT16", 27, "bfloat16_t"}, {"DT_INT4", 29, "int4b_t"},
};

// "add_custom" and "AddCustom" alike.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}
std::string capitals(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// Of chips with other cores.
bool of_another_chip(const fs::path& path) {
  static const std::regex other("arch35|arch31|ascend950|ascend310|regbase|_apt\\b|/tests?/|/ut/");
  return std::regex_search(path.generic_string(), other);
}

// Text with comments as spaces, strings as they are.
std::string without_comments(const std::string& text) {
  std::string code = masked(text);
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code[at] != '"') continue;
    const std::size_t end = code.find('"', at + 1);
    if (end == std::string::npos) break;
    std::copy(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
              code.begin() + static_cast<std::ptrdiff_t>(at));
    at = end;
  }
  return code;
}

// The words DT_.. or FORMAT_.. of a list: in braces, or of the variable that is named.
std::vector<std::string> words_of(const std::string& list, const std::string& code, const char* start) {
  const std::regex word(fmt::format("\\b{}[A-Z0-9_]+\\b", start)), variable("^\\s*([A-Za-z_0-9:]+)\\s*$");
  std::smatch found;
  std::string text = list;
  if (std::regex_match(list, found, variable)) {
    const std::regex set(fmt::format("\\b{}\\s*(?:=\\s*)?\\{{([^}}]*)\\}}", found[1].str()));
    if (std::smatch at; std::regex_search(code, at, set)) text = at[1];
  }
  std::vector<std::string> words;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), word); it != std::sregex_iterator(); ++it)
    words.push_back(it->str());
  return words;
}

// What stands in the brackets of `.call(`..`)`; empty: the chain has no such call.
std::string given(const std::string& chain, const char* call) {
  const std::regex where(fmt::format("\\.\\s*{}\\s*\\(", call));
  std::smatch found;
  if (!std::regex_search(chain, found, where)) return {};
  const auto open = static_cast<std::size_t>(found.position() + found.length() - 1);
  const std::size_t behind = behind_bracket(chain, open);
  return behind == std::string::npos ? std::string() : chain.substr(open + 1, behind - open - 2);
}

OperatorDefinition definition(const std::string& type, const std::string& body, const std::string& code) {
  // Of a configuration of its own for another chip nothing is read; that of A2 or A3 comes before what is for
  // all.
  static const std::regex chain(
      "(this\\s*->|\\b[A-Za-z_0-9]+\\s*\\.)\\s*(?:Input|Output)\\s*\\(\\s*\"([^\"]+)\"([^;]*);"),
      config("AddConfig\\s*\\(\\s*\"(ascend910b|ascend910_93)\"\\s*,\\s*([A-Za-z_0-9]+)");
  std::set<std::string> ours;
  for (auto it = std::sregex_iterator(body.begin(), body.end(), config); it != std::sregex_iterator(); ++it)
    ours.insert((*it)[2]);
  OperatorDefinition made{.type = type, .tensors = {}};
  for (auto it = std::sregex_iterator(body.begin(), body.end(), chain); it != std::sregex_iterator(); ++it) {
    std::string object = (*it)[1];
    std::erase_if(object,
                  [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; });
    const bool of_config = object != "this";
    if (of_config && !ours.contains(object)) continue;
    const std::string name = (*it)[2], calls = (*it)[3];
    std::string list = given(calls, "DataType");
    if (list.empty()) list = given(calls, "DataTypeList");
    OperatorDefinition::Tensor tensor{name, words_of(list, code, "DT_"), {}};
    tensor.formats = words_of(given(calls, "Format"), code, "FORMAT_");
    const auto same = std::ranges::find(made.tensors, name, &OperatorDefinition::Tensor::name);
    if (same == made.tensors.end()) {
      made.tensors.push_back(std::move(tensor));
    } else if (of_config && !tensor.types.empty()) {
      *same = std::move(tensor);
    }
  }
  return made;
}

// One structure of tiling data, between its two macros.
struct TilingStruct {
  std::string name, body;
  std::vector<std::string> inner;  // structures that it has as fields
  std::string file;
};
struct TilingSources {
  std::vector<TilingStruct> structs;
  std::vector<std::pair<std::string, std::string>> registered;  // name, structure
};

// Constants that the lengths of arrays are given by, as what they are.
std::string with_constants(const std::string& text, const std::string& code, int depth = 0) {
  static const std::regex word("[A-Za-z_][A-Za-z_0-9:]*");
  std::string made;
  std::size_t last = 0;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), word); it != std::sregex_iterator(); ++it) {
    std::string name = it->str();
    name = name.substr(name.rfind(':') + 1);
    made += text.substr(last, static_cast<std::size_t>(it->position()) - last);
    last = static_cast<std::size_t>(it->position() + it->length());
    const std::regex value(
        fmt::format("(?:\\bconst(?:expr)?\\s[^;=#]*\\b{0}\\s*(?:=\\s*([^;]+)|\\{{([^}}]+)\\}});)|(?:#\\s*"
                    "define\\s+{0}\\s+([^\\n]+))",
                    name));
    std::smatch found;
    if (depth < 8 && std::regex_search(code, found, value)) {
      const std::string is = found[1].matched ? found[1] : found[2].matched ? found[2] : found[3];
      made += "(" + with_constants(is, code, depth + 1) + ")";
    } else {
      made += it->str();
    }
  }
  return made + text.substr(last);
}

TilingSources tiling_of(const std::vector<std::string>& sources) {
  static const std::regex block("BEGIN_TILING_DATA_DEF\\s*\\(\\s*([A-Za-z_0-9]+)\\s*\\)"),
      field("TILING_DATA_FIELD_DEF(_ARR|_STRUCT)?\\s*\\("),
      registration("REGISTER_TILING_DATA_CLASS\\s*\\(\\s*([A-Za-z_0-9]+)\\s*,\\s*([A-Za-z_0-9:]+)\\s*\\)");
  TilingSources all;
  std::string constants;
  std::vector<std::string> codes;
  for (const std::string& path : sources) {
    codes.push_back(without_comments(read_input(path)));
    if (codes.back().find("TILING_DATA_FIELD_DEF") != std::string::npos) constants += codes.back() + "\n";
  }
  for (const std::string& code : codes)
    constants += code.find("TILING_DATA_FIELD_DEF") == std::string::npos ? code + "\n" : "";
  for (std::size_t n = 0; n < sources.size(); ++n) {
    const std::string& code = codes[n];
    for (auto it = std::sregex_iterator(code.begin(), code.end(), block); it != std::sregex_iterator();
         ++it) {
      const auto from = static_cast<std::size_t>(it->position() + it->length());
      const std::size_t to = code.find("END_TILING_DATA_DEF", from);
      const std::string name = (*it)[1];
      if (to == std::string::npos ||
          std::ranges::find(all.structs, name, &TilingStruct::name) != all.structs.end())
        continue;
      const std::string inside = code.substr(from, to - from);
      TilingStruct made{name, {}, {}, sources[n]};
      for (auto f = std::sregex_iterator(inside.begin(), inside.end(), field); f != std::sregex_iterator();
           ++f) {
        const auto open = static_cast<std::size_t>(f->position() + f->length() - 1);
        const std::size_t behind = behind_bracket(inside, open);
        if (behind == std::string::npos) break;
        std::vector<std::string> given_list =
            split_arguments(std::string_view(inside).substr(open + 1, behind - open - 2), true);
        const std::string kind = (*f)[1];
        if (kind == "_ARR" && given_list.size() == 3)
          given_list[1] = with_constants(given_list[1], constants);
        if (kind == "_STRUCT" && !given_list.empty()) {
          given_list[0] = given_list[0].substr(given_list[0].rfind(':') + 1);
          made.inner.push_back(given_list[0]);
        }
        made.body += fmt::format("TILING_DATA_FIELD_DEF{}({})\n", kind, fmt::join(given_list, ", "));
      }
      all.structs.push_back(std::move(made));
    }
    for (auto it = std::sregex_iterator(code.begin(), code.end(), registration); it != std::sregex_iterator();
         ++it) {
      std::string name = (*it)[2];
      all.registered.emplace_back((*it)[1], name.substr(name.rfind(':') + 1));
    }
  }
  return all;
}

void write_struct(const TilingSources& all, const std::string& name, std::set<std::string>& written,
                  std::string& text) {
  const auto found = std::ranges::find(all.structs, name, &TilingStruct::name);
  if (found == all.structs.end() || !written.insert(name).second) return;
  for (const std::string& inner : found->inner) write_struct(all, inner, written, text);
  text += fmt::format("BEGIN_TILING_DATA_DEF({})\n{}END_TILING_DATA_DEF;\n", name, found->body);
}

// The structure of a kernel; empty where nothing says it.
std::string default_struct(const TilingSources& all, const std::string& kernel, const std::string& key) {
  const std::string own = plain_name(kernel);
  const auto registered = [&](const std::string& name) {
    for (const auto& [of, structure] : all.registered) {
      if (plain_name(of) == name) return structure;
    }
    return std::string();
  };
  std::string found = key.empty() ? std::string() : registered(own + key);
  if (found.empty()) found = registered(own);
  if (!found.empty()) return found;
  // Those of an operator of another name: the only one, or the first of this one's name with a key.
  std::vector<std::string> outer;
  for (const auto& registration : all.registered) {
    const std::string& structure = registration.second;
    const bool inner = std::ranges::any_of(
        all.structs, [&](const TilingStruct& s) { return std::ranges::count(s.inner, structure) != 0; });
    if (plain_name(registration.first).starts_with(own)) return structure;
    if (!inner) outer.push_back(structure);
  }
  if (!outer.empty()) return outer.front();
  if (all.registered.empty() && !all.structs.empty()) return all.structs.back().name;
  return {};
}

}  // namespace

std::size_t OperatorDefinition::columns() const {
  std::size_t most = 0;
  for (const Tensor& tensor : tensors) most = std::max(most, tensor.types.size());
  return most;
}

std::string OperatorDefinition::column_text(std::size_t column) const {
  std::string text;
  for (const Tensor& tensor : tensors) {
    if (tensor.types.empty()) continue;
    const std::string& data_type = tensor.types[std::min(column, tensor.types.size() - 1)];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tensor.name, data_type);
  }
  return text;
}

std::vector<std::string> OperatorDefinition::macros(std::size_t column) const {
  std::vector<std::string> made;
  for (const Tensor& tensor : tensors) {
    const std::string name = capitals(tensor.name);
    if (!tensor.types.empty()) {
      const std::string& data_type = tensor.types[std::min(column, tensor.types.size() - 1)];
      // A type that there is not has no number to be compared, and no C++ type.
      if (const std::string is = element_type(data_type); !is.empty())
        made.push_back(fmt::format("DTYPE_{}={}", name, is));
      made.push_back(fmt::format("ORIG_DTYPE_{}={}", name, data_type));
    }
    if (!tensor.formats.empty())
      made.push_back(
          fmt::format("FORMAT_{}={}", name, tensor.formats[std::min(column, tensor.formats.size() - 1)]));
  }
  return made;
}

std::optional<fs::path> project_of(const fs::path& source) {
  fs::path folder = fs::absolute(source).lexically_normal().parent_path();
  for (int up = 0; up < 4 && folder != folder.root_path(); ++up, folder = folder.parent_path()) {
    if (fs::is_directory(folder / "op_host")) return folder;
  }
  return std::nullopt;
}

std::vector<std::string> host_sources(const fs::path& project) {
  std::set<std::pair<std::ptrdiff_t, std::string>> found;  // those that lie higher first
  for (const char* part : {"op_host", "op_tiling", "op_kernel"}) {
    if (!fs::is_directory(project / part)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(project / part)) {
      const fs::path& path = entry.path();
      const std::string ending = path.extension().string();
      if (!entry.is_regular_file() || of_another_chip(fs::relative(path, project)) ||
          (ending != ".cpp" && ending != ".h" && ending != ".hpp" && ending != ".cc"))
        continue;
      // Of kernels only what defines tiling data by the macros.
      if (std::string_view(part) == "op_kernel" &&
          read_input(path.string()).find("BEGIN_TILING_DATA_DEF") == std::string::npos)
        continue;
      const fs::path below = path.lexically_relative(project);
      found.emplace(std::distance(below.begin(), below.end()), path.string());
    }
  }
  std::vector<std::string> paths;
  for (const auto& [depth, path] : found) paths.push_back(path);
  return paths;
}

std::vector<OperatorDefinition> operator_definitions(const std::vector<std::string>& sources) {
  static const std::regex head(
      "class\\s+([A-Za-z_0-9]+)\\s*(?:final\\s*)?:\\s*public\\s+(?:[a-z_]+::)?OpDef\\s*\\{");
  std::vector<OperatorDefinition> all;
  for (const std::string& path : sources) {
    const std::string text = read_input(path);
    if (text.find("OpDef") == std::string::npos) continue;
    const std::string code = without_comments(text), shape = masked(text);
    for (auto it = std::sregex_iterator(code.begin(), code.end(), head); it != std::sregex_iterator(); ++it) {
      const auto open = static_cast<std::size_t>(it->position() + it->length() - 1);
      const std::size_t behind = behind_bracket(shape, open);
      if (behind == std::string::npos) continue;
      all.push_back(definition((*it)[1], code.substr(open, behind - open), code));
    }
  }
  return all;
}

bool is_name_of(const std::string& type, const std::string& kernel) {
  return plain_name(type) == plain_name(kernel);
}

const OperatorDefinition* definition_of(const std::vector<OperatorDefinition>& all,
                                        const std::string& kernel) {
  const auto found = std::ranges::find(all, plain_name(kernel),
                                       [](const OperatorDefinition& d) { return plain_name(d.type); });
  if (found != all.end()) return &*found;
  return all.size() == 1 ? &all.front() : nullptr;
}

std::string tiling_header(const std::vector<std::string>& sources, const std::string& kernel,
                          const std::string& key) {
  const TilingSources all = tiling_of(sources);
  if (all.structs.empty()) return {};
  std::string text =
      "#pragma once\n#include \"kernel_tiling/kernel_tiling.h\"\n#include \"register/tilingdata_base.h\"\n";
  std::set<std::string> written;
  for (const TilingStruct& one : all.structs) write_struct(all, one.name, written, text);
  if (const std::string chosen = default_struct(all, kernel, key); !chosen.empty())
    text += fmt::format("using Cm384TilingDefault [[maybe_unused]] = {};\n", chosen);
  // Kernels may include the definitions, too: they are there already, in the host's namespace as well.
  text +=
      "#undef BEGIN_TILING_DATA_DEF\n#define BEGIN_TILING_DATA_DEF(Name) struct alignas(8) Cm384Again##Name "
      "{\n";
  text += "namespace optiling {\n";
  for (const std::string& name : written) text += fmt::format("using ::{};\n", name);
  text += "}\n";
  return text;
}

std::string element_type(const std::string& data_type) {
  const auto found =
      std::ranges::find(kDataTypes, data_type, [](const DataType& t) { return std::string(t.name); });
  return found == std::end(kDataTypes) ? std::string() : found->type;
}
int data_type_number(const std::string& data_type) {
  const auto found =
      std::ranges::find(kDataTypes, data_type, [](const DataType& t) { return std::string(t.name); });
  return found == std::end(kDataTypes) ? -1 : found->number;
}
std::string element_type(int number) {
  const auto found = std::ranges::find(kDataTypes, number, &DataType::number);
  return found == std::end(kDataTypes) ? std::string() : found->type;
}

}  // namespace cm384::cli
