// A Verilated chip (a model of hw/rtl/ub_switch, or one with its ports) as a switch chip of a sub-plane.
// Compiled into libraries of chips (chip_library.cpp), not into the simulator.
#pragma once

#include <fmt/format.h>

#include <array>
#include <bit>
#include <deque>
#include <memory>
#include <vector>

#include "base/text/error.h"
#include "ub_fabric/fst_file.h"
#include "ub_fabric/rtl_switch.h"
#include "ub_fabric/verilated_fields.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {

// Parameters of the RTL, as CMakeLists.txt builds it.
inline constexpr unsigned kLanes = 8;
inline constexpr unsigned kLaneBits = 3;
inline constexpr unsigned kBufferCells = 256;
inline constexpr unsigned kFlitBits = 64;
inline constexpr unsigned kMaxFlits = 32;
inline constexpr unsigned kCreditBits = 13;
inline constexpr unsigned kQuantumBits = 16;
// From the edge that takes a first flit to the edge that brings it out of an idle chip.
#ifndef CM384_CHIP_CYCLES
#define CM384_CHIP_CYCLES 5
#endif
inline constexpr std::int64_t kCycles = CM384_CHIP_CYCLES - 1;

// Fields of a flit: the RTL's header in the first, and in all of them what tells one flit from another.
constexpr std::uint64_t head_flit(std::uint32_t slot, Hop hop, unsigned label) {
  return std::uint64_t{slot} << 30 | std::uint64_t{label} << 14 | std::uint64_t{hop.flits()} << 4 |
         hop.lane();
}
constexpr std::uint64_t body_flit(std::uint32_t slot, unsigned number) {
  return std::uint64_t{slot} << 30 | number;
}

// `Chip`: Model, ports, and the service classes that its outputs tell apart.
template <class Chip>
class VerilatedSwitch final : public RtlSwitch {
 public:
  VerilatedSwitch(const Parameters& parameters, const ServiceClasses& classes, const ChipTiming& timing,
                  unsigned ports)
      : ports_(ports),
        clock_(timing.flit),
        pipeline_(timing.pipeline),
        lanes_(static_cast<unsigned>(parameters.ub.link.lanes)),
        model_(std::make_unique<typename Chip::Model>(&context_)) {
    if constexpr (Chip::classes > 1) set_classes(classes);
    model_->rst_ni = 0;
    edge();
    edge();
    model_->rst_ni = 1;
    model_->route_write_i = 1;
    for (unsigned port = 0; port < Chip::ports; ++port) {
      model_->route_label_i = static_cast<CData>(label_of(port));
      model_->route_output_i = static_cast<CData>(port);
      edge();
    }
    model_->route_write_i = 0;
  }
  ~VerilatedSwitch() override {
    // Verilator's models take themselves off the context that the thread used last, which may be another
    // chip's.
    Verilated::threadContextp(&context_);
    model_->final();
  }

  const RtlSwitchCounters& counters() const override { return counters_; }
  bool arbitrates() const override { return Chip::classes > 1; }
  void write_waves(const std::string& path) override {
    waves_ = std::make_unique<FstFile>(*model_, path);
    waves_->dump(0);
  }
  void finish_waves() override {
    if (waves_) waves_->finish();
    waves_.reset();
  }

  void arrived(ChipHost& host, unsigned port, Hop hop) override {
    const std::uint32_t slot = take_slot();
    const unsigned output = host.route(port, hop);
    slots_[slot] = Slot{hop, port, output};
    inputs_[port].due.push_back({clock_.tick_at_or_after(host.now() + pipeline_) - kCycles, slot});
    ++outputs_[output].inside;
    if (inside_++ == 0) start(host);
  }

  void woken(ChipHost& host, unsigned) override {
    if (inside_ == 0) return;
    if (const Time at = clock_.start(tick_); host.now() >= at) cycle(host);
    if (inside_ != 0) host.wake_at(0, clock_.start(tick_));
  }

 private:
  struct Slot {
    Hop hop;
    unsigned input = 0;
    unsigned output = 0;
  };
  struct Due {
    std::int64_t tick;
    std::uint32_t slot;
  };
  struct Input {
    std::deque<Due> due;  // the first is going in where `sent` is not 0
    unsigned sent = 0;    // flits of it
  };
  struct Output {
    std::uint32_t slot = 0;                    // of the packet that comes out
    unsigned got = 0;                          // flits of it
    unsigned inside = 0;                       // packets on their way to it
    unsigned turn = 0;                         // lane whose credits are returned first
    std::int64_t hold = 0;                     // cycles in which the link takes no flit
    std::array<std::int64_t, kLanes> told{};   // credits, in all
    std::array<std::int64_t, kLanes> spent{};  // by packets put on the link
  };

  // Not the port itself: the routing table is more than wires.
  static constexpr unsigned label_of(unsigned port) { return (port + 5) % 64; }

  // As hw/rtl/ub_switch/ub_class_pick.sv numbers it.
  static unsigned number_of(Arbitration arbitration) {
    if (arbitration == Arbitration::strict) return 1;
    return arbitration == Arbitration::drr ? 2 : 0;
  }
  void set_classes(const ServiceClasses& classes) {
    constexpr unsigned kClassBits = std::bit_width(Chip::classes - 1);
    model_->arbitration_i = static_cast<CData>(classes.arbitrates() ? number_of(classes.arbitration()) : 0);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      set_field(model_->lane_class_i, lane * kClassBits, kClassBits, classes.of_lane(lane));
    for (unsigned c = 0; c < classes.count(); ++c)
      set_field(model_->quantum_i, c * kQuantumBits, kQuantumBits,
                static_cast<std::uint64_t>(classes.quantum(c)));
  }

  // The first edge that could have work: none was missed, for nothing was inside.
  void start(ChipHost& host) {
    tick_ = clock_.tick_at_or_after(host.now());
    if (clock_.start(tick_) == host.now()) ++tick_;
    host.wake_at(0, clock_.start(tick_));
  }

  void cycle(ChipHost& host) {
    for (unsigned port = 0; port < ports_; ++port) {
      feed(port);
      control(host, port);
    }
    edge();
    ++counters_.cycles;
    std::uint64_t valid = field(model_->valid_o, 0, Chip::ports);
    for (; valid != 0; valid &= valid - 1) take(host, static_cast<unsigned>(std::countr_zero(valid)));
    ++tick_;
  }

  void feed(unsigned port) {
    Input& in = inputs_[port];
    const bool goes = !in.due.empty() && (in.sent != 0 || in.due.front().tick <= tick_);
    set_field(model_->valid_i, port, 1, goes ? 1 : 0);
    if (!goes) return;
    const std::uint32_t slot = in.due.front().slot;
    const Slot& s = slots_[slot];
    const std::uint64_t flit =
        in.sent == 0 ? head_flit(slot, s.hop, label_of(s.output)) : body_flit(slot, in.sent);
    set_field(model_->flit_i, port * kFlitBits, kFlitBits, flit);
    if (++in.sent == s.hop.flits()) {
      in.sent = 0;
      in.due.pop_front();
    }
  }

  // Tells the output of new credits, those of one lane per cycle, and whether its link takes flits.
  void control(ChipHost& host, unsigned port) {
    Output& out = outputs_[port];
    set_field(model_->ready_i, port, 1, out.hold == 0 ? 1 : 0);
    if (out.hold != 0) --out.hold;
    set_field(model_->credit_valid_i, port, 1, 0);
    if (out.inside == 0) return;
    for (unsigned k = 0; k < lanes_; ++k) {
      const unsigned lane = (out.turn + k) % lanes_;
      const std::int64_t news = host.credits(port, lane) + out.spent[lane] - out.told[lane];
      if (news <= 0) continue;
      set_field(model_->credit_valid_i, port, 1, 1);
      set_field(model_->credit_lane_i, port * kLaneBits, kLaneBits, lane);
      set_field(model_->credit_cells_i, port * kCreditBits, kCreditBits, static_cast<std::uint64_t>(news));
      out.told[lane] += news;
      out.turn = lane + 1;
      return;
    }
  }

  // A flit has come out.
  void take(ChipHost& host, unsigned port) {
    Output& out = outputs_[port];
    const std::uint64_t flit = field(model_->flit_o, port * kFlitBits, kFlitBits);
    const auto slot = static_cast<std::uint32_t>(flit >> 30);
    if (out.got == 0) {
      out.slot = slot;
      send(host, port);
    }
    const Slot& s = slots_[out.slot];
    const std::uint64_t expected =
        out.got == 0 ? head_flit(out.slot, s.hop, label_of(port)) : body_flit(out.slot, out.got);
    if (flit != expected || s.output != port) {
      throw std::logic_error(
          fmt::format("RTL switch: flit {} of a packet came out of port {} as {:#x}, not {:#x}", out.got,
                      port, flit, expected));
    }
    if (++out.got < s.hop.flits()) return;
    out.got = 0;
    --out.inside;
    --inside_;
    free_slots_.push_back(out.slot);
  }

  void send(ChipHost& host, unsigned port) {
    Output& out = outputs_[port];
    const Slot& s = slots_[out.slot];
    if (!host.take_credits(port, s.hop)) throw std::logic_error("RTL switch: sent without credit");
    out.spent[s.hop.lane()] += s.hop.cells();
    host.send(s.input, port, s.hop);
    ++counters_.packets;
    // A slower link, or one that repeats a packet, is busy for longer than the flits take here. The next
    // packet comes with the last edge before the link is free, for it would miss a slot of a slower link's
    // clock after that.
    const std::int64_t busy = clock_.tick_at_or_after(host.free_at(port) + Time{1}) - 1 - tick_;
    out.hold = std::max<std::int64_t>(0, busy - static_cast<std::int64_t>(s.hop.flits()));
  }

  std::uint32_t take_slot() {
    if (free_slots_.empty()) {
      slots_.emplace_back();
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  void edge() {
    model_->clk_i = 0;
    model_->eval();
    if (waves_) waves_->dump((clock_.start(tick_ - 1).ps + clock_.start(tick_).ps) / 2);
    model_->clk_i = 1;
    model_->eval();
    if (waves_) waves_->dump(clock_.start(tick_).ps);
  }

  unsigned ports_;
  Clock clock_;
  Time pipeline_;
  unsigned lanes_;
  VerilatedContext context_;
  std::unique_ptr<typename Chip::Model> model_;
  std::unique_ptr<FstFile> waves_;  // null: not asked for
  std::int64_t tick_ = 0;           // of the next edge
  std::uint64_t inside_ = 0;        // packets, from their arrival to their last flit
  std::array<Input, Chip::ports> inputs_;
  std::array<Output, Chip::ports> outputs_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  RtlSwitchCounters counters_;
};

}  // namespace cm384::ub
