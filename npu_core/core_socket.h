// What a core sees of its die. Implemented by npu_core/die; tests implement it with a stand-in.
#pragma once

#include <cstdint>

#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

namespace cm384::npu {

// A request of a core to its own die's memory: at most 512 B, not crossing a 512 B boundary.
struct LocalAccess {
  std::uint64_t offset = 0;  // in the die's memory
  std::uint32_t bytes = 0;
  std::uint16_t core = 0;
  bool write = false;
  bool allocate = true;  // in L2
  Time at;               // leaves the core; the socket is called at this event time
};

// What a trace records of a transaction (one MTE instruction) when its first request leaves.
struct TransactionStart {
  std::uint64_t address = 0;  // global, of the first request
  std::uint64_t bytes = 0;    // of the whole instruction
  sim::Operation operation = sim::Operation::read;
  std::uint32_t burst_bytes = 0, bursts = 1;
  std::int64_t stride = 0;  // from burst to burst
  bool allocate = true;
  sim::TransactionId replayed = 0;  // its id, where a trace gives it
  std::uint8_t engine = 0;          // of the core that moves it, by the number of its events
};

// What a core asks of its die. Events that it schedules come back to it with the same `what`.
class CoreSocket {
 public:
  virtual ~CoreSocket() = default;

  // Time of the event the die is handling. A core may have run ahead of it in local time.
  virtual Time now() const = 0;
  // Asks for an event of this core at `at` (not before now()).
  virtual void schedule(std::uint16_t core, Time at, std::uint32_t what, std::uint64_t argument) = 0;

  // True where the global address is in the die's own memory.
  virtual bool is_local(std::uint64_t address) const = 0;
  // Read or write of the die's own memory: performs it on the backing store now and returns when the data
  // (read) or the acknowledgement (write) reaches the core. `bytes`: read data goes there, write data comes
  // from there. Returns tags of read blocks through `tags`; takes tags of written blocks from it. Throws
  // MachineError outside memory.
  virtual Time access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) = 0;
  // A hint for the host's cache: an access to this local address follows soon.
  virtual void expect(std::uint64_t offset) const { (void)offset; }

  // For hang detection: the core has made progress (began something that is no repetition).
  virtual void progressed() {}
  // Atomic add on the die's own memory, elements of 4 B, otherwise as write.
  virtual Time atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation) = 0;

  // Sends a request to memory outside the die; the completion comes back through the core's completed().
  virtual void submit(const sim::Request& request) = 0;
  virtual sim::PayloadPool& payloads() = 0;
  // The id of a new transaction: one for each MTE instruction, at its first request.
  virtual sim::TransactionId new_transaction(std::uint16_t core, const TransactionStart& start) = 0;
  // All requests of the transaction are complete at `at`, which may lie ahead of now().
  virtual void transaction_completed(std::uint16_t core, sim::TransactionId transaction, Time at) = 0;

  // The scalar unit of the core may run again from the given core cycle on.
  virtual void wake_scalar(std::uint16_t core, std::int64_t cycle) = 0;

  // Cross-core flags, called at the event time at which the set fires. See CM384_CROSS_CORE_SET.
  virtual void cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) = 0;

  // Poll elision: watches [offset, offset + bytes) of the die's memory for this core from now on (one range a
  // core; 0 bytes ends it). The die calls the core's watched_write(time) at each write that touches it.
  virtual void watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) = 0;
};

}  // namespace cm384::npu
