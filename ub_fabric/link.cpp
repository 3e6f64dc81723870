#include "ub_fabric/link.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "base/text/error.h"

namespace cm384::ub {

LinkBank::LinkBank(sim::EventQueue& queue, std::uint32_t unit, std::uint32_t what, unsigned links,
                   unsigned lanes, const RetryTimes& retry)
    : queue_(&queue),
      unit_(unit),
      what_(what),
      lanes_(lanes),
      retry_(retry),
      links_(links),
      lane_(std::size_t{links} * lanes) {}

std::uint8_t LinkBank::number_of(const Clock& clock) {
  std::size_t index = 0;
  while (index < clocks_.size() && (clocks_[index].numerator() != clock.numerator() ||
                                    clocks_[index].denominator() != clock.denominator())) {
    ++index;
  }
  if (index > 0xff) throw InputError("ub.link: links of more than 256 different rates; allowed: fewer");
  if (index == clocks_.size()) clocks_.push_back(clock);
  return static_cast<std::uint8_t>(index);
}

void LinkBank::connect(unsigned link, const Clock& clock, Time latency, int buffer_cells) {
  assert(buffer_cells <= Returning::kMost);
  links_[link].clock = number_of(clock);
  links_[link].latency = latency;
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    lane_[link * lanes_ + lane].cells = buffer_cells;
    lane_[link * lanes_ + lane].buffer = buffer_cells;
  }
}

void LinkBank::set_clock(unsigned link, const Clock& clock, Time now) {
  Link& l = links_[link];
  auto slowed = std::ranges::find(slowed_, link, &Slowed::link);
  const Time busy = this->busy(link);
  if (slowed == slowed_.end()) slowed = slowed_.insert(slowed_.end(), {link, 0, {}});
  slowed->flits = l.flits;
  slowed->busy = busy;
  l.clock = number_of(clock);
  if (l.free_at <= now) return;  // its next packet looks for its tick
  l.free_tick = clocks_[l.clock].tick_at_or_after(l.free_at);
  l.free_at = clocks_[l.clock].start(l.free_tick);
}

Time LinkBank::busy(unsigned link) const {
  const std::uint64_t flits = links_[link].flits;
  const auto slowed = std::ranges::find(slowed_, link, &Slowed::link);
  if (slowed == slowed_.end()) return clock(link).start(static_cast<std::int64_t>(flits));
  return slowed->busy + clock(link).start(static_cast<std::int64_t>(flits - slowed->flits));
}

void LinkBank::update_hooked(unsigned link) {
  links_[link].hooked = hooks_[link].fault != nullptr || hooks_[link].observer != nullptr;
}

void LinkBank::attach_fault(unsigned link, LinkFault* fault) {
  hooks_.resize(links_.size());
  hooks_[link].fault = fault;
  update_hooked(link);
}

void LinkBank::attach_observer(unsigned link, LinkObserver* observer) {
  hooks_.resize(links_.size());
  hooks_[link].observer = observer;
  update_hooked(link);
}

LinkCounters LinkBank::counters(unsigned link) const {
  const Link& l = links_[link];
  return {l.packets, l.flits, l.retransmissions};
}

void LinkBank::collect() {
  if (holds_) return;
  posted_.each([this](std::vector<PostedCredits>& posted) { collect(posted); });
}

void LinkBank::collect_held_credits() {
  posted_.each([this](std::vector<PostedCredits>& posted) { collect(posted, true); });
}

// Wakes the owner only where credits were held: else none are posted while a lane waits.
void LinkBank::collect(std::vector<PostedCredits>& posted, bool foreign) {
  constexpr std::size_t kAhead = 8;
  for (std::size_t i = 0; i < posted.size(); ++i) {
    if (i + kAhead < posted.size()) prefetch_credits(posted[i + kAhead].link, posted[i + kAhead].lane);
    if (i + kAhead / 2 < posted.size())
      prefetch_notes(posted[i + kAhead / 2].link, posted[i + kAhead / 2].lane);
    return_credits(posted[i].link, posted[i].lane, posted[i].cells, posted[i].at, 0, foreign);
  }
  posted.clear();
}

void LinkBank::Returning::grow() {
  constexpr std::uint16_t kFirst = 16;
  const auto size = static_cast<std::uint16_t>(notes_ == nullptr ? kFirst : 2 * (mask_ + 1));
  auto larger = std::make_unique<Note[]>(size);
  const std::uint16_t held = count();
  for (std::uint16_t n = 0; n < held; ++n) larger[n] = notes_[(first_ + n) & mask_];
  notes_ = std::move(larger);
  mask_ = static_cast<std::uint16_t>(size - 1);
  first_ = 0;
  last_ = held;
}

void LinkBank::return_credits(unsigned link, unsigned lane, int cells, Time at, unsigned stream,
                              bool foreign) {
  Lane& l = lane_[link * lanes_ + lane];
  Returning& r = l.returning[stream];
  // Keeps the list short: what is due by the sender's own time is never looked at again.
  if (r.full()) redeem(l, queue_->now());
  at = r.push(at, cells);
  if (!l.waits) return;
  // The other stream may already have asked for a later time.
  if (!foreign) return arm(link, at);
  if (lower_armed(link, at)) queue_->post_late(at, late_key(link), unit_, what_, link);
}

void LinkBank::await_credits(unsigned link, unsigned lane) {
  collect();
  Lane& l = lane_[link * lanes_ + lane];
  if (!l.waits) {
    l.waits = true;
    ++links_[link].waiting;
    ++awaiting_;
  }
  for (const Returning& r : l.returning) {
    if (!r.empty()) arm(link, r.front().at());
  }
}

// Go-Back-N: what is sent between a damaged packet and its retransmission is thrown away by the receiver and
// sent again behind it, so the link does nothing useful in that time.
void LinkBank::delay_by_faults(unsigned link, Hop hop) {
  LinkFault* fault = hooks_[link].fault;
  if (fault == nullptr) return;
  constexpr int kLimit = 10'000;
  Link& l = links_[link];
  const Clock& c = clocks_[l.clock];
  for (int tries = 0; tries < kLimit; ++tries) {
    const Damage damage = fault->strike(hop, l.free_at);
    if (damage == Damage::none) return;
    const Time tail = c.start(l.free_tick + hop.flits());
    const Time again = tail + l.latency * 2 + (damage == Damage::lost ? retry_.timeout : retry_.turnaround);
    l.free_tick = c.tick_at_or_after(again);
    l.free_at = c.start(l.free_tick);
    ++l.retransmissions;
  }
  throw MachineError(
      fmt::format("unified bus: link {} has lost one packet {} times in a row, the last at {:.3f} us", link,
                  kLimit, l.free_at.us()));
}

void LinkBank::observe(unsigned link, Hop hop, const Transmission& t) {
  if (hooks_[link].observer == nullptr) return;
  hooks_[link].observer->sent(hop, t.start, t.tail, credits(link, hop.lane(), queue_->now()));
}

}  // namespace cm384::ub
