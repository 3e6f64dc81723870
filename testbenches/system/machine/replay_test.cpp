// A recorded run and its replay: the same times on the same machine, and what the firmware would do on
// another one.
#include "system/host/replay.h"

#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "base/text/error.h"
#include "system/host/runtime.h"
#include "system/observe/observers.h"
#include "system/observe/traffic_recorder.h"
#include "testbenches/system/machine/in_memory_trace.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/kernels/gemm.h"
#include "workloads/moe/dispatch.h"

namespace cm384::supernode::replay_test {
namespace {

using traces::TrafficRecord;

struct InMemory final : InMemoryTrace, traces::TrafficSink {
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

// Two rounds in which host threads, events and notifies hold together what three dies copy.
InMemory record_streams(const hw::Machine& parameters) {
  SupernodeOptions options;
  options.dies = {0, 1, 17};
  options.sockets = {0};
  Supernode supernode(parameters, options);
  InMemory trace;
  observe::TrafficRecorder recorder(supernode, trace);
  host::Runtime runtime(supernode);
  constexpr std::uint64_t kBytes = 20'000;
  std::map<int, std::uint64_t> buffer;
  std::map<int, std::array<host::Stream, 2>> streams;
  for (const int die : options.dies) {
    buffer[die] = runtime.allocate(die, kBytes);
    streams[die] = {runtime.create_stream(die), runtime.create_stream(die)};
  }
  const std::uint64_t on_socket = runtime.allocate_on_socket(0, kBytes);
  const host::Event copied = runtime.create_event(0);
  const host::Notify arrived = runtime.create_notify(17);
  for (int round = 0; round < 2; ++round) {
    runtime.host_compute(1, 3_us);
    runtime.memcpy_async(streams[0][0], buffer[17], buffer[0], kBytes);
    runtime.record_event(streams[0][0], copied);
    runtime.stream_wait_event(streams[0][1], copied);
    runtime.memcpy_async(streams[0][1], on_socket, buffer[0], kBytes / 2);
    runtime.record_notify(streams[0][1], arrived);
    runtime.memcpy_async(streams[1][0], buffer[0], buffer[1], kBytes);
    runtime.record_notify(streams[1][0], arrived);
    runtime.wait_notify(streams[17][0], arrived, 2);
    unfold_on_device(runtime, 17, [&] {
      for (int part = 0; part < 3; ++part)
        runtime.memcpy_async(streams[17][part % 2], buffer[17], on_socket, kBytes / 4);
    });
    for (const int die : options.dies) runtime.synchronize_device(die);
    runtime.host_barrier(options.dies);
    runtime.host_function(
        0, [&, from = streams[0][0]] { runtime.memcpy_async(from, buffer[1], buffer[0], kBytes); });
    EXPECT_TRUE(runtime.wait());
  }
  recorder.finish();
  return trace;
}

// Start and end of each record in a replay.
std::vector<std::pair<Time, Time>> spans(InMemory& trace, const hw::Machine& on,
                                         host::ReplayOptions::Mode mode, std::size_t window = 1u << 18,
                                         std::optional<std::uint64_t> reach = {}) {
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
  how.reach = reach.value_or(units.reach);
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
  // At recorded times requests for one line come in another order here and there.
  EXPECT_LT(worst_error(trace, replay(trace, machine(), host::ReplayOptions::Mode::time)), 0.015);
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
  const std::string quick = "host.submit_latency=0ps";  // else its own calls are what later ones wait for
  InMemory trace = record_copies(machine({quick}));
  std::size_t copies = 0, waiting = 0;
  for (const TrafficRecord& r : trace.records) {
    if (r.engine != TrafficRecord::Engine::sdma) continue;
    ++copies;
    waiting += r.dependencies.empty() ? 0 : 1;
  }
  EXPECT_EQ(copies, 8u);
  EXPECT_GE(waiting, 6u);  // all but the first of each stream
  const auto ends = replay(trace, machine({quick}), host::ReplayOptions::Mode::dependency);
  EXPECT_NEAR(std::max_element(ends.begin(), ends.end())->us() / trace.end().us(), 1, 0.01);
  // On a slower engine the later ones come later, as they do there.
  const hw::Machine slow = machine({quick, "sdma.bandwidth=10GB/s"});
  const auto late = replay(trace, slow, host::ReplayOptions::Mode::dependency);
  const double truth = record_copies(slow).end().us();
  EXPECT_GT(truth, 1.5 * trace.end().us());
  EXPECT_NEAR(std::max_element(late.begin(), late.end())->us() / truth, 1, 0.05);
}

// End of the last copy: the machine is found idle only some time later.
Time last_copy(const InMemory& trace, const std::vector<Time>& ends) {
  Time last;
  for (std::size_t n = 0; n < ends.size(); ++n) {
    if (trace.records[n].moves()) last = std::max(last, ends[n]);
  }
  return last;
}
Time last_copy(const InMemory& trace) {
  std::vector<Time> ends;
  for (const TrafficRecord& r : trace.records) ends.push_back(r.end);
  return last_copy(trace, ends);
}

TEST(Replay, HostThreadsStreamsAndWordsAreTheMachinesOwn) {
  InMemory trace = record_streams(machine());
  EXPECT_TRUE(std::ranges::none_of(trace.records, &TrafficRecord::at_recorded_time));
  EXPECT_EQ(worst_error(trace, replay(trace, machine(), host::ReplayOptions::Mode::dependency)), 0);
  EXPECT_LT(worst_error(trace, replay(trace, machine(), host::ReplayOptions::Mode::time)), 0.05);
  const double base = last_copy(trace).us();
  for (const std::string change :
       {"host.call=20us", "host.submit_latency=40us", "host.completion_latency=30us",
        "host.message_latency=40us", "scheduler.entry_latency=20us", "scheduler.completion_latency=20us",
        "scheduler.queue_depth=2", "scheduler.queue_depth=4096", "sdma.parse_latency=20us",
        "sdma.bandwidth=2GB/s", "ub.link.bandwidth=2GB/s", "aicpu.start=40us", "aicpu.entry=20us",
        "aicpu.doorbell_latency=20us"}) {
    const hw::Machine other = machine({change});
    const Time truth = last_copy(record_streams(other));
    const Time predicted = last_copy(trace, replay(trace, other, host::ReplayOptions::Mode::dependency));
    EXPECT_NEAR(predicted.us() / truth.us(), 1, 0.001) << change;
    const bool moves = change.find("queue_depth") == std::string::npos;
    EXPECT_TRUE(!moves || truth.us() > 1.02 * base) << change;
  }
}

TEST(Replay, FollowsTheHostWithFewRecordsUnderWay) {
  InMemory trace = record_streams(machine());
  const auto ends = replay(trace, machine(), host::ReplayOptions::Mode::dependency, 8);
  EXPECT_NEAR(last_copy(trace, ends).us() / last_copy(trace).us(), 1, 0.05);
}

TEST(Replay, AHostThatDoesNotFitTheMachineIsRefused) {
  const auto refusal = [](TrafficRecord record) {
    InMemory trace;
    record.source.number = record.target.number = 2;
    trace.records = {record};
    try {
      replay(trace, machine(), host::ReplayOptions::Mode::dependency);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Kind = TrafficRecord::Kind;
  TrafficRecord record;
  record.kind = Kind::stream;
  record.words = {2, 0, 65536, 64};
  EXPECT_THAT(refusal(record), ::testing::HasSubstr("record 0: words: stream 2; allowed: 1"));
  record.words = {1, std::uint64_t{1} << 37, 0, 65536};
  EXPECT_THAT(refusal(record), ::testing::HasSubstr("no memory for a stream"));
  record.kind = Kind::call;
  record.words = {0, 7, 11, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(refusal(record), ::testing::HasSubstr("die2 has no stream 7"));
  record.words = {0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(refusal(record), ::testing::HasSubstr("die2 knows no kernel 0"));
  record.words = {0, 0, 11, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(refusal(record), ::testing::HasSubstr("ended with status 1"));
  record.words = {4, 0, 11, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(refusal(record), ::testing::HasSubstr("an entry that no later call unfolds"));
  record.words = {5, 3};
  EXPECT_THAT(refusal(record), ::testing::HasSubstr("unfolds 3 entries; allowed: 0"));
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

// Of records that are not under way any more, those that others wait for are known.
TEST(Replay, RemembersAsFarBackAsRecordsWait) {
  for (const std::uint64_t reach : {1u, 3u, 4u}) {
    InMemory trace;
    for (std::uint64_t n = 0; n < 40; ++n) {
      trace.records.push_back(transfer(0, 2, 512 << n % 3, static_cast<int>(n % 8)));
      if (n >= reach)
        trace.records.back().dependencies = {{n - reach, traces::TrafficDependency::Kind::completion, 50_us}};
    }
    InMemory read = trace;
    EXPECT_EQ(host::units_of(read).reach, reach);
    const auto mode = host::ReplayOptions::Mode::dependency;
    const auto all = spans(trace, machine(), mode, 1, traces::kReach);
    EXPECT_EQ(spans(trace, machine(), mode, 1), all);
    if (reach > 1) {
      EXPECT_NE(spans(trace, machine(), mode, 1, reach - 1), all);
    }
  }
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
}  // namespace cm384::supernode::replay_test
