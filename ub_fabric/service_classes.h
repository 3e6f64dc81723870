// Service classes of the bus: which lanes a class has, whose turn it is among classes that wait for one place
// (an output of a switch chip, a port or a queue of a controller), and a class's rate.
//
// Pairs of lanes belong to the classes in turn: pair q, which is lanes 2q and 2q + 1 of its lane class, to
// class q modulo the number of classes. A packet never changes its class, so classes share no buffer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/text/units.h"
#include "hw/parameters/ub.h"
#include "ub_fabric/packet.h"

namespace cm384::ub {

enum class Arbitration : std::uint8_t {
  round_robin,  // lanes in turn, whatever their class
  strict,       // the highest class that has something to send
  drr,          // deficit round robin over classes (Shreedhar and Varghese), in flits
  age,          // the packet whose controller chose its port first, whatever its class
};

class ServiceClasses {
 public:
  static constexpr unsigned kMost = hw::UbQos::kMostClasses;
  static constexpr unsigned kMostLanes = 16;  // a packet has four bits for them

  explicit ServiceClasses(const hw::UbQos& qos);

  unsigned count() const { return count_; }
  Arbitration arbitration() const { return arbitration_; }
  // Whether outputs arbitrate among classes, not only among lanes in turn.
  bool arbitrates() const {
    return arbitration_ == Arbitration::age || (count_ > 1 && arbitration_ != Arbitration::round_robin);
  }
  unsigned of_level(unsigned level) const { return std::min(level, count_ - 1); }
  unsigned of_lane(unsigned lane) const { return lane / 2 % count_; }
  // The request lane of a class in the first lane class of `pairs` pairs, a multiple of count(); `spread`
  // picks among several.
  unsigned request_lane(unsigned service_class, unsigned spread, unsigned pairs) const {
    return 2 * (service_class + count_ * (spread % (pairs / count_)));
  }
  // Bit l: lane l of any lane class is the class's.
  unsigned lanes_of(unsigned service_class) const { return lanes_[service_class]; }
  // Flits per turn.
  int quantum(unsigned service_class) const { return quanta_[service_class]; }

 private:
  unsigned count_;
  Arbitration arbitration_;
  std::array<unsigned, kMost> lanes_{};
  std::array<int, kMost> quanta_{};
};

// Arbitration state among the classes that wait at each of some places.
class ClassTurns {
 public:
  ClassTurns(const ServiceClasses& classes, unsigned places) : classes_(classes), states_(places) {}

  const ServiceClasses& classes() const { return classes_; }

  // The class whose turn it is among `ready` (bit mask, not 0) by strict priority or deficit round robin, of
  // which class c would send flits(c); it is taken as sent. A turn ends with the deficit, or where the class
  // is not ready: it then keeps no more than a packet's.
  template <class Flits>
  unsigned next(unsigned place, unsigned ready, Flits&& flits) {
    if (classes_.arbitration() == Arbitration::strict)
      return static_cast<unsigned>(std::bit_width(ready)) - 1;
    State& s = states_[place];
    for (;;) {
      const unsigned after = ready >> s.turn << s.turn;
      const auto c = static_cast<unsigned>(std::countr_zero(after != 0 ? after : ready));
      if (c != s.turn) {
        s.deficit[s.turn] = std::min(s.deficit[s.turn], static_cast<std::int32_t>(Hop::kMostFlits));
        begin_turn(s, c);
      }
      if (!s.granted) s.deficit[c] += classes_.quantum(c);
      s.granted = true;
      const int wanted = flits(c);
      if (s.deficit[c] >= wanted) {
        s.deficit[c] -= wanted;
        return c;
      }
      begin_turn(s, c + 1);
    }
  }
  // No packet of the class waits there any more.
  void emptied(unsigned place, unsigned service_class) {
    State& s = states_[place];
    s.deficit[service_class] = 0;
    if (s.turn == service_class) begin_turn(s, service_class + 1);
  }
  // Among the class's `lanes` (not 0) the one whose turn it is; it is taken as sent.
  unsigned next_lane(unsigned place, unsigned service_class, unsigned lanes) const {
    const unsigned turn = states_[place].lane[service_class];
    const unsigned after = lanes >> turn << turn;
    return static_cast<unsigned>(std::countr_zero(after != 0 ? after : lanes));
  }
  void sent(unsigned place, unsigned lane) {
    states_[place].lane[classes_.of_lane(lane)] = static_cast<std::uint8_t>(lane + 1);
  }

 private:
  struct State {
    std::array<std::int32_t, ServiceClasses::kMost> deficit{};  // flits
    std::array<std::uint8_t, ServiceClasses::kMost> lane{};     // next of each class
    std::uint8_t turn = 0;
    bool granted = false;  // the class in turn has its quantum
  };
  void begin_turn(State& s, unsigned service_class) const {
    s.turn = static_cast<std::uint8_t>(service_class == classes_.count() ? 0 : service_class);
    s.granted = false;
  }

  ServiceClasses classes_;
  std::vector<State> states_;
};

// Packets of a controller that wait for the same resource, by class.
class ClassQueues {
 public:
  explicit ClassQueues(const ServiceClasses& classes) : turns_(classes, 1) {}

  // Bit c: a packet of class c waits.
  unsigned waiting() const { return waiting_; }
  bool empty() const { return waiting_ == 0; }
  PacketIndex front(unsigned service_class) const { return queues_[service_class].head; }
  void push(PacketPool& packets, unsigned service_class, PacketIndex index) {
    queues_[service_class].push(packets, index);
    waiting_ |= 1u << service_class;
  }
  // Removes and returns the packet whose turn it is among the classes `ready` (not 0, all of them waiting).
  // Round robin and age: that with the earliest Packet::sent. Flits are those of the packet, or of its
  // response, that carries the payload.
  PacketIndex pop(PacketPool& packets, unsigned ready);

 private:
  std::array<PacketQueue, ServiceClasses::kMost> queues_;
  unsigned waiting_ = 0;
  ClassTurns turns_;
};

// A class's rate: a bucket of tokens, one per byte of payload, that holds a burst and begins full.
class TokenBucket {
 public:
  // 0 B/s: no limit.
  TokenBucket(Bandwidth rate, Bytes burst);

  // When a request of `bytes`, at most a burst, may leave.
  Time earliest(std::uint32_t bytes) const {
    return Time{std::max<std::int64_t>(0, (full_ + bytes * per_byte_ - depth_ + kFraction - 1) / kFraction)};
  }
  void spend(std::uint32_t bytes, Time now) {
    full_ = std::max(full_, now.ps * kFraction) + bytes * per_byte_;
  }

 private:
  static constexpr std::int64_t kFraction = 1 << 16;  // of a picosecond
  std::int64_t per_byte_ = 0;                         // time that refills a byte
  std::int64_t depth_ = 0;                            // that refills all
  std::int64_t full_ = 0;                             // when the bucket is full again
};

}  // namespace cm384::ub
