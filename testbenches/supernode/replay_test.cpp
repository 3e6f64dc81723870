// A recorded run and its replay: the same times on the same machine, and what the firmware would do on
// another one.
#include "host/replay.h"

#include <gmock/gmock.h>

#include <map>

#include "host/runtime.h"
#include "hw/error.h"
#include "observe/observers.h"
#include "observe/traffic_recorder.h"
#include "studies/dispatch.h"
#include "studies/gemm.h"
#include "testbenches/supernode/study_stand.h"

namespace cm384::supernode {
namespace {

using traces::TrafficRecord;

struct InMemory final : traces::TrafficSource, traces::TrafficSink {
  std::vector<TrafficRecord> records;
  std::size_t at = 0;
  traces::TrafficHeader head;

  const traces::TrafficHeader& header() const override { return head; }
  bool next(TrafficRecord& record) override {
    if (at == records.size()) return false;
    record = records[at++];
    return true;
  }
  void add(const TrafficRecord& record) override {
    EXPECT_EQ(traces::fault_of(record, records.size()), "");
    records.push_back(record);
  }
  void finish() override {}
  Time end() const {
    Time last;
    for (const TrafficRecord& r : records) last = std::max(last, r.end);
    return last;
  }
};

hw::Machine machine(const std::vector<std::string>& set = {}) {
  return hw::load_machine("cloudmatrix384", set);
}

// Two iterations of a dispatch over eight ranks.
InMemory record_dispatch(const hw::Machine& on, int batch) {
  StudyStand stand;
  stand.machine = on;
  InMemory trace;
  std::unique_ptr<observe::TrafficRecorder> recorder;
  studies::DispatchCase setting;
  setting.ranks = 8;
  setting.batch = batch;
  setting.warmup = 1;
  setting.iterations = 1;
  setting.prepare = [&](Supernode& supernode) {
    recorder = std::make_unique<observe::TrafficRecorder>(supernode, trace);
  };
  studies::SimulatorCounts counts;
  studies::measure_dispatch(stand.context(), setting, counts);
  recorder->finish();
  return trace;
}

// A product on the cube cores of a die, through a file.
InMemory record_gemm() {
  const std::string path = ::testing::TempDir() + "cm384-replay-gemm.trace";
  StudyStand stand;
  observe::ObserverRequest asked;
  asked.record = path;
  observe::Observers observers(std::move(asked));
  studies::StudyContext context = stand.context();
  context.observers = &observers;
  studies::GemmSetting setting;
  setting.group_rows = {300, 17};
  setting.n = 640;
  setting.k = 1400;
  studies::SimulatorCounts counts;
  studies::measure_gemm(context, setting, counts);
  InMemory trace;
  const auto source = traces::open_traffic(path);
  for (TrafficRecord record; source->next(record);) trace.add(record);
  return trace;
}

// Copies of the SDMA engine in two streams of a die.
InMemory record_copies(const hw::Machine& parameters) {
  SupernodeOptions options;
  options.dies = {0, 1, 17};
  Supernode supernode(parameters, options);
  InMemory trace;
  observe::TrafficRecorder recorder(supernode, trace);
  host::Runtime runtime(supernode);
  constexpr std::uint64_t kBytes = 48 << 10;
  const std::uint64_t own = runtime.allocate(0, kBytes);
  const host::Stream streams[] = {runtime.create_stream(0), runtime.create_stream(0)};
  for (const int die : {1, 17}) {
    const std::uint64_t other = runtime.allocate(die, kBytes);
    for (int n = 0; n < 4; ++n)
      runtime.memcpy_async(streams[n % 2], n == 3 ? own : other, n == 3 ? other : own, kBytes);
  }
  runtime.synchronize_device(0);
  EXPECT_TRUE(runtime.wait());
  recorder.finish();
  return trace;
}

// Start and end of each record in a replay.
std::vector<std::pair<Time, Time>> spans(InMemory& trace, const hw::Machine& on,
                                         host::ReplayOptions::Mode mode, std::size_t window = 1u << 18) {
  trace.at = 0;
  const host::TrafficUnits units = host::units_of(trace);
  trace.at = 0;
  SupernodeOptions options;
  options.dies = {units.dies.begin(), units.dies.end()};
  options.sockets = {units.sockets.begin(), units.sockets.end()};
  options.patience = Time::never();
  options.die.cube_cores = units.cores > on.die.aiv;
  Supernode supernode(on, options);
  std::vector<std::pair<Time, Time>> times;
  host::ReplayOptions how;
  how.mode = mode;
  how.window = window;
  how.finished = [&](const TrafficRecord&, Time start, Time end) { times.emplace_back(start, end); };
  host::Replay replay(supernode, trace, how);
  EXPECT_TRUE(replay.run());
  EXPECT_EQ(times.size(), trace.records.size());
  return times;
}

std::vector<Time> replay(InMemory& trace, const hw::Machine& on, host::ReplayOptions::Mode mode,
                         std::size_t window = 1u << 18) {
  std::vector<Time> ends;
  for (const auto& [start, end] : spans(trace, on, mode, window)) ends.push_back(end);
  return ends;
}

double worst_error(const InMemory& trace, const std::vector<Time>& ends) {
  double worst = 0;
  for (std::size_t n = 0; n < ends.size(); ++n)
    worst = std::max(worst, std::abs(ends[n].us() - trace.records[n].end.us()) / trace.records[n].end.us());
  return worst;
}

TEST(Replay, ByDependencyEveryTransactionOfADispatchEndsWhenItDid) {
  InMemory trace = record_dispatch(machine(), 16);
  EXPECT_GT(trace.records.size(), 10'000u);
  EXPECT_LT(worst_error(trace, replay(trace, machine(), host::ReplayOptions::Mode::dependency)), 0.01);
  EXPECT_LT(worst_error(trace, replay(trace, machine(), host::ReplayOptions::Mode::time)), 0.01);
}

TEST(Replay, CubeCoresMoveWhatTheyDidThen) {
  InMemory trace = record_gemm();
  const auto of_cube = [](const TrafficRecord& r) {
    return r.kind == TrafficRecord::Kind::transfer && r.core >= 48;
  };
  EXPECT_GT(std::ranges::count_if(trace.records, of_cube), 100);
  EXPECT_TRUE(std::ranges::any_of(
      trace.records, [](const TrafficRecord& r) { return r.engine == TrafficRecord::Engine::fix; }));
  const auto ends = replay(trace, machine(), host::ReplayOptions::Mode::dependency);
  const Time predicted = *std::max_element(ends.begin(), ends.end());
  EXPECT_NEAR(predicted.us() / trace.end().us(), 1, 0.01);
}

TEST(Replay, SdmaCopiesFollowTheOnesBeforeThem) {
  InMemory trace = record_copies(machine());
  std::size_t copies = 0, waiting = 0;
  for (const TrafficRecord& r : trace.records) {
    if (r.engine != TrafficRecord::Engine::sdma) continue;
    ++copies;
    waiting += r.dependencies.empty() ? 0 : 1;
  }
  EXPECT_EQ(copies, 8u);
  EXPECT_GE(waiting, 6u);  // all but the first of each stream
  const auto ends = replay(trace, machine(), host::ReplayOptions::Mode::dependency);
  EXPECT_NEAR(std::max_element(ends.begin(), ends.end())->us() / trace.end().us(), 1, 0.01);
  // On a slower engine the later ones come later, as they do there.
  const hw::Machine slow = machine({"sdma.bandwidth=10GB/s"});
  const auto late = replay(trace, slow, host::ReplayOptions::Mode::dependency);
  const double truth = record_copies(slow).end().us();
  EXPECT_GT(truth, 1.5 * trace.end().us());
  EXPECT_NEAR(std::max_element(late.begin(), late.end())->us() / truth, 1, 0.05);
}

TEST(Replay, ByDependencyTellsWhatTheFirmwareWouldDoOnALinkOfHalfTheBandwidth) {
  const hw::Machine half = machine({"ub.link.bandwidth=14GB/s"});
  InMemory trace = record_dispatch(machine(), 64);
  const InMemory truth = record_dispatch(half, 64);
  const auto ends = replay(trace, half, host::ReplayOptions::Mode::dependency);
  const Time predicted = *std::max_element(ends.begin(), ends.end());
  EXPECT_NEAR(predicted.us() / truth.end().us(), 1, 0.05);
  // The two machines differ by more than that.
  EXPECT_GT(truth.end().us() / trace.end().us(), 1.08);
}

TEST(Replay, DependsNotOnHowManyRecordsAreUnderWay) {
  InMemory trace = record_dispatch(machine(), 8);
  const auto wide = replay(trace, machine(), host::ReplayOptions::Mode::dependency);
  EXPECT_EQ(replay(trace, machine(), host::ReplayOptions::Mode::dependency, 60'000), wide);
}

TrafficRecord transfer(int source, int target, std::uint64_t bytes, int core = 0) {
  TrafficRecord r;
  r.operation = sim::Operation::write;
  r.source.number = static_cast<std::uint16_t>(source);
  r.target.number = static_cast<std::uint16_t>(target);
  r.core = core;
  r.bytes = bytes;
  r.offset = 4096;
  return r;
}

TEST(Replay, ADelayIsKeptToThePicosecond) {
  InMemory trace;
  trace.records = {transfer(0, 2, 512), transfer(0, 4, 512, 1), transfer(0, 4, 512, 2)};
  trace.records[1].dependencies = {{0, traces::TrafficDependency::Kind::completion, 5_us}};
  trace.records[2].dependencies = {{0, traces::TrafficDependency::Kind::arrival, 5_us}};
  const auto times = spans(trace, machine(), host::ReplayOptions::Mode::dependency);
  EXPECT_EQ(times[1].first, times[0].second + 5_us);
  EXPECT_LT(times[2].first, times[1].first);
  EXPECT_GT(times[2].first, times[0].first + 5_us);
}

TEST(Replay, ATransferWithoutACoreIsSharedByTheCoresOfItsDie) {
  InMemory one, many;
  one.records = {transfer(0, 2, 128 << 10)};
  many.records = {transfer(0, 2, 48 * (128 << 10) + 1, TrafficRecord::kAnyCore)};
  const auto alone = spans(one, machine(), host::ReplayOptions::Mode::dependency).front();
  const auto shared = spans(many, machine(), host::ReplayOptions::Mode::dependency).front();
  const double times = (shared.second - shared.first).us() / (alone.second - alone.first).us();
  EXPECT_GT(times, 1);
  EXPECT_LT(times, 24);  // one core would take 48 times as long
}

TEST(Replay, ATraceThatDoesNotFitTheMachineIsRefused) {
  InMemory trace;
  trace.records = {transfer(0, 2, 512)};
  trace.records[0].offset = std::uint64_t{1} << 37;
  try {
    replay(trace, machine(), host::ReplayOptions::Mode::dependency);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("record 0: offset"));
  }
}

}  // namespace
}  // namespace cm384::supernode
