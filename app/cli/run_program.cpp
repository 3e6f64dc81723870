#include "app/cli/run_program.h"

#include <fmt/format.h>

#include <utility>

#include "app/cli/exit_code.h"
#include "base/text/error.h"
#include "base/text/run_program.h"

namespace cm384::cli {

int run_program(const std::vector<std::string>& words, std::string_view package, std::string* said) {
  auto end = cm384::run_program(words, {.errors = said != nullptr ? Printed::kept : Printed::shown});
  if (!end)
    throw InputError(fmt::format("{} is not on PATH; Debian's package {} has it", words.front(), package));
  if (said != nullptr) *said = std::move(end->errors);
  return end->signal != 0 ? kInternalError : end->exit_code;
}

}  // namespace cm384::cli
