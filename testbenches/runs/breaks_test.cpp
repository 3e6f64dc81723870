// Chips, links and lanes that go out of order under running kernels: the same bytes, later, none lost, and
// the same times for any number of threads.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "system/machine/faults.h"
#include "system/machine/supernode.h"
#include "testbenches/hw/refusal.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::breaks_test {
namespace {

using namespace cm384::literals;
using ::testing::HasSubstr;

using studies::DispatchCase;
using studies::DispatchReading;

std::function<void(supernode::Supernode&)> with_faults(const std::vector<std::string>& texts) {
  return [texts](supernode::Supernode& machine) {
    supernode::Faults faults(machine);
    for (const std::string& text : texts) faults.attach(supernode::parse_fault(text));
    faults.apply_breaks();
  };
}

DispatchCase small() {
  DispatchCase setting = small_dispatch(8, 16, 1024, 16);
  setting.full = true;
  setting.placement = "strided";
  setting.warmup = 0;
  return setting;
}

TEST(Breaks, DispatchDeliversTheSameBytesLater) {
  DispatchCase setting = small();
  const DispatchReading whole = run_dispatch(setting);
  ASSERT_TRUE(*whole.correct) << whole.first_difference;
  for (const char* part : {"plane=3,node=0,kind=down", "plane=3,die=0,kind=down", "plane=2,kind=down",
                           "l2=1,kind=down", "node=0,lanes=quarter"}) {
    std::uint64_t lost = 0;
    for (const int us : {22, 28, 36}) {
      const std::string fault = fmt::format("{},at={}us", part, us);
      setting.prepare = with_faults({fault});
      studies::SimulatorCounts counts;
      const DispatchReading broken = run_dispatch(setting, {}, 1, &counts);
      EXPECT_TRUE(*broken.correct) << fault << ": " << broken.first_difference;
      EXPECT_EQ(broken.digest, whole.digest) << fault;
      EXPECT_EQ(counts.resent, counts.lost) << fault;
      lost += counts.lost;
      if (counts.lost > 0) {
        EXPECT_GT(broken.task_us.max, whole.task_us.max + 5) << fault;
      }
      if (us == 22 && std::string_view(part).ends_with("quarter")) {
        EXPECT_GT(broken.task_us.mean, whole.task_us.mean) << fault;
      }
    }
    EXPECT_EQ(lost == 0, std::string_view(part).ends_with("quarter")) << part;
  }
  EXPECT_NE(whole.digest, 0u);
}

TEST(Breaks, AreTheSameForAnyNumberOfThreads) {
  DispatchCase setting = small();
  setting.prepare = with_faults(
      {"plane=3,node=0,kind=down,at=20us", "l2=1,kind=down,at=22us", "plane=1,node=2,lanes=half,at=24us"});
  studies::SimulatorCounts first;
  const DispatchReading one = run_dispatch(setting, {}, 1, &first);
  for (const unsigned threads : {2u, 4u}) {
    studies::SimulatorCounts counts;
    const DispatchReading many = run_dispatch(setting, {}, 1, &counts, threads);
    EXPECT_EQ(times_differ(one, many), "") << threads;
    EXPECT_EQ(counts.threads, threads);
    EXPECT_GT(counts.lost, 0u);
    EXPECT_EQ(counts.lost, first.lost);
    EXPECT_EQ(counts.events, first.events);
  }
  const auto prepare = setting.prepare;
  setting.prepare = [&](supernode::Supernode& machine) {
    machine.serialise_crossings();
    prepare(machine);
  };
  EXPECT_EQ(times_differ(one, run_dispatch(setting)), "");
  setting.prepare = prepare;
  setting.reverse_modules = true;
  EXPECT_EQ(times_differ(one, run_dispatch(setting)), "");
}

TEST(Breaks, TellWhatIsNotReachedBeforeTheRun) {
  DispatchCase setting = small();
  setting.prepare = with_faults({"die=16,kind=down,at=60us"});
  EXPECT_THAT(cm384::refusal([&] { run_dispatch(setting); }),
              HasSubstr("from 60 us on no path is left between die 0 and die 16"));
}

}  // namespace
}  // namespace cm384::testing::breaks_test
