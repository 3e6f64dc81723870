// `cm384 run p2p`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text/error.h"
#include "firmware/abi/p2p.h"
#include "workloads/fabric/p2p.h"
#include "workloads/fabric/p2p_sdma.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

constexpr std::array kP2pFields{
    Field{"op", FieldType::text, "read, write, atomic", true}.as_condition(),
    Field{"path", FieldType::text, "who moves the bytes", true}.as_condition(),
    Field{"target", FieldType::text, "what is read or written: npu, cpu, sibling-die", true}.as_condition(),
    Field{"distance", FieldType::text, "intra-node, inter-node or inter-supernode", true}.as_condition(),
    Field{"bytes", FieldType::bytes, "moved", true}.as_condition(),
    Field{"latency_us", FieldType::number, "from the issue or submission to the completion", true},
    Field{"startup_us", FieldType::number, "from the same beginning to the first byte at the die's port",
          true},
    Field{"bandwidth_GBps", FieldType::number, "of --cores AIVs, or of the copy", true},
    Field{"phases", FieldType::list, "stages of the latency of a copy by SDMA", false, kPhaseParts},
};

struct P2pOptions {
  Texts path{"aiv-direct"};
  Texts operation{"read", "write"};
  Texts target{"npu", "cpu"};
  Texts distance{"intra-node", "inter-node"};
  Sizes bytes{512_B};
  int cores = 0;
  Bytes volume = 16_MiB;
  bool by_core = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("path", self.path, OneOf{{"aiv-direct", "sdma", "rdma", "transfer"}},
          "who moves the bytes: vector cores, the SDMA engine, the SDMA engine by the RDMA plane, or the "
          "accelerator's queue "
          "of transfers; one row each, and the size from which sdma is faster than aiv-direct. Without "
          "cores: transfer, and "
          "rdma, which is then a transfer");
    visit("op", self.operation, OneOf{{"read", "write", "atomic"}}, "operations, one row each");
    visit("target", self.target, OneOf{{"npu", "cpu", "sibling-die"}}, "what is read or written");
    visit("distance", self.distance, OneOf{{"intra-node", "inter-node", "inter-supernode"}},
          "where the target is; inter-supernode: the die of the same place in the next supernode, by --path "
          "rdma; the only one by default where there are several");
    visit("bytes", self.bytes, Range{4_B, 1_GiB, 4_B},
          "bytes moved, one row each; FROM..TO doubles. One size of at most 184 KiB by aiv-direct: latency "
          "of one "
          "instruction of one core; otherwise --cores share them");
    visit("cores", self.cores, Range{0, 64}, "AIVs that move data together; 0: all of the die",
          Needs{"path", {"aiv-direct"}});
    visit("volume", self.volume, Range{0_B, 4_GiB, 16_KiB},
          "bytes that each of them moves for aiv-direct's bandwidth; 0B: not measured",
          Needs{"path", {"aiv-direct"}});
    visit("submit", self.by_core, Either{"host", "core"},
          "who submits a copy: the host to a stream, or a vector core to its own queue",
          Needs{"path", {"sdma", "rdma"}});
  }
  void settle(const hw::Machine& machine) { all_if_zero(cores, machine.die.aiv); }
};

// The points of the options, sizes innermost.
std::vector<P2pPoint> points_of(const P2pOptions& options) {
  P2pPoint point;
  point.cores = options.cores;
  point.volume = options.volume;
  std::vector<P2pPoint> points;
  for (const auto& target : options.target) {
    for (const auto& operation : options.operation) {
      for (const auto& distance : options.distance) {
        if (target == "sibling-die" && distance != "intra-node") continue;
        point.target = target;
        point.operation = operation;
        point.distance = distance;
        for (const Bytes bytes : options.bytes) {
          point.bytes = bytes;
          points.push_back(point);
        }
      }
    }
  }
  return points;
}

Row row_of(const P2pPoint& point, const std::string& path) {
  return {{"op", point.operation},
          {"path", path},
          {"target", point.target},
          {"distance", point.distance},
          {"bytes", point.bytes.count}};
}

Row direct_row(const StudyContext& context, const P2pOptions& options, const P2pPoint& point,
               SimulatorCounts& counts) {
  Row row = row_of(point, "aiv-direct");
  const bool sibling = point.target == "sibling-die";
  if (options.bytes.size() == 1 && point.bytes.count <= CM384_P2P_BUFFER_BYTES) {
    const P2pReading reading = measure_p2p(context, point, counts);
    row.set("latency_us", reading.latency_us);
    row.set("startup_us", sibling ? Value() : reading.startup_us);
    row.set("bandwidth_GBps", point.volume.count == 0 ? Value() : reading.bandwidth_GBps);
    return row;
  }
  P2pPoint small = point;
  small.bytes = std::min(point.bytes, 512_B);
  small.volume = 0_B;
  const double startup = sibling ? 0 : measure_p2p(context, small, counts).startup_us;
  const double latency = measure_shared_p2p(context, point, counts);
  row.set("latency_us", latency);
  row.set("startup_us", sibling ? Value() : startup);
  row.set("bandwidth_GBps", static_cast<double>(point.bytes.count) / (latency * 1e3));
  return row;
}

Row copy_row(const StudyContext& context, const P2pOptions& options, const P2pPoint& point,
             const std::string& path, SimulatorCounts& counts) {
  const bool transfer = path == "transfer" || !context.machine.accelerator.has_cores();
  const SdmaReading reading = transfer          ? measure_transfer(context, point, counts)
                              : options.by_core ? measure_core_sdma(context, point, false, counts)
                                                : measure_sdma(context, point, counts);
  Row row = row_of(point, path);
  const bool by_port = point.target != "sibling-die" || point.rdma;
  row.set("latency_us", reading.latency_us);
  row.set("startup_us", by_port ? Value(reading.startup_us) : Value());
  row.set("bandwidth_GBps", reading.bandwidth_GBps);
  if (reading.stages.empty()) return row;
  Rows phases;
  for (const Stage& stage : reading.stages) phases.push_back({{"name", stage.name}, {"mean_us", stage.us}});
  row.set("phases", phases);
  return row;
}

// Where both paths were run: the smallest size from which SDMA is the faster one.
void note_crossings(StudyResult& result) {
  struct Latencies {
    std::map<std::int64_t, double> direct, sdma;  // by size
  };
  std::vector<std::pair<std::string, Latencies>> kinds;
  for (const Row& row : result.rows) {
    const std::string kind =
        fmt::format("{}, {}, {}", *row["op"].text(), *row["target"].text(), *row["distance"].text());
    if (kinds.empty() || kinds.back().first != kind) kinds.push_back({kind, {}});
    if (*row["path"].text() != "sdma" && *row["path"].text() != "aiv-direct") continue;
    auto& sizes = *row["path"].text() == "sdma" ? kinds.back().second.sdma : kinds.back().second.direct;
    sizes[*row["bytes"].integer()] = row["latency_us"].number();
  }
  for (const auto& [kind, sizes] : kinds) {
    if (sizes.sdma.size() < 2 || sizes.direct.size() != sizes.sdma.size()) continue;
    std::int64_t from = 0;
    for (const auto& [bytes, latency] : sizes.sdma) {
      if (latency >= sizes.direct.at(bytes)) {
        from = 0;
      } else if (from == 0) {
        from = bytes;
      }
    }
    result.notes.push_back(from == 0 ? fmt::format("{}: aiv-direct is faster at every size", kind)
                                     : fmt::format("{}: sdma is faster from {} B on", kind, from));
  }
}

// Sizes of which cores move more than was asked for.
void note_shares(const P2pOptions& options, StudyResult& result) {
  const bool direct = std::ranges::find(options.path, "aiv-direct") != options.path.end();
  if (!direct || (options.bytes.size() == 1 && options.bytes.front().count <= CM384_P2P_BUFFER_BYTES)) return;
  for (const Bytes bytes : options.bytes) {
    P2pPoint point;
    point.cores = options.cores;
    point.bytes = bytes;
    const P2pShares shares = shares_of(point);
    if (shares.moved() != static_cast<std::uint64_t>(bytes.count))
      result.notes.push_back(fmt::format("aiv-direct, {} B: {} cores move {} B each, {} B in all",
                                         bytes.count, shares.cores, shares.bytes, shares.moved()));
  }
}

// Refuses what a path or the machine does not have, before anything runs.
void check(const hw::Machine& machine, const P2pOptions& options) {
  const auto has = [](const Texts& list, std::string_view name) {
    return std::ranges::find(list, name) != list.end();
  };
  for (const std::string& path : options.path) {
    if (!machine.accelerator.has_cores() && path != "rdma" && path != "transfer")
      throw InputError(
          fmt::format("run p2p: --path {}: accelerator.kind is {}, without cores or descriptors; allowed: "
                      "transfer, rdma",
                      path, machine.accelerator.kind));
    if (path != "aiv-direct" && has(options.operation, "atomic"))
      throw InputError(
          fmt::format("run p2p: --op atomic: {} copies; allowed with --path {}: read, write", path, path));
    if (path == "rdma" && has(options.target, "cpu"))
      throw InputError(
          "run p2p: --target cpu: the RDMA plane reaches dies only; allowed with --path rdma: npu, "
          "sibling-die");
  }
  const bool far = has(options.distance, "inter-supernode");
  for (const std::string& path : options.path) {
    if (far && path != "rdma")
      throw InputError(
          fmt::format("run p2p: --path {}: only the RDMA plane joins supernodes; allowed with --distance "
                      "inter-supernode: rdma",
                      path));
  }
  if (far && !has(options.target, "npu"))
    throw InputError("run p2p: --distance inter-supernode goes to a die; allowed with it: --target npu");
  if (options.by_core && !machine.accelerator.has_cores())
    throw InputError(
        fmt::format("run p2p: --submit core: accelerator.kind is {}, without cores; allowed: host",
                    machine.accelerator.kind));
}

// What was not asked for is what the machine has. `far`: where nothing says it, the way between supernodes is
// meant.
P2pOptions with_defaults(const StudyContext& context, P2pOptions options, bool far) {
  const hw::Topology& topology = context.machine.topology;
  const bool one_package = topology.dies_per_node <= topology.dies_per_package;
  if (!context.given.contains("distance")) {
    if (far) {
      options.distance = {"inter-supernode"};
    } else if (topology.nodes < 2) {
      options.distance = {"intra-node"};
    } else if (one_package) {
      options.distance = {"inter-node"};
    }
  }
  if (!context.given.contains("path")) {
    if (std::ranges::find(options.distance, "inter-supernode") != options.distance.end()) {
      options.path = {"rdma"};
    } else if (!context.machine.accelerator.has_cores()) {
      options.path = {"transfer"};
    }
  }
  const bool by_rdma = std::ranges::find(options.path, "rdma") != options.path.end();
  if (!context.given.contains("target") && (by_rdma || topology.sockets_per_node == 0))
    options.target = {"npu"};
  return options;
}

// Ways within a supernode and those between several are measured by paths of their own: a machine that has
// both, of which none was asked for by distance, path or target, shows both.
std::vector<P2pOptions> all_of(const StudyContext& context, const P2pOptions& asked) {
  const hw::Topology& topology = context.machine.topology;
  const auto given = [&](const char* name) { return context.given.contains(name); };
  const bool far = topology.supernodes > 1;
  const bool near = topology.nodes > 1 || topology.dies_per_node > topology.dies_per_package;
  std::vector<P2pOptions> all;
  if (far && near && !given("distance") && !given("path") && !given("target"))
    all.push_back(with_defaults(context, asked, false));
  all.push_back(with_defaults(context, asked, far));
  return all;
}

struct P2pRun {
  const P2pOptions& options;
  P2pPoint point;
  std::string path;
};

StudyResult run(const StudyContext& context, const P2pOptions& asked) {
  const std::vector<P2pOptions> all = all_of(context, asked);
  std::vector<P2pRun> runs;
  for (const P2pOptions& options : all) {
    check(context.machine, options);
    for (const P2pPoint& point : points_of(options)) {
      for (const std::string& path : options.path) runs.push_back({options, point, path});
    }
  }
  StudyResult result;
  const auto parts = static_cast<double>(runs.size());
  double done = 0;
  for (const auto& [options, point, path] : runs) {
    PartOfProgress progress(context.progress, done / parts, (done + 1) / parts, result.simulator);
    const StudyContext part = context.with(progress);
    P2pPoint by_path = point;
    by_path.rdma = path == "rdma";
    const Row row = path == "aiv-direct" ? direct_row(part, options, point, result.simulator)
                                         : copy_row(part, options, by_path, path, result.simulator);
    ++done;
    if (context.interrupted != 0) {
      result.complete = false;
      return result;
    }
    context.finish_row(result, row);
  }
  note_crossings(result);
  note_shares(all.front(), result);
  return result;
}

}  // namespace

const Study kP2pStudy{"p2p",      "latency, start-up and bandwidth between two memories",
                      kP2pFields, options_of<P2pOptions, run>,
                      true,       {},
                      true,       true};

}  // namespace cm384::studies
