#include "workloads/cluster/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/text/error.h"

namespace cm384::studies {
namespace {

// NPUs of drawn blocks: a mean of 10.08 ([P] 6.1.2).
constexpr int kLargestDrawn = 64;
constexpr double kMeanDrawn = 10.08;
constexpr int kMostByCut = 4096;  // NPUs of a block: its traffic has as many squared

}  // namespace

void JobOptions::settle(const hw::Machine& machine) {
  const hw::Topology& topology = machine.topology;
  const int most = topology.nodes * topology.dies_per_node / topology.dies_per_package;
  // Of the same shape on a smaller supernode: each size as often, of a largest that it holds.
  if (block_is_given || most >= kLargestDrawn) return;
  const int largest = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(1, most))));
  block = fmt::format("powers:{}:{:.4g}", largest, std::max(1.0, kMeanDrawn * largest / kLargestDrawn));
}

cluster::PoolShape JobOptions::shape(const hw::Machine& machine, int npus, const std::string& study) const {
  const hw::Topology& topology = machine.topology;
  const auto refuse = [&](const std::string& what) { throw InputError(study + ": " + what); };
  if (topology.dies_per_node % topology.dies_per_package != 0)
    refuse(fmt::format("{} dies per node do not make whole NPUs of {} dies", topology.dies_per_node,
                       topology.dies_per_package));
  cluster::PoolShape shape;
  shape.supernodes = topology.supernodes;
  shape.node_npus = topology.dies_per_node / topology.dies_per_package;
  if (npus == 0 || npus % shape.node_npus != 0)
    refuse(fmt::format("--npus {}: allowed: whole nodes of {} NPUs", npus, shape.node_npus));
  shape.nodes = npus / shape.node_npus;
  shape.granule = granule;
  shape.one_node = one_node;
  if (shape.node_npus % shape.granule != 0)
    refuse(
        fmt::format("--granule {}: allowed: a divisor of a node's {} NPUs", shape.granule, shape.node_npus));
  return shape;
}

void JobOptions::check_blocks(const std::vector<cluster::Job>& jobs, const cluster::BlockTraffic& of,
                              const std::string& study) const {
  const bool by_cut = chosen_fit() == cluster::Fit::min_cut;
  if (by_cut && granule > 1)
    throw InputError(fmt::format("{}: --granule {}: allowed: 1 with --fit min-cut", study, granule));
  const int most = of.most() > 0 ? of.most() : by_cut ? kMostByCut : cluster::kMostBlock;
  const auto largest = std::ranges::max_element(jobs, {}, &cluster::Job::block);
  if (largest != jobs.end() && largest->block > most)
    throw InputError(fmt::format("{}: --traffic {}: job {} has blocks of {} NPUs; allowed: at most {}", study,
                                 traffic, largest->id, largest->block, most));
}

std::vector<std::string> JobOptions::files() const {
  std::vector<std::string> made;
  if (!trace.empty()) made.push_back(trace);
  if (!cluster::is_traffic_name(traffic)) made.push_back(traffic);
  return made;
}

double JobOptions::arrivals(const cluster::PoolShape& shape) const {
  const double each = cluster::BlockSizes(block).mean() * blocks * cluster::RunTimes(duration).mean_s();
  return load * static_cast<double>(shape.npus()) / each;
}

cluster::JobTrace JobOptions::draw(std::int64_t count, double per_second, std::uint64_t seed) const {
  cluster::DrawnJobs drawn;
  drawn.count = count;
  drawn.block = block;
  drawn.blocks = blocks;
  drawn.duration = duration;
  drawn.per_second = per_second;
  return cluster::draw_jobs(drawn, seed);
}

}  // namespace cm384::studies
