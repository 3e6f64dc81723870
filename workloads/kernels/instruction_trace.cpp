#include "workloads/kernels/instruction_trace.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/text/error.h"

namespace cm384::studies {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw OutputError(
      fmt::format("--trace: {}: cannot be written: {}", path, std::generic_category().message(error)));
}

}  // namespace

InstructionTrace::InstructionTrace(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  file_.reset(std::fopen(path_.c_str(), "w"));
  if (!file_) refuse(path_, errno);
}

void InstructionTrace::close() {
  if (!file_) return;
  errno = 0;
  const bool good = std::ferror(file_.get()) == 0;
  if (std::fclose(file_.release()) != 0 || !good) refuse(path_, errno != 0 ? errno : ENOSPC);
}

}  // namespace cm384::studies
