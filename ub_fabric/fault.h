// What attaches to a link from outside: faults and observers. Links test one flag when none is attached.
#pragma once

#include <array>
#include <cstdint>

#include "base/text/units.h"
#include "ub_fabric/packet.h"

namespace cm384::ub {

enum class Damage : std::uint8_t {
  none,
  corrupted,  // a block's CRC fails: the receiver asks for a retry at once
  lost        // nothing arrives: the sender finds out by time
};

// Decides for each transmission over one link, retransmissions included, whether it is damaged.
class LinkFault {
 public:
  virtual Damage strike(Hop hop, Time start) = 0;

 protected:
  ~LinkFault() = default;
};

// Sees every packet sent over one link.
class LinkObserver {
 public:
  // `start` and `tail` are the first and last moment on the wire; `free_cells` the credits left on its lane.
  virtual void sent(Hop hop, Time start, Time tail, int free_cells) = 0;

 protected:
  ~LinkObserver() = default;
};

// Damages each transmission with a probability, drawn from a seeded sequence of its own.
class RandomFault final : public LinkFault {
 public:
  RandomFault(double probability, Damage damage, std::uint64_t seed);
  // The same with a probability of every bit: a transmission is damaged when one or more of its bits are.
  static RandomFault of_bits(double rate, Damage damage, std::uint64_t seed);
  Damage strike(Hop hop, Time start) override;
  std::uint64_t strikes() const { return strikes_; }

 private:
  static constexpr std::size_t kFlits = 64;      // more than a hop can have
  std::array<std::uint64_t, kFlits> threshold_;  // by flits, of 2^53
  Damage damage_;
  std::uint64_t state_;
  std::uint64_t strikes_ = 0;
};

// Damages every transmission that starts in [from, until).
class TimedFault final : public LinkFault {
 public:
  TimedFault(Time from, Time until, Damage damage) : from_(from), until_(until), damage_(damage) {}
  Damage strike(Hop hop, Time start) override;
  std::uint64_t strikes() const { return strikes_; }

 private:
  Time from_, until_;
  Damage damage_;
  std::uint64_t strikes_ = 0;
};

}  // namespace cm384::ub
