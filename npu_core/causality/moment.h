// A moment of a pipe or of a scalar unit, and what it had to wait for: the causes of its time.
//
// A cause has a slack: by how much later it could have come without moving this moment. What a unit then does
// by itself moves the moment and leaves slacks as they are; where two moments must both have been, the later
// one counts and the causes of the earlier gain slack. So the time of a moment is the maximum over its causes
// of (when the cause was) + (what lay between), and what lay between is known for every cause, not only for
// the one that counted: the core as a timed event graph, in max-plus algebra.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/engine/transaction.h"
#include "npu_core/die/launch.h"

namespace cm384::npu {

struct Cause {
  // Of causes of one class a later one stands for the earlier ones, unless those have less slack.
  enum class Class : std::uint8_t { mte2, mte3, fix, node, fill, foreign };
  sim::TransactionId on = 0;
  std::int64_t at_ps = 0;
  std::int32_t slack = 0;  // core cycles
  DependencyKind kind = DependencyKind::completion;
  Class of = Class::node;
};

class Moment {
 public:
  static constexpr std::size_t kMost = 6;  // causes kept: those of least slack
  std::int64_t cycle = 0;

  Moment() {}  // leaves the causes as they are
  Moment(std::int64_t at, const Cause& cause) : cycle(at), count_(1) { causes_[0] = cause; }
  Moment(const Moment& other) { *this = other; }
  Moment& operator=(const Moment& other) {
    cycle = other.cycle;
    count_ = other.count_;
    std::copy_n(other.causes_.begin(), other.count_, causes_.begin());
    return *this;
  }

  std::span<const Cause> causes() const { return std::span(causes_).first(count_); }
  void advance(std::int64_t to) { cycle = std::max(cycle, to); }

  // This moment is not before the other one.
  void join(const Moment& other) {
    const std::int64_t latest = std::max(cycle, other.cycle);
    for (std::uint32_t k = 0; k < count_; ++k) causes_[k].slack = sum(causes_[k].slack, latest - cycle);
    cycle = latest;
    for (std::uint32_t k = 0; k < other.count_; ++k) {
      Cause cause = other.causes_[k];
      cause.slack = sum(cause.slack, latest - other.cycle);
      add(cause);
    }
  }

  // Beyond a second a cause plays no part.
  static std::int32_t sum(std::int32_t slack, std::int64_t more) {
    constexpr std::int64_t kMostSlack = 1 << 30;
    return static_cast<std::int32_t>(std::min(slack + more, kMostSlack));
  }

  void add(const Cause& cause) {
    for (std::uint32_t k = 0; k < count_;) {
      Cause& known = causes_[k];
      if (known.on == cause.on && known.kind == cause.kind) {
        known.slack = std::min(known.slack, cause.slack);
        return;
      }
      if (known.of == cause.of && known.kind == cause.kind && cause.of != Cause::Class::foreign) {
        if (known.on > cause.on && known.slack <= cause.slack) return;
        if (known.on < cause.on && known.slack >= cause.slack) {
          known = causes_[--count_];
          continue;
        }
      }
      ++k;
    }
    if (count_ < kMost) {
      causes_[count_++] = cause;
      return;
    }
    const auto most = std::max_element(causes_.begin(), causes_.end(),
                                       [](const Cause& a, const Cause& b) { return a.slack < b.slack; });
    if (cause.slack < most->slack) *most = cause;
  }

 private:
  std::uint32_t count_ = 0;
  std::array<Cause, kMost> causes_;  // the first `count_`
};

}  // namespace cm384::npu
