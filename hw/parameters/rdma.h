// The RDMA plane: RoCE from each die to a leaf switch, leaves to spines, spines of several supernodes to core
// switches, loss-free by pause.
#pragma once

#include <string>

#include "base/text/describe.h"

namespace cm384::hw {

struct Rdma {
  Bandwidth link_rate{};
  Time link_latency{};
  Time switch_latency{};
  std::string wiring;
  int dies_per_leaf = 0;
  int spines = 0;
  double oversubscription = 0;
  int core_links = 0;
  Bandwidth core_rate{};
  Time core_latency{};
  std::string routing;
  Bytes buffer{};
  Bytes pause_on{};
  Bytes pause_off{};
  Bytes mtu{};
  Bytes header{};
  Bytes response_header{};
  Bytes window{};
  Time send_latency{};
  Time receive_latency{};

  // Of a link between a leaf and a spine: a leaf's share of what its dies send.
  Bandwidth uplink_rate() const;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("link_rate", self.link_rate, Range{1_GBps, 1000_GBps}, "one way between a die and its leaf switch");
    visit("link_latency", self.link_latency, Range{1_ns, 1_ms},
          "of any link of the plane: cable, transceivers and error correction");
    visit("switch_latency", self.switch_latency, Range{Time{0}, 1_ms},
          "of a leaf or a spine, from a packet's last byte in until it may leave; packets are stored whole");
    visit("wiring", self.wiring, OneOf{{"blocks", "rails"}},
          "which dies a leaf switch has: consecutive ones of a supernode, or those of one number in "
          "consecutive supernodes, with spines that join all leaves of the machine");
    visit("dies_per_leaf", self.dies_per_leaf, Range{1, 1024}, "dies at one leaf switch");
    visit("spines", self.spines, Range{1, 256},
          "spine switches of a supernode, of rails of the machine; each leaf has one link to each; unused "
          "where one leaf has all dies");
    visit("oversubscription", self.oversubscription, Range{0.25, 64.0},
          "what a leaf's dies can send over what its links to spines carry");
    visit("core_links", self.core_links, Range{1, 256},
          "links of a spine to core switches, one each; a core switch joins the spines of one number of all "
          "supernodes. Unused where topology.supernodes is 1, as the other two");
    visit("core_rate", self.core_rate, Range{1_GBps, 1000_GBps}, "one way of each of these links");
    visit("core_latency", self.core_latency, Range{1_ns, 1_ms},
          "of each of them: cable, transceivers and error correction");
    visit("routing", self.routing, OneOf{{"flow", "spray"}},
          "how a switch chooses a way up: by a hash of source and destination, or in turn packet by packet");
    visit("buffer", self.buffer, Range{4_KiB, 1_GiB},
          "of a switch port, for packets that came in by it and have not left the switch");
    visit("pause_on", self.pause_on, Range{1_B, 1_GiB}, "bytes in it above which the port pauses its sender");
    visit("pause_off", self.pause_off, Range{0_B, 1_GiB}, "bytes in it down to which the sender may go on");
    visit("mtu", self.mtu, Range{256_B, 16_KiB}, "payload of a packet at most");
    visit("header", self.header, Range{0_B, 1_KiB},
          "bytes on the wire that a request has beside its payload: preamble, gap and all headers");
    visit("response_header", self.response_header, Range{1_B, 1_KiB},
          "the same of a response; all of an acknowledgement");
    visit("window", self.window, Range{256_B, 1_GiB},
          "payload that a die has sent to, or asked of, another die without an answer, at most");
    visit("send_latency", self.send_latency, Range{Time{0}, 1_ms},
          "in the network interface, from a request until its packet may leave");
    visit(
        "receive_latency", self.receive_latency, Range{Time{0}, 1_ms},
        "in the network interface, from a packet's last byte until it is at the die's memory, or completes");
  }
};

}  // namespace cm384::hw
