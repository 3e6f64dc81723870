// What a kind of topology describes: chips, what is attached to them, the cables between them, and how
// packets find their way. A kind is one file and one line in kinds.cpp; docs/topologies.md builds one step by
// step.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hw/parameters/ub.h"

namespace cm384::ub {

enum class LinkClass : std::uint8_t { die, socket, trunk };

struct ChipName {
  std::string kind;     // "l1chip"
  unsigned number = 0;  // among those of its kind
  unsigned ports = 0;
  Time pipeline = Time::never();  // never: as the machine says
  // It is part of a die, whose link to it is inside: what arrives for the die does not take the pipeline.
  bool of_die = false;

  std::string text() const { return kind + std::to_string(number); }
};

// A port of a chip.
struct Seat {
  unsigned chip = 0;
  unsigned port = 0;
  auto operator<=>(const Seat&) const = default;
};

// A direction of a link, where it has a rate or a latency of its own.
struct Wire {
  Bandwidth rate{};              // of sub-planes whose rate is 1; 0: as the machine says
  Time latency = Time::never();  // never: as the machine says
  bool own() const { return rate.bytes_per_second != 0 || latency != Time::never(); }
};

// Both directions between two chips.
struct Cable {
  Seat a, b;
  std::uint8_t group = 0;  // gives its turns: a dimension, a level
  Wire from_a{}, from_b{};
};

// How the lane class of a packet changes at a chip between the link it came by and the one it leaves by: it
// is kept or starts at 0 again, then grows. A class is a set of lanes of its own: where turns let no circle
// of links and classes close, nothing deadlocks.
struct Turn {
  bool keep = true;
  std::uint8_t add = 0;
};

struct Layout {
  static constexpr unsigned kMostGroups = 32;

  std::vector<ChipName> chips;
  std::vector<Seat> endpoints;  // by number: dies, then sockets
  unsigned dies = 0;            // how many of them
  struct Wires {
    Wire up, down;  // to the chip, from the chip
  };
  std::vector<Wires> endpoint_wires;  // by number; empty: as the machine says
  std::vector<Cable> cables;
  // The ports by which a packet may leave `chip` for `destination`, another chip, in order; none where it
  // does not get there. Empty function: all ports on shortest ways.
  std::function<void(unsigned chip, unsigned destination, std::vector<unsigned>& ports)> ways;
  unsigned classes = 1;
  // From a cable's group to a cable's group. Packets enter the network with class 0 and turns[kMostGroups].
  std::array<std::array<Turn, kMostGroups>, kMostGroups + 1> turns{};
  // Where ways could deadlock: a packet's class is the number of cables that it has passed, as many classes
  // as the longest way takes.
  bool count_hops = false;
  // A detour by any other chip is a way too: valiant and ugal have something to choose from.
  bool detours = false;

  // Returns the number of the chip.
  unsigned add_chip(std::string kind, unsigned number);
  // Connects the next endpoint to a chip, or two chips, by the next free port of each.
  void attach(unsigned chip);
  void connect(unsigned a, unsigned b, std::uint8_t group = 0);
};

// Endpoints in their order: every die at chip_of(node, its place in the node), every socket likewise.
void attach_nodes(Layout& layout, const hw::Topology& topology,
                  const std::function<unsigned(int node)>& chip_of);

}  // namespace cm384::ub
