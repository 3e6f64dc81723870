// `cm384 run copies`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text/error.h"
#include "workloads/fabric/copies.h"
#include "workloads/frame/confidence.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

void check_blocks(std::string_view text) {
  blocks_of(text);
}

struct CopiesOptions {
  Texts copy{"d2rd"};
  Texts peer{"intra-node", "inter-node"};
  std::string block = "64KiB";
  Bytes volume = 16_MiB;
  Integers streams{1}, pairs{1};
  Texts submit{"host"};
  bool rdma = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("copy", self.copy, OneOf{{"d2rd", "rd2d", "d2rh", "rh2d", "h2rd", "rd2h", "h2rh", "rh2h"}},
          "from where to where, one row each: d a die's memory, h that of its CPU socket, r the peer's; the "
          "SDMA engine of the first side's die copies");
    visit("peer", self.peer, OneOf{{"sibling-die", "intra-node", "inter-node", "inter-supernode"}},
          "where the peer is, one row each: the other die of the package, another package of the node, the "
          "die of the same place in the next node, or in the next supernode, by --plane rdma");
    visit("block", self.block, Form{"SIZE[+SIZE..]", check_blocks},
          "of 64 B to 1 GiB each; several sizes take turns");
    visit("volume", self.volume, Range{64_B, 4_GiB, 64_B}, "of all blocks of a pair");
    visit("streams", self.streams, Range{1, 64}, "of a pair, that take its blocks in turn; one row each");
    visit("pairs", self.pairs, Range{1, kMostRanks}, "that copy at the same time, one row each");
    visit(
        "submit", self.submit, OneOf{{"host", "aicpu"}},
        "who writes the entries of a batch into streams, one row each: the host, by a call each, or an AICPU "
        "of the die, by one call of the host");
    visit("plane", self.rdma, Either{"ub", "rdma"}, "what joins the two sides");
  }
};

std::vector<CopiesPoint> points_of_copies(const CopiesOptions& options) {
  CopiesPoint point;
  point.blocks = blocks_of(options.block);
  point.volume = options.volume;
  point.rdma = options.rdma;
  std::vector<CopiesPoint> points;
  for (const std::string& copy : options.copy) {
    point.copy = copy;
    for (const std::string& peer : options.peer) {
      point.peer = peer;
      for (const std::string& submit : options.submit) {
        point.by_aicpu = submit == "aicpu";
        for (const int streams : options.streams) {
          point.streams = streams;
          for (const int pairs : options.pairs) {
            point.pairs = pairs;
            points.push_back(point);
          }
        }
      }
    }
  }
  return points;
}

Row copies_row(const CopiesPoint& point, CopiesReading reading) {
  const double bytes = static_cast<double>(point.volume.count) * point.pairs;
  Row row{{"copy", point.copy}, {"peer", point.peer}, {"submit", point.by_aicpu ? "aicpu" : "host"}};
  row.set("block", point.block_text()).set("streams", point.streams).set("pairs", point.pairs);
  row.set("plane", point.rdma ? "rdma" : "ub");
  row.set("blocks", reading.block_us.size()).set("arrived", reading.arrived);
  row.set("bytes", static_cast<std::int64_t>(bytes));
  row.set("latency_us", reading.latency_us).set("submit_us", reading.submit_us);
  const double busy = std::accumulate(reading.block_us.begin(), reading.block_us.end(), 0.0);
  std::ranges::sort(reading.block_us);
  const Summary summary = summarise(reading.block_us);
  row.set("block_us", Row{{"mean", summary.mean}, {"p99", summary.p99}, {"max", summary.max}});
  row.set("under_way", busy / reading.latency_us / point.pairs);
  row.set("bandwidth_GBps", bytes / (reading.latency_us * 1e3) / point.pairs);
  return row;
}

// What was not asked for is what the machine has.
Texts default_peers(const hw::Topology& topology) {
  if (topology.supernodes > 1) return {"inter-supernode"};
  Texts peers;
  for (const char* peer : {"intra-node", "inter-node"}) {
    CopiesPoint point;
    point.peer = peer;
    if (most_pairs(point, topology) > 0) peers.emplace_back(peer);
  }
  return peers.empty() ? Texts{"sibling-die"} : peers;
}

StudyResult run_copies(const StudyContext& context, const CopiesOptions& asked) {
  CopiesOptions options = asked;
  if (!context.given.contains("peer")) options.peer = default_peers(context.machine.topology);
  const std::vector<CopiesPoint> points = points_of_copies(options);
  for (const CopiesPoint& point : points) pairs_of(point, context.machine.topology);
  StudyResult result;
  double done = 0;
  for (const CopiesPoint& point : points) {
    const auto parts = static_cast<double>(points.size());
    PartOfProgress progress(context.progress, done / parts, (done + 1) / parts, result.simulator);
    ++done;
    auto reading = measure_copies(context.with(progress), point, result.simulator);
    if (!reading) {
      result.complete = false;
      return result;
    }
    if (reading->arrived != reading->block_us.size()) result.passed = false;
    context.finish_row(result, copies_row(point, std::move(*reading)));
  }
  return result;
}

constexpr std::array kBlockTimes{
    Field{"mean", FieldType::number, "mean", true},
    Field{"p99", FieldType::number, "99th percentile"},
    Field{"max", FieldType::number, "largest"},
};
constexpr std::array kCopiesFields{
    Field{"copy", FieldType::text, "from where to where, r: the peer's", true}.as_condition(),
    Field{"peer", FieldType::text, "where the peer is", true}.as_condition(),
    Field{"submit", FieldType::text, "who writes the entries: host, aicpu", true}.as_condition(),
    Field{"block", FieldType::text, "sizes of blocks, which take turns", true}.as_condition(),
    Field{"streams", FieldType::integer, "of a pair", true}.as_condition(),
    Field{"pairs", FieldType::integer, "at the same time", true}.as_condition(),
    Field{"plane", FieldType::text, "that joins the two sides: ub, rdma"}.as_condition(),
    Field{"blocks", FieldType::integer, "of all pairs"},
    Field{"arrived", FieldType::integer,
          "blocks whose first and last bytes are there; the run fails where some are not"},
    Field{"bytes", FieldType::bytes, "of all blocks", true}.as_condition(),
    Field{"latency_us", FieldType::number,
          "from the first call of a host until a host has seen the last block", true},
    Field{"submit_us", FieldType::number, "from the same beginning until the last entry is at its die", true},
    Field{"block_us", FieldType::object, "of a block, from its turn in its stream to its completion", true,
          kBlockTimes},
    Field{"under_way", FieldType::number, "blocks of a pair that are copied at a time, mean"},
    Field{"bandwidth_GBps", FieldType::number, "of a pair, over the whole latency", true},
};

}  // namespace

const Study kCopiesStudy{"copies",      "batches of blocks between memories of dies and hosts, by SDMA",
                         kCopiesFields, options_of<CopiesOptions, run_copies>,
                         true,          {},
                         false,         true};

}  // namespace cm384::studies
