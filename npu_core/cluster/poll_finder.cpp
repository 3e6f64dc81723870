#include "npu_core/cluster/poll_finder.h"

#include <optional>

#include "firmware/abi/isa.h"
#include "npu_core/scalar/scalar_core.h"
#include "npu_core/vector/aiv.h"

namespace cm384::npu {
namespace {

constexpr std::uint32_t kFirstTry = 2;  // turns that are simulated before one is recorded

bool within(const LocalBuffer::Pages& some, const LocalBuffer::Pages& all) {
  bool in = true;
  for (std::size_t n = 0; n < some.size(); ++n) in = in && (some[n] & ~all[n]) == 0;
  return in;
}

}  // namespace

void PollFinder::forget() {
  if (phase_ != Phase::counting) count_on();
  copy_ = {};
}

// Turns are simulated until there have been twice as many.
void PollFinder::count_on() {
  if (phase_ != Phase::recording) aiv_.end_polling();
  phase_ = Phase::counting;
  next_try_ = 2 * turns_;
  scalar_.forget_turn();
  aiv_.ubuffer().note_writes(nullptr);
}

void PollFinder::begin_turn(Phase phase, std::int64_t cycle) {
  if (!aiv_.settled()) return count_on();
  phase_ = phase;
  written_ = {};
  aiv_.ubuffer().note_writes(&written_);
  if (phase == Phase::recording) {
    timed_ = 0;
    pages_ = {};
  } else {
    digest_ = aiv_.ubuffer().digest(pages_) ^ aiv_.digest();
    aiv_.begin_poll_turn(copy_, cycle);
  }
  scalar_.begin_turn(timed_);
}

bool PollFinder::parks(const PipeInstruction& copy, std::int64_t cycle) {
  if (copy.operation != CM384_MTE_GM_TO_UB || !same(copy)) {
    forget();
    copy_ = copy;
    turns_ = 0;
    next_try_ = kFirstTry;
    return false;
  }
  if (phase_ == Phase::parked) {  // woken: it is the same instruction
    begin_turn(Phase::checking, cycle);
    return false;
  }
  ++turns_;
  if (phase_ == Phase::counting) {
    if (turns_ >= next_try_ && aiv_.can_watch(copy)) begin_turn(Phase::recording, cycle);
    return false;
  }
  const std::optional<std::uint64_t> timed = scalar_.end_turn();
  const bool known_pages = within(written_, pages_);
  if (timed && phase_ == Phase::checking && (*timed & ~timed_) == 0 && known_pages &&
      !aiv_.poll_input_written() && aiv_.settled() &&
      digest_ == (aiv_.ubuffer().digest(pages_) ^ aiv_.digest())) {
    phase_ = Phase::parked;
    aiv_.ubuffer().note_writes(nullptr);
    aiv_.park_polling(copy, cycle);
    return true;
  }
  const bool new_input = phase_ == Phase::checking && aiv_.poll_input_written();
  const bool learnt = timed && (phase_ == Phase::recording || (*timed & ~timed_) != 0 || !known_pages);
  for (std::size_t n = 0; n < pages_.size(); ++n) pages_[n] |= written_[n];
  if (timed) timed_ |= *timed;
  new_input || learnt ? begin_turn(Phase::checking, cycle) : count_on();
  return false;
}

}  // namespace cm384::npu
