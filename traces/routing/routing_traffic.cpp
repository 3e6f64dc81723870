#include "traces/routing/routing_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/lines.h"
#include "traces/record_graph.h"

namespace cm384::traces {
namespace {

using WaitFor = TrafficDependency::Kind;

class Layer {
 public:
  Layer(const Routing& routing, const RoutingTraffic& how, TrafficSink& sink)
      : routing_(routing), how_(how), sink_(sink), ranks_of_(how.ranks_of_expert) {
    if (!ranks_of_.empty()) return;
    for (int expert = 0; expert < routing.experts; ++expert)
      ranks_of_.push_back(
          {static_cast<int>(static_cast<std::int64_t>(expert) * how.ranks / routing.experts)});
  }

  RoutingTrafficResult write() {
    begin_.resize(ranks());
    for (int step = 0; step < how_.steps; ++step) write_step(step);
    result_.records = next_;
    return result_;
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(how_.ranks); }

  // Tokens that a rank got from another, by number of the message.
  struct Token {
    std::size_t owner = 0, expert_rank = 0;
    std::uint64_t message = 0;
  };

  void write_step(int step) {
    std::vector<Token> tokens;
    std::vector<std::vector<std::uint64_t>> got(ranks()), answers(ranks());
    std::vector<std::vector<std::int32_t>> rows;
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      rows.push_back(rows_of_block(
          routing_, static_cast<std::int64_t>(step) * how_.ranks + static_cast<std::int64_t>(rank),
          how_.batch));
    // Ranks in turn, so that records stand in the order in which they begin.
    for (int token = 0; token < how_.batch; ++token) {
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        std::set<int> to;
        for (int k = 0; k < routing_.top_k; ++k)
          to.insert(
              rank_of(rows[rank][static_cast<std::size_t>(token) * static_cast<std::size_t>(routing_.top_k) +
                                 static_cast<std::size_t>(k)],
                      token + static_cast<int>(rank)));
        for (const int expert_rank : to) {
          if (expert_rank == static_cast<int>(rank)) {
            ++result_.local;
            continue;
          }
          const auto there = static_cast<std::size_t>(expert_rank);
          const std::uint64_t message = send(rank, there, token, how_.dispatch_bytes, begin_[rank]);
          got[there].push_back(message);
          tokens.push_back({rank, there, message});
        }
      }
    }
    std::vector<std::vector<TrafficDependency>> computed(ranks());
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      computed[rank] = {
          {join(rank, got[rank], WaitFor::arrival, begin_[rank]), WaitFor::completion, how_.expert_time}};
    int turn = 0;
    for (const Token& token : tokens)
      answers[token.owner].push_back(
          send(token.expert_rank, token.owner, turn++, how_.combine_bytes, computed[token.expert_rank]));
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      begin_[rank] = {{join(rank, answers[rank], WaitFor::arrival, computed[rank]), WaitFor::completion, {}}};
  }

  int rank_of(std::int32_t expert, int turn) const {
    const std::vector<int>& copies = ranks_of_[static_cast<std::size_t>(expert)];
    return copies[static_cast<std::size_t>(turn) % copies.size()];
  }

  std::uint64_t send(std::size_t from, std::size_t to, int turn, std::uint64_t bytes,
                     const std::vector<TrafficDependency>& after) {
    TrafficRecord r;
    r.operation = sim::Operation::write;
    r.source.number = static_cast<std::uint16_t>(from);
    r.target.number = static_cast<std::uint16_t>(to);
    r.core = turn % how_.cores;
    r.bytes = bytes;
    r.offset = placing_.allocate(r.target.number, bytes);
    r.dependencies = after;
    ++result_.messages;
    return add_record(r);
  }

  std::uint64_t join(std::size_t rank, const std::vector<std::uint64_t>& on, WaitFor kind,
                     std::vector<TrafficDependency> after) {
    TrafficRecord r;
    r.kind = TrafficRecord::Kind::barrier;
    r.source.number = r.target.number = static_cast<std::uint16_t>(rank);
    r.dependencies = std::move(after);
    for (const std::uint64_t one : on) {
      if (r.dependencies.size() == kMostDependencies)
        r.dependencies = {{add_record(r), WaitFor::completion, {}}};
      r.dependencies.push_back({one, kind, {}});
    }
    return add_record(r);
  }

  std::uint64_t add_record(const TrafficRecord& r) {
    if (const std::string fault = fault_of(r, next_); !fault.empty())
      throw InputError(fmt::format("trace from-routing: record {}: {}", next_, fault));
    sink_.add(r);
    return next_++;
  }

  const Routing& routing_;
  const RoutingTraffic& how_;
  TrafficSink& sink_;
  std::vector<std::vector<int>> ranks_of_;
  std::vector<std::vector<TrafficDependency>> begin_;  // of a rank's step
  Placing placing_;
  std::uint64_t next_ = 0;
  RoutingTrafficResult result_;
};

using MapJson = nlohmann::json;

// The one layer that is wanted of a list.
const MapJson& layer_of(const MapJson& layers, const std::string& path, int layer) {
  if (layer < 0 && layers.size() == 1) return layers[0];
  if (layer < 0 || static_cast<std::size_t>(layer) >= layers.size())
    throw InputError(fmt::format("{}: has {} layers; allowed: --placement-layer 0 to {}", path, layers.size(),
                                 static_cast<std::int64_t>(layers.size()) - 1));
  return layers[static_cast<std::size_t>(layer)];
}

void read_expert_map(const std::string& path, int ranks, int layer, std::vector<std::vector<int>>& ranks_of) {
  const MapJson document = MapJson::parse(read_input(path, kLargestText), nullptr, false);
  const auto fail = [&](const std::string& what) { throw InputError(fmt::format("{}: {}", path, what)); };
  const auto add = [&](const MapJson& expert, int rank) {
    if (!expert.is_number_integer() || expert < 0 || expert >= ranks_of.size())
      fail(fmt::format("expert {}; allowed: 0 to {}", expert.dump().substr(0, 40), ranks_of.size() - 1));
    std::vector<int>& own = ranks_of[expert.get<std::size_t>()];
    if (std::ranges::find(own, rank) == own.end()) own.push_back(rank);
  };
  const auto list_of = [&](const MapJson& object, const char* field) -> const MapJson& {
    const auto found = object.is_object() ? object.find(field) : object.end();
    if (found == object.end() || !found->is_array() || found->empty())
      fail(fmt::format("{}: allowed: a list", field));
    return *found;
  };
  if (document.is_object() && document.contains("layer_list")) {
    const MapJson& devices = list_of(layer_of(list_of(document, "layer_list"), path, layer), "device_list");
    if (devices.size() != static_cast<std::size_t>(ranks))
      fail(fmt::format("device_list: {} devices; allowed: as many as --ranks, {}", devices.size(), ranks));
    std::set<int> known;
    for (const MapJson& device : devices) {
      const auto id = device.is_object() ? device.find("device_id") : device.end();
      if (!device.is_object() || id == device.end() || !id->is_number_integer() || *id < 0 || *id >= ranks ||
          !known.insert(id->get<int>()).second)
        fail(fmt::format("device_id: allowed: 0 to {}, each once", ranks - 1));
      for (const MapJson& expert : list_of(device, "device_expert")) add(expert, id->get<int>());
    }
    return;
  }
  const MapJson& slots_of_layers =
      document.is_object() ? list_of(document, "physical_to_logical_map") : document;
  if (!slots_of_layers.is_array() || slots_of_layers.empty())
    fail("no JSON of an expert map; allowed: layer_list, physical_to_logical_map, or a list of experts");
  const MapJson& slots =
      slots_of_layers[0].is_array() ? layer_of(slots_of_layers, path, layer) : slots_of_layers;
  if (!slots.is_array() || slots.empty() || slots.size() % static_cast<std::size_t>(ranks) != 0)
    fail(fmt::format("slots: {}; allowed: a multiple of --ranks, {}", slots.size(), ranks));
  const std::size_t each = slots.size() / static_cast<std::size_t>(ranks);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) add(slots[slot], static_cast<int>(slot / each));
}

}  // namespace

RoutingTrafficResult write_routing_traffic(const Routing& routing, const RoutingTraffic& how,
                                           TrafficSink& sink) {
  if (routing.rows() == 0) throw InputError("trace from-routing: the routing has no rows");
  if (how.ranks > routing.experts && how.ranks_of_expert.empty())
    throw InputError(fmt::format("--ranks: {}; allowed: at most {}, the experts of the routing", how.ranks,
                                 routing.experts));
  return Layer(routing, how, sink).write();
}

std::vector<std::vector<int>> expert_ranks_from_file(const std::string& path, int experts, int ranks,
                                                     int layer) {
  std::vector<std::vector<int>> ranks_of(static_cast<std::size_t>(experts));
  LineReader lines(path);
  std::string line;
  if (!lines.next(line)) lines.fail("header: the file is empty");
  if (line.starts_with('{') || line.starts_with('[')) {
    read_expert_map(path, ranks, layer, ranks_of);
  } else {
    if (line != "expert,rank" && line != "expert,rank\r")
      lines.fail("header: allowed: expert,rank, or JSON of an expert map");
    if (layer >= 0) throw InputError(fmt::format("{}: has no layers to choose from", path));
    const std::vector<std::string> columns{"expert", "rank"};
    while (lines.next(line)) {
      if (line.empty() || line == "\r") continue;
      auto parts = split_fields(line);
      if (parts.size() != 2) lines.fail(fmt::format("line: {} fields; allowed: 2", parts.size()));
      const FieldReader fields(lines, std::move(parts), columns);
      std::vector<int>& own = ranks_of[static_cast<std::size_t>(fields.integer(0, 0, experts - 1))];
      if (!own.empty()) fields.fail(0, "each expert once");
      own.push_back(static_cast<int>(fields.integer(1, 0, ranks - 1)));
    }
  }
  const auto missing = std::ranges::find_if(ranks_of, [](const auto& own) { return own.empty(); });
  if (missing != ranks_of.end())
    throw InputError(fmt::format("{}: expert {} is missing; allowed: all of 0 to {}", path,
                                 missing - ranks_of.begin(), experts - 1));
  return ranks_of;
}

}  // namespace cm384::traces
