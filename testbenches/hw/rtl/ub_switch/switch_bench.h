// A Verilated switch between senders and receivers that keep to the credit protocol, and a scoreboard: every
// packet arrives once, whole, at the output its label leads to, in order within its lane and flow.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "testbenches/hw/rtl/harness.h"
#include "ub_fabric/routing.h"
#include "ub_fabric/verilated_fields.h"

namespace cm384::ub {

struct SwitchPacket {
  unsigned input = 0, lane = 0, output = 0, flits = 1;
  std::uint64_t number = 0;  // of the packet, in its header and its payload
  unsigned label = 0;
};

struct ReceivedPacket {
  SwitchPacket packet;
  std::uint64_t first_in = 0, first_out = 0, last_out = 0;  // cycles on the pins
};

// How an output picks among service classes, as ub_switch.sv numbers it.
enum class RtlArbitration : std::uint8_t { round_robin, strict, deficit };

// `Shape` has the model's parameters: Model, ports, lanes, buffer_cells, cell_flits, flit_bits, max_flits,
// routes; classes where there are several.
template <class Shape>
class SwitchBench : public rtl::Harness<typename Shape::Model> {
 public:
  explicit SwitchBench(unsigned receiver_cells = 64, std::uint64_t seed = 1)
      : random(seed), receiver_cells_(receiver_cells) {
    for (unsigned label = 0; label < Shape::routes; ++label) route_.push_back((label * 7 + 3) % Shape::ports);
    restart();
  }

  // Resets the switch for `cycles`, in which the last inputs stand; what was in it, and what waited for it,
  // is gone.
  void restart(unsigned cycles = 2) {
    auto& m = *this->model;
    this->reset(cycles);
    m.valid_i = 0;
    m.credit_valid_i = 0;
    m.route_write_i = 0;
    set_field(m.ready_i, 0, Shape::ports, ~std::uint64_t{0});
    for (auto& s : senders_) s = {};
    for (auto& r : receivers_) r = {};
    flows_.clear();
    in_flight = 0;
    for (auto& s : senders_) s.credits.fill(Shape::buffer_cells);
    for (unsigned label = 0; label < Shape::routes; ++label) write_route(label, route_[label]);
    for (unsigned lane = 0; lane < Shape::lanes; ++lane) {
      for (auto& r : receivers_) r.back.push_back({this->cycle, lane, receiver_cells_});
    }
  }
  // Restarts with this arbitration and so many flits for each class in its turn. Pairs of lanes belong to the
  // classes in turn, as in ub_fabric/service_classes.h.
  void arbitrate(RtlArbitration arbitration, std::span<const unsigned> quanta) {
    auto& m = *this->model;
    constexpr unsigned kClassBits = bits(Shape::classes), kQuantumBits = 16;
    m.arbitration_i = static_cast<CData>(arbitration);
    for (unsigned lane = 0; lane < Shape::lanes; ++lane)
      set_field(m.lane_class_i, lane * kClassBits, kClassBits, lane / 2 % Shape::classes);
    for (unsigned c = 0; c < Shape::classes; ++c)
      set_field(m.quantum_i, c * kQuantumBits, kQuantumBits, quanta[c]);
    restart();
  }
  void write_route(unsigned label, unsigned output) {
    auto& m = *this->model;
    route_[label] = output;
    m.route_write_i = 1;
    set_field(m.route_label_i, 0, bits(Shape::routes), label);
    set_field(m.route_output_i, 0, bits(Shape::ports), output);
    this->tick();
    m.route_write_i = 0;
  }

  // Puts a packet in the queue of its sender and lane.
  void send(SwitchPacket p) {
    p.number = ++numbers_;
    std::vector<unsigned> labels;
    for (unsigned label = 0; label < Shape::routes; ++label) {
      if (route_[label] == p.output) labels.push_back(label);
    }
    p.label = labels[random() % labels.size()];
    senders_[p.input].queues[p.lane].push_back(p);
    ++in_flight;
  }
  // A packet of random lane, output and length from `input`.
  void send_random(unsigned input) {
    send({input, static_cast<unsigned>(random() % Shape::lanes),
          static_cast<unsigned>(random() % Shape::ports),
          static_cast<unsigned>(1 + random() % Shape::max_flits)});
  }
  std::size_t backlog(unsigned input) const {
    std::size_t n = 0;
    for (const auto& q : senders_[input].queues) n += q.size();
    return n;
  }
  std::size_t backlog(unsigned input, unsigned lane) const { return senders_[input].queues[lane].size(); }

  void step() {
    for (unsigned i = 0; i < Shape::ports; ++i) drive(i);
    for (unsigned o = 0; o < Shape::ports; ++o) give_back(o);
    this->tick();
    for (unsigned i = 0; i < Shape::ports; ++i) take_credits(i);
    for (unsigned o = 0; o < Shape::ports; ++o) receive(o);
  }
  void run(std::uint64_t cycles) {
    while (cycles-- != 0) step();
  }
  // Until everything has arrived.
  void drain(std::uint64_t limit = 100'000) {
    while (in_flight != 0 && limit-- != 0) step();
    EXPECT_EQ(in_flight, 0u) << "packets are stuck";
    run(20);
    for (unsigned i = 0; i < Shape::ports; ++i) {
      for (unsigned lane = 0; lane < Shape::lanes; ++lane)
        EXPECT_EQ(senders_[i].credits[lane], Shape::buffer_cells) << "input " << i << ", lane " << lane;
    }
  }

  // Set by tests.
  double ready = 1;                   // share of cycles in which a link takes a flit
  unsigned credit_delay = 0;          // cycles a receiver keeps a packet's cells
  std::array<bool, 16> held_lanes{};  // receivers give no credits back
  bool logs = true;

  std::mt19937_64 random;
  std::uint64_t in_flight = 0;
  std::uint64_t flits_out = 0;
  std::vector<ReceivedPacket> received;
  std::map<std::tuple<unsigned, unsigned, unsigned>, std::uint64_t> flits_of;  // input, lane, output

 private:
  static constexpr unsigned bits(unsigned n) {
    unsigned b = 1;
    while ((1u << b) < n) ++b;
    return b;
  }
  static constexpr unsigned kLaneBits = bits(Shape::lanes);
  static constexpr unsigned kCellsBits = bits(Shape::max_flits / Shape::cell_flits + 1);
  static constexpr unsigned kCreditBits = 13;
  static constexpr unsigned kHeaderBits = 30;
  static unsigned cells(unsigned flits) { return (flits + Shape::cell_flits - 1) / Shape::cell_flits; }

  struct Sender {
    std::array<std::deque<SwitchPacket>, 16> queues;
    std::array<unsigned, 16> credits{};
    unsigned turn = 0;
    SwitchPacket sending;
    unsigned sent = 0;  // flits of it; 0: none
  };
  struct Back {
    std::uint64_t at;
    unsigned lane, cells;
  };
  struct Receiver {
    std::deque<Back> back;
    std::array<unsigned, 16> held{};  // cells
    ReceivedPacket now;
    unsigned got = 0;  // flits of it
  };
  struct Expected {
    SwitchPacket packet;
    std::uint64_t first_in;
  };

  // 32 bits of a flit's payload from bit `at` on; the header takes the low bits of the first flit.
  static std::uint32_t payload(const SwitchPacket& p, unsigned flit, unsigned word) {
    return static_cast<std::uint32_t>(mix(p.number * 4096 + flit * 64 + word));
  }
  static std::uint64_t header(const SwitchPacket& p) {
    return std::uint64_t{p.lane} | std::uint64_t{p.flits} << 4 | std::uint64_t{p.label} << 14;
  }

  void drive(unsigned i) {
    auto& m = *this->model;
    Sender& s = senders_[i];
    if (s.sent == 0) {
      for (unsigned k = 0; k < Shape::lanes && s.sent == 0; ++k) {
        const unsigned lane = (s.turn + k) % Shape::lanes;
        auto& queue = s.queues[lane];
        if (queue.empty() || s.credits[lane] < cells(queue.front().flits)) continue;
        s.sending = queue.front();
        queue.pop_front();
        s.credits[lane] -= cells(s.sending.flits);
        s.turn = lane + 1;
        flows_[{i, lane, s.sending.output}].push_back({s.sending, this->cycle});
        put(m, i, s);
        return;
      }
      set_field(m.valid_i, i, 1, 0);
      return;
    }
    put(m, i, s);
  }
  void put(auto& m, unsigned i, Sender& s) {
    set_field(m.valid_i, i, 1, 1);
    for (unsigned word = 0; word * 32 < Shape::flit_bits; ++word)
      set_field(m.flit_i, i * Shape::flit_bits + word * 32, 32, payload(s.sending, s.sent, word));
    if (s.sent == 0) set_field(m.flit_i, i * Shape::flit_bits, kHeaderBits, header(s.sending));
    if (++s.sent == s.sending.flits) s.sent = 0;
  }

  void give_back(unsigned o) {
    auto& m = *this->model;
    Receiver& r = receivers_[o];
    set_field(m.ready_i, o, 1, ready >= 1 || random() % 1024 < static_cast<unsigned>(ready * 1024) ? 1 : 0);
    set_field(m.credit_valid_i, o, 1, 0);
    for (std::size_t k = 0; k < r.back.size(); ++k) {
      const Back b = r.back[k];
      if (b.at > this->cycle || held_lanes[b.lane]) continue;
      set_field(m.credit_valid_i, o, 1, 1);
      set_field(m.credit_lane_i, o * kLaneBits, kLaneBits, b.lane);
      set_field(m.credit_cells_i, o * kCreditBits, kCreditBits, b.cells);
      if (r.held[b.lane] >= b.cells) r.held[b.lane] -= b.cells;
      r.back.erase(r.back.begin() + static_cast<std::ptrdiff_t>(k));
      return;
    }
  }
  void take_credits(unsigned i) {
    auto& m = *this->model;
    if (field(m.credit_valid_o, i, 1) == 0) return;
    const auto lane = field(m.credit_lane_o, i * kLaneBits, kLaneBits);
    senders_[i].credits[lane] += static_cast<unsigned>(field(m.credit_cells_o, i * kCellsBits, kCellsBits));
  }

  void receive(unsigned o) {
    auto& m = *this->model;
    if (field(m.valid_o, o, 1) == 0) return;
    Receiver& r = receivers_[o];
    ++flits_out;
    if (r.got == 0) start_packet(m, o, r);
    if (r.now.packet.number == 0) return;  // already reported
    EXPECT_EQ(field(m.first_o, o, 1), r.got == 0 ? 1u : 0u);
    for (unsigned word = 0; word * 32 < Shape::flit_bits; ++word) {
      const unsigned skip = r.got == 0 && word == 0 ? kHeaderBits : 0;
      const unsigned at = o * Shape::flit_bits + word * 32;
      ASSERT_EQ(field(m.flit_o, at + skip, 32 - skip), payload(r.now.packet, r.got, word) >> skip)
          << "flit " << r.got << " of packet " << r.now.packet.number << ", word " << word;
    }
    if (++r.got < r.now.packet.flits) return;
    r.got = 0;
    r.now.last_out = this->cycle;
    const auto& p = r.now.packet;
    flits_of[{p.input, p.lane, p.output}] += p.flits;
    if (logs) received.push_back(r.now);
    --in_flight;
    r.back.push_back({this->cycle + credit_delay, p.lane, cells(p.flits)});
  }
  // The header does not name the input: the packet is the oldest of a flow to here whose first flit this is.
  void start_packet(auto& m, unsigned o, Receiver& r) {
    const std::uint64_t got = field(m.flit_o, o * Shape::flit_bits, kHeaderBits);
    const auto lane = static_cast<unsigned>(got & 15);
    r.now = {};
    ASSERT_LT(lane, Shape::lanes) << "output " << o;
    for (unsigned i = 0; i < Shape::ports; ++i) {
      auto flow = flows_.find({i, lane, o});
      if (flow == flows_.end() || flow->second.empty()) continue;
      const Expected& e = flow->second.front();
      if (header(e.packet) != got) continue;
      if (Shape::flit_bits >= 64 && field(m.flit_o, o * Shape::flit_bits + 32, 32) != payload(e.packet, 0, 1))
        continue;
      r.now = {e.packet, e.first_in, this->cycle, 0};
      flow->second.pop_front();
      r.held[lane] += cells(r.now.packet.flits);
      EXPECT_LE(r.held[lane], receiver_cells_) << "sent without credit, output " << o << ", lane " << lane;
      return;
    }
    FAIL() << "output " << o << ": a packet that is not the next of any flow, header " << got;
  }

  unsigned receiver_cells_;
  std::uint64_t numbers_ = 0;
  std::vector<unsigned> route_;
  std::array<Sender, Shape::ports> senders_;
  std::array<Receiver, Shape::ports> receivers_;
  std::map<std::tuple<unsigned, unsigned, unsigned>, std::deque<Expected>> flows_;
};

}  // namespace cm384::ub
