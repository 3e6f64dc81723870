// `cm384 run p2p`.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "firmware/abi/p2p.h"
#include "hw/error.h"
#include "studies/options.h"
#include "studies/p2p.h"
#include "studies/p2p_sdma.h"
#include "studies/session.h"
#include "studies/studies.h"

namespace cm384::studies {
namespace {

constexpr std::int64_t kChunk = 16 * 1024;

void add_options(boost::program_options::options_description& options) {
  options.add_options()("path", choices_option("aiv-direct", {"aiv-direct", "sdma"}),
                        "who moves the bytes: the vector cores, or the SDMA engine; both: "
                        "one row each, and the size from which SDMA is faster")(
      "op", choices_option("read,write", {"read", "write", "atomic"}), "operations, one row each")(
      "target", choices_option("npu,cpu", {"npu", "cpu", "sibling-die"}), "what is read or written")(
      "distance", choices_option("intra-node,inter-node", {"intra-node", "inter-node"}),
      "where the target is")("bytes", sizes_option("512B"),
                             "bytes moved, one row each; 64B..1MiB goes by factors of two. One size of at "
                             "most 184 KiB by aiv-direct: latency "
                             "of one instruction of one "
                             "core; several or more: --cores share them")("cores", integer_option(48, 1, 64),
                                                                          "AIVs that move data together")(
      "volume", size_option(16_MiB), "bytes each of them moves for aiv-direct's bandwidth; 0B: not measured");
  options.add_options()(
      "submit", choice_option("host", {"host", "core"}),
      "who submits a copy of --path sdma: the host to a stream, or a vector core to its own queue");
  add_fault_option(options);
  add_rtl_option(options);
}

// The points of the options, sizes innermost.
std::vector<P2pPoint> points_of(const StudyContext& context) {
  P2pPoint point;
  point.cores = context.option<int>("cores");
  point.volume = context.option<Bytes>("volume");
  if (point.volume.count % kChunk != 0)
    throw InputError(fmt::format("run p2p: --volume {}: allowed: multiples of 16 KiB", point.volume.count));
  std::vector<P2pPoint> points;
  for (const auto& target : context.option<Names>("target").values) {
    for (const auto& operation : context.option<Names>("op").values) {
      for (const auto& distance : context.option<Names>("distance").values) {
        if (target == "sibling-die" && distance == "inter-node") continue;
        point.target = target;
        point.operation = operation;
        point.distance = distance;
        for (const Bytes bytes : context.option<Sizes>("bytes").values) {
          if (bytes.count < 4 || bytes.count % 4 != 0 || bytes.count > (std::int64_t{1} << 30))
            throw InputError(
                fmt::format("run p2p: --bytes {}: allowed: 4 B to 1 GiB, multiples of 4 B", bytes.count));
          point.bytes = bytes;
          points.push_back(point);
        }
      }
    }
  }
  return points;
}

Json row_of(const P2pPoint& point, const std::string& path) {
  Json row;
  row["op"] = point.operation;
  row["path"] = path;
  row["target"] = point.target;
  row["distance"] = point.distance;
  row["bytes"] = point.bytes.count;
  return row;
}

Json direct_row(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts) {
  Json row = row_of(point, "aiv-direct");
  const bool sibling = point.target == "sibling-die";
  if (context.option<Sizes>("bytes").values.size() == 1 && point.bytes.count <= CM384_P2P_BUFFER_BYTES) {
    const P2pReading reading = measure_p2p(context, point, counts);
    row["latency_us"] = reading.latency_us;
    row["startup_us"] = sibling ? Json() : Json(reading.startup_us);
    row["bandwidth_GBps"] = point.volume.count == 0 ? Json() : Json(reading.bandwidth_GBps);
    return row;
  }
  P2pPoint small = point;
  small.bytes = std::min(point.bytes, 512_B);
  small.volume = 0_B;
  const double startup = sibling ? 0 : measure_p2p(context, small, counts).startup_us;
  const double latency = measure_shared_p2p(context, point, counts);
  row["latency_us"] = latency;
  row["startup_us"] = sibling ? Json() : Json(startup);
  row["bandwidth_GBps"] = static_cast<double>(point.bytes.count) / (latency * 1e3);
  return row;
}

Json sdma_row(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts) {
  if (point.operation == "atomic")
    throw InputError("run p2p: --op atomic: SDMA copies; allowed with --path sdma: read, write");
  const SdmaReading reading = context.option<std::string>("submit") == "core"
                                  ? measure_core_sdma(context, point, false, counts)
                                  : measure_sdma(context, point, counts);
  Json row = row_of(point, "sdma");
  row["latency_us"] = reading.latency_us;
  row["startup_us"] = point.target == "sibling-die" ? Json() : Json(reading.startup_us);
  row["bandwidth_GBps"] = reading.bandwidth_GBps;
  if (reading.stages.empty()) return row;
  Json phases = Json::array();
  for (const Stage& stage : reading.stages) phases.push_back({{"name", stage.name}, {"mean_us", stage.us}});
  row["phases"] = phases;
  return row;
}

// Where both paths were run: the smallest size from which SDMA is the faster one.
void note_crossings(StudyResult& result) {
  struct Sizes {
    std::map<std::int64_t, double> direct, sdma;
  };
  std::vector<std::pair<std::string, Sizes>> kinds;
  for (const Json& row : result.rows) {
    const std::string kind =
        fmt::format("{}, {}, {}", row["op"].get<std::string>(), row["target"].get<std::string>(),
                    row["distance"].get<std::string>());
    if (kinds.empty() || kinds.back().first != kind) kinds.push_back({kind, {}});
    auto& sizes = row["path"] == "sdma" ? kinds.back().second.sdma : kinds.back().second.direct;
    sizes[row["bytes"].get<std::int64_t>()] = row["latency_us"].get<double>();
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

StudyResult run(const StudyContext& context) {
  StudyResult result;
  const std::vector<P2pPoint> points = points_of(context);
  const auto& paths = context.option<Names>("path").values;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const std::string& path : paths) {
      const Json row = path == "sdma" ? sdma_row(context, points[i], result.simulator)
                                      : direct_row(context, points[i], result.simulator);
      if (context.interrupted != 0) {
        result.complete = false;
        return result;
      }
      result.rows.push_back(row);
    }
    context.progress.update(static_cast<double>(i + 1) / static_cast<double>(points.size()),
                            result.simulator.simulated, result.simulator.events);
  }
  note_crossings(result);
  return result;
}

}  // namespace

const Study kP2pStudy{"p2p", "latency, start-up and bandwidth between two memories", add_options, run};

}  // namespace cm384::studies
