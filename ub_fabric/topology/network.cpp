#include "ub_fabric/topology/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "ub_fabric/topology/circles.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {

Outage Outage::operator+(const Outage& more) const {
  Outage sum = *this;
  sum.chips.insert(sum.chips.end(), more.chips.begin(), more.chips.end());
  sum.cables.insert(sum.cables.end(), more.cables.begin(), more.cables.end());
  sum.endpoints.insert(sum.endpoints.end(), more.endpoints.begin(), more.endpoints.end());
  return sum;
}

std::shared_ptr<const Network> Network::of(const hw::Topology& topology) {
  return std::make_shared<const Network>(layout_of(topology));
}

Network::Network(Layout layout, Outage outage) : layout_(std::move(layout)), outage_(std::move(outage)) {
  chip_out_.resize(chips());
  cable_out_.resize(layout_.cables.size());
  endpoint_out_.resize(endpoints());
  for (const unsigned chip : outage_.chips) chip_out_[chip] = true;
  for (const unsigned cable : outage_.cables) cable_out_[cable] = true;
  for (const Endpoint endpoint : outage_.endpoints) endpoint_out_[endpoint] = true;
  if (layout_.count_hops) {
    layout_.classes = 1;
    layout_.turns = {};
  }
  number_links();
  set_ways_of_kind();
  find_arrivals();
  if (layout_.ways && !outage_.empty()) find_detours();
  if (layout_.count_hops && !find_circle(*this).empty()) count_hops();
  check_for_circles();
}

void Network::number_links() {
  unsigned number = 0;
  for (const ChipName& chip : layout_.chips) {
    first_.push_back(number);
    number += chip.ports;
    uneven_ = uneven_ || chip.pipeline != Time::never() || chip.of_die;
  }
  first_.push_back(number);
  links_.resize(number);
  column_.assign(chips(), kNoColumn);
  for (unsigned chip = 0; chip < chips(); ++chip) {
    for (unsigned n = first_[chip]; n < first_[chip + 1]; ++n) links_[n].chip = chip;
  }
  for (unsigned e = 0; e < endpoints(); ++e) {
    const Seat seat = layout_.endpoints[e];
    const unsigned n = first_[seat.chip] + seat.port;
    links_[n].endpoint = static_cast<Endpoint>(e);
    links_[n].of = e < layout_.dies ? LinkClass::die : LinkClass::socket;
    links_[n].group = Layout::kMostGroups;
    if (!layout_.endpoint_wires.empty()) {
      links_[n].wire = layout_.endpoint_wires[e].down;
      uneven_ = uneven_ || links_[n].wire.own() || layout_.endpoint_wires[e].up.own();
    }
    chip_of_.push_back(seat.chip);
    link_to_.push_back(n);
    if (column_[seat.chip] == kNoColumn) column_[seat.chip] = static_cast<std::uint32_t>(columns_++);
  }
  for (std::size_t c = 0; c < layout_.cables.size(); ++c) {
    const Cable& cable = layout_.cables[c];
    const unsigned a = first_[cable.a.chip] + cable.a.port, b = first_[cable.b.chip] + cable.b.port;
    links_[a].peer = b;
    links_[b].peer = a;
    links_[a].group = links_[b].group = cable.group;
    links_[a].cable = links_[b].cable = static_cast<std::uint32_t>(c);
    links_[a].wire = cable.from_a;
    links_[b].wire = cable.from_b;
    uneven_ = uneven_ || cable.from_a.own() || cable.from_b.own();
  }
}

unsigned Network::chip(std::string_view kind, unsigned number) const {
  for (unsigned chip = 0; chip < chips(); ++chip) {
    if (layout_.chips[chip].kind == kind && layout_.chips[chip].number == number) return chip;
  }
  return kNoLink;
}

unsigned Network::link_between(unsigned from, unsigned to) const {
  for (unsigned n = first_[from]; n < first_[from + 1]; ++n) {
    if (links_[n].peer != kNoLink && links_[links_[n].peer].chip == to) return n;
  }
  return kNoLink;
}

std::string Network::link_text(unsigned number) const {
  const Link& l = links_[number];
  const std::string from = layout_.chips[l.chip].text();
  if (l.peer != kNoLink) return fmt::format("{} to {}", from, layout_.chips[links_[l.peer].chip].text());
  return l.endpoint < layout_.dies ? fmt::format("{} to die {}", from, l.endpoint)
                                   : fmt::format("{} to socket {}", from, l.endpoint - layout_.dies);
}

bool Network::link_in_order(unsigned number) const {
  const Link& link = links_[number];
  return link.peer == kNoLink ? !endpoint_out_[link.endpoint] : !cable_out_[link.cable];
}

bool Network::leads(const Link& link) const {
  return !chip_out_[link.chip] && !cable_out_[link.cable] && !chip_out_[links_[link.peer].chip];
}

void Network::set_ways_of_kind() {
  ways_.resize(std::size_t{chips()} * columns_);
  std::vector<unsigned> ports;
  for (unsigned destination = 0; destination < chips(); ++destination) {
    if (!has_endpoints(destination)) continue;
    if (!layout_.ways) {
      find_shortest(destination);
      continue;
    }
    for (unsigned chip = 0; chip < chips(); ++chip) {
      if (chip == destination) continue;
      ports.clear();
      layout_.ways(chip, destination, ports);
      std::erase_if(ports, [&](unsigned port) { return !leads(links_[first_[chip] + port]); });
      set_ways(chip, destination, ports);
    }
  }
}

// Breadth first from the destination; a way goes to any neighbour that is nearer.
void Network::find_shortest(unsigned destination) {
  constexpr unsigned kFar = 0xffffffff;
  std::vector<unsigned> distance(chips(), kFar), queue;
  if (!chip_out_[destination]) {
    distance[destination] = 0;
    queue.push_back(destination);
  }
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const unsigned chip = queue[next];
    for (unsigned n = first_[chip]; n < first_[chip + 1]; ++n) {
      if (links_[n].peer == kNoLink || !leads(links_[n])) continue;
      const unsigned other = links_[links_[n].peer].chip;
      if (distance[other] != kFar) continue;
      distance[other] = distance[chip] + 1;
      queue.push_back(other);
    }
  }
  std::vector<unsigned> ports;
  for (unsigned chip = 0; chip < chips(); ++chip) {
    if (chip == destination || distance[chip] == kFar) continue;
    ports.clear();
    for (unsigned n = first_[chip]; n < first_[chip + 1]; ++n) {
      if (links_[n].peer == kNoLink || !leads(links_[n])) continue;
      if (distance[links_[links_[n].peer].chip] + 1 == distance[chip]) ports.push_back(n - first_[chip]);
    }
    set_ways(chip, destination, ports);
  }
}

void Network::set_ways(unsigned chip, unsigned destination, const std::vector<unsigned>& ports) {
  Ways& ways = ways_[std::size_t{chip} * columns_ + column_[destination]];
  // Lists that a chip has used before are used again: most destinations share few of them.
  for (std::size_t column = column_[destination]; column-- > 0 && column + 8 > column_[destination];) {
    const Ways& other = ways_[std::size_t{chip} * columns_ + column];
    if (other.count != ports.size()) continue;
    if (std::equal(ports.begin(), ports.end(), ports_.begin() + other.first)) {
      ways = other;
      return;
    }
  }
  ways.first = static_cast<std::uint32_t>(ports_.size());
  ways.count = static_cast<std::uint32_t>(ports.size());
  for (const unsigned port : ports) ports_.push_back(static_cast<std::uint16_t>(port));
}

// Back from each destination: a chip arrives once all chips that its ways go to do. What goes round in a
// circle never does.
void Network::find_arrivals() {
  arrives_.resize(ways_.size());
  if (!layout_.ways) {  // the shortest ways: where there is one, it arrives
    for (std::size_t n = 0; n < ways_.size(); ++n) arrives_[n] = ways_[n].count != 0;
    return;
  }
  std::vector<std::uint32_t> open(chips());  // ways that are not known to arrive
  std::vector<unsigned> arrived;
  for (unsigned destination = 0; destination < chips(); ++destination) {
    if (!has_endpoints(destination) || chip_out_[destination]) continue;
    for (unsigned chip = 0; chip < chips(); ++chip)
      open[chip] = static_cast<std::uint32_t>(ways(chip, destination).size());
    arrived.assign(1, destination);
    while (!arrived.empty()) {
      const unsigned next = arrived.back();
      arrived.pop_back();
      for (unsigned n = first_[next]; n < first_[next + 1]; ++n) {
        if (links_[n].peer == kNoLink) continue;
        const Link& back = links_[links_[n].peer];
        const auto by = ways(back.chip, destination);
        if (back.chip == destination || chip_out_[back.chip] ||
            std::ranges::find(by, links_[n].peer - first_[back.chip]) == by.end())
          continue;
        if (--open[back.chip] != 0) continue;
        arrives_[std::size_t{back.chip} * columns_ + column_[destination]] = true;
        arrived.push_back(back.chip);
      }
    }
  }
}

bool has_choice(const Network& network) {
  for (unsigned from = 0; from < network.chips(); ++from) {
    for (unsigned to = 0; to < network.chips(); ++to) {
      if (network.has_endpoints(to) && network.ways(from, to).size() > 1) return true;
    }
  }
  return false;
}

void Network::find_detours() {
  for (unsigned from = 0; from < chips(); ++from) {
    if (!has_endpoints(from) || chip_out_[from]) continue;
    for (unsigned to = 0; to < chips(); ++to) {
      if (from == to || !has_endpoints(to) || chip_out_[to] || arrives(from, to)) continue;
      for (unsigned k = 1; k < chips(); ++k) {
        // Detours start at another place for each pair: they share the load.
        const unsigned by = (from + to + k) % chips();
        if (by == from || by == to || !has_endpoints(by) || !arrives(from, by) || !arrives(by, to)) continue;
        detours_.push_back({std::uint64_t{from} << 32 | to, by});
        break;
      }
    }
  }
}

unsigned Network::detour(unsigned chip, unsigned destination) const {
  const std::uint64_t pair = std::uint64_t{chip} << 32 | destination;
  const auto at = std::ranges::lower_bound(detours_, pair, {}, &Detour::pair);
  return at != detours_.end() && at->pair == pair ? at->by : kNoLink;
}

bool Network::reaches(Endpoint from, Endpoint to) const {
  const unsigned a = chip_of_[from], b = chip_of_[to];
  if (endpoint_out_[from] || endpoint_out_[to] || chip_out_[a] || chip_out_[b]) return false;
  return a == b || detour(a, b) != kNoLink || arrives(a, b);
}

unsigned Network::hops(unsigned chip, unsigned destination) const {
  unsigned hops = 0;
  for (; chip != destination; ++hops) {
    const auto ports = ways(chip, destination);
    if (ports.empty()) return chips();
    chip = links_[links_[first_[chip] + ports.front()].peer].chip;
  }
  return hops;
}

// Links of the longest way there from any chip, whatever is taken at each; 0 where ways go round in a circle.
unsigned Network::longest_way(unsigned destination) const {
  constexpr unsigned kOpen = 0xffffffff, kUnknown = 0xfffffffe;
  std::vector<unsigned> length(chips(), kUnknown);
  length[destination] = 0;
  std::vector<std::pair<unsigned, std::size_t>> path;  // a chip, the next of its ways
  unsigned longest = 0;
  for (unsigned from = 0; from < chips(); ++from) {
    if (length[from] != kUnknown) continue;
    length[from] = kOpen;
    path.assign(1, {from, 0});
    std::vector<unsigned> farthest{0};
    while (!path.empty()) {
      auto& [chip, next] = path.back();
      const auto ports = ways(chip, destination);
      if (next == ports.size()) {
        longest = std::max(longest, length[chip] = farthest.back());
        farthest.pop_back();
        path.pop_back();
        if (!path.empty()) farthest.back() = std::max(farthest.back(), length[chip] + 1);
        continue;
      }
      const unsigned other = links_[links_[first_[chip] + ports[next++]].peer].chip;
      if (length[other] == kOpen) return 0;
      if (length[other] != kUnknown) {
        farthest.back() = std::max(farthest.back(), length[other] + 1);
        continue;
      }
      length[other] = kOpen;
      path.emplace_back(other, 0);
      farthest.push_back(0);
    }
  }
  return longest;
}

void Network::count_hops() {
  unsigned longest = 0;
  for (unsigned destination = 0; destination < chips(); ++destination) {
    if (!has_endpoints(destination)) continue;
    const unsigned length = longest_way(destination);
    if (length == 0 && chips() > 1) return;  // the check names the circle
    longest = std::max(longest, length);
  }
  layout_.classes = longest;
  for (unsigned from = 0; from < Layout::kMostGroups; ++from) {
    for (unsigned to = 0; to < Layout::kMostGroups; ++to) layout_.turns[from][to] = Turn{true, 1};
  }
}

void Network::check_for_circles() const {
  const std::vector<LinkClassOfCircle> circle = find_circle(*this);
  if (circle.empty()) return;
  std::string names;
  for (const LinkClassOfCircle& at : circle)
    names += fmt::format("{}{} (class {})", names.empty() ? "" : ", ", link_text(at.link), at.lane_class);
  throw InputError(fmt::format("topology: packets could deadlock in a circle of links: {}", names));
}

}  // namespace cm384::ub
