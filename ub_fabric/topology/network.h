// A sub-plane's topology as a table: its chips, the sending end of every link with what is at the other end,
// and for each chip and destination the ports of the ways there. Models, names, faults and statistics read
// it; none of them knows a kind of topology. Immutable: what breaks makes another table.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ub_fabric/packet.h"
#include "ub_fabric/topology/layout.h"

namespace cm384::ub {

// The parts of a sub-plane that are out of order.
struct Outage {
  std::vector<unsigned> chips;
  std::vector<unsigned> cables;     // numbers of Layout::cables
  std::vector<Endpoint> endpoints;  // their links to the chip
  bool empty() const { return chips.empty() && cables.empty() && endpoints.empty(); }
  Outage operator+(const Outage& more) const;
};

class Network {
 public:
  static constexpr std::uint32_t kNoLink = 0xffffffff;

  // Throws InputError where links and lane classes could deadlock, naming a circle of them.
  explicit Network(Layout layout, Outage outage = {});
  // The topology of a machine, in order.
  static std::shared_ptr<const Network> of(const hw::Topology& topology);

  const Layout& layout() const { return layout_; }
  const Outage& outage() const { return outage_; }
  unsigned chips() const { return static_cast<unsigned>(layout_.chips.size()); }
  unsigned endpoints() const { return static_cast<unsigned>(layout_.endpoints.size()); }
  // Sending ends of chips: number first_link(chip) + port. An input has the number of the output of its port.
  unsigned links() const { return static_cast<unsigned>(links_.size()); }
  unsigned first_link(unsigned chip) const { return first_[chip]; }
  unsigned ports(unsigned chip) const { return first_[chip + 1] - first_[chip]; }

  struct Link {
    std::uint32_t chip = 0;
    std::uint32_t peer = kNoLink;  // the input at the other end; kNoLink: an endpoint
    Endpoint endpoint = 0;         // without a peer
    LinkClass of = LinkClass::trunk;
    std::uint8_t group = 0;  // kMostGroups: to an endpoint
    std::uint32_t cable = kNoLink;
    Wire wire{};  // of this direction
  };
  const Link& link(unsigned number) const { return links_[number]; }
  // Whether links or chips differ from what the machine says of all of their kind.
  bool uneven() const { return uneven_; }
  // Rate and latency of the link from an endpoint to its chip.
  const Wire& uplink(Endpoint endpoint) const {
    return layout_.endpoint_wires.empty() ? kEven : layout_.endpoint_wires[endpoint].up;
  }
  unsigned chip_of(Endpoint endpoint) const { return chip_of_[endpoint]; }
  unsigned link_to(Endpoint endpoint) const { return link_to_[endpoint]; }
  // A chip by name; kNoLink.
  unsigned chip(std::string_view kind, unsigned number) const;
  // The first link from a chip to another; kNoLink.
  unsigned link_between(unsigned from, unsigned to) const;

  // Ports of the ways from a chip to another chip with endpoints; none: it is not reached.
  std::span<const std::uint16_t> ways(unsigned chip, unsigned destination) const {
    const Ways& w = ways_[std::size_t{chip} * columns_ + column_[destination]];
    return {ports_.data() + w.first, w.count};
  }
  // Asked before ways(): a way there that goes by another chip, which is returned, as what is out of order
  // stands in the kind's own way; kNoLink: none needed.
  unsigned detour(unsigned chip, unsigned destination) const;
  // Whether packets get from one endpoint to another.
  bool reaches(Endpoint from, Endpoint to) const;
  // Links between chips on a way by ways()' first ports; 0 where chips are the same.
  unsigned hops(unsigned chip, unsigned destination) const;
  bool has_endpoints(unsigned chip) const { return column_[chip] != kNoColumn; }
  // Whether all ways by ways() from a chip end at another, which has endpoints.
  bool arrives(unsigned chip, unsigned destination) const {
    return !chip_out_[destination] &&
           (chip == destination || arrives_[std::size_t{chip} * columns_ + column_[destination]]);
  }
  bool in_order(unsigned chip) const { return !chip_out_[chip]; }
  // Whether the link itself is in order, whatever the chips at its ends.
  bool link_in_order(unsigned number) const;

  // Lane classes that a way takes; detours take as many again, for their second part.
  unsigned classes() const { return layout_.classes; }
  bool has_detours() const { return !detours_.empty(); }

 private:
  static constexpr std::uint32_t kNoColumn = 0xffffffff;
  struct Ways {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  // "l1chip3 to l2chip5", "l1chip3 to die 40".
  std::string link_text(unsigned number) const;
  bool leads(const Link& link) const;  // it and the chips at its ends are in order
  void number_links();
  void find_shortest(unsigned destination);
  void set_ways_of_kind();
  void find_arrivals();
  void find_detours();
  void set_ways(unsigned chip, unsigned destination, const std::vector<unsigned>& ports);
  void count_hops();
  unsigned longest_way(unsigned destination) const;
  void check_for_circles() const;
  static constexpr Wire kEven{};

  Layout layout_;
  Outage outage_;
  std::vector<bool> chip_out_, cable_out_, endpoint_out_;
  bool uneven_ = false;
  std::vector<unsigned> first_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> chip_of_, link_to_;  // by endpoint
  std::vector<std::uint32_t> column_;             // by chip with endpoints
  std::size_t columns_ = 0;
  std::vector<Ways> ways_;            // by chip and column
  std::vector<std::uint16_t> ports_;  // of all ways; equal lists stand once
  std::vector<bool> arrives_;         // by chip and column: all ways end there
  struct Detour {
    std::uint64_t pair = 0;
    std::uint32_t by = 0;
  };
  std::vector<Detour> detours_;  // sorted by pair
};

// Whether any chip has several ways to another: routing has something to choose from.
bool has_choice(const Network& network);

}  // namespace cm384::ub
