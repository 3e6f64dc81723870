// Why dispatch and combine have windows of their own, and each two halves: calls that follow one another
// without the host in between, on ranks of very different speed, leave each other's rows alone; with one
// window less they would not.
#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "base/text/error.h"
#include "firmware/embedded.h"
#include "testbenches/runs/machine_run.h"
#include "traces/random.h"
#include "workloads/moe/moe_case.h"

namespace cm384::testing::windows_test {
namespace {

using operators::Combine;
using operators::Dispatch;
using operators::RankTask;

constexpr int kRanks = 8;

// Calls of operators on the same windows, each with tokens and routing of its own.
class Calls {
 public:
  // Every rank begins up to `skew` late.
  explicit Calls(Time skew) : machine_(hw::load_machine("cloudmatrix384")), supernode_(machine_, options()) {
    traces::Random random(7, 0);
    for (int rank = 0; rank < kRanks; ++rank)
      starts_.push_back({static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(skew.ps) + 1))});
  }

  // Sets up a dispatch and the combine of what it will deliver.
  int add(std::uint64_t seed) {
    studies::CombineCase setting = small_combine(kRanks, 24, 512, kCores);
    setting.experts = 32;
    setting.routing = "zipf:2.5";  // some ranks have many rows, others next to none
    setting.full = true;
    cases_.push_back(studies::make_moe_case(seed, setting));
    dispatches_.push_back(std::make_unique<Dispatch>(
        cases_.back(), setting.cores, true,
        dispatches_.empty() ? std::vector<cm384_peer>{} : dispatches_.front()->windows()));
    dispatches_.back()->place(memory_);
    combines_.push_back(std::make_unique<Combine>(*dispatches_.back(), studies::combine_setting(setting)));
    combines_.back()->place(memory_);
    return static_cast<int>(cases_.size()) - 1;
  }
  void dispatch(int call) { launch(dispatches_[index(call)]->tasks(), built_in("dispatch")); }
  void combine(int call) { launch(combines_[index(call)]->tasks(), built_in("combine")); }
  // The next calls use the first half of the windows.
  void forget_the_second_half() {
    std::vector<RankTask> tasks;
    for (int rank = 0; rank < kRanks; ++rank) {
      tasks.push_back({rank, runtime_.allocate(rank, 32)});
      runtime_.put(tasks.back().arguments, dispatches_.front()->windows()[index(rank)].status);
    }
    launch(tasks, runtime_.load(npu::ElfImage::read(CM384_FIRST_HALF_AGAIN)));
  }
  // Dispatch's rows go where combine's do.
  void share_one_window(int call) {
    for (int rank = 0; rank < kRanks; ++rank) {
      cm384_dispatch a = dispatches_[index(call)]->arguments(rank);
      a.window_dispatch_offset = 0;
      runtime_.put(dispatches_[index(call)]->tasks()[index(rank)].arguments, a);
    }
  }

  // Runs all calls; what differs from the reference in dispatches, then in combines. A machine that hangs is
  // a difference too.
  std::string run() {
    try {
      runtime_.wait();
    } catch (const MachineError& error) {
      return error.what();
    }
    for (std::size_t call = 0; call < cases_.size(); ++call) {
      std::string difference = dispatches_[call]->check();
      if (difference.empty() && combined_) difference = combines_[call]->check();
      if (!difference.empty()) return difference;
    }
    return {};
  }

  host::Runtime& runtime() { return runtime_; }
  Combine& combined(int call) { return *combines_[index(call)]; }
  void leave_out_combine() { combined_ = false; }

 private:
  static constexpr int kCores = 1;

  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  static supernode::SupernodeOptions options() {
    supernode::SupernodeOptions made;
    for (int rank = 0; rank < kRanks; ++rank) made.dies.push_back(rank);
    return made;
  }
  std::shared_ptr<npu::Program> built_in(const char* name) {
    return runtime_.load(npu::ElfImage::from_memory(firmware::kernel_image(name), name));
  }
  void launch(const std::vector<RankTask>& tasks, const std::shared_ptr<npu::Program>& program) {
    for (std::size_t rank = 0; rank < tasks.size(); ++rank)
      runtime_.launch(tasks[rank].die, program, tasks[rank].arguments, runtime_.first_cores(kCores),
                      starts_[rank]);
  }

  hw::Machine machine_;
  supernode::Supernode supernode_;
  host::Runtime runtime_{supernode_};
  operators::RankMemory memory_{operators::memory_of(runtime_, options().dies)};
  std::vector<Time> starts_;
  std::deque<reference::DispatchCase> cases_;  // memories refer to them
  std::vector<std::unique_ptr<Dispatch>> dispatches_;
  std::vector<std::unique_ptr<Combine>> combines_;
  bool combined_ = true;
};

TEST(Windows, DispatchAndCombineBackToBackOnSkewedRanksCorruptNothing) {
  for (const Time skew : {0_us, 30_us, 300_us}) {
    Calls calls(skew);
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const int call = calls.add(seed);
      calls.dispatch(call);
      calls.combine(call);
    }
    EXPECT_EQ(calls.run(), "") << skew.us() << " us of skew";
  }
}

std::string three_dispatches(bool second_half) {
  Calls calls(30_us);
  calls.leave_out_combine();
  for (const std::uint64_t seed : {1, 2, 3}) {
    if (seed != 1 && !second_half) calls.forget_the_second_half();
    calls.dispatch(calls.add(seed));
  }
  return calls.run();
}

// A rank is done with a dispatch when all flags are there; a slower one still copies rows out of its window.
TEST(Windows, WithoutTheSecondHalfTheNextDispatchOverwritesRows) {
  EXPECT_EQ(three_dispatches(true), "");
  EXPECT_EQ(three_dispatches(false).substr(0, 5), "rank ");
}

std::string dispatch_combine_dispatch(bool two_windows) {
  Calls calls(30_us);
  for (const std::uint64_t seed : {1, 2}) {
    const int call = calls.add(seed);
    if (!two_windows) calls.share_one_window(call);
    calls.dispatch(call);
    calls.combine(call);
  }
  return calls.run();
}

TEST(Windows, WithOneWindowForBothCombineOverwritesRows) {
  EXPECT_EQ(dispatch_combine_dispatch(true), "");
  // Where a triple is hit, combine stores anywhere, and the run ends with that.
  EXPECT_NE(dispatch_combine_dispatch(false), "");
}

// A comparison that never finds a difference would pass all of the above.
TEST(Windows, OneWrongElementOfAnExpertsOutputIsFound) {
  Calls calls(0_us);
  const int call = calls.add(1);
  const std::uint64_t row = calls.combined(call).arguments(0).expert_x;
  const auto element = calls.runtime().get<std::uint16_t>(row, 1).front();
  calls.runtime().put(row, static_cast<std::uint16_t>(element ^ 0x4000));
  calls.dispatch(call);
  calls.combine(call);
  EXPECT_NE(calls.run(), "");
}

}  // namespace
}  // namespace cm384::testing::windows_test
