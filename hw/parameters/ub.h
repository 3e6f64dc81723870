// Parameters of the Unified Bus plane: its topology, links and switch chips, the controllers at dies and CPU
// sockets, the service classes of both, and the link between the two dies of a package.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/describe.h"
#include "base/text/units.h"

namespace cm384::hw {

struct TopologyFiles;

// Throws InputError where a text is not "auto" or up to eight lengths such as 4x4x4.
void check_shape(std::string_view text);
// To 1 B/s, and at least that.
Bandwidth rounded_rate(double bytes_per_second);

// Throws InputError where a text is empty.
void check_file(std::string_view text);

// Throws InputError where a text is not a list of factors above 0 such as "1,1,0.5".
void check_rates(std::string_view text);
// The same of lists of whole numbers such as "1,2", of bandwidths such as "none,20GB/s", and of service
// levels with how many dies in a row have them, such as "1x8,0x8".
void check_weights(std::string_view text);
void check_class_rates(std::string_view text);
void check_die_levels(std::string_view text);

// A parameter that is a path: where it stands in a machine file, it starts from there.
inline constexpr std::string_view kTopologyFile = "topology.file";

// Section `topology`. What a kind does with its parameters: docs/topologies.md.
struct Topology {
  std::string kind;
  int supernodes = 1;
  int nodes = 0;
  int dies_per_node = 0;
  int dies_per_package = 0;
  int sockets_per_node = 0;
  int nodes_per_rack = 0;
  int switches_per_rack = 0;
  int sub_planes = 0;
  int l2_switches = 0;
  int l3_switches = 0;
  int groups = 0;
  int global_links = 0;
  std::string shape;
  std::string file;
  std::string content;
  std::shared_ptr<const TopologyFiles> files;  // what `file` holds, where the kind is `file`

  // Of all supernodes, numbered through.
  constexpr int dies() const { return supernodes * nodes * dies_per_node; }
  constexpr int sockets() const { return supernodes * nodes * sockets_per_node; }
  constexpr int planes() const { return supernodes * sub_planes; }
  constexpr int supernode_of(int die) const { return die / (nodes * dies_per_node); }
  // One of them alone: what its Unified Bus joins.
  Topology one_supernode() const;
  // Dies 0.., then sockets dies() + s; of one supernode: endpoints of a sub-plane.
  constexpr int endpoints() const { return dies() + sockets(); }
  constexpr bool in_one_package(int die, int other) const {
    return die / dies_per_package == other / dies_per_package;
  }
  constexpr int socket_endpoint(int socket) const { return dies() + socket; }
  constexpr int node_of(int endpoint) const {
    return endpoint < dies() ? endpoint / dies_per_node : (endpoint - dies()) / sockets_per_node;
  }

  // Chips per dimension, of `shape`.
  std::vector<int> lengths() const;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("kind", self.kind,
          OneOf{{"clos", "clos3", "full-mesh", "mesh", "torus", "dragonfly", "star", "file"}},
          "how the switch chips of a sub-plane are joined");
    visit("supernodes", self.supernodes, Range{1, 1'024},
          "supernodes, each with a Unified Bus of its own, joined by the RDMA plane alone; dies, CPU sockets "
          "and "
          "sub-planes are numbered through");
    visit("nodes", self.nodes, Range{1, 32'768}, "compute nodes of a supernode");
    visit("dies_per_node", self.dies_per_node, Range{1, 1'024},
          "dies per node, each with one port to every sub-plane");
    visit("dies_per_package", self.dies_per_package, Range{1, 2},
          "2: dies 2k and 2k + 1 share a package and its link; 1: every die stands alone");
    visit("sockets_per_node", self.sockets_per_node, Range{0, 64},
          "CPU sockets per node, each with one port to every sub-plane");
    visit("nodes_per_rack", self.nodes_per_rack, Range{1, 1'024},
          "nodes per rack; read by counts and prices, no time depends on it");
    visit("switches_per_rack", self.switches_per_rack, Range{1, 4'096},
          "switch chips that stand in no node, such as L2 chips, per rack of switches; read by counts and "
          "prices, no time depends on it");
    visit("sub_planes", self.sub_planes, Range{1, 64},
          "independent sub-planes, which is also the number of ports per die");
    visit("l2_switches", self.l2_switches, Range{1, 4'096},
          "clos: L2 switch chips per sub-plane, each with one link to the L1 chip of every node; clos3: per "
          "pod");
    visit("l3_switches", self.l3_switches, Range{1, 4'096},
          "clos3: L3 switch chips per sub-plane, a multiple of l2_switches");
    visit("groups", self.groups, Range{1, 32'768}, "clos3: pods; dragonfly: groups; nodes are spread evenly");
    visit("global_links", self.global_links, Range{1, 1'024}, "dragonfly: links of a chip to other groups");
    visit("shape", self.shape, Form{"auto|AxBx...", check_shape},
          "full-mesh, mesh, torus: chips per dimension; auto: two dimensions, as square as can be, with one "
          "chip per "
          "node");
    visit("file", self.file, Form{"FOLDER", check_file},
          "file: folder with node.csv, topology.csv and perhaps routing_table.csv, from where the machine "
          "file is");
    visit("content", self.content, Form{"auto|HASH", check_file},
          "file: hash of these files; auto: whatever it is; another than given is refused");
  }
};

// Section `ub.link`.
struct UbLink {
  Bandwidth bandwidth;
  double trunk_rate = 0;
  std::string plane_rates;
  Time endpoint_latency;
  Time trunk_latency;
  int lanes = 0;
  int buffer_cells = 0;
  Time retry_turnaround;
  Time retry_timeout;

  // Of the links of a sub-plane, to dies and between chips. Scaled ones are rounded to
  // 1 B/s.
  Bandwidth die_bandwidth(int plane) const;
  Bandwidth trunk_bandwidth(int plane) const;
  // Any bandwidth, multiplied with the sub-plane's rate.
  Bandwidth of_plane(Bandwidth whole, int plane) const;
  double plane_rate(int plane) const;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    visit("bandwidth", self.bandwidth, Range{1_GBps, 400_GBps},
          "one-way bandwidth of the links between dies and switch chips");
    visit("trunk_rate", self.trunk_rate, Range{0.01, 100.0},
          "bandwidth of a link between switch chips as a multiple of that: 0.5 is a taper of 2:1");
    visit("plane_rates", self.plane_rates, Form{"R[,R...]", check_rates},
          "what all bandwidths of a sub-plane are multiplied with, from sub-plane 0 on; the last one holds "
          "for the "
          "rest");
    visit("endpoint_latency", self.endpoint_latency, Range{1_ns, 10_us},
          "one-way latency between a port of a die or socket and its L1 chip: serialisers, wire, link layer");
    visit("trunk_latency", self.trunk_latency, Range{1_ns, 10_us},
          "one-way latency between two switch chips: serialisers, optics, fibre, link layer");
    visit("lanes", self.lanes, Range{2, 16},
          "virtual lanes, an even number: even ones carry requests, odd ones their responses");
    visit("buffer_cells", self.buffer_cells, Range{4, 4096},
          "credits per virtual lane: input buffer cells of 8 flits per port");
    visit("retry_turnaround", self.retry_turnaround, Range{0_ps, 100_us},
          "time at both ends of a link, in addition to two link latencies, from the end of a damaged packet "
          "to its "
          "retransmission");
    visit("retry_timeout", self.retry_timeout, Range{0_ps, 1_ms},
          "as retry_turnaround, for a packet that is lost entirely and leaves no damaged block to report");
  }
};

// Section `ub.switch`.
struct UbSwitch {
  Time pipeline_latency;
  std::string forwarding;
  std::string routing;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    visit("pipeline_latency", self.pipeline_latency, Range{1_ns, 10_us},
          "latency of a packet's head from input pin to output pin of an idle switch chip");
    visit("forwarding", self.forwarding, OneOf{{"cut-through", "packet-store"}},
          "whether a packet may leave before its tail has arrived");
    visit("routing", self.routing, OneOf{{"spray", "flow", "adaptive", "minimal", "valiant", "ugal"}},
          "how a chip picks among shortest ways: round-robin per packet, by hash of the flow, the least "
          "occupied, or "
          "always the same for a destination; valiant goes by a chip drawn for each packet, ugal by one "
          "where the "
          "shortest way has the longer queue");
  }
};

// Section `ub.controller` (a die's) and `cpu.controller` (a CPU socket's).
struct UbController {
  int read_outstanding = 0;
  int write_outstanding = 0;
  Time read_interval;
  Time write_interval;
  std::string write_limit;
  Time read_inbound_latency;
  Time write_inbound_latency;
  Time completion_latency;
  Time target_read_interval;
  Time target_write_interval;
  Time resend_timeout;
  std::string spreading;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    visit("read_outstanding", self.read_outstanding, Range{1, 65'536},
          "outstanding read requests, over all ports");
    visit("write_outstanding", self.write_outstanding, Range{1, 65'536},
          "outstanding write and atomic requests, over all ports");
    visit("read_interval", self.read_interval, Range{0_ps, 1_us}, "minimum time between two read requests");
    visit("write_interval", self.write_interval, Range{0_ps, 1_us},
          "minimum time between two write or atomic requests");
    visit("write_limit", self.write_limit, OneOf{{"initiator", "target", "both"}},
          "where write_interval holds: for requests that are issued, for those that are served, or for both");
    visit("read_inbound_latency", self.read_inbound_latency, Range{0_ps, 10_us},
          "from the tail of a read request at the target's port to its memory access");
    visit("write_inbound_latency", self.write_inbound_latency, Range{0_ps, 10_us},
          "from a write's or atomic's tail at the target's port, or from its service where service is "
          "limited, to "
          "its memory access");
    visit("completion_latency", self.completion_latency, Range{0_ps, 10_us},
          "from the tail of a response at the initiator's port to the initiator's on-die network");
    visit("target_read_interval", self.target_read_interval, Range{0_ps, 1_us},
          "minimum time between two read requests served as target");
    visit("target_write_interval", self.target_write_interval, Range{0_ps, 1_us},
          "minimum time between two write or atomic requests served as target");
    visit(
        "resend_timeout", self.resend_timeout, Range{1_us, 100_ms},
        "from a request's last start to its next one, where it or its response was lost in a part that went "
        "out of order");
    visit(
        "spreading", self.spreading, OneOf{{"round-robin", "least-loaded", "flow"}},
        "how requests are spread over the ports: round-robin, to the shortest queue, or by hash of the flow");
  }
};

// Section `ub.translation`: a controller's cache of remote address translations.
struct UbTranslation {
  Bytes page;
  int entries = 0;
  int ways = 0;
  int walks = 0;
  Time miss_latency;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    visit("page", self.page, Range{4_KiB, 1_GiB}, "page size, a power of two");
    visit("entries", self.entries, Range{1, 1 << 20}, "cached translations; a multiple of ways");
    visit("ways", self.ways, Range{1, 16}, "ways per set");
    visit("walks", self.walks, Range{1, 1024}, "misses in flight; further ones wait");
    visit("miss_latency", self.miss_latency, Range{0_ps, 100_us}, "from a miss to its translation");
  }
};

// Section `ub.qos`: service classes at controllers and switch chips.
struct UbQos {
  static constexpr int kMostClasses = 8;
  static constexpr int kMostLevel = 15;  // the specification has four bits for it
  int classes = 0;
  std::string arbitration;
  std::string weights;
  Bytes quantum;
  std::string rates;
  Bytes burst;
  std::string die_levels;

  // The value for a class; beyond the end of the list, its last one.
  int weight(int service_class) const;
  // 0 B/s: no limit.
  Bandwidth rate(int service_class) const;
  bool limits_rates() const { return rates != "none"; }
  // Service level of what a die asks for, dies counted over all supernodes.
  int die_level(int die) const;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    visit("classes", self.classes, Range{1, kMostClasses},
          "service classes, each with as many pairs of ub.link.lanes; service level n is of class n, those "
          "above of the last one");
    visit("arbitration", self.arbitration, OneOf{{"round-robin", "strict", "drr", "age"}},
          "whose packet goes next at a controller and at an output of a switch chip: lanes in turn whatever "
          "their class, the highest class first, classes in turn by bytes (deficit round robin), or the "
          "oldest packet");
    visit("weights", self.weights, Form{"W[,W...]", check_weights},
          "drr: of classes from 0 on, from 1 to 1000; the last one holds for the rest");
    visit("quantum", self.quantum, Range{20_B, 64_KiB},
          "drr: bytes on the wire that a class of weight 1 sends per turn");
    visit(
        "rates", self.rates, Form{"none|R[,R...]", check_class_rates},
        "most payload per second that a die or socket asks to read for a class, and as much again to write: "
        "of classes from 0 on, each a bandwidth or none; the last one holds for the rest");
    visit("burst", self.burst, Range{512_B, 16_MiB},
          "payload beyond its rate that a class may have at once after a pause: depth of its token bucket");
    visit(
        "die_levels", self.die_levels, Form{"L[xDIES][,...]", check_die_levels},
        "service levels, 0 to 15, of what dies ask for and say nothing about: of so many dies each, from die "
        "0 on, "
        "anew at the end of the list");
  }
};

// Section `ub`.
struct UnifiedBus {
  UbLink link;
  UbSwitch switch_chip;
  UbController controller;
  UbTranslation translation;
  UbQos qos;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("link", self.link);
    visit("switch", self.switch_chip);
    visit("controller", self.controller);
    visit("translation", self.translation);
    visit("qos", self.qos);
  }
};

// Section `cpu`: a CPU socket as seen from the fabric.
struct CpuSocket {
  Bandwidth bandwidth;
  Bytes memory_bytes;
  Bandwidth memory_bandwidth;
  Time memory_read_latency;
  Time memory_write_latency;
  UbController controller;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    visit("bandwidth", self.bandwidth, Range{1_GBps, 4000_GBps},
          "one-way bandwidth of all ports of a socket together, one port per sub-plane");
    visit("memory_bytes", self.memory_bytes, Range{1_MiB, 256_GiB}, "DRAM capacity per socket");
    visit("memory_bandwidth", self.memory_bandwidth, Range{1_GBps, 4000_GBps}, "DRAM bandwidth per socket");
    visit("memory_read_latency", self.memory_read_latency, Range{0_ps, 10_us},
          "unloaded latency from the controller to data");
    visit("memory_write_latency", self.memory_write_latency, Range{0_ps, 10_us},
          "unloaded latency from the controller to the acknowledgement");
    visit("controller", self.controller);
  }
};

// Section `package_link`: joins the two dies of a package.
struct PackageLink {
  Bandwidth bandwidth;
  Time latency;
  Bytes header;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    visit("bandwidth", self.bandwidth, Range{1_GBps, 4000_GBps},
          "bandwidth of the link between the two dies of a package, each way");
    visit("latency", self.latency, Range{1_ns, 10_us}, "one-way latency from die to die, protocol included");
    visit("header", self.header, Range{0_B, 256_B},
          "header bytes per request or response, in addition to the payload");
  }
};

}  // namespace cm384::hw
