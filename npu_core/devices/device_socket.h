// What a unit of a die other than a core (SDMA engine, task scheduler) sees of it: memory, the way out, a
// queue for its events. Implemented by npu_core/die; tests implement it with a stand-in.
#pragma once

#include <cstdint>

#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

namespace cm384::npu {

// The stages of an SDMA copy before its first request.
struct CopyStart {
  static constexpr std::uint32_t kNoStream = 0xffffffff;
  std::uint16_t queue = 0, channel = 0;
  std::uint32_t number = 0;  // the submitter's; of the scheduler's copies the stream
  Time rung, taken;          // the queue's doorbell came; a channel took the descriptor
};

class DeviceSocket {
 public:
  virtual ~DeviceSocket() = default;

  // Time of the event the die is handling.
  virtual Time now() const = 0;
  // Asks for an event of this unit at `at` (not before now()); it comes back with the same `what`.
  virtual void schedule(Time at, std::uint32_t what, std::uint64_t argument) = 0;

  // True where the global address is in the die's own memory; contains() says whether there is memory.
  virtual bool is_local(std::uint64_t address) const = 0;
  virtual bool contains(std::uint64_t offset, std::uint64_t bytes) const = 0;
  // Read or write of the die's own memory, at most 512 B that do not cross a 512 B boundary: performed now;
  // returns when the data or the acknowledgement is back. Requires contains(). `from` may be null when all
  // blocks are tagged.
  virtual Time read(std::uint64_t offset, std::byte* into, std::uint32_t bytes, sim::TagMask& tags,
                    bool allocate) = 0;
  virtual Time write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes, sim::TagMask tags,
                     sim::TransactionId transaction) = 0;
  // Atomic add of one s32.
  virtual Time add(std::uint64_t offset, std::uint32_t value) = 0;

  // Sends a request to memory outside the die at now(); the completion comes back with the request's tag.
  virtual void submit(sim::Request request) = 0;
  virtual sim::PayloadPool& payloads() = 0;

  // The first request of a copy leaves; the copy has ended.
  virtual sim::TransactionId new_transaction(std::uint64_t address, std::uint64_t bytes,
                                             sim::Operation operation, const CopyStart& copy) = 0;
  virtual void transaction_completed(sim::TransactionId transaction) = 0;
  // For hang detection: the unit has made progress.
  virtual void progressed() = 0;
  // The system counter that programs read.
  virtual std::uint64_t sys_count() const = 0;
};

}  // namespace cm384::npu
