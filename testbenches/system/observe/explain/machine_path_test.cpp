// Paths of a die whose log is written by hand: flags that one of its cores writes and another one polls.
#include "system/observe/explain/machine_path.h"

#include <gtest/gtest.h>

#include <vector>

#include "firmware/abi/memory_map.h"
#include "firmware/abi/queue.h"
#include "npu_core/causality/die_tracer.h"
#include "npu_core/vector/vector_pipes.h"

namespace cm384::observe::machine_path_test {
namespace {

using npu::PipeStep;

class Log final : public npu::TraceLog {
 public:
  const std::vector<std::uint64_t>& words() {
    turn();
    return words_;
  }

 private:
  Chunk exchange(Chunk full, std::size_t words) override {
    if (full) words_.insert(words_.end(), full.get(), full.get() + words);
    return std::make_unique<std::uint64_t[]>(kChunkWords);
  }
  std::vector<std::uint64_t> words_;
};

// A die with two cores; times in us.
class TwoCores : public ::testing::Test {
 protected:
  TwoCores() : cores_(die_.add_cores(2, false)) {}

  static Time at(double us) { return Time{static_cast<std::int64_t>(us * 1e6)}; }
  std::int64_t cycle(double us) const { return clock_.tick_at_or_after(at(us)); }
  // The scalar unit, busy until then, gives a copy to a pipe that is idle.
  void copy(std::uint16_t core, int pipe, double us) {
    const std::int64_t now = cycle(us);
    cores_[core]->pushed(pipe, now, 0, now);
    PipeStep step;
    step.kind = PipeStep::Kind::copy;
    step.pipe = pipe;
    step.start = step.end = step.left = now;
    cores_[core]->left(step);
  }
  // A flag of 32 B.
  void write_flag(std::uint16_t core, double us, bool wakes = false) {
    copy(core, npu::kPipeMte3, us);
    die_.written(core, 0, 32, at(us));
    if (wakes) die_.poll_woken(1);
    die_.local({0, 32, core, true, true, at(us)}, false, at(us + 0.2));
  }
  void begin(std::uint16_t core, double us) { die_.block_begun(1, core, core, at(us)); }
  // Where the run ends with a resource twice as fast, us.
  double end(Resource resource) {
    path_.play(log_.words());
    return path_.end().time(resource) / 1e6;
  }

  hw::Machine machine_ = hw::load_machine("cloudmatrix384");
  Clock clock_{machine_.die.clock};
  MachinePath path_{machine_};
  Log log_;
  sim::TransactionId last_id_ = 0;
  npu::DieTracer die_{log_, 0, last_id_, true};
  std::vector<npu::CoreTracer*> cores_;
};

// The writer's scalar unit works from 10 to 30 us. With one twice as fast the flag comes at 20.
TEST_F(TwoCores, AFlagOfTheSameDieComesWhenItsWriterGetsThere) {
  begin(0, 10);
  begin(1, 10);
  cores_[1]->poll_turn(true, cycle(12));
  write_flag(0, 30, true);
  cores_[1]->poll_turn(false, cycle(30.1));
  die_.block_ended(1, at(30.1));
  EXPECT_NEAR(end(Resource::none), 30.1, 0.01);
  EXPECT_NEAR(path_.end().time(Resource::scalar) / 1e6, 20.1, 0.01);
}

// The poller's scalar unit works from 10 to 60 us and finds a flag of 40 us. With one twice as fast it would
// look at 35 us, and wait.
TEST_F(TwoCores, AFlagOfTheSameDieThatIsThereMightNotHaveBeen) {
  begin(1, 10);
  begin(0, 40);
  write_flag(0, 40);
  cores_[1]->poll_turn(true, cycle(60));
  copy(1, npu::kPipeMte2, 60);
  die_.begun(1, 1, {.address = 0, .bytes = 32, .burst_bytes = 32}, true, at(60));
  die_.local({0, 32, 1, false, true, at(60)}, false, at(60.3));
  cores_[1]->issued(npu::kPipeMte2, cycle(60));
  cores_[1]->scalar_waited_for_all(cycle(60), cycle(60.3));
  die_.block_ended(1, at(60.3));
  EXPECT_NEAR(end(Resource::none), 60.3, 0.01);
  EXPECT_NEAR(path_.end().time(Resource::scalar) / 1e6, 40.3, 0.1);
}

// A stream: an event waits from 10 to 14 us, a copy takes from 14 to 20, a kernel from 20 to 23. What takes
// as long is told apart, and only a kernel's launch and teardown have parameters.
TEST_F(TwoCores, TasksOfAStreamAreWhatTheyAre) {
  die_.task_begun(1, CM384_TASK_EVENT_WAIT, 0, at(10));
  die_.task_ended(1, at(14));
  die_.task_begun(1, CM384_TASK_SDMA, 0, at(14));
  die_.task_ended(1, at(20));
  die_.task_begun(1, CM384_TASK_KERNEL, 7, at(20));
  die_.task_ended(1, at(23));
  EXPECT_NEAR(end(Resource::none), 23, 0.01);
  const auto spent = [&](Part part) {
    return static_cast<double>(path_.end().spent[static_cast<std::size_t>(part)]) / 1e6;
  };
  EXPECT_NEAR(spent(Part::other), 4, 0.01);
  EXPECT_NEAR(spent(Part::sdma), 6, 0.01);
  EXPECT_NEAR(spent(Part::launch), 3, 0.01);
  EXPECT_NEAR(path_.end().time(Resource::launch) / 1e6, 21.5, 0.01);
}

// A full window lets the next request go with each answer. The 65th goes with that over the bus, the 66th
// with that over the package link, which comes last; with the package link twice as fast it comes first.
TEST_F(TwoCores, ARequestThatWaitsForAnAnswerWaitsForItAlone) {
  const int window = machine_.mte.remote_writes;
  npu::DieTracer sibling(log_, 1, last_id_, true);
  npu::CoreTracer* const poller = sibling.add_cores(1, false).front();
  const auto submit = [&](int number, std::uint64_t die, double us) {
    sim::Request request;
    request.address = cm384_gm_die(die, 0);
    request.operation = sim::Operation::write;
    request.bytes = 32;
    request.tag = static_cast<std::uint32_t>(0x1000 + number);
    request.transaction = std::uint64_t{1} << 48;
    request.at = at(us);
    die_.submitted(request);
    return request;
  };
  const auto answer = [&](int number, double us) {
    sim::Completion completion;
    completion.tag = static_cast<std::uint32_t>(0x1000 + number);
    die_.answered(completion, at(us));
  };
  begin(0, 10);
  sibling.block_begun(2, 0, 0, at(10));
  poller->poll_turn(true, cycle(12));
  copy(0, npu::kPipeMte3, 10);
  for (int n = 0; n < window; ++n) submit(n, n == 0 ? 2 : 1, 10);
  answer(0, 30);
  submit(window, 1, 30);
  answer(1, 31);
  sim::Request last = submit(window + 1, 1, 31);
  last.at = at(32);
  sibling.came(last);
  sibling.arrived(last.transaction, 0, 32, at(32));
  sibling.poll_woken(0);
  poller->poll_turn(false, cycle(32));
  sibling.block_ended(0, at(32));
  EXPECT_NEAR(end(Resource::none), 32, 0.2);
  EXPECT_NEAR(path_.end().time(Resource::package) / 1e6, 21, 0.5);
}

}  // namespace
}  // namespace cm384::observe::machine_path_test
