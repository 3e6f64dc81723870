// The cross-compiler as kernels are compiled with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace cm384::cli {

enum class CoreKind : std::uint8_t { vector, cube };

// Folder of the runtime's headers that come with the program. Throws InputError where it is missing.
std::filesystem::path kernel_runtime();

// The command line up to the sources: what is wrong is said without carets and colours, for
// compiler_errors().
std::vector<std::string> compiler_words(const std::filesystem::path& runtime, CoreKind kind,
                                        const std::string& optimise, const std::vector<std::string>& include,
                                        const std::vector<std::string>& define);

// What the compiler has said but for macros without a value, which compiler_errors() looks at.
std::string without_undefined(const std::string& said);

// Names that a source has for something of its own beside functions of the library, and that it would reach
// both by `using namespace AscendC`: by what the compiler said. The source means its own.
std::set<std::string> clashing_names(const std::string& said);
// A header to be included before anything else, by which the library has other names for these.
std::string header_without(const std::set<std::string>& names);

}  // namespace cm384::cli
