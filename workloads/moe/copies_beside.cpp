#include "workloads/moe/copies_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/error.h"

namespace cm384::studies {

std::vector<int> dies_beside(const std::vector<int>& ranks, int wanted, const hw::Topology& topology) {
  std::set<int> nodes;
  for (const int die : ranks) nodes.insert(topology.node_of(die));
  std::vector<std::vector<int>> free;  // by node
  for (const int node : nodes) {
    free.emplace_back();
    for (int die = node * topology.dies_per_node; die < (node + 1) * topology.dies_per_node; ++die) {
      if (std::ranges::find(ranks, die) == ranks.end()) free.back().push_back(die);
    }
  }
  const auto each = static_cast<std::size_t>(wanted) / nodes.size();
  const bool fits = nodes.size() % 2 == 0 && static_cast<std::size_t>(wanted) % nodes.size() == 0 &&
                    std::ranges::all_of(free, [&](const auto& dies) { return dies.size() >= each; });
  if (!fits) {
    const std::size_t fewest = std::ranges::min_element(free, {}, &std::vector<int>::size)->size();
    throw InputError(fmt::format(
        "--beside: {} dies on the {} nodes of the ranks, which have {} or more without a rank; allowed: an "
        "even number of nodes, and as many dies on each",
        wanted, nodes.size(), fewest));
  }
  std::vector<int> dies;
  for (const std::vector<int>& of_node : free)
    dies.insert(dies.end(), of_node.begin(), of_node.begin() + static_cast<std::ptrdiff_t>(each));
  return dies;
}

CopiesBeside::CopiesBeside(host::Runtime& runtime, const std::vector<int>& dies, Bytes volume)
    : runtime_(runtime), volume_(static_cast<std::uint64_t>(volume.count)) {
  for (std::size_t n = 0; n < dies.size(); ++n) {
    Copier& copier = copiers_.emplace_back();
    copier.die = dies[n];
    copier.from = runtime.allocate(dies[n], volume_);
    copier.to = runtime.allocate(dies[(n + dies.size() / 2) % dies.size()], volume_);
    runtime.mark_payload(copier.from, volume_);
    for (std::size_t s = 0; s < kStreams; ++s) copier.streams.push_back(runtime.create_stream(dies[n]));
  }
}

void CopiesBeside::enqueue() {
  for (Copier& copier : copiers_) {
    copier.tasks.clear();
    // One call of the host a block would leave the engine idle.
    unfold_on_device(runtime_, copier.die, [&] {
      for (std::uint64_t at = 0; at < volume_; at += kBlock)
        copier.tasks.push_back(runtime_.memcpy_async(copier.streams[copier.tasks.size() % kStreams],
                                                     copier.to + at, copier.from + at,
                                                     std::min(kBlock, volume_ - at)));
    });
    runtime_.synchronize_device(copier.die);
  }
}

void CopiesBeside::count(Time begin, Time end) {
  for (const Copier& copier : copiers_) {
    Time first = Time::never(), last;
    for (std::size_t n = 0; n < copier.tasks.size(); ++n) {
      const npu::TaskRecord& record = runtime_.task(copier.tasks[n]).record;
      first = std::min(first, record.turn);
      last = std::max(last, record.completed);
      const Time within = std::min(record.completed, end) - std::max(record.decoded, begin);
      if (within <= Time{}) continue;
      bytes_ += static_cast<double>(std::min(kBlock, volume_ - n * kBlock)) * static_cast<double>(within.ps) /
                static_cast<double>((record.completed - record.decoded).ps);
    }
    covered_ = covered_ && first <= begin && last >= end;
  }
  counted_ += end - begin;
}

double CopiesBeside::bandwidth_GBps() const {
  if (counted_ == Time{}) return 0;
  return bytes_ / counted_.ns() / static_cast<double>(copiers_.size());
}

}  // namespace cm384::studies
