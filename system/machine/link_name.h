// Names of links, and which of them a text means: one grammar for faults, waves and whatever else picks
// links.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ub_fabric/topology/network.h"

namespace cm384::supernode {

// One direction of a link of a sub-plane.
struct LinkName {
  enum class Kind : std::uint8_t { from_endpoint, to_endpoint, trunk };
  struct End {
    std::string part;  // "die", "socket", or a chip's kind such as "l1chip"
    int number = 0;
    bool operator==(const End&) const = default;
  };
  Kind kind = Kind::trunk;
  int plane = 0;
  int endpoint = -1;  // of the first two kinds: a die, or dies + socket
  End from, to;
  int number = -1;  // in the sub-plane's network; -1: an endpoint's own sending end

  // "plane 2, die5 to l1chip0".
  std::string text() const;
  // The same without blanks: "plane2_die5_to_l1chip0".
  std::string signal() const;
};

// Of the link between an endpoint and its chip, towards the endpoint or from it; of a sending end of a chip.
LinkName name_of_port(const ub::Network& network, int plane, ub::Endpoint endpoint);
LinkName name_of_link(const ub::Network& network, int plane, unsigned link);

// Links that touch all the parts named, in the sub-plane named or in any: "plane=2,l2=5", "die=3", "all".
struct LinkSelection {
  int plane = -1;  // -1: any
  std::vector<LinkName::End> parts;

  bool matches(const LinkName& link) const;
  // Throws InputError where a part does not exist in the sub-planes.
  void check(const ub::Network& network, int planes) const;
};

// The part that a key of the grammar means: "die", "socket", "node" and "l1" (the L1 chip), "l2", "l3",
// "chip"; empty: none.
std::string_view part_of_key(std::string_view key);
inline constexpr std::string_view kLinkKeys = "plane, die, socket, node, l1, l2, l3, chip";
// Takes one item, "all" or "key=number", into a selection; false where the key is none of this grammar.
// Throws InputError for a number that is none.
bool take_link_item(LinkSelection& selection, std::string_view item);
// Throws InputError.
LinkSelection parse_link_selection(std::string_view text);

}  // namespace cm384::supernode
