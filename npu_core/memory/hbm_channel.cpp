#include "npu_core/memory/hbm_channel.h"

#include <algorithm>

namespace cm384::npu {

HbmTiming::HbmTiming(const hw::Hbm& p) {
  const Clock clock(p.clock);
  const auto cycles = [&](Time t) { return clock.ticks(t); };
  rcd_read = cycles(p.t_rcd_read);
  rcd_write = cycles(p.t_rcd_write);
  rp = cycles(p.t_rp);
  ras = cycles(p.t_ras);
  rc = cycles(p.t_rc);
  ccd_s = std::max<std::int64_t>(cycles(p.t_ccd_s), 1);
  ccd_l = std::max(cycles(p.t_ccd_l), ccd_s);
  rrd_s = cycles(p.t_rrd_s);
  rrd_l = std::max(cycles(p.t_rrd_l), rrd_s);
  faw = cycles(p.t_faw);
  wr = cycles(p.t_wr);
  wtr_s = cycles(p.t_wtr_s);
  wtr_l = std::max(cycles(p.t_wtr_l), wtr_s);
  rtp = cycles(p.t_rtp);
  read_latency = cycles(p.read_latency);
  write_latency = cycles(p.write_latency);
  refi = cycles(p.t_refi);
  all_bank = p.refresh == "all-bank";
  rfc = p.refresh == "off" ? 0 : cycles(all_bank ? p.t_rfc_all : p.t_rfc_bank);
  groups = static_cast<std::uint32_t>(p.bank_groups);
  banks = static_cast<std::uint32_t>(p.bank_groups * p.banks_per_group);
  train_banks = static_cast<std::uint32_t>(p.train_bank_groups);
  window = static_cast<std::uint32_t>(p.reorder_window);
}

std::int64_t HbmTiming::step(std::uint32_t banks_in_train) const {
  return std::max(ccd_s, (ccd_l + banks_in_train - 1) / banks_in_train);
}

HbmChannel::HbmChannel(const HbmTiming& t, std::uint32_t number)
    : banks_(t.banks),
      activates_(std::max(t.window, kLeastActivates), kLongAgo),
      activate_groups_(activates_.size()),
      gaps_(t.window) {
  group_read_.fill(kLongAgo);
  group_write_.fill(kLongAgo);
  for (std::uint32_t b = 0; b < t.banks; ++b) {
    Bank& bank = banks_[b];
    bank.activate = bank.precharge_ready = bank.activate_ready = kLongAgo;
    // Banks are refreshed in turn, those that a train uses together; channels are staggered by a prime share
    // of the interval so that they do not all refresh the same bank at once.
    const std::int64_t phase = t.all_bank ? 0 : t.refi * (b / t.train_banks * t.train_banks) / t.banks;
    bank.next_refresh = t.rfc == 0 ? INT64_MAX : t.refi + (phase + t.refi * (number % 61) / 61) % t.refi;
  }
}

// Does the bank's latest refresh due by `at`. It starts when due, or after the row's last work and its
// precharge.
void HbmChannel::refresh(const HbmTiming& t, Bank& bank, std::int64_t at) {
  bank.next_refresh += (at - bank.next_refresh) / t.refi * t.refi;
  std::int64_t start = bank.next_refresh;
  if (bank.row >= 0) start = std::max(start, bank.precharge_ready) + t.rp;
  const std::int64_t done = start + t.rfc;
  if (bank.row >= 0 || done > at) ++statistics_.refreshes_met;
  bank.activate_ready = std::max(bank.activate_ready, done);
  bank.row = bank.row_before = -1;
  bank.next_refresh += t.refi;
}

// Cycle from which on the banks alone would let the first column command go.
std::int64_t HbmChannel::row_ready(const HbmTiming& t, const Train& train, std::int64_t at,
                                   std::int64_t step) const {
  const std::int64_t rcd = train.write ? t.rcd_write : t.rcd_read;
  std::int64_t ready = at;
  for (std::uint32_t i = 0; i < train.banks; ++i) {
    const Bank& bank = banks_[train.bank + i];
    std::int64_t activate = bank.activate;
    if (bank.row != train.row) {
      activate = std::max(bank.activate_ready, at);
      if (bank.row >= 0) activate = std::max(activate, std::max(bank.precharge_ready, at) + t.rp);
    }
    ready = std::max(ready, activate + rcd - i * step);
  }
  return ready;
}

// Cycle from which on the buses let the train follow all trains before it.
std::int64_t HbmChannel::tail_bound(const HbmTiming& t, const Train& train, std::int64_t step) const {
  const std::int64_t write_to_read = t.write_latency + t.ccd_s;
  std::int64_t bound = train.write ? std::max(last_write_ + t.ccd_s, last_read_ + t.read_to_write())
                                   : std::max(last_read_ + t.ccd_s, last_write_ + write_to_read + t.wtr_s);
  for (std::uint32_t i = 0; i < train.banks; ++i) {
    const std::uint32_t group = (train.bank + i) % t.groups;
    const std::int64_t same = train.write ? group_write_[group] : group_read_[group];
    bound = std::max(bound, same + t.ccd_l - i * step);
    if (!train.write) bound = std::max(bound, group_write_[group] + write_to_read + t.wtr_l - i * step);
  }
  return bound;
}

// Where a train whose rows are ready at `ready` goes behind all others. With work queued, a train that waits
// for its bank leaves a gap of whole trains, which later arrivals fill; a gap of odd size would stay partly
// idle.
std::int64_t HbmChannel::after_tail(const HbmTiming& t, const Train& train, std::int64_t at,
                                    std::int64_t ready, std::int64_t step) const {
  const std::int64_t bound = tail_bound(t, train, step);
  if (ready <= bound) return bound;
  const std::int64_t backlog = t.rp + t.rcd_read;
  if (bound < at + backlog) return ready;
  const std::int64_t slot = (train.bursts - 1) * step + t.ccd_s;
  return bound + (ready - bound + slot - 1) / slot * slot;
}

// Distance that keeps two trains clear of each other. Those that use their bank groups in turn begin and end
// so that tCCD_S is enough.
std::int64_t HbmChannel::clearance(const HbmTiming& t, std::uint8_t one, std::uint8_t other) {
  const bool clear = one == kInTurn || other == kInTurn ? one == other : one != other;
  return clear && one != kUnknown && other != kUnknown ? t.ccd_s : t.ccd_l;
}

std::uint8_t HbmChannel::edge(const HbmTiming& t, const Train& train) {
  if (train.banks == 1) return static_cast<std::uint8_t>(train.bank % t.groups);
  return train.bursts % train.banks == 0 ? kInTurn : kUnknown;
}

// The gap in which the train can start first, or -1; `column` becomes where.
int HbmChannel::find_gap(const HbmTiming& t, const Train& train, std::int64_t ready, std::int64_t span,
                         std::int64_t& column) const {
  const std::uint8_t own = edge(t, train);
  int best = -1;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    const Gap& gap = gaps_[g];
    if (gap.write != train.write || ready + span >= gap.to || in_order_ - gap.before > t.window) continue;
    const std::int64_t start = std::max(gap.from + clearance(t, gap.edge_from, own), ready);
    if (start + span + clearance(t, own, gap.edge_to) > gap.to || (best >= 0 && start >= column)) continue;
    best = static_cast<int>(g);
    column = start;
  }
  return best;
}

// Keeps a gap in the place of one that is over by cycle `at`, or of the smallest.
void HbmChannel::record_gap(const Gap& gap, std::int64_t at) {
  if (gaps_.empty()) return;
  Gap* worst = gaps_.data();
  std::int64_t least = INT64_MAX;
  for (Gap& g : gaps_) {
    const std::int64_t left = in_order_ - g.before > gaps_.size() ? -1 : g.to - std::max(g.from, at);
    if (left < least) {
      least = left;
      worst = &g;
    }
    if (least <= 0) break;
  }
  if (gap.to - gap.from > least) *worst = gap;
}

void HbmChannel::finish(const HbmTiming& t, const Train& train, std::int64_t column, std::int64_t span,
                        Schedule& result) {
  ++(train.write ? statistics_.writes : statistics_.reads);
  statistics_.busy_cycles += train.bursts * t.ccd_s;
  result.column = column;
  result.data_end = column + span + (train.write ? t.write_latency : t.read_latency) + t.ccd_s;
}

void HbmChannel::fill_gap(const HbmTiming& t, const Train& train, int index, std::int64_t column,
                          std::int64_t span, std::int64_t at) {
  Gap before = gaps_[static_cast<std::size_t>(index)], after = before;
  ++statistics_.backfills;
  gaps_[static_cast<std::size_t>(index)] = {};
  before.to = column;
  after.from = column + span;
  before.edge_to = after.edge_from = edge(t, train);
  record_gap(before, at);
  record_gap(after, at);
}

// Places an ACT at or after `want` among those already placed, some of which may be later.
std::int64_t HbmChannel::place_activate(const HbmTiming& t, std::int64_t want, std::uint32_t group) {
  const auto placed = static_cast<std::uint32_t>(activates_.size());
  const auto spacing = [&](std::uint32_t i) { return activate_groups_[i] == group ? t.rrd_l : t.rrd_s; };
  if (want >= activates_[placed - 1]) {  // the common case: after all others
    std::int64_t last = std::max(want, activates_[placed - 4] + t.faw);
    for (std::uint32_t i = placed - 3; i < placed; ++i) last = std::max(last, activates_[i] + spacing(i));
    for (std::uint32_t i = 1; i < placed; ++i) {
      activates_[i - 1] = activates_[i];
      activate_groups_[i - 1] = activate_groups_[i];
    }
    activates_[placed - 1] = last;
    activate_groups_[placed - 1] = static_cast<std::uint8_t>(group);
    return last;
  }
  std::int64_t x = std::max(want, activates_[0]);
  std::uint32_t place = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t i = 0; i < placed; ++i) {
      if (x < activates_[i] + spacing(i) && x > activates_[i] - spacing(i)) {
        x = activates_[i] + spacing(i);
        moved = true;
      }
    }
    place = 0;
    while (place < placed && activates_[place] <= x) ++place;
    // Any five ACTs in a row span at least tFAW.
    if (place >= 4 && x < activates_[place - 4] + t.faw) {
      x = activates_[place - 4] + t.faw;
      moved = true;
    } else if (place < placed) {
      for (std::uint32_t before = 0; before < 4; ++before) {  // ACTs of the window that precede x
        const std::uint32_t last = place + 3 - before;
        if (last < place || last >= placed || before > place) continue;
        const std::int64_t first = before == 0 ? x : activates_[place - before];
        if (activates_[last] - first < t.faw) {
          x = activates_[place] + spacing(place);
          moved = true;
          break;
        }
      }
    }
  }
  // Keep the latest ones, sorted.
  for (std::uint32_t i = 1; i < place; ++i) {
    activates_[i - 1] = activates_[i];
    activate_groups_[i - 1] = activate_groups_[i];
  }
  if (place > 0) {
    activates_[place - 1] = x;
    activate_groups_[place - 1] = static_cast<std::uint8_t>(group);
  }
  return x;
}

// Activates the closed rows of a train that is to start at `column`; returns where it can start.
std::int64_t HbmChannel::open_rows(const HbmTiming& t, const Train& train, std::int64_t at,
                                   std::int64_t column, std::int64_t step, Schedule& result) {
  const std::int64_t rcd = train.write ? t.rcd_write : t.rcd_read;
  std::int64_t start = column;
  for (std::uint32_t i = 0; i < train.banks; ++i) {
    Bank& bank = banks_[train.bank + i];
    if (bank.row == train.row) {
      ++statistics_.row_hits;
      continue;
    }
    std::int64_t ready = std::max(bank.activate_ready, at);
    if (bank.row >= 0) {
      ready = std::max(ready, std::max(bank.precharge_ready, at) + t.rp);
      ++statistics_.row_conflicts;
    } else {
      ++statistics_.row_misses;
    }
    // A queued train's rows open no earlier than a row cycle ahead of need, so that ACTs keep the order of
    // trains.
    ready = std::max(ready, column - t.row_cycle());
    const std::int64_t activate = place_activate(t, ready, (train.bank + i) % t.groups);
    bank.row_before = bank.row;
    bank.opened = bank.activate;
    bank.closes = activate - t.rp;
    bank.row = train.row;
    bank.activate = activate;
    bank.activate_ready = activate + t.rc;
    bank.precharge_ready = activate + t.ras;
    start = std::max(start, activate + rcd - i * step);
    result.activate = std::max(result.activate, activate);
  }
  return start;
}

void HbmChannel::commit_columns(const HbmTiming& t, const Train& train, std::int64_t column,
                                std::int64_t step, bool in_gap, std::int64_t at) {
  const std::int64_t span = (train.bursts - 1) * step;
  if (!in_gap) {
    const std::uint8_t own = edge(t, train);
    const Gap gap{std::max(last_column_, at - t.ccd_l), column, train.write, last_edge_, own, in_order_++};
    if (train.write == last_was_write_ && gap.to - gap.from > t.ccd_l * 2) record_gap(gap, at);
    last_was_write_ = train.write;
    last_edge_ = own;
    last_column_ = column + span;
    (train.write ? last_write_ : last_read_) = last_column_;
  }
  for (std::uint32_t i = 0; i < train.banks && i < train.bursts; ++i) {
    Bank& bank = banks_[train.bank + i];
    const std::int64_t last = column + (train.bursts - 1 - i) / train.banks * train.banks * step + i * step;
    const std::int64_t ready = train.write ? last + t.write_latency + t.ccd_s + t.wr : last + t.rtp;
    bank.precharge_ready = std::max(bank.precharge_ready, ready);
    auto& group = (train.write ? group_write_ : group_read_)[(train.bank + i) % t.groups];
    group = std::max(group, last);
  }
}

// Whether the train's rows are all still open behind what has been scheduled since, and a gap of the bus has
// room for it before the first of them closes; the train then has it.
bool HbmChannel::hit_before_close(const HbmTiming& t, std::int64_t at, const Train& train, std::int64_t step,
                                  Schedule& result) {
  const std::int64_t span = (train.bursts - 1) * step;
  const std::int64_t rcd = train.write ? t.rcd_write : t.rcd_read;
  std::int64_t ready = at, last = INT64_MAX;
  for (std::uint32_t i = 0; i < train.banks; ++i) {
    const Bank& bank = banks_[train.bank + i];
    if (bank.row_before != train.row || bank.row == train.row) return false;
    last = std::min(last, bank.closes - (train.write ? t.write_latency + t.ccd_s + t.wr : t.rtp));
    ready = std::max(ready, bank.opened + rcd - i * step);
  }
  std::int64_t column = 0;
  if (ready + span > last) return false;
  const int gap = find_gap(t, train, ready, span, column);
  if (gap < 0 || column + span > last) return false;
  statistics_.row_hits += train.banks;
  fill_gap(t, train, gap, column, span, at);
  finish(t, train, column, span, result);
  return true;
}

HbmChannel::Schedule HbmChannel::schedule(const HbmTiming& t, std::int64_t at, const Train& train) {
  const std::int64_t step = t.step(train.banks);
  const std::int64_t span = (train.bursts - 1) * step;
  Schedule result;
  std::int64_t column = 0;
  int gap = -1;
  for (std::uint32_t i = 0; i < train.banks; ++i) {
    Bank& bank = banks_[train.bank + i];
    if (at >= bank.next_refresh) refresh(t, bank, at);
  }
  if (hit_before_close(t, at, train, step, result)) return result;
  // A refresh that falls due before the train's turn comes first and moves its turn; twice at most, since a
  // turn is far shorter than the refresh interval.
  for (int pass = 0; pass < 3; ++pass) {
    const std::int64_t ready = row_ready(t, train, at, step);
    gap = find_gap(t, train, ready, span, column);
    if (gap < 0) column = after_tail(t, train, at, ready, step);
    bool refreshed = false;
    for (std::uint32_t i = 0; i < train.banks; ++i) {
      Bank& bank = banks_[train.bank + i];
      if (column - t.row_cycle() >= bank.next_refresh) {
        refresh(t, bank, column - t.row_cycle());
        refreshed = true;
      }
    }
    if (!refreshed) break;
  }
  const std::int64_t wanted = column;
  column = open_rows(t, train, at, wanted, step, result);
  if (column != wanted) {
    // The ACTs came later than was asked for: another gap may be next, or the tail.
    const std::int64_t ready = column;
    gap = find_gap(t, train, ready, span, column);
    if (gap < 0) column = std::max(ready, tail_bound(t, train, step));
  }
  if (gap >= 0) {
    fill_gap(t, train, gap, column, span, at);
  }
  commit_columns(t, train, column, step, gap >= 0, at);
  finish(t, train, column, span, result);
  return result;
}

}  // namespace cm384::npu
