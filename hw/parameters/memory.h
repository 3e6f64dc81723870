// Parameters of a die's memory: on-die network, L2 and HBM.
#pragma once

#include <string>

#include "base/text/describe.h"
#include "base/text/units.h"

namespace cm384::hw {

struct OnDieNetwork {
  Frequency clock{};
  int core_ports = 0;
  int external_ports = 0;
  Time request_latency{};
  Time response_latency{};
  Time hop_latency{};
  int hbm_read_bytes_per_cycle = 0;
  int l2_read_bytes_per_cycle = 0;
  int write_bytes_per_cycle = 0;
  int realign_bytes_per_cycle = 0;
  int cube_realign_bytes_per_cycle = 0;
  int external_bytes_per_cycle = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace literals;
    visit("clock", self.clock, Range{100_MHz, 10_GHz}, "clock of the on-die network");
    visit("core_ports", self.core_ports, Range{1, 128},
          "ports for AI cores, one per core; requester ids start at 0");
    visit("external_ports", self.external_ports, Range{1, 64},
          "ports for the Unified Bus controller and SDMA; requester ids follow those of the cores");
    visit("request_latency", self.request_latency, Range{0_ns, 10_us}, "from a port to an L2 slice");
    visit("response_latency", self.response_latency, Range{0_ns, 10_us}, "from an L2 slice to a port");
    visit(
        "hop_latency", self.hop_latency, Range{0_ns, 1_us},
        "added to both for each slice by which the way from a port to a slice is longer than the mean way of "
        "cores: slices stand in a row, cores are spread along it, external ports stand at its end");
    visit("hbm_read_bytes_per_cycle", self.hbm_read_bytes_per_cycle, Range{1, 1024},
          "rate of a core port for reads that miss in L2");
    visit("l2_read_bytes_per_cycle", self.l2_read_bytes_per_cycle, Range{1, 1024},
          "rate of a core port for reads that hit in L2");
    visit("write_bytes_per_cycle", self.write_bytes_per_cycle, Range{1, 1024},
          "rate of a core port for writes");
    visit("realign_bytes_per_cycle", self.realign_bytes_per_cycle, Range{1, 1024},
          "rate of a vector core's port for contiguous accesses that start inside a sector");
    visit("cube_realign_bytes_per_cycle", self.cube_realign_bytes_per_cycle, Range{1, 1024},
          "the same of a cube core's port");
    visit("external_bytes_per_cycle", self.external_bytes_per_cycle, Range{1, 4096},
          "rate of an external port, per direction");
  }
};

struct L2 {
  Bytes capacity{};
  Bytes line{};
  Bytes sector{};
  int ways = 0;
  int slices = 0;
  Bandwidth slice_bandwidth{};
  Bytes slice_access{};
  int misses = 0;
  Time hit_latency{};
  Time write_latency{};
  Time line_hold{};
  Time whole_line_hold{};
  Time atomic_latency{};
  Bytes fetch{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace literals;
    visit("capacity", self.capacity, Range{64_KiB, 4096_MiB}, "L2 capacity per die");
    visit("line", self.line, Range{512_B, 512_B},
          "bytes per line, the granularity of tags and of serialisation");
    visit("sector", self.sector, Range{64_B, 512_B},
          "bytes per sector, the granularity of validity; a power of two");
    visit("ways", self.ways, Range{1, 16}, "lines per set");
    visit("slices", self.slices, Range{1, 128}, "independent slices; lines are interleaved across them");
    visit("slice_bandwidth", self.slice_bandwidth, Range{1_GBps, 10'000_GBps},
          "bandwidth per slice, reads and writes together");
    visit("slice_access", self.slice_access, Range{1_B, 512_B},
          "bytes of a slice's bandwidth that a request takes at least, however few it moves");
    visit("misses", self.misses, Range{1, 4096},
          "lines that a slice may wait for from HBM; a further miss holds up the slice");
    visit("hit_latency", self.hit_latency, Range{0_ns, 10_us},
          "from the arrival of a read at its slice to data, or to a detected miss");
    visit("write_latency", self.write_latency, Range{0_ns, 10_us},
          "from the arrival of a write at its slice to its acknowledgement");
    visit("line_hold", self.line_hold, Range{0_ns, 10_us},
          "time for which a request for a part of a line holds the line before another requester gets it; "
          "who meets a held line holds up its slice, who meets one that is on its way from HBM does not");
    visit("whole_line_hold", self.whole_line_hold, Range{0_ns, 10_us},
          "the same of a request for all of a line");
    visit("atomic_latency", self.atomic_latency, Range{0_ns, 10_us},
          "extra time per atomic add at its slice");
    visit("fetch", self.fetch, Range{64_B, 512_B},
          "bytes fetched from HBM per read miss, a multiple of the sector");
  }
};

struct Hbm {
  Bytes capacity{};
  Bandwidth bandwidth{};
  int stacks = 0;
  int pseudo_channels = 0;
  int bank_groups = 0;
  int banks_per_group = 0;
  Bytes row{};
  Bytes burst{};
  int train_bank_groups = 0;
  bool hash = false;
  Frequency clock{};
  Time controller_latency{};
  int write_queue = 0;
  int reorder_window = 0;
  std::string refresh;
  Time t_rcd_read{};
  Time t_rcd_write{};
  Time t_rp{};
  Time t_ras{};
  Time t_rc{};
  Time t_ccd_s{};
  Time t_ccd_l{};
  Time t_rrd_s{};
  Time t_rrd_l{};
  Time t_faw{};
  Time t_wr{};
  Time t_wtr_s{};
  Time t_wtr_l{};
  Time t_rtp{};
  Time read_latency{};
  Time write_latency{};
  Time t_refi{};
  Time t_rfc_bank{};
  Time t_rfc_all{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace literals;
    const auto delay = Range{0_ps, 10_us};
    visit("capacity", self.capacity, Range{64_MiB, 1024_GiB}, "HBM capacity per die");
    visit("bandwidth", self.bandwidth, Range{1_GBps, 100'000_GBps},
          "peak of all pseudo-channels together; set alone it sets clock, t_ccd_s and t_ccd_l, and widens "
          "what brings the data to the cores; where those are set, it is what they give");
    visit("stacks", self.stacks, Range{1, 16}, "HBM stacks per die");
    visit("pseudo_channels", self.pseudo_channels, Range{1, 64}, "pseudo-channels per stack; a power of two");
    visit("bank_groups", self.bank_groups, Range{1, 8}, "bank groups per pseudo-channel; a power of two");
    visit("banks_per_group", self.banks_per_group, Range{1, 16},
          "banks per bank group, over all stack IDs; a power of two");
    visit("row", self.row, Range{512_B, 8_KiB}, "bytes per row (page) of one bank; a power of two");
    visit("burst", self.burst, Range{32_B, 64_B}, "bytes per column access of a pseudo-channel");
    visit("train_bank_groups", self.train_bank_groups, Range{1, 4},
          "bank groups across which the bursts of a 512 B line alternate; 1, 2 or 4");
    visit("hash", self.hash, "whether pseudo-channel and bank bits are XORed with row bits");
    visit("clock", self.clock, Range{100_MHz, 10_GHz}, "command clock; timings are rounded up to its cycles");
    visit("controller_latency", self.controller_latency, Range{0_ns, 10_us},
          "round trip between an L2 miss and the channel, without the DRAM itself");
    visit(
        "write_queue", self.write_queue, Range{1, 64},
        "writes of up to a line that a pseudo-channel collects before it turns its bus around to drain them");
    visit("reorder_window", self.reorder_window, Range{1, 64},
          "requests of up to a line that a later one may go before where it keeps none of them waiting");
    visit("refresh", self.refresh, OneOf{{"per-bank", "all-bank", "off"}}, "how rows are refreshed");
    visit("t_rcd_read", self.t_rcd_read, delay, "ACT to RD of one bank");
    visit("t_rcd_write", self.t_rcd_write, delay, "ACT to WR of one bank");
    visit("t_rp", self.t_rp, delay, "PRE to ACT of one bank");
    visit("t_ras", self.t_ras, delay, "ACT to PRE of one bank");
    visit("t_rc", self.t_rc, delay, "ACT to ACT of one bank");
    visit("t_ccd_s", self.t_ccd_s, delay, "column to column, different bank groups; the time of one burst");
    visit("t_ccd_l", self.t_ccd_l, delay, "column to column, same bank group");
    visit("t_rrd_s", self.t_rrd_s, delay, "ACT to ACT, different bank groups");
    visit("t_rrd_l", self.t_rrd_l, delay, "ACT to ACT, same bank group");
    visit("t_faw", self.t_faw, delay, "window with at most four ACTs");
    visit("t_wr", self.t_wr, delay, "end of write data to PRE of one bank");
    visit("t_wtr_s", self.t_wtr_s, delay, "end of write data to RD, different bank groups");
    visit("t_wtr_l", self.t_wtr_l, delay, "end of write data to RD, same bank group");
    visit("t_rtp", self.t_rtp, delay, "RD to PRE of one bank");
    visit("read_latency", self.read_latency, delay, "RD to first data (CL)");
    visit("write_latency", self.write_latency, delay, "WR to first data (CWL)");
    visit("t_refi", self.t_refi, Range{100_ns, 1_ms}, "interval in which every bank is refreshed once");
    visit("t_rfc_bank", self.t_rfc_bank, delay, "time for which a refresh occupies its bank");
    visit("t_rfc_all", self.t_rfc_all, delay, "time for which an all-bank refresh occupies a pseudo-channel");
  }
};

// The die's memory as a whole, as a machine holds it.
struct Memory {
  OnDieNetwork on_die_network;
  L2 l2;
  Hbm hbm;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("on_die_network", self.on_die_network);
    visit("l2", self.l2);
    visit("hbm", self.hbm);
  }
};

}  // namespace cm384::hw
