// What a kernel's source says in forms that are not C++, or that are not for the cores.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cm384::cli {

// The source with comments and the contents of strings as spaces: the same length, the same lines.
std::string masked(std::string_view source);

// `[aicore]`, an attribute before a type, becomes spaces: a subscript or a capture of that name stays.
std::string without_aicore(std::string source);

// Functions of the host become empty lines: those that launch kernels by `name<<<blocks, l2, stream>>>(..)`,
// main, and those that call the host's runtime or library. Launches that stay, in macros, become expressions
// that do nothing.
std::string without_host(std::string source);

// Functions marked __global__ but the one named `entry` become empty lines; all stay where `entry` is empty
// or none has its name, as macros make it.
std::string only_kernel(std::string source, const std::string& entry);

// Whether only_kernel() finds it.
bool has_kernel(const std::string& source, const std::string& entry);

// Without what is of the host, and without [aicore].
std::string for_cores(std::string source);

// `name<half, 3><<<blocks, l2, stream>>>(..)`: each combination becomes an image of its own.
struct TemplateLaunch {
  std::string kernel;  // without its namespaces
  std::vector<std::string> arguments;
  // Another name for each, as name<half,3>, that a file can have and a string of C++: others are %2f.
  std::string image() const;
  friend bool operator==(const TemplateLaunch&, const TemplateLaunch&) = default;
};
// Of a source, each once. Throws InputError where an argument is a parameter of the host's own template.
std::vector<TemplateLaunch> template_launches(const std::string& source);

// The host's part alone: what is of the cores becomes empty lines, launches become calls of
// cm384_host::Launch. `is_header`: whether a header that the source includes is of the cores.
std::string for_host(std::string source, const std::function<bool(const std::string& name)>& is_header);
// Names of its kernels, but for templates and those that macros make.
std::vector<std::string> kernel_names(const std::string& source);

// A kernel that is no template: its name with its namespaces, its parameters as they are written.
struct KernelEntry {
  std::string name;
  std::vector<std::string> parameters;

  // Whether all are written as addresses and whole numbers.
  bool takes_words() const;
};
std::vector<KernelEntry> kernel_entries(const std::string& source);

// Whether a source has anything for the cores.
bool is_for_cores(const std::string& source);

// By `__cube__` and `__mix__(cube, vector)` behind `__global__`: "aic", "mix", "aiv", as --type has them;
// empty where the source says neither. Throws InputError for groups that are not there.
std::string kind_in_source(std::string_view source);

// A kernel that is a function template, `template <typename T, bool FAST> __global__ __aicore__ void name(`.
struct TemplateEntry {
  struct Parameter {
    bool is_type = false;
    std::string name;
    bool has_default = false;
  };
  std::string name;  // with its namespaces
  std::vector<Parameter> parameters;
};
std::vector<TemplateEntry> template_entries(std::string_view source);

// "a, f(b, c), d" at its commas outside of brackets, without spaces at the ends. `angles`: < and > are
// brackets.
std::vector<std::string> split_arguments(std::string_view text, bool angles = false);

// Place behind the bracket that closes the one at `open`; npos: none does.
std::size_t behind_bracket(std::string_view masked, std::size_t open);

}  // namespace cm384::cli
