// Exit codes of the command: a contract.
#pragma once

namespace cm384::cli {

enum ExitCode : int {
  kDone = 0,
  kCheckFailed = 1,
  kBadInput = 2,
  kMachineHung = 3,
  kInternalError = 4,
  kOutputFailed = 5,
  kInterrupted = 130,
};

}  // namespace cm384::cli
