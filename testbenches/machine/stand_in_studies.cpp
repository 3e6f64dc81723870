#include "testbenches/machine/stand_in_studies.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "hw/error.h"
#include "studies/options.h"

namespace cm384::studies {
namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("bytes", size_option(7680_B), "bytes a message");
  options.add_options()("program", text_option("", "FILE"), "a positional argument");
}

StudyResult good(const StudyContext& context) {
  StudyResult result;
  result.rows.push_back({{"bytes", context.option<Bytes>("bytes").count},
                         {"program", context.option<std::string>("program")},
                         {"aiv", context.machine.die.aiv},
                         {"seed", context.seed}});
  return result;
}

StudyResult failed(const StudyContext& context) {
  StudyResult result = good(context);
  result.passed = false;
  return result;
}

StudyResult hung(const StudyContext&) {
  throw MachineError("no progress for 5 ms of simulated time\n  die 0 aiv 3 waits for flag 7");
}

StudyResult broken(const StudyContext&) {
  throw std::logic_error("an invariant");
}

// Runs until it is interrupted, at most 20 s.
StudyResult endless(const StudyContext& context) {
  StudyResult result = good(context);
  for (int i = 0; i < 2000 && context.interrupted == 0; ++i) {
    context.progress.update(-1, Time{i}, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  result.complete = context.interrupted == 0;
  return result;
}

}  // namespace

std::span<const Study> stand_in_studies() {
  static constexpr Study table[] = {
      {"good", "ends well", add_options, good, "program"},
      {"failed", "a check fails", add_options, failed},
      {"hung", "the machine hangs", add_options, hung},
      {"broken", "an internal error", add_options, broken},
      {"endless", "until interrupted", add_options, endless},
  };
  return table;
}

}  // namespace cm384::studies
