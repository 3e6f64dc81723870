#include "app/cli/kernel_front.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "app/cli/run_program.h"
#include "base/text/error.h"
#include "base/text/input_file.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;

std::string kind_of_cores(const std::string& value) {
  const auto has = [&](const char* part) { return value.find(part) != std::string::npos; };
  if (has("MIX_AIC_1_2")) return "mix";
  if (has("AIV")) return "aiv";
  if (has("AIC")) return "aic";
  return {};
}

// The kernel's name: of its function, as far as the source shows it.
std::string kernel_name(const std::string& text, const std::string& source) {
  static const std::regex entry(
      "__global__\\s+(?:__aicore__\\s+|__vector__\\s+|__cube__\\s+)*void\\s+([A-Za-z_0-9]+)\\s*\\(");
  const std::string code = masked(text);
  std::smatch found;
  return std::regex_search(code, found, entry) ? found[1].str() : fs::path(source).stem().string();
}

}  // namespace

KernelFront::KernelFront(const std::string& source, const ProjectChoice& choice, const std::string& entry)
    : choice_(choice),
      text_(for_cores(only_kernel(read_input(source), entry))),
      templates_(template_entries(text_)) {
  const auto project = project_of(source);
  const std::vector<std::string> host = project ? host_sources(*project) : std::vector<std::string>{};
  const std::string kernel = entry.empty() ? kernel_name(text_, source) : entry;
  tiling_ = tiling_header(choice.tiling.empty() ? host : choice.tiling, kernel, choice.key);
  if (!choice.key.empty()) define_.push_back("CM384_TILING_KEY=" + choice.key);
  const std::vector<OperatorDefinition> definitions = operator_definitions(host);
  const OperatorDefinition* const own = definition_of(definitions, kernel);
  const std::size_t columns = own == nullptr ? 0 : own->columns();
  if (choice.column != 0 && static_cast<std::size_t>(choice.column) >= columns)
    throw InputError(
        fmt::format("--column {}: the definition of {} has {} columns", choice.column, kernel, columns));
  if (columns == 0) return;
  const auto column = static_cast<std::size_t>(choice.column);
  define_ = own->macros(column);
  if (!choice.key.empty()) define_.push_back("CM384_TILING_KEY=" + choice.key);
  column_ = fmt::format("column {} of {}: {}", column, columns, own->column_text(column));
}

std::string KernelFront::chosen() const {
  return column_ + (column_.empty() || combination_.empty() ? "" : "; ") + combination_;
}

const TemplateEntry* KernelFront::entry_of(const std::string& entry) const {
  const auto found = std::ranges::find_if(templates_, [&](const TemplateEntry& t) {
    return entry.empty() || t.name == entry || t.name.ends_with("::" + entry);
  });
  return found == templates_.end() ? nullptr : &*found;
}

bool KernelFront::has_others() const {
  const std::string code = masked(text_);
  std::size_t marked = 0;
  for (std::size_t at = 0; (at = code.find("__global__", at)) != std::string::npos; ++at) ++marked;
  return marked > templates_.size();
}

void KernelFront::instantiate(const std::string& entry, std::vector<std::string> words,
                              const fs::path& scratch, bool of_sets) {
  const TemplateEntry* const kernel = entry_of(entry);
  if (kernel == nullptr) return;
  const TemplateChoice asked = template_choice(choice_.arguments);
  // Values that are macros become what they stand for, here as there.
  const std::string in = scratch.string() + ".sets.cpp", out = scratch.string() + ".sets";
  {
    std::ofstream file(in);
    file << text_ << "\n";
    for (const auto& [name, value] : asked) file << "CM384_ASKED(" << value << ")\n";
  }
  words.insert(words.end(), {"-E", "-P", "-DCM384_TEMPLATE_SETS", "-x", "c++", in, "-o", out});
  std::string said;
  const int code = run_program(words, "gcc-riscv64-unknown-elf", &said);
  const std::string made = code == 0 ? read_input(out) : std::string();
  std::error_code gone;
  fs::remove(in, gone);
  fs::remove(out, gone);
  if (code != 0) return;
  const TemplateSets sets(made);
  if (of_sets && sets.empty()) return;
  TemplateChoice choice = asked;
  static const std::regex value("CM384_ASKED\\s*\\((.*)\\)");
  std::size_t n = 0;
  for (auto it = std::sregex_iterator(made.begin(), made.end(), value); it != std::sregex_iterator(); ++it) {
    if (n < choice.size()) choice[n++].second = (*it)[1];
  }
  TemplateSets::Set chosen;
  if (!sets.empty()) {
    chosen = sets.choose(choice);
    std::vector<std::string> shown;
    for (const auto& p : chosen.parameters) {
      shown.push_back(p.name + "=" + TemplateSets::shown(p, p.values.front()));
      if (p.of_kind) kind_ = kind_of_cores(p.values.front());
    }
    combination_ = fmt::format("template {}", fmt::join(shown, ","));
    if (!chosen.tiling.empty()) define_.push_back("CM384_TILING_DEFAULT=" + chosen.tiling);
  }
  const std::vector<std::string> arguments = template_arguments(*kernel, sets, chosen, choice);
  text_ += instance_of(*kernel, arguments);
  instance_type_ = fmt::format("{}<{}>", kernel->name, fmt::join(arguments, ", "));
  instance_ = kernel->name.substr(kernel->name.rfind(':') + 1);
}

std::string KernelFront::name_with_types(const std::string& entry) const {
  if (!instance_.empty()) return instance_type_;
  const std::vector<KernelEntry> entries = kernel_entries(text_);
  for (const KernelEntry& one : entries) {
    if (entry.empty() ? entries.size() == 1 : one.name.substr(one.name.rfind(':') + 1) == entry)
      return one.takes_words() ? std::string() : one.name;
  }
  // One that a macro makes.
  return entry.starts_with("_Z") ? std::string() : entry;
}

bool KernelFront::call_by_types(const std::string& entry, std::vector<std::string> words,
                                const fs::path& scratch) {
  const std::string name = name_with_types(entry);
  if (name.empty()) return false;
  const std::string in = scratch.string() + ".types.cpp";
  std::ofstream(in) << text_ << "\nCM384_NEEDS_TYPES(" << name << ")\n";
  words.insert(words.end(), {"-fsyntax-only", "-x", "c++", in});
  std::string said;
  run_program(words, "gcc-riscv64-unknown-elf", &said);
  std::error_code gone;
  fs::remove(in, gone);
  if (said.find("cm384: arguments have types") == std::string::npos) return false;
  text_ += fmt::format("\nCM384_TYPED_KERNEL({})\n", name);
  return true;
}

}  // namespace cm384::cli
