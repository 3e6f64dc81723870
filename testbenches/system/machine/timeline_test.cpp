// Timelines and waves of a small dispatch, read back.
#include "system/observe/timeline.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/text/error.h"
#include "system/host/runtime.h"
#include "system/observe/observers.h"
#include "system/observe/wave.h"
#include "testbenches/system/machine/perfetto_rule.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/frame/kernel_phases.h"
#include "workloads/kernels/gemm.h"
#include "workloads/moe/combine.h"

namespace cm384::supernode::timeline_test {
namespace {

using Json = nlohmann::json;

std::string scratch(const std::string& name) {
  return ::testing::TempDir() + "cm384-timeline-" + name;
}

std::string read_compressed(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  char block[1 << 16];
  for (int got = 0; (got = gzread(file, block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(got));
  gzclose(file);
  return text;
}

// Nothing of it may be lost in Perfetto.
Json read_timeline(const std::string& name) {
  Json made = Json::parse(read_compressed(scratch(name)));
  EXPECT_TRUE(slices_perfetto_drops(made).empty()) << slices_perfetto_drops(made).front();
  return made;
}

// A dispatch over eight ranks with something attached.
template <class Attach, class Finish>
std::uint64_t run(Attach&& attach, Finish&& finish, int batch = 16, int cores = 16) {
  StudyStand stand;
  studies::DispatchCase setting;
  setting.ranks = 8;
  setting.batch = batch;
  setting.cores = cores;
  setting.warmup = 0;
  setting.iterations = 1;
  setting.prepare = attach;
  studies::SimulatorCounts counts;
  studies::measure_dispatch(stand.context(), setting, counts);
  finish();
  return counts.packet_hops;
}

Json timeline_of(const observe::TimelineOptions& options, const std::string& name, int batch = 16,
                 int cores = 16) {
  std::unique_ptr<observe::Timeline> timeline;
  run(
      [&](Supernode& machine) {
        timeline = std::make_unique<observe::Timeline>(machine, scratch(name), options);
        timeline->name_phases("dispatch", studies::phases_of_kernel("dispatch"));
        machine.trace_links([&](const LinkName& link) { return timeline->shows(link); });
      },
      [&] { timeline->finish(); }, batch, cores);
  return read_timeline(name);
}

struct Slice {
  double begin = 0, end = 0;
  std::string name;
};

// Slices of a lane by its name, in the order of time.
std::map<std::string, std::vector<Slice>> lanes_of(const Json& timeline, int die) {
  std::map<int, std::string> names;
  for (const Json& e : timeline["traceEvents"]) {
    if (e["ph"] == "M" && e["name"] == "thread_name" && e["pid"] == die) names[e["tid"]] = e["args"]["name"];
  }
  std::map<std::string, std::vector<Slice>> lanes;
  for (const Json& e : timeline["traceEvents"]) {
    if (e["ph"] == "X" && e["pid"] == die)
      lanes[names.at(e["tid"])].push_back(
          {e["ts"].get<double>(), e["ts"].get<double>() + e["dur"].get<double>(), e["name"]});
  }
  for (auto& [name, slices] : lanes)
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  return lanes;
}

// Asynchronous events by name, in the order in which they begin.
std::map<std::string, std::vector<Slice>> under_way(const Json& timeline) {
  std::map<std::string, Slice> open;
  std::map<std::string, std::vector<Slice>> found;
  for (const Json& e : timeline["traceEvents"]) {
    if (e["ph"] == "b") open[e["id"]] = {e["ts"], 0, e["name"]};
    if (e["ph"] != "e") continue;
    Slice slice = open.at(e["id"]);
    slice.end = e["ts"];
    found[e["name"]].push_back(slice);
  }
  return found;
}

bool works(const Slice& s) {
  return !s.name.starts_with("wait") && !s.name.starts_with("barrier");
}

// Slices of `a` within `within` that run while one of `b` does.
std::size_t overlaps(const std::vector<Slice>& a, const std::vector<Slice>& b, const Slice& within) {
  return static_cast<std::size_t>(std::ranges::count_if(a, [&](const Slice& x) {
    return works(x) && x.begin >= within.begin && x.end <= within.end &&
           std::ranges::any_of(
               b, [&x](const Slice& y) { return works(y) && y.begin < x.end && x.begin < y.end; });
  }));
}

// A machine that runs dispatch, then combine: each has its own phases.
TEST(Timeline, PhasesAreThoseOfTheKernelThatRuns) {
  StudyStand stand;
  std::unique_ptr<observe::Timeline> timeline;
  studies::CombineCase setting;
  setting.ranks = 4;
  setting.batch = 4;
  setting.hidden = 512;
  setting.cores = 4;
  setting.warmup = 0;
  setting.iterations = 1;
  setting.prepare = [&](Supernode& machine) {
    timeline =
        std::make_unique<observe::Timeline>(machine, scratch("kernels.json"), observe::TimelineOptions{});
    for (const char* kernel : {"dispatch", "combine"})
      timeline->name_phases(kernel, studies::phases_of_kernel(kernel));
  };
  studies::SimulatorCounts counts;
  studies::measure_combine(stand.context(), setting, counts);
  timeline->finish();
  const auto lanes = lanes_of(read_timeline("kernels.json"), 0);
  const std::vector<Slice>& kernels = lanes.at("kernels");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "dispatch, launch 0");
  EXPECT_EQ(kernels[1].name, "combine, launch 1");
  std::set<std::string> of_dispatch, of_combine;
  for (const Slice& slice : lanes.at("core 0 phase"))
    (slice.begin < kernels[1].begin ? of_dispatch : of_combine).insert(slice.name);
  EXPECT_THAT(of_dispatch, ::testing::UnorderedElementsAre("init", "send", "status", "wait", "copy"));
  EXPECT_THAT(of_combine, ::testing::UnorderedElementsAre("init", "send", "wait", "sum"));
}

TEST(Timeline, LoadQuantiseAndSendOfSuccessiveTokensOverlap) {
  observe::TimelineOptions options;
  options.cores = {0, 7};
  const Json timeline = timeline_of(options, "pipeline.json", 128, 48);
  const auto lanes = lanes_of(timeline, 0);
  const auto sends = under_way(timeline);
  for (const std::string core : {"core 0 ", "core 7 "}) {
    const auto& phases = lanes.at(core + "phase");
    const auto send =
        std::find_if(phases.begin(), phases.end(), [](const Slice& s) { return s.name == "send"; });
    ASSERT_NE(send, phases.end());
    const auto &load = lanes.at(core + "MTE2"), &quantise = lanes.at(core + "VECTOR"),
               &store = sends.at(core + "MTE3 under way");
    const auto loads = static_cast<std::size_t>(std::ranges::count_if(
        load, [&](const Slice& s) { return works(s) && s.begin >= send->begin && s.end <= send->end; }));
    // A core has two or three tokens of 128 on 48 cores, 8 rows each. Work on one token in turn, load,
    // quantise, send, would leave all of these at 0.
    EXPECT_GE(loads, 2u) << core;
    EXPECT_GE(2 * overlaps(load, store, *send), loads)
        << core << "loads no row while it sends the one before";
    EXPECT_GT(overlaps(quantise, store, *send), 0u) << core << "quantises no row while it sends one";
    for (const char* pipe : {"MTE2", "MTE3", "VECTOR", "SCALAR"}) {
      const auto& slices = lanes.at(core + pipe);
      for (std::size_t k = 1; k < slices.size(); ++k)
        EXPECT_GE(slices[k].begin, slices[k - 1].end - 1e-5) << core << pipe << " slice " << k;
    }
  }
  EXPECT_EQ(lanes.at("kernels").size(), 1u);
  EXPECT_FALSE(lanes.at("UB port 3 out").empty());
}

// The measure of the test above on work in turn, and on work that overlaps.
TEST(Timeline, WorkInTurnDoesNotOverlap) {
  const Slice all{0, 100, "send"};
  const std::vector<Slice> load{{0, 10, "load"}, {30, 40, "load"}}, waits{{0, 40, "wait"}};
  EXPECT_EQ(overlaps(load, {{10, 30, "store"}, {40, 60, "store"}}, all), 0u);
  EXPECT_EQ(overlaps(load, waits, all), 0u);
  EXPECT_EQ(overlaps(load, {{10, 35, "store"}}, all), 1u);
}

// As the trace event format asks of what Perfetto and chrome://tracing read.
TEST(Timeline, EveryEventHasWhatItsPhaseAsksFor) {
  const Json timeline = timeline_of({}, "events.json");
  EXPECT_EQ(timeline["displayTimeUnit"], "ns");
  std::set<std::pair<int, int>> named, used;
  for (const Json& e : timeline["traceEvents"]) {
    const std::string phase = e["ph"];
    ASSERT_TRUE(e["pid"].is_number_integer()) << e;
    ASSERT_TRUE(e["name"].is_string()) << e;
    if (phase == "M") {
      ASSERT_TRUE(e["args"].is_object()) << e;
      if (e["name"] == "thread_name") named.emplace(e["pid"], e["tid"]);
      continue;
    }
    used.emplace(e["pid"], e["tid"]);
    ASSERT_TRUE(e["ts"].is_number() && e["ts"] >= 0) << e;
    if (phase == "X") {
      ASSERT_TRUE(e["dur"].is_number() && e["dur"] > 0) << e;
    } else if (phase == "b" || phase == "e") {
      ASSERT_TRUE(e["id"].is_string() && e["cat"].is_string()) << e;
    } else {
      ASSERT_TRUE(phase == "s" || phase == "f") << e;
      ASSERT_TRUE(e["id"].is_number_unsigned() && e["cat"].is_string()) << e;
      if (phase == "f") {
        ASSERT_EQ(e["bp"], "e") << e;
      }
    }
  }
  for (const auto& lane : used) EXPECT_TRUE(named.contains(lane)) << lane.first << ", " << lane.second;
}

TEST(Timeline, CubeCoresHaveLanesOfTheirOwn) {
  StudyStand stand;
  observe::ObserverRequest asked;
  asked.timeline = scratch("cube.json");
  asked.shown.cores = {0, 48, 49};
  observe::Observers observers(std::move(asked));
  studies::StudyContext context = stand.context();
  context.observers = &observers;
  studies::GemmSetting setting;
  setting.group_rows = {200};
  setting.n = 320;
  setting.k = 700;
  setting.tile_m = 96;
  setting.tile_n = 128;
  setting.blocks = 3;
  studies::SimulatorCounts counts;
  studies::measure_gemm(context, setting, counts);
  const auto lanes = lanes_of(read_timeline("cube.json"), 0);
  for (const char* lane : {"SCALAR", "CUBE", "MTE1", "MTE2", "FIXP"})
    EXPECT_TRUE(lanes.contains(std::string("cube core 48 ") + lane)) << lane;
  EXPECT_FALSE(lanes.contains("cube core 50 CUBE"));
  EXPECT_TRUE(
      std::ranges::any_of(lanes.at("cube core 48 CUBE"), [](const Slice& s) { return s.name == "MMAD"; }));
  EXPECT_TRUE(std::ranges::any_of(lanes.at("cube core 48 FIXP"),
                                  [](const Slice& s) { return s.name == "store die0"; }));
  // The next block's operands come while the matrix unit works on this one.
  const Slice all = lanes.at("kernels").front();
  EXPECT_GT(overlaps(lanes.at("cube core 48 MTE2"), lanes.at("cube core 48 CUBE"), all), 0u);
}

TEST(Timeline, StreamsAndSdmaChannelsHaveLanes) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 1};
  Supernode machine(parameters, options);
  observe::Timeline timeline(machine, scratch("sdma.json"), {});
  host::Runtime runtime(machine);
  constexpr std::uint64_t kBytes = 64 << 10;
  const std::uint64_t from = runtime.allocate(0, kBytes), to = runtime.allocate(1, kBytes);
  const host::Stream stream = runtime.create_stream(0);
  for (int n = 0; n < 3; ++n) runtime.memcpy_async(stream, to, from, kBytes);
  runtime.synchronize_device(0);
  ASSERT_TRUE(runtime.wait());
  timeline.finish();
  const auto lanes = lanes_of(read_timeline("sdma.json"), 0);
  std::size_t copies = 0;
  for (const auto& [name, slices] : lanes) {
    if (!name.starts_with("SDMA channel")) continue;
    copies += slices.size();
    EXPECT_EQ(slices.front().name, "copy die0 to die1");
  }
  EXPECT_EQ(copies, 3u);
  ASSERT_EQ(std::ranges::count_if(lanes, [](const auto& l) { return l.first.starts_with("stream"); }), 1);
  const auto& tasks = lanes.lower_bound("stream")->second;
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_TRUE(tasks.front().name.starts_with("copy"));
}

TEST(Timeline, EveryArrowThatEndsHasBegunEarlier) {
  const Json timeline = timeline_of({}, "arrows.json.gz");
  std::map<std::uint64_t, double> begun;
  // As Perfetto reads it: beginnings and lengths cut to nanoseconds; by lane.
  std::map<std::pair<int, int>, std::map<std::int64_t, std::int64_t>> slices;
  const auto ns = [](const Json& us) { return static_cast<std::int64_t>(us.get<double>() * 1000); };
  const auto lane = [](const Json& e) { return std::pair(e["pid"].get<int>(), e["tid"].get<int>()); };
  for (const Json& e : timeline["traceEvents"]) {
    if (e["ph"] == "s") begun[e["id"]] = e["ts"];
    if (e["ph"] == "X") {
      std::int64_t& end = slices[lane(e)][ns(e["ts"])];
      end = std::max(end, ns(e["ts"]) + ns(e["dur"]));
    }
  }
  std::size_t outside = 0;
  for (const Json& e : timeline["traceEvents"]) {
    if (e["ph"] != "s" && e["ph"] != "f") continue;
    const auto& of_lane = slices[lane(e)];
    const auto behind = of_lane.upper_bound(ns(e["ts"]));
    if (behind == of_lane.begin() || std::prev(behind)->second < ns(e["ts"])) ++outside;
  }
  EXPECT_EQ(outside, 0u);
  std::size_t ended = 0;
  for (const Json& e : timeline["traceEvents"]) {
    if (e["ph"] != "f") continue;
    ++ended;
    ASSERT_TRUE(begun.contains(e["id"]));
    EXPECT_LE(begun[e["id"]], e["ts"].get<double>() + 0.001);
  }
  EXPECT_GT(ended, 100u);
  EXPECT_EQ(ended, begun.size());  // nothing begins that does not end
}

TEST(Timeline, FiltersKeepItSmall) {
  observe::TimelineOptions options;
  options.dies = {3};
  options.cores = {2};
  options.from = 20_us;
  options.to = 30_us;
  const Json timeline = timeline_of(options, "filtered.json");
  std::set<int> dies;
  std::map<std::uint64_t, std::string> arrows;
  for (const Json& e : timeline["traceEvents"]) {
    dies.insert(e["pid"].get<int>());
    if (e["ph"] == "s" || e["ph"] == "f") arrows[e["id"]] += e["ph"];
    if (e["ph"] != "X") continue;
    EXPECT_LT(e["ts"].get<double>(), 30);
    EXPECT_GT(e["ts"].get<double>() + e["dur"].get<double>(), 20);
  }
  EXPECT_EQ(dies, (std::set<int>{3}));
  EXPECT_FALSE(arrows.empty());
  for (const auto& [id, ends] : arrows) EXPECT_EQ(ends, "sf") << id;
  const auto lanes = lanes_of(timeline, 3);
  EXPECT_TRUE(lanes.contains("core 2 MTE3"));
  EXPECT_FALSE(lanes.contains("core 1 MTE3"));
}

TEST(Wave, IsAValueChangeDumpInTheOrderOfTime) {
  std::unique_ptr<observe::Wave> wave;
  std::uint64_t packets = 0;
  run(
      [&](Supernode& machine) {
        wave = std::make_unique<observe::Wave>(machine, scratch("links.vcd"),
                                               std::vector{supernode::parse_link_selection("die=2,plane=1")});
        machine.trace_links([&](const LinkName& link) { return wave->shows(link); });
        machine.probes().link_packet.attach(
            &packets, [](void* count, const LinkPacket&) { ++*static_cast<std::uint64_t*>(count); });
      },
      [&] { wave->finish(); });
  std::ifstream file(scratch("links.vcd"));
  std::map<std::string, std::string> names;  // by code
  std::map<std::string, int> rises;          // by name
  std::int64_t now = -1;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("$var")) {
      std::istringstream words(line);
      std::string var, type, bits, code, name;
      words >> var >> type >> bits >> code >> name;
      EXPECT_TRUE(names.emplace(code, name).second) << "code " << code << " twice";
    } else if (line.starts_with("#")) {
      EXPECT_GT(std::stoll(line.substr(1)), now);
      now = std::stoll(line.substr(1));
    } else if (line.starts_with("1")) {
      ++rises[names.at(line.substr(1))];
    } else if (line.starts_with("b")) {
      EXPECT_TRUE(names.contains(line.substr(line.find(' ') + 1))) << line;
    }
  }
  EXPECT_GT(packets, 100u);
  EXPECT_GT(rises["plane1_die2_to_l1chip0_busy"], 10);
  EXPECT_LE(
      static_cast<std::uint64_t>(rises["plane1_die2_to_l1chip0_busy"] + rises["plane1_l1chip0_to_die2_busy"]),
      packets);
}

TEST(Wave, ASelectionOfLinksIsReadOrRefused) {
  const LinkName port{LinkName::Kind::from_endpoint, 1, 3, {"die", 3}, {"l1chip", 0}};
  const LinkName up{LinkName::Kind::trunk, 1, -1, {"l1chip", 2}, {"l2chip", 5}};
  EXPECT_TRUE(supernode::parse_link_selection("die=3").matches(port));
  EXPECT_FALSE(supernode::parse_link_selection("die=3,plane=0").matches(port));
  EXPECT_FALSE(supernode::parse_link_selection("die=3").matches(up));
  EXPECT_TRUE(supernode::parse_link_selection("plane=1,node=2,l2=5").matches(up));
  EXPECT_THROW(supernode::parse_link_selection("dice=3"), InputError);
  EXPECT_THROW(supernode::parse_link_selection("die"), InputError);
}

}  // namespace
}  // namespace cm384::supernode::timeline_test
