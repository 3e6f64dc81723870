#include "workloads/fabric/copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text/error.h"
#include "base/text/quantity.h"
#include "workloads/frame/session.h"

namespace cm384::studies {
namespace {

bool is_remote(std::string_view end) {
  return end.starts_with('r');
}
bool is_host(std::string_view end) {
  return end.ends_with('h');
}
std::string_view from_of(const CopiesPoint& point) {
  return std::string_view(point.copy).substr(0, point.copy.find('2'));
}
std::string_view to_of(const CopiesPoint& point) {
  return std::string_view(point.copy).substr(point.copy.find('2') + 1);
}

SessionOptions options_of_copies(const CopiesPoint& point, const std::vector<CopiesPair>& pairs) {
  std::set<int> dies, sockets;
  for (const CopiesPair& pair : pairs) {
    dies.insert({pair.die, pair.peer});
    for (const int socket : {pair.socket, pair.peer_socket}) {
      if (socket >= 0) sockets.insert(socket);
    }
  }
  SessionOptions options;
  options.dies.assign(dies.begin(), dies.end());
  options.sockets.assign(sockets.begin(), sockets.end());
  options.rdma = point.rdma;
  options.what =
      fmt::format("copies {} {}, blocks of {}, {} streams of {} pairs, by {}", point.copy, point.peer,
                  point.block_text(), point.streams, point.pairs, point.by_aicpu ? "aicpu" : "host");
  return options;
}

// The batch of a pair: its memory, its streams, its tasks.
class Batch {
 public:
  Batch(host::Runtime& runtime, const CopiesPoint& point, const CopiesPair& pair)
      : runtime_(runtime), point_(point), die_(pair.die) {
    const auto volume = static_cast<std::uint64_t>(point.volume.count);
    for (std::uint64_t at = 0; at < volume;) {
      const auto bytes = static_cast<std::uint64_t>(point.blocks[blocks_.size() % point.blocks.size()].count);
      blocks_.push_back({at, std::min(bytes, volume - at)});
      at += blocks_.back().bytes;
    }
    from_ = place(from_of(point), pair);
    to_ = place(to_of(point), pair);
    runtime.mark_payload(from_, volume);
    for (int n = 0; n < point.streams; ++n) streams_.push_back(runtime.create_stream(die_));
  }

  // What a stream takes first, copied once.
  void warm_up() {
    for (std::size_t n = 0; n < std::min(streams_.size(), blocks_.size()); ++n) copy(n);
    runtime_.synchronize_device(die_);
  }
  void enqueue() {
    const auto all = [&] {
      for (std::size_t n = 0; n < blocks_.size(); ++n) tasks_.push_back(copy(n));
    };
    if (point_.by_aicpu) {
      unfold_on_device(runtime_, die_, all);
    } else {
      all();
    }
    runtime_.synchronize_device(die_);
  }

  const std::vector<host::TaskHandle>& tasks() const { return tasks_; }
  // The first and the last byte of a block, which only a copy makes payload there.
  std::size_t arrived() const {
    return static_cast<std::size_t>(std::ranges::count_if(blocks_, [&](const Block& block) {
      return runtime_.holds_payload(to_ + block.at, 1) &&
             runtime_.holds_payload(to_ + block.at + block.bytes - 1, 1);
    }));
  }

 private:
  struct Block {
    std::uint64_t at = 0, bytes = 0;
  };

  std::uint64_t place(std::string_view end, const CopiesPair& pair) {
    const auto bytes = static_cast<std::uint64_t>(point_.volume.count);
    const bool remote = is_remote(end);
    return is_host(end) ? runtime_.allocate_on_socket(remote ? pair.peer_socket : pair.socket, bytes)
                        : runtime_.allocate(remote ? pair.peer : pair.die, bytes);
  }
  host::TaskHandle copy(std::size_t n) {
    return runtime_.memcpy_async(streams_[n % streams_.size()], to_ + blocks_[n].at, from_ + blocks_[n].at,
                                 blocks_[n].bytes,
                                 point_.rdma ? host::Plane::rdma : host::Plane::unified_bus);
  }

  host::Runtime& runtime_;
  const CopiesPoint& point_;
  int die_;
  std::uint64_t from_ = 0, to_ = 0;
  std::vector<Block> blocks_;
  std::vector<host::Stream> streams_;
  std::vector<host::TaskHandle> tasks_;
};

// Where pair `n` is, and how many there may be.
struct Places {
  int most = 0;
  int die_step = 1;     // between the dies of pairs
  int peer_offset = 0;  // from a die to its peer
};
Places places_of(const CopiesPoint& point, const hw::Topology& topology) {
  const hw::Topology one = topology.one_supernode();
  if (point.peer == "sibling-die")
    return {topology.dies_per_package < 2 ? 0 : one.dies() / topology.dies_per_package,
            topology.dies_per_package, 1};
  if (point.peer == "inter-node")
    return {topology.nodes < 2 ? 0 : topology.dies_per_node, 1, topology.dies_per_node};
  if (point.peer == "inter-supernode") return {topology.supernodes < 2 ? 0 : one.dies(), 1, one.dies()};
  // The first half of a node with the second one, so that no pair is of one package.
  const int half = topology.dies_per_node / 2 / topology.dies_per_package * topology.dies_per_package;
  return {half, 1, half};
}

}  // namespace

std::string CopiesPoint::block_text() const {
  std::vector<std::string> texts;
  for (const Bytes block : blocks) texts.push_back(hw::format(block));
  return fmt::format("{}", fmt::join(texts, "+"));
}

std::vector<Bytes> blocks_of(std::string_view text) {
  std::vector<Bytes> blocks;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t plus = std::min(text.find('+', from), text.size());
    const Bytes bytes = hw::parse_bytes(text.substr(from, plus - from));
    if (bytes < 64_B || bytes > 1_GiB)
      throw InputError(fmt::format("'{}'; allowed: blocks of 64 B to 1 GiB", text));
    blocks.push_back(bytes);
    from = plus + 1;
  }
  return blocks;
}

int most_pairs(const CopiesPoint& point, const hw::Topology& topology) {
  return places_of(point, topology).most;
}

std::vector<CopiesPair> pairs_of(const CopiesPoint& point, const hw::Topology& topology) {
  const Places places = places_of(point, topology);
  if (point.pairs > places.most)
    throw InputError(fmt::format("run copies: --peer {}: {} pairs; this machine has {}", point.peer,
                                 point.pairs, places.most));
  const bool own = from_of(point) == "h" || to_of(point) == "h",
             others = from_of(point) == "rh" || to_of(point) == "rh";
  if ((own || others) && topology.sockets_per_node == 0)
    throw InputError(fmt::format("run copies: --copy {} needs a machine with CPU sockets", point.copy));
  if (point.peer == "inter-supernode" && !point.rdma)
    throw InputError("run copies: --peer inter-supernode needs --plane rdma");
  if (point.rdma && (own || others))
    throw InputError(
        fmt::format("run copies: --copy {}: the RDMA plane does not reach CPU sockets", point.copy));
  const auto socket_of = [&](int die) {
    const int per_socket = std::max(1, topology.dies_per_node / topology.sockets_per_node);
    const int in_node = die % topology.dies_per_node / per_socket;
    return die / topology.dies_per_node * topology.sockets_per_node +
           std::min(in_node, topology.sockets_per_node - 1);
  };
  std::vector<CopiesPair> pairs;
  for (int n = 0; n < point.pairs; ++n) {
    CopiesPair& pair = pairs.emplace_back();
    pair.die = n * places.die_step;
    pair.peer = pair.die + places.peer_offset;
    if (own) pair.socket = socket_of(pair.die);
    if (others) pair.peer_socket = socket_of(pair.peer);
  }
  return pairs;
}

std::optional<CopiesReading> measure_copies(const StudyContext& context, const CopiesPoint& point,
                                            SimulatorCounts& counts) {
  const std::vector<CopiesPair> pairs = pairs_of(point, context.machine.topology);
  Session session(context, options_of_copies(point, pairs));
  host::Runtime& runtime = session.runtime();
  std::vector<Batch> batches;
  batches.reserve(pairs.size());
  std::vector<int> dies;
  for (const CopiesPair& pair : pairs) {
    batches.emplace_back(runtime, point, pair);
    dies.push_back(pair.die);
  }
  for (Batch& batch : batches) batch.warm_up();
  if (!runtime.wait()) return {};
  session.begin_counted();
  if (dies.size() > 1) runtime.host_barrier(dies);
  for (Batch& batch : batches) batch.enqueue();
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return {};
  CopiesReading reading;
  Time begun = Time::never(), submitted, seen;
  for (const Batch& batch : batches) {
    for (const host::TaskHandle& handle : batch.tasks()) {
      const host::HostTask& task = runtime.task(handle);
      begun = std::min(begun, task.called);
      submitted = std::max(submitted, task.arrived);
      seen = std::max(seen, task.seen);
      reading.block_us.push_back((task.record.completed - task.record.turn).us());
    }
    reading.arrived += batch.arrived();
  }
  reading.latency_us = (seen - begun).us();
  reading.submit_us = (submitted - begun).us();
  return reading;
}

}  // namespace cm384::studies
