// The sending ends of links: serialisation in flit ticks, credits a virtual lane, retry, counters.
//
// Credits are counted by time stamps. The receiver notes how many cells come back when; the sender looks at
// the notes only when its count runs out, and asks for an event only when none is due.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/statistics.h"
#include "base/engine/worker.h"
#include "base/text/units.h"
#include "ub_fabric/fault.h"
#include "ub_fabric/packet.h"

namespace cm384::ub {

struct LinkCounters {
  std::uint64_t packets = 0;          // retransmissions excluded
  std::uint64_t flits = 0;            // as above
  std::uint64_t retransmissions = 0;  // by faults
};

// A packet's time on the wire.
struct Transmission {
  Time start;  // its head leaves
  Time tail;   // its last flit has left
};

struct RetryTimes {
  Time turnaround;
  Time timeout;
};

// Credits that another module returns.
struct PostedCredits {
  Time at;
  std::uint32_t link = 0;
  std::uint8_t lane = 0;
  std::uint8_t cells = 0;
};

// The sending ends of all links of one owner (a sub-plane's chips, a controller's ports). The owner is woken
// by events {unit, what, argument = link} of its queue, which come after all others of their time.
class LinkBank {
 public:
  LinkBank(sim::EventQueue& queue, std::uint32_t unit, std::uint32_t what, unsigned links, unsigned lanes,
           const RetryTimes& retry);

  // Sets up link `link`: flit clock, latency, input buffer cells of every lane at its other end.
  void connect(unsigned link, const Clock& clock, Time latency, int buffer_cells);
  // From `now` on packets are sent by another flit clock; not before the owner's time.
  void set_clock(unsigned link, const Clock& clock, Time now);
  // The other end of the link is out of order: cancels every wake-up of the owner for it.
  void forget(unsigned link) { woken(link, links_[link].armed_at); }
  void attach_fault(unsigned link, LinkFault* fault);           // nullptr detaches
  void attach_observer(unsigned link, LinkObserver* observer);  // nullptr detaches

  unsigned lanes() const { return lanes_; }
  Time latency(unsigned link) const { return links_[link].latency; }
  const Clock& clock(unsigned link) const { return clocks_[links_[link].clock]; }
  // When the wire is free. Between wire and arbiter stands one packet.
  Time free_at(unsigned link) const { return links_[link].free_at; }
  // When the link takes its next packet: once the last one it took is on the wire.
  Time accepts_at(unsigned link) const { return links_[link].last_start; }
  // When the owner is woken for this link next; Time::never() when it is not.
  Time armed_at(unsigned link) const { return links_[link].armed_at; }
  LinkCounters counters(unsigned link) const;
  // Time its flits have taken.
  Time busy(unsigned link) const;
  // Declares the counters of one link.
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at, unsigned link) const;
  // Packets sent over all links, each counted once.
  std::uint64_t packets() const { return packets_; }

  // Prefetches into the host's cache a link's state, as far as returning credits touches it.
  void prefetch(unsigned link, unsigned lane) const {
    __builtin_prefetch(&links_[link], 1);
    prefetch_credits(link, lane);
  }
  void prefetch_credits(unsigned link, unsigned lane) const {
    __builtin_prefetch(&lane_[link * lanes_ + lane], 1);
  }
  // As above for the credits on their way back, once the link's state is cached.
  void prefetch_notes(unsigned link, unsigned lane) const {
    const Lane& l = lane_[link * lanes_ + lane];
    for (const Returning& r : l.returning) r.prefetch();
  }

  // Takes `cells` credits if there are as many at `now`.
  bool take_credits(unsigned link, unsigned lane, int cells, Time now) {
    Lane& l = lane_[link * lanes_ + lane];
    if (l.cells < cells) [[unlikely]] {
      collect();
      redeem(l, now);
      if (l.cells < cells) return false;
    }
    l.cells -= cells;
    return true;
  }
  // Credits available at `now`.
  int credits(unsigned link, unsigned lane, Time now) {
    collect();
    Lane& l = lane_[link * lanes_ + lane];
    redeem(l, now);
    return l.cells;
  }
  // Cells that the other end has not returned by `now`.
  int occupied(unsigned link, unsigned lane, Time now) {
    return lane_[link * lanes_ + lane].buffer - credits(link, lane, now);
  }

  // Puts a packet on the link at the first flit tick at or after `now` and free_at(). Credits must be taken.
  Transmission transmit(unsigned link, Hop hop, Time now) {
    Link& l = links_[link];
    const Clock& c = clocks_[l.clock];
    if (l.free_at < now) {
      l.free_tick = c.tick_at_or_after(now);
      l.free_at = c.start(l.free_tick);
    }
    if (l.hooked) [[unlikely]]
      delay_by_faults(link, hop);
    Transmission t{l.free_at, {}};
    l.last_start = t.start;
    l.free_tick += hop.flits();
    l.free_at = c.start(l.free_tick);
    t.tail = l.free_at;
    ++l.packets;
    l.flits += hop.flits();
    ++packets_;
    if (l.hooked) [[unlikely]]
      observe(link, hop, t);
    return t;
  }

  // The other end returns credits, which are known here at `at`; never earlier than those before of the same
  // stream, 0 or 1.
  void return_credits(unsigned link, unsigned lane, int cells, Time at, unsigned stream = 0) {
    return_credits(link, lane, cells, at, stream, false);
  }
  // Returns credits from another module: they are posted here and sorted in by collect().
  // Only one module does so for a link; those of different workers may do so side by side for different
  // links, while the owner does not run.
  void post_credits(unsigned link, unsigned lane, int cells, Time at) {
    std::vector<PostedCredits>& posted = posted_.mine();
    if ((awaiting_ != 0 || posted.size() == kPosted) && !holds_) [[unlikely]] {
      collect(posted);
      return_credits(link, lane, cells, at, 0, true);
      return;
    }
    posted.push_back(
        PostedCredits{at, link, static_cast<std::uint8_t>(lane), static_cast<std::uint8_t>(cells)});
  }
  // Before credits posted by workers beyond 0.
  void set_workers(unsigned workers) { posted_.set_workers(workers); }
  void collect();
  // From now on posted credits are held until collect_held_credits(); a visitor may post them anew. Called
  // while neither the owner nor the other module runs.
  void hold_credits() { holds_ = true; }
  template <class Visit>
  void each_posted(Visit&& visit) {
    posted_.each([&](std::vector<PostedCredits>& posted) {
      for (PostedCredits& credits : posted) visit(credits);
    });
  }
  void collect_held_credits();

  // The owner wants to be woken at `at` (no later, and not before its queue's time).
  void arm(unsigned link, Time at) {
    if (lower_armed(link, at)) queue_->push_late(at, late_key(link), unit_, what_, link);
  }
  // The owner is woken for a link: false for an event that an earlier one has made void.
  bool woken(unsigned link, Time at) {
    Link& l = links_[link];
    if (l.armed_at != at) return false;
    l.armed_at = Time::never();
    awaiting_ -= l.waiting;
    for (unsigned lane = 0; l.waiting != 0; ++lane) {
      bool& waits = lane_[link * lanes_ + lane].waits;
      l.waiting = static_cast<std::uint16_t>(l.waiting - (waits ? 1 : 0));
      waits = false;
    }
    return true;
  }
  // The owner waits for credits of a lane: wakes it when the next come back.
  void await_credits(unsigned link, unsigned lane);

 private:
  struct Link {
    Time free_at;
    std::int64_t free_tick = 0;
    Time last_start;
    Time armed_at = Time::never();
    Time latency;
    std::uint64_t packets = 0;
    std::uint64_t flits = 0;
    std::uint32_t retransmissions = 0;
    std::uint16_t waiting = 0;  // lanes that wait for credits: how many
    std::uint8_t clock = 0;
    bool hooked = false;
  };
  static_assert(sizeof(Link) <= 64);
  // Cells that come back at a time, in one word: time in ps << 8 | cells.
  class Note {
   public:
    Note() = default;
    Note(Time at, std::int32_t cells) : bits_(at.ps << 8 | cells) {}
    Time at() const { return Time{bits_ >> 8}; }
    std::int32_t cells() const { return static_cast<std::int32_t>(bits_ & 0xff); }

   private:
    std::int64_t bits_ = 0;
  };
  // Notes of credits on their way back, in order of time: a ring that grows.
  class Returning {
   public:
    // A ring's 16-bit counts tell so many apart; ub.link.buffer_cells is at most 4,096, and each note returns
    // a cell or more.
    static constexpr int kMost = 1 << 15;
    bool empty() const { return first_ == last_; }
    const Note& front() const { return notes_[first_ & mask_]; }
    void pop() { ++first_; }
    bool full() const { return notes_ == nullptr || count() > mask_; }
    // Returns when the cells come back: not before those before them.
    Time push(Time at, std::int32_t cells) {
      if (full()) grow();
      latest_ = std::max(latest_, at);
      notes_[last_++ & mask_] = Note(latest_, cells);
      return latest_;
    }
    void prefetch() const {
      if (notes_ != nullptr) __builtin_prefetch(&notes_[last_ & mask_], 1);
    }

   private:
    std::uint16_t count() const { return static_cast<std::uint16_t>(last_ - first_); }
    void grow();
    std::unique_ptr<Note[]> notes_;
    Time latest_;
    std::uint16_t first_ = 0, last_ = 0, mask_ = 0;  // notes_ has mask_ + 1, a power of two
  };
  struct alignas(64) Lane {
    std::int32_t cells = 0;
    std::int32_t buffer = 0;
    bool waits = false;                  // for credits
    std::array<Returning, 2> returning;  // streams
  };
  static_assert(sizeof(Lane) == 64);
  static constexpr std::size_t kPosted = 4096;
  struct Hooks {
    LinkFault* fault = nullptr;
    LinkObserver* observer = nullptr;
  };

  void redeem(Lane& lane, Time now) {
    for (Returning& r : lane.returning) {
      for (; !r.empty() && r.front().at() <= now; r.pop()) lane.cells += r.front().cells();
    }
  }
  bool lower_armed(unsigned link, Time at) {
    Link& l = links_[link];
    if (l.armed_at <= at) return false;
    l.armed_at = at;
    return true;
  }
  std::uint64_t late_key(unsigned link) const { return std::uint64_t{unit_} << 24 | link; }
  // `foreign`: another module gives them.
  void return_credits(unsigned link, unsigned lane, int cells, Time at, unsigned stream, bool foreign);
  void collect(std::vector<PostedCredits>& posted, bool foreign = false);
  std::uint8_t number_of(const Clock& clock);
  void delay_by_faults(unsigned link, Hop hop);
  void observe(unsigned link, Hop hop, const Transmission& t);
  void update_hooked(unsigned link);

  sim::EventQueue* queue_;
  std::uint32_t unit_;
  std::uint32_t what_;
  unsigned lanes_;
  RetryTimes retry_;
  std::vector<Link> links_;
  std::vector<Lane> lane_;
  std::uint64_t packets_ = 0;
  unsigned awaiting_ = 0;  // lanes of all links that wait for credits
  sim::PerWorker<std::vector<PostedCredits>> posted_;
  bool holds_ = false;
  std::vector<Clock> clocks_;
  std::vector<Hooks> hooks_;  // empty until the first attaches
  struct Slowed {             // a link whose clock has changed: what it has sent by others
    unsigned link = 0;
    std::uint64_t flits = 0;
    Time busy;
  };
  std::vector<Slowed> slowed_;
};

}  // namespace cm384::ub
