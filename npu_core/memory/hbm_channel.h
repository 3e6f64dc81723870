// One pseudo-channel of HBM: command and data bus, banks, bank groups, rows and refresh, as time stamps in
// cycles of the command clock.
//
// The unit of work is a train: bursts of one row address, one after another, that alternate over a few banks
// of different bank groups so that they follow each other by tCCD_S. One burst of one bank is a train as
// well, which is how the timing tests drive it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/parameters/memory.h"

namespace cm384::npu {

// The timings of hw::Hbm in whole cycles of its clock.
struct HbmTiming {
  explicit HbmTiming(const hw::Hbm& parameters);

  std::int64_t rcd_read, rcd_write, rp, ras, rc, ccd_s, ccd_l, rrd_s, rrd_l, faw, wr, wtr_s, wtr_l, rtp;
  std::int64_t read_latency, write_latency;
  std::int64_t refi, rfc;  // rfc is 0 when there is no refresh
  bool all_bank;           // refresh of all banks at once
  std::uint32_t groups, banks;
  std::uint32_t train_banks;
  std::uint32_t window;  // trains that a later one may go before

  // Cycles from one burst of a train to the next.
  std::int64_t step(std::uint32_t banks_in_train) const;
  // Cycles from a row's ACT to the next row's.
  std::int64_t row_cycle() const { return rc > ras + rp ? rc : ras + rp; }
  // RD to WR: the data bus changes hands with two idle cycles.
  std::int64_t read_to_write() const { return read_latency + ccd_s + 2 - write_latency; }
};

struct HbmChannelStatistics {
  std::uint64_t reads = 0, writes = 0;                            // trains
  std::uint64_t row_hits = 0, row_misses = 0, row_conflicts = 0;  // a bank of a train each
  std::uint64_t refreshes_met = 0;  // refreshes that closed a row or delayed a train
  std::uint64_t backfills = 0;      // trains that went before an earlier one which waited for its bank
  std::int64_t busy_cycles = 0;     // of the data bus
};

class HbmChannel {
 public:
  struct Train {
    std::uint32_t bank = 0;   // first bank
    std::uint32_t banks = 1;  // 1, 2 or 4 consecutive ones
    std::uint32_t row = 0;
    std::uint32_t bursts = 1;
    bool write = false;
  };
  struct Schedule {
    std::int64_t activate = -1;  // cycle of the last ACT; -1 when all rows were open
    std::int64_t column = 0;     // cycle of the first RD or WR
    std::int64_t data_end = 0;   // cycle after the last data
  };

  // `number` staggers the refresh of the channels of a die.
  HbmChannel(const HbmTiming& timing, std::uint32_t number);

  // Reserves the train's commands at or after cycle `at`. Calls come in about the order of `at`; a train goes
  // before at most `window` earlier ones, into bus time that they leave idle: its rows may be ready first, or
  // still be open until an earlier train closes them.
  Schedule schedule(const HbmTiming& timing, std::int64_t at, const Train& train);

  // Cycle of the last column command of the last train in order.
  std::int64_t last_column() const { return last_column_; }
  const HbmChannelStatistics& statistics() const { return statistics_; }

 private:
  struct Bank {
    std::int64_t activate = 0;  // of the open row
    std::int64_t precharge_ready = 0;
    std::int64_t activate_ready = 0;
    std::int64_t next_refresh = 0;
    std::int64_t row = -1;  // -1 closed
    // The row that was open before, until it is closed for the present one.
    std::int64_t row_before = -1;
    std::int64_t opened = 0, closes = 0;
  };
  // Idle time between the column commands of two trains of one direction.
  struct Gap {
    std::int64_t from = 0, to = 0;  // last column command before, first after
    bool write = false;
    std::uint8_t edge_from = 0, edge_to = 0;  // of the trains before and after it
    std::uint64_t before = 0;                 // the train after it, counted
  };
  // How a train begins and ends: a bank group alone, its bank groups in turn, or not known.
  static constexpr std::uint8_t kInTurn = 0xfe, kUnknown = 0xff;
  static constexpr std::uint32_t kLeastActivates = 8;
  static constexpr std::int64_t kLongAgo = -(std::int64_t{1} << 40);

  void refresh(const HbmTiming& timing, Bank& bank, std::int64_t at);
  std::int64_t row_ready(const HbmTiming& timing, const Train& train, std::int64_t at,
                         std::int64_t step) const;
  std::int64_t tail_bound(const HbmTiming& timing, const Train& train, std::int64_t step) const;
  std::int64_t after_tail(const HbmTiming& timing, const Train& train, std::int64_t at, std::int64_t ready,
                          std::int64_t step) const;
  static std::uint8_t edge(const HbmTiming& timing, const Train& train);
  static std::int64_t clearance(const HbmTiming& timing, std::uint8_t one, std::uint8_t other);
  int find_gap(const HbmTiming& timing, const Train& train, std::int64_t ready, std::int64_t span,
               std::int64_t& column) const;
  void fill_gap(const HbmTiming& timing, const Train& train, int index, std::int64_t column,
                std::int64_t span, std::int64_t at);
  void record_gap(const Gap& gap, std::int64_t at);
  std::int64_t place_activate(const HbmTiming& timing, std::int64_t want, std::uint32_t group);
  std::int64_t open_rows(const HbmTiming& timing, const Train& train, std::int64_t at, std::int64_t column,
                         std::int64_t step, Schedule& result);
  void finish(const HbmTiming& timing, const Train& train, std::int64_t column, std::int64_t span,
              Schedule& result);
  bool hit_before_close(const HbmTiming& timing, std::int64_t at, const Train& train, std::int64_t step,
                        Schedule& result);
  void commit_columns(const HbmTiming& timing, const Train& train, std::int64_t column, std::int64_t step,
                      bool in_gap, std::int64_t at);

  std::vector<Bank> banks_;
  std::int64_t last_column_ = kLongAgo;
  std::int64_t last_read_ = kLongAgo, last_write_ = kLongAgo;
  bool last_was_write_ = false;
  std::uint8_t last_edge_ = kUnknown;
  std::array<std::int64_t, 8> group_read_{}, group_write_{};  // last RD, WR of a bank group
  std::vector<std::int64_t> activates_;                       // the latest ACTs, sorted
  std::vector<std::uint8_t> activate_groups_;
  std::vector<Gap> gaps_;
  std::uint64_t in_order_ = 0;  // trains placed behind all others
  HbmChannelStatistics statistics_;
};

}  // namespace cm384::npu
