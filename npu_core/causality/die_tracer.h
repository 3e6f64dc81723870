// Writes what happens in one die into a trace log, which TraceLogReader reads.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/engine/transaction.h"
#include "npu_core/causality/trace_log.h"
#include "npu_core/core_socket.h"
#include "npu_core/devices/device_socket.h"
#include "npu_core/die/launch.h"
#include "npu_core/pipes/pipe_observer.h"

namespace cm384::npu {

class CoreTracer final : public PipeObserver {
 public:
  CoreTracer(TraceLog& log, int die, std::uint16_t core, bool requests)
      : log_(log), die_(static_cast<std::uint16_t>(die)), core_(core), requests_(requests) {}

  void scalar_parked(std::int64_t cycle) override { append(TraceEntry::parked, 0, cycle); }
  void pushed(int pipe, std::int64_t from, std::int64_t place, std::int64_t arrival) override {
    append(TraceEntry::pushed, pipe, from, place, arrival);
  }
  void left(const PipeStep& step) override {
    append(TraceEntry::left, step.pipe | static_cast<int>(step.kind) << 3 | static_cast<int>(step.flag) << 6,
           step.own, step.start, step.end, step.left);
  }
  void issued(int pipe, std::int64_t cycle) override { append(TraceEntry::issued, pipe, cycle); }
  void flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) override {
    append(TraceEntry::flag_set, pipe | static_cast<int>(flag) << 3, cycle);
  }
  void cross_core_set(int pipe, std::uint32_t mode, std::uint32_t flag, std::int64_t cycle) override {
    append(TraceEntry::cross_set, pipe | static_cast<int>(mode) << 3 | static_cast<int>(flag) << 6, cycle);
  }
  void scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) override {
    append(TraceEntry::waited_flag, static_cast<int>(flag), from, to);
  }
  void scalar_waited_for_cross_core(std::uint32_t flag, std::int64_t from, std::int64_t to) override {
    append(TraceEntry::waited_cross, static_cast<int>(flag), from, to);
  }
  void scalar_waited_for_all(std::int64_t from, std::int64_t to) override {
    append(TraceEntry::waited_all, 0, from, to);
  }
  void scalar_waited_for_pipe(int pipe, std::int64_t from, std::int64_t to) override {
    append(TraceEntry::waited_pipe, pipe, from, to);
  }
  void scalar_polled(std::int64_t from, std::int64_t to) override { append(TraceEntry::polled, 0, from, to); }
  void poll_turn(bool first, std::int64_t cycle) override {
    if (requests_) append(TraceEntry::poll_turn, first ? 1 : 0, cycle);
  }

 private:
  template <class... Words>
  void append(TraceEntry::Kind kind, int small, Words... words) {
    log_.append({kind, 0, die_, core_, static_cast<std::uint16_t>(small)}, words...);
  }

  TraceLog& log_;
  std::uint16_t die_, core_;
  bool requests_;
};

class DieTracer {
 public:
  // `last_id` counts the die's transactions: barriers, fills and launches get numbers among them. `requests`:
  // every request is written down as well.
  DieTracer(TraceLog& log, int die, sim::TransactionId& last_id, bool requests)
      : log_(log), die_(static_cast<std::uint16_t>(die)), last_id_(last_id), requests_(requests) {}

  // The die's next cores are of this kind; returns their observers, which stay where they are.
  std::vector<CoreTracer*> add_cores(std::size_t count, bool cube);

  // A core starts block `index` of a launch; the block's last instruction has retired at `at`.
  void block_begun(std::uint32_t launch, std::uint32_t index, std::uint16_t core, Time at) {
    append(TraceEntry::block_begun, core, 0, new_id(), launch, index, at.ps);
  }
  void block_ended(std::uint16_t core, Time at) { append(TraceEntry::block_ended, core, 0, new_id(), at.ps); }
  // What arrives for the die's streams from outside, and the calls of its host thread.
  void host(HostPoint::Kind kind, Time start, Time end, std::span<const std::uint64_t> words = {});
  // The first request of a core's transaction leaves at `now`. `local`: to the die's own memory.
  void begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start, bool local, Time now) {
    append(TraceEntry::begun, core, small_of(start, local), id, start.address, start.bytes,
           std::uint64_t{start.burst_bytes} << 32 | start.bursts, start.stride, now.ps);
  }
  void completed(std::uint16_t core, sim::TransactionId id, Time at) {
    append(TraceEntry::completed, core, 0, id, at.ps);
  }
  // A scalar unit fills or writes back a cache line, from now to `end`.
  void filled(const LocalAccess& access, bool instruction, std::int64_t cycle, Time end) {
    append(TraceEntry::filled, access.core, (access.write ? 1 : 0) | (instruction ? 2 : 0), new_id(),
           access.offset, access.bytes, access.at.ps, cycle, end.ps);
  }
  // Only where requests() is true: a request of a core or of the SDMA engine leaves the die; its response
  // returns; a request from outside reaches memory, and its response may leave at `ready`; a core's request
  // to its own die is answered at `done`.
  bool requests() const { return requests_; }
  void submitted(const sim::Request& r) {
    if (requests_)
      append(TraceEntry::submitted, r.core, static_cast<int>(kind_of(r.operation)), r.tag, r.address, r.bytes,
             r.at.ps);
  }
  void answered(const sim::Completion& c, Time at) {
    if (requests_) append(TraceEntry::answered, c.core, 0, c.tag, at.ps);
  }
  void came(const sim::Request& r) {
    if (requests_)
      append(TraceEntry::came, r.core, static_cast<int>(kind_of(r.operation)), r.transaction, r.tag, r.bytes,
             r.at.ps);
  }
  void served(Time ready) {
    if (requests_) append(TraceEntry::served, 0, 0, ready.ps);
  }
  void local(const LocalAccess& a, bool missed, Time done) {
    append(TraceEntry::local, a.core, (a.write ? 1 : 0) | (missed ? 2 : 0), a.offset, a.bytes, a.at.ps,
           done.ps);
  }
  // A request from outside has written [offset, offset + bytes) of the die's memory.
  void arrived(sim::TransactionId id, std::uint64_t offset, std::uint64_t bytes, Time at) {
    append(TraceEntry::arrived, 0, 0, id, offset, bytes, at.ps);
  }
  // A core, or the SDMA engine, has read from or written to the die's own memory.
  void read(std::uint16_t core, std::uint64_t offset) { append(TraceEntry::read, core, 0, offset); }
  void written(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes, Time at) {
    append(TraceEntry::written, core, 0, offset, bytes, at.ps);
  }
  void written_by_device(std::uint64_t offset, sim::TransactionId transaction, Time at) {
    append(TraceEntry::written_by_device, 0, 0, offset, transaction, at.ps);
  }
  // SDMA and streams; see DieCausality.
  void copy_begun(sim::TransactionId id, const TransactionStart& start, const CopyStart& copy, bool local,
                  Time now) {
    append(TraceEntry::copy_begun, copy.queue, small_of(start, local), id, start.address, start.bytes,
           std::uint64_t{copy.channel} << 32 | copy.number, copy.rung.ps, copy.taken.ps, now.ps);
  }
  void copy_ended(std::uint16_t queue, std::uint16_t channel, Time ended, Time free) {
    append(TraceEntry::copy_ended, queue, channel, ended.ps, free.ps);
  }
  void doorbell_rung(std::uint16_t queue) { append(TraceEntry::rung, queue, 0); }
  void task_begun(std::uint32_t stream, std::uint32_t type, std::uint32_t launch, Time turn) {
    append(TraceEntry::task_begun, 0, static_cast<int>(type), stream, launch, turn.ps);
  }
  void task_ended(std::uint32_t stream, Time at) { append(TraceEntry::task_ended, 0, 0, stream, at.ps); }
  // The last write to the die's memory ends the polling of a core.
  void poll_woken(std::uint16_t core) { append(TraceEntry::poll_woken, core, 0); }
  // Cross-core flags: a core has set one of all blocks of its kind; all have, and it reaches them at `at`;
  // one within its group that reaches cores `to`; one for its group's cube core; which it reaches.
  void barrier_set(std::uint16_t core, std::uint32_t flag) {
    append(TraceEntry::barrier_set, core, static_cast<int>(flag));
  }
  void barrier(std::uint32_t flag, bool cube, const std::vector<std::uint16_t>& cores, Time at);
  void group_set(std::uint16_t core, std::uint32_t flag, std::uint16_t first, std::size_t count, Time at) {
    append(TraceEntry::group_set, core, static_cast<int>(flag), first, count, at.ps);
  }
  void for_cube(std::uint16_t core, std::uint16_t cube, std::uint32_t flag) {
    append(TraceEntry::for_cube, core, static_cast<int>(flag), cube);
  }
  void reaches_cube(std::uint16_t cube, std::uint32_t flag, Time at) {
    append(TraceEntry::reaches_cube, cube, static_cast<int>(flag), at.ps);
  }

 private:
  template <class... Words>
  void append(TraceEntry::Kind kind, std::uint16_t core, int small, Words... words) {
    log_.append({kind, 0, die_, core, static_cast<std::uint16_t>(small)}, words...);
  }
  static int small_of(const TransactionStart& start, bool local) {
    return static_cast<int>(kind_of(start.operation)) | (start.allocate ? 4 : 0) | (local ? 8 : 0) |
           start.engine << 4;
  }
  sim::TransactionId new_id() { return (std::uint64_t{die_} + 1) << 48 | ++last_id_; }

  TraceLog& log_;
  std::uint16_t die_;
  sim::TransactionId& last_id_;
  bool requests_;
  std::deque<CoreTracer> cores_;
};

}  // namespace cm384::npu
