// A die's memory as its cores, its devices and other dies reach it: the bytes, the timing of accesses,
// polling watches, and the reserved regions.
#pragma once

#include <cstdint>

#include "base/engine/statistics.h"
#include "base/engine/transaction.h"
#include "firmware/abi/memory_map.h"
#include "hw/parameters/memory.h"
#include "npu_core/core_socket.h"
#include "npu_core/die/watch_list.h"
#include "npu_core/memory/backing_store.h"
#include "npu_core/memory/die_memory.h"
#include "npu_core/scalar/environment.h"

namespace cm384::npu {

class Die;

class MemorySystem {
 public:
  MemorySystem(Die& die, const hw::Memory& parameters, int vector_cores);

  // The bytes, without timing; the timing, without bytes.
  BackingStore& store() { return store_; }
  const BackingStore& store() const { return store_; }
  DieMemory& timing() { return timing_; }
  const DieMemory& timing() const { return timing_; }

  // Whether the global address is in this memory.
  bool is_local(std::uint64_t address) const;
  // Bytes less what is set aside for the cores' private memories and the doorbells and queues of the die's
  // own.
  std::uint64_t allocatable() const;
  // Offset in this memory of an address of a core's private memory; of the first byte of it.
  std::uint64_t private_offset(std::uint16_t core, std::uint64_t address, bool instruction) const;
  std::uint64_t private_begin(std::uint16_t core) const {
    return private_offset(core, CM384_PRIVATE_BASE, false);
  }

  // Accesses of cores, as CoreSocket describes them.
  Time access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags);
  Time atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation);
  Time private_access(const LocalAccess& access);
  // Writes and AMOs of scalar units: when they act in memory; then what they do there. Of payload an AMO
  // leaves the bytes as they are. Returns what was there before.
  Time scalar_write(const LocalAccess& access, bool atomic);
  void write(const LocalAccess& access, const std::byte* bytes, sim::TagMask tags);
  std::uint64_t atomic_update(const LocalAccess& access, const AtomicUpdate& update, bool& payload);
  void expect(std::uint64_t offset) const;
  // From now on so many cores may watch a range each.
  void set_cores(std::size_t count) { watches_.resize(count); }
  void watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) {
    watches_.set(core, offset, bytes);
  }

  // Serves a request from outside, through a port of the on-die network; returns when its response leaves.
  Time serve(sim::Request& request, sim::Outcome& outcome);
  // A range was written, at the event time: wakes the cores that poll it.
  void written(std::uint64_t offset, std::uint64_t bytes);
  void written_by_device(std::uint64_t offset, std::uint64_t bytes, sim::TransactionId transaction);

 private:
  // An access of a core to memory, reported to the tracer.
  Time traced(const LocalAccess& access, bool atomic);
  Time timed(const LocalAccess& access, bool atomic);
  void written_by_core(const LocalAccess& access);
  void check(const LocalAccess& access) const;
  int external_port(std::uint64_t offset) const;

  Die& die_;
  const std::uint64_t number_;  // of the die
  const int vector_cores_, external_ports_;
  BackingStore store_;
  DieMemory timing_;
  WatchList watches_;
};

}  // namespace cm384::npu
