// Nodes, links and routes of files (hw/topology_files.h). A DEVICE is a die and a chip of its own, joined by
// a link as fast as all its ports together; a DIE or SOCKET is attached to the chip that it has a link to.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/text/error.h"
#include "hw/topology_files.h"
#include "ub_fabric/topology/kinds.h"
#include "ub_fabric/topology/network.h"

namespace cm384::ub {
namespace {

using hw::TopologyFiles;
using hw::TopologyLink;
using hw::TopologyNode;
using Type = TopologyNode::Type;

bool has_chip(const TopologyNode& node) {
  return node.type == Type::device || node.type == Type::switch_chip;
}

class FileLayout {
 public:
  explicit FileLayout(const TopologyFiles& files)
      : files_(files),
        where_(files.paths.size() > 2 ? files.paths[2] : std::string()),
        chip_of_(files.nodes.size()),
        ports_(files.nodes.size()),
        links_of_(files.nodes.size()) {}

  Layout build() {
    add_chips();
    attach(Type::die);
    layout_.dies = static_cast<unsigned>(layout_.endpoints.size());
    attach(Type::socket);
    for (const Seat& seat : layout_.endpoints) of_endpoints_.insert(seat);
    connect();
    if (!files_.routes.empty()) take_routes();
    layout_.count_hops = true;
    return std::move(layout_);
  }

 private:
  using Table =
      std::map<std::pair<unsigned, unsigned>, std::vector<unsigned>>;  // ports by chip and destination

  void add_chips() {
    for (std::size_t n = 0; n < files_.nodes.size(); ++n) {
      const TopologyNode& node = files_.nodes[n];
      if (!has_chip(node)) continue;
      chip_of_[n] = layout_.add_chip(node.part, static_cast<unsigned>(node.id));
      layout_.chips.back().pipeline = node.forward_delay;
      layout_.chips.back().of_die = node.type == Type::device;
    }
    for (const TopologyLink& link : files_.links) {
      for (const std::size_t k : {0, 1}) links_of_[link.ends[k].node].push_back(&link);
    }
  }

  // Dies with a chip of their own stand among the others, by number.
  void attach(Type type) {
    for (std::uint32_t n = 0; n < files_.nodes.size(); ++n) {
      const Type found = files_.nodes[n].type;
      if (found == type) {
        attach_to_neighbour(n);
      } else if (type == Type::die && found == Type::device) {
        layout_.attach(chip_of_[n]);
        layout_.endpoint_wires.push_back(
            {{sum(n, end_at), Time::never()}, {sum(n, other_end), Time::never()}});
      }
    }
  }

  // Of all links of a node; 0 where one of them has the machine's rate.
  Bandwidth sum(std::uint32_t n, const TopologyLink::End& (*end)(const TopologyLink&, std::uint32_t)) const {
    std::int64_t all = 0;
    for (const TopologyLink* link : links_of_[n]) {
      const std::int64_t one = end(*link, n).rate.bytes_per_second;
      if (one == 0) return {};
      all += one;
    }
    return {all};
  }

  void attach_to_neighbour(std::uint32_t n) {
    const TopologyLink& link = *links_of_[n].front();
    const TopologyLink::End &own = end_at(link, n), &other = other_end(link, n);
    layout_.attach(chip_of_[other.node]);
    ports_[other.node][other.port] = layout_.endpoints.back().port;
    chip_of_[n] = chip_of_[other.node];
    layout_.endpoint_wires.push_back({{own.rate, link.latency}, {other.rate, link.latency}});
  }

  void connect() {
    for (const TopologyLink& link : files_.links) {
      const TopologyLink::End &a = link.ends[0], &b = link.ends[1];
      if (!has_chip(files_.nodes[a.node]) || !has_chip(files_.nodes[b.node])) continue;
      layout_.connect(chip_of_[a.node], chip_of_[b.node]);
      Cable& cable = layout_.cables.back();
      cable.from_a = {a.rate, link.latency};
      cable.from_b = {b.rate, link.latency};
      ports_[a.node][a.port] = cable.a.port;
      ports_[b.node][b.port] = cable.b.port;
    }
  }

  static const TopologyLink::End& end_at(const TopologyLink& link, std::uint32_t node) {
    return link.ends[link.ends[0].node == node ? 0 : 1];
  }
  static const TopologyLink::End& other_end(const TopologyLink& link, std::uint32_t node) {
    return link.ends[link.ends[0].node == node ? 1 : 0];
  }

  // Routes name nodes; ways name chips. All dies of a chip have to be reached by the same ports.
  void take_routes() {
    auto table = std::make_shared<Table>();
    std::vector<bool> routed(layout_.chips.size());
    std::map<std::pair<unsigned, unsigned>, std::uint32_t> first;
    for (const auto& [key, file_ports] : files_.routes) {
      const auto [node, destination] = key;
      if (!has_chip(files_.nodes[node])) continue;  // its only link
      routed[chip_of_[node]] = true;
      const std::pair<unsigned, unsigned> chips{chip_of_[node], chip_of_[destination]};
      if (chips.first == chips.second) continue;  // a die of this very chip
      std::vector<unsigned> ports;
      for (const std::int64_t port : file_ports) ports.push_back(ports_[node].at(port));
      std::ranges::sort(ports);
      for (const unsigned port : ports) {
        if (of_endpoints_.contains({chips.first, port}))
          throw InputError(
              fmt::format("{}: node {} sends for node {} to a die that it is not; allowed: "
                          "ports to chips that forward",
                          where_, files_.nodes[node].id, files_.nodes[destination].id));
      }
      const auto [known, fresh] = table->emplace(chips, ports);
      first.emplace(chips, destination);
      if (!fresh && known->second != ports)
        throw InputError(fmt::format(
            "{}: node {} has different ports for nodes {} and {}, which hang on one "
            "chip; allowed: the same ones",
            where_, files_.nodes[node].id, files_.nodes[first[chips]].id, files_.nodes[destination].id));
    }
    fill_in(*table, routed);
    check_arrivals(*table);
    layout_.ways = [table](unsigned chip, unsigned destination, std::vector<unsigned>& ports) {
      const auto found = table->find({chip, destination});
      if (found != table->end()) ports = found->second;
    };
  }

  // Chips of nodes without a route take the shortest ways.
  void fill_in(Table& table, const std::vector<bool>& routed) const {
    if (std::ranges::count(routed, false) == 0) return;
    Layout without_routes = layout_;
    without_routes.count_hops = true;
    const Network shortest(std::move(without_routes));
    for (unsigned chip = 0; chip < shortest.chips(); ++chip) {
      if (routed[chip]) continue;
      for (unsigned destination = 0; destination < shortest.chips(); ++destination) {
        if (chip == destination || !shortest.has_endpoints(destination)) continue;
        const auto ways = shortest.ways(chip, destination);
        if (!ways.empty()) table[{chip, destination}] = {ways.begin(), ways.end()};
      }
    }
  }

  // Wherever a packet comes to, there is a way on.
  void check_arrivals(const Table& table) const {
    std::vector<std::vector<unsigned>> next(layout_.chips.size());  // by port; of endpoints none
    for (std::size_t chip = 0; chip < next.size(); ++chip) next[chip].resize(layout_.chips[chip].ports);
    for (const Cable& cable : layout_.cables) {
      next[cable.a.chip][cable.a.port] = cable.b.chip;
      next[cable.b.chip][cable.b.port] = cable.a.chip;
    }
    std::set<unsigned> ends;
    for (const Seat& seat : layout_.endpoints) ends.insert(seat.chip);
    for (const unsigned destination : ends) {
      std::vector<bool> seen(layout_.chips.size());
      std::vector<unsigned> open(ends.begin(), ends.end());
      while (!open.empty()) {
        const unsigned chip = open.back();
        open.pop_back();
        if (chip == destination || seen[chip]) continue;
        seen[chip] = true;
        const auto ways = table.find({chip, destination});
        if (ways == table.end())
          throw InputError(
              fmt::format("{}: node {} has no route to what hangs on node {}; allowed: one per node and "
                          "destination, or no route of a node at all: it takes the shortest ways",
                          where_, layout_.chips[chip].number, layout_.chips[destination].number));
        for (const unsigned port : ways->second) open.push_back(next[chip][port]);
      }
    }
  }

  const TopologyFiles& files_;
  std::string where_;
  Layout layout_;
  std::vector<unsigned> chip_of_;                           // by node
  std::vector<std::map<std::int64_t, unsigned>> ports_;     // by node: of its chip, by port of the file
  std::vector<std::vector<const TopologyLink*>> links_of_;  // by node
  std::set<Seat> of_endpoints_;
};

}  // namespace

Layout from_files(const hw::Topology& topology) {
  if (!topology.files)
    throw InputError("topology.file: no files were read; allowed: a machine from a file or the command line");
  return FileLayout(*topology.files).build();
}

}  // namespace cm384::ub
