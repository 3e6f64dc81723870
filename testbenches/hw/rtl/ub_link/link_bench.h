// Two ends of a link in Verilated RTL, a wire with a latency between them, packets in, a scoreboard at the
// other side. Hooks see every flit on the wire, choose who is ready, and may refill what is sent.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "testbenches/hw/rtl/harness.h"
#include "testbenches/hw/rtl/ub_link/flit.h"

namespace cm384::rtl {

// The parameters of ub_link that a bench must know.
struct Shape {
  int flit_bytes = 20;
  int block_flits = 32;
  int lanes = 2;
  int cell_flits = 8;
  int lane_cells = 256;
  int retry_flits = 1024;

  // Flits of a packet with `length` bytes behind its LPH.
  constexpr int flits(int length) const {
    int total = 0;
    for (int rest = length, header = kHeaderBytes; rest > 0; header = kBlockHeaderBytes) {
      const int room = block_flits * flit_bytes - header - kCrcBytes;
      const int taken = rest < room ? rest : room;
      total += (taken + header + kCrcBytes + flit_bytes - 1) / flit_bytes;
      rest -= taken;
    }
    return total;
  }
  constexpr int cells(int length) const { return (flits(length) + cell_flits - 1) / cell_flits; }
  // The longest packet: its length fits the field, its blocks are 16 at most, a lane's buffer holds it.
  constexpr int max_length() const {
    int length = kMaxBlocks * (block_flits * flit_bytes - kBlockHeaderBytes - kCrcBytes) -
                 (kHeaderBytes - kBlockHeaderBytes);
    while (length >= 1 << 14 || cells(length) > lane_cells) --length;
    return length;
  }
};

struct Packet {
  unsigned lane = 0;
  unsigned format = 6;
  unsigned route = 0;
  std::vector<std::uint8_t> bytes;
  bool operator==(const Packet&) const = default;
};

inline Packet random_packet(Random& random, unsigned lane, int length) {
  Packet packet{lane, 1 + random.below(15), random.below(4), {}};
  packet.bytes.resize(length);
  for (auto& byte : packet.bytes) byte = static_cast<std::uint8_t>(random.next());
  return packet;
}

// Bits of a port, whatever type Verilator gave it.
template <class Port>
void set_bits(Port& port, int at, int width, std::uint64_t value) {
  if constexpr (std::is_integral_v<Port>) {
    const std::uint64_t mask = ((width < 64 ? std::uint64_t{1} << width : 0) - 1) << at;
    port = static_cast<Port>((port & ~mask) | (value << at & mask));
  } else {
    for (int b = 0; b < width; ++b) {
      const int bit = at + b;
      port[bit / 32] = (port[bit / 32] & ~(1u << bit % 32)) | static_cast<std::uint32_t>(value >> b & 1)
                                                                  << bit % 32;
    }
  }
}
template <class Port>
void set_bytes(Port& port, const std::uint8_t* bytes, int count, int words) {
  for (int w = 0; w < words; ++w) {
    std::uint32_t word = 0;
    for (int b = 0; b < 4 && 4 * w + b < count; ++b) word |= std::uint32_t{bytes[4 * w + b]} << 8 * b;
    port[w] = word;
  }
}
template <class Port>
void get_bytes(const Port& port, std::uint8_t* bytes, int count) {
  for (int b = 0; b < count; ++b) bytes[b] = static_cast<std::uint8_t>(port[b / 4] >> b % 4 * 8);
}

// events_o of ub_link.
struct Events {
  std::uint64_t damaged = 0, asked = 0, replayed = 0, idle = 0, returned = 0;
};

template <class Model, Shape kShape>
class LinkBench {
 public:
  // `latency`: flit cycles from the sender's output register to the receiver's input register, 2 or more.
  explicit LinkBench(int latency) : latency_(latency) { reset(); }

  // Both ends, and what is on the wire; packets on their way are lost, those not begun are kept.
  void reset() {
    for (End& end : ends_) {
      end.wire.assign(latency_ - 1, Flit{});
      end.model->rst_ni = 0;
      end.open.clear();
      for (auto& lane : end.beats) lane.clear();
      for (auto& lane : end.expected) lane.clear();
    }
    for (int c = 0; c < 4; ++c) step();
    for (End& end : ends_) end.model->rst_ni = 1;
  }

  // End `e` (0, 1) sends a packet.
  void send(int e, Packet packet) {
    ends_[e].queued += 1;
    ends_[e].lanes[packet.lane].push_back(std::move(packet));
  }
  std::uint64_t queued(int e) const { return ends_[e].queued; }      // not taken yet
  std::uint64_t received(int e) const { return ends_[e].received; }  // by end e, whole packets
  const Events& events(int e) const { return ends_[e].events; }
  std::uint64_t cycle() const { return ends_[0].cycle; }
  std::uint64_t pending() const {
    std::uint64_t sum = 0;
    for (const End& end : ends_) {
      sum += end.queued;
      for (const auto& lane : end.expected) sum += lane.size();
    }
    return sum;
  }
  Model& model(int e) { return *ends_[e].model; }

  // Sees, and may change, what end `e` put on the wire.
  std::function<void(int e, Flit& flit)> on_wire;
  // Before each cycle: for each end, lanes ready to receive, and whether the wire takes its flit.
  std::function<void(int e, std::uint32_t& ready_lanes, bool& wire_ready)> on_cycle;
  // A whole packet has arrived at end e.
  std::function<void(int e, const Packet&)> on_packet;

  void step() {
    for (int e = 0; e < 2; ++e) drive(e);
    for (End& end : ends_) end.settle();
    for (int e = 0; e < 2; ++e) sample(e);
    for (End& end : ends_) end.edge();
  }
  void run(std::uint64_t cycles) {
    for (std::uint64_t c = 0; c < cycles; ++c) step();
  }
  // Until everything sent has arrived; a test fails when that takes more than `limit` cycles.
  void drain(std::uint64_t limit) {
    const std::uint64_t end = cycle() + limit;
    while (pending() != 0 && cycle() < end && !testing::Test::HasFatalFailure()) step();
    ASSERT_EQ(pending(), 0u) << "still on their way after " << limit << " cycles";
  }

 private:
  static constexpr int kWords = (kShape.flit_bytes + 3) / 4;
  struct End : Harness<Model> {
    using Harness<Model>::Harness;
    std::array<std::deque<Packet>, kShape.lanes> lanes;  // to be offered
    std::array<std::deque<Flit>, kShape.lanes> beats;    // of packets taken
    std::array<std::deque<Packet>, kShape.lanes> expected;
    std::deque<Flit> wire;  // from this end; an empty flit is a cycle without one
    Packet open_packet;
    std::vector<std::uint8_t> open;  // content of the packet that is being received
    std::uint64_t queued = 0, received = 0;
    Events events;
  };

  void drive(int e) {
    End& end = ends_[e];
    Model& m = *end.model;
    std::uint32_t ready = (1u << kShape.lanes) - 1;
    bool wire_ready = true;
    if (on_cycle) on_cycle(e, ready, wire_ready);
    m.clk_i = 0;
    set_bits(m.receive_ready_i, 0, kShape.lanes, ready);
    m.flit_ready_i = wire_ready;
    for (int l = 0; l < kShape.lanes; ++l) {
      const bool offered = !end.lanes[l].empty();
      set_bits(m.packet_valid_i, l, 1, offered);
      if (!offered) continue;
      const Packet& head = end.lanes[l].front();
      set_bits(m.packet_length_i, 14 * l, 14, head.bytes.size());
      set_bits(m.packet_format_i, 4 * l, 4, head.format);
      set_bits(m.packet_route_i, 2 * l, 2, head.route);
    }
    // Depends on the end's state alone, so it stands since the last edge.
    const auto& beats = end.beats[m.data_lane_o % kShape.lanes];
    if (!beats.empty()) set_bytes(m.data_i, beats.front().data(), kShape.flit_bytes, kWords);
    const Flit& flit = ends_[1 - e].wire.front();
    m.flit_valid_i = !flit.empty();
    if (!flit.empty()) set_bytes(m.flit_i, flit.data(), kShape.flit_bytes, kWords);
  }

  // The flit that leaves end e in this cycle, as the hook leaves it; empty when none does.
  Flit take_flit(int e) {
    Model& m = *ends_[e].model;
    if (!m.flit_valid_o || !m.flit_ready_i || !m.rst_ni) return {};
    Flit flit(kShape.flit_bytes);
    get_bytes(m.flit_o, flit.data(), kShape.flit_bytes);
    if (on_wire) on_wire(e, flit);
    return flit;
  }

  void sample(int e) {
    End& end = ends_[e];
    Model& m = *end.model;
    end.wire.pop_front();
    end.wire.push_back(take_flit(e));
    if (!m.rst_ni) return;
    const unsigned events = m.events_o;
    end.events.damaged += events >> 4 & 1;
    end.events.asked += events >> 3 & 1;
    end.events.replayed += events >> 2 & 1;
    end.events.idle += events >> 1 & 1;
    end.events.returned += events & 1;
    if (m.data_take_o) {
      auto& beats = end.beats[m.data_lane_o];
      ASSERT_FALSE(beats.empty());
      beats.pop_front();
    }
    for (int l = 0; l < kShape.lanes; ++l) {
      if ((m.packet_take_o >> l & 1) == 0) continue;
      take_packet(e, l);
    }
    if (m.receive_valid_o && (m.receive_ready_i >> m.receive_lane_o & 1)) receive(e);
  }

  void take_packet(int e, int lane) {
    End& end = ends_[e];
    Packet& packet = end.lanes[lane].front();
    for (std::size_t at = 0; at < packet.bytes.size(); at += kShape.flit_bytes) {
      Flit beat(kShape.flit_bytes, 0xee);
      std::copy_n(packet.bytes.begin() + at,
                  std::min<std::size_t>(kShape.flit_bytes, packet.bytes.size() - at), beat.begin());
      end.beats[lane].push_back(std::move(beat));
    }
    ends_[1 - e].expected[lane].push_back(std::move(packet));
    end.lanes[lane].pop_front();
    --end.queued;
  }

  void receive(int e) {
    End& end = ends_[e];
    Model& m = *end.model;
    std::array<std::uint8_t, kShape.flit_bytes> beat;
    get_bytes(m.receive_data_o, beat.data(), kShape.flit_bytes);
    ASSERT_LE(m.receive_bytes_o, kShape.flit_bytes);
    end.open.insert(end.open.end(), beat.begin(), beat.begin() + m.receive_bytes_o);
    if (!m.receive_last_o) return;
    auto& expected = end.expected[m.receive_lane_o];
    ASSERT_FALSE(expected.empty()) << "a packet that nobody sent, or one twice";
    const Packet& e0 = expected.front();
    ASSERT_EQ(m.receive_packet_o >> 6, e0.bytes.size());
    ASSERT_EQ(m.receive_packet_o >> 2 & 15, e0.format);
    ASSERT_EQ(m.receive_packet_o & 3, e0.route);
    ASSERT_TRUE(end.open == e0.bytes) << "content differs, packet of " << e0.bytes.size() << " bytes";
    if (on_packet) on_packet(e, e0);
    expected.pop_front();
    end.open.clear();
    ++end.received;
  }

  int latency_;
  std::array<End, 2> ends_ = {End{"-near"}, End{"-far"}};
};

}  // namespace cm384::rtl
