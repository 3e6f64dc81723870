// What a cross-compiler says of a kernel, as one line per thing that is wrong: at the kernel's own line, also
// where a header of the runtime complains, and with the nearest name that there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cm384::cli {

struct CompilerError {
  enum class Kind : std::uint8_t { name, member, form, header, macro, other };
  Kind kind = Kind::other;
  std::string file;  // as the compiler names it
  int line = 0, column = 0;
  std::string name;  // what is missing; empty: nothing is
  std::string text;

  // "kernel.cpp:7:3: error: 'Duplicat' was not declared in this scope; did you mean Duplicate?"
  std::string one_line() const;
};
const char* word_of(CompilerError::Kind kind);

// `said`: the compiler's standard error without carets and colours. `names`: those that there are. Of what
// follows from an error on the same line nothing is listed. Empty: the compiler said nothing of this kind.
std::vector<CompilerError> compiler_errors(std::string_view said, const std::filesystem::path& runtime,
                                           const std::vector<std::string>& names);

// Names that the runtime's headers declare or mention.
std::vector<std::string> runtime_names(const std::filesystem::path& runtime);

}  // namespace cm384::cli
