// The VPC plane's cards and the storage behind them. They are options of the study that reads over it, not
// parameters of a machine: next to nothing of them is published, and no other study stands on them.
#pragma once

#include <string>

#include "base/text/describe.h"

namespace cm384::vpc {

// Where a block is when it is asked for: in the DRAM of its server's socket, on that node's SSD volumes, or
// in the object store that all nodes share.
enum class Tier { dram, evs, obs };

struct Parameters {
  Bandwidth rate{50'000'000'000};
  double share = 0.5;
  Time latency{50'000'000};
  Time packet_latency{10'000'000};
  Bytes mtu{4096};
  Bytes header{128};
  Bytes window{4 << 20};
  std::string tier = "dram";
  Bandwidth evs_rate{50'000'000'000};
  Time evs_latency{1'000'000'000};
  Bandwidth obs_rate{2'500'000'000};
  Time obs_latency{30'000'000'000};

  // Per card, one way.
  Bandwidth card_rate() const {
    return {static_cast<std::int64_t>(static_cast<double>(rate.bytes_per_second) * share)};
  }
  Tier first_tier() const { return tier == "dram" ? Tier::dram : tier == "evs" ? Tier::evs : Tier::obs; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace cm384::literals;
    using hw::Needs;
    using hw::OneOf;
    using hw::Range;
    visit("vpc-rate", self.rate, Range{1_GBps, 1000_GBps},
          "of a node's card on the VPC plane, each way ([P] 3.2: 400 Gbit/s)", Needs{"readers", {}});
    visit("vpc-share", self.share, Range{0.01, 1.0},
          "of that rate that reads of blocks get: assumed, not published", Needs{"readers", {}});
    visit("vpc-latency", self.latency, Range{Time{}, 1_s},
          "of a read over the VPC plane before its first packet leaves: assumed, not published",
          Needs{"readers", {}});
    visit("vpc-packet-latency", self.packet_latency, Range{Time{}, 1_s},
          "of a packet from one card to another or between a card and storage, beside its bytes: assumed",
          Needs{"readers", {}});
    visit("vpc-mtu", self.mtu, Range{256_B, 64_KiB}, "payload of a packet at most: assumed",
          Needs{"readers", {}});
    visit("vpc-header", self.header, Range{1_B, 1_KiB},
          "bytes on the wire beside a packet's payload; all of a request (derived: TCP over VXLAN)",
          Needs{"readers", {}});
    visit("vpc-window", self.window, Range{256_B, 1_GiB},
          "payload that a reader has asked for and not got, at most: assumed", Needs{"readers", {}});
    visit("tier", self.tier, OneOf{{"dram", "evs", "obs"}},
          "where blocks are when readers ask: the sockets' DRAM, the node's SSD volumes or the object store; "
          "evs and obs over the VPC alone",
          Needs{"readers", {}});
    visit("evs-rate", self.evs_rate, Range{Bandwidth{1'000'000}, 1000_GBps},
          "of a node's volumes ([P] 4.4: at most 400 Gbit/s)", Needs{"tier", {"evs"}});
    visit("evs-latency", self.evs_latency, Range{Time{}, 10_s},
          "until a volume has the first byte of a block: assumed", Needs{"tier", {"evs"}});
    visit("obs-rate", self.obs_rate, Range{Bandwidth{1'000'000}, 1000_GBps},
          "of the object store, for all together ([P] table 2)", Needs{"tier", {"obs"}});
    visit("obs-latency", self.obs_latency, Range{Time{}, 10_s},
          "until the object store has the first byte of a block: assumed", Needs{"tier", {"obs"}});
  }
};

}  // namespace cm384::vpc
