#include "testbenches/hw/stand_in_studies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "base/engine/hang.h"
#include "base/text/error.h"

namespace cm384::studies {
namespace {

struct Options {
  Bytes bytes = 7680_B;
  std::string program;
  Texts part;
  bool deep = false;
  int depth = 1;
  std::string log;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("bytes", self.bytes, Range{1_B, 1_MiB}, "bytes of a message");
    visit("program", self.program, Form{"FILE"}, "a positional argument");
    visit("part", self.part, Form{"PART[=FILE]"}, "may be repeated");
    visit("deep", self.deep, "a flag");
    visit("depth", self.depth, Range{1, 9}, "of the flag", Needs{"deep", {}});
    visit("log", self.log, Form{"DIR"}, "where `slow` leaves a file for each run");
  }
};

constexpr std::array kFields{
    Field{"bytes", FieldType::integer, "of a message", true}.as_condition(),
    Field{"program", FieldType::text, "the positional argument", true}.as_condition(),
    Field{"aiv", FieldType::integer, "AIVs of a die", true}.as_condition(),
    Field{"seed", FieldType::integer, "of the run", true}.as_condition(),
    Field{"share", FieldType::ratio, "of nothing in particular"},
};

StudyResult good(const StudyContext& context, const Options& options) {
  StudyResult result;
  context.finish_row(result, {{"bytes", options.bytes.count},
                              {"program", options.program},
                              {"aiv", context.machine.die.aiv},
                              {"seed", context.seed},
                              {"share", 0.25}});
  return result;
}

StudyResult failed(const StudyContext& context, const Options& options) {
  StudyResult result = good(context, options);
  result.passed = false;
  return result;
}

StudyResult hung(const StudyContext& context, const Options& options) {
  good(context, options);
  throw sim::MachineHang("no progress for 5 ms of simulated time\n  die 0 aiv 3 waits for flag 7");
}

StudyResult broken(const StudyContext&, const Options&) {
  throw std::logic_error("an invariant");
}

// Runs until it is interrupted, at most 20 s.
StudyResult endless(const StudyContext& context, const Options& options) {
  StudyResult result = good(context, options);
  for (int i = 0; i < 2000 && context.interrupted == 0; ++i) {
    context.progress.update(-1, Time{i}, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  result.complete = context.interrupted == 0;
  return result;
}

// Takes 50 ms, and leaves a file SEED.PID when that is over.
StudyResult slow(const StudyContext& context, const Options& options) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::filesystem::create_directories(options.log);
  std::ofstream(fmt::format("{}/{}.{}", options.log, context.seed, getpid())) << "done";
  return good(context, options);
}

// Fails unless three runs, those that have ended and those under way, meet in `log` within 10 s; the first of
// all ends at once.
StudyResult meets(const StudyContext& context, const Options& options) {
  namespace fs = std::filesystem;
  fs::create_directories(options.log);
  const bool first = fs::is_empty(options.log);
  std::ofstream(fmt::format("{}/{}", options.log, context.seed)) << "here";
  StudyResult result = good(context, options);
  const auto there = [&] { return std::distance(fs::directory_iterator(options.log), {}); };
  for (int i = 0; i < 1000 && !first && there() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  result.passed = first || there() >= 3;
  return result;
}

// A row that its fields do not declare.
StudyResult undeclared(const StudyContext& context, const Options&) {
  StudyResult result;
  context.finish_row(result, {{"surprise", 1}});
  return result;
}

}  // namespace

std::span<const Study> stand_in_studies() {
  static const std::array table{
      Study{"good", "ends well", kFields, options_of<Options, good>, false, "program"},
      Study{"failed", "a check fails", kFields, options_of<Options, failed>},
      Study{"hung", "the machine hangs", kFields, options_of<Options, hung>},
      Study{"broken", "an internal error", kFields, options_of<Options, broken>},
      Study{"endless", "until interrupted", kFields, options_of<Options, endless>},
      Study{"slow", "takes its time", kFields, options_of<Options, slow>},
      Study{"meets", "several at once", kFields, options_of<Options, meets>},
      Study{"undeclared", "a field that nobody declared", kFields, options_of<Options, undeclared>},
  };
  return table;
}

}  // namespace cm384::studies
