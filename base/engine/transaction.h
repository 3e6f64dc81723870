// What crosses a die's socket: the seam between npu_core (which knows no network) and ub_fabric (which knows
// no core).
#pragma once

#include <cstdint>

#include "base/engine/payload.h"
#include "base/text/units.h"

namespace cm384::sim {

// Unique in a run: initiating unit (die or socket number) in the top 16 bits, sequence below. 0 is "none".
using TransactionId = std::uint64_t;

// Atomics: enum cm384_atomic's modes (firmware/abi/isa.h) follow each other from atomic_add_s32 on.
enum class Operation : std::uint8_t { read, write, atomic_add_s32, atomic_add_f32 };
// What traces tell apart: an atomic of another type or kind counts as atomic_add_f32.
constexpr Operation kind_of(Operation operation) {
  return operation > Operation::atomic_add_f32 ? Operation::atomic_add_f32 : operation;
}

enum class Outcome : std::uint8_t { done, address_fault };

// One request of at most 512 B that does not cross a 512 B boundary, leaving a die (or entering it) at time
// `at`.
struct Request {
  std::uint64_t address = 0;  // global address (firmware/abi/memory_map.h)
  Time at;
  TransactionId transaction = 0;  // the instruction it belongs to
  std::uint32_t bytes = 0;        // 1..512
  std::uint32_t tag = 0;          // the initiator's own; comes back with the completion
  Operation operation = Operation::read;
  std::uint8_t lane = 0;   // virtual lane
  std::uint16_t core = 0;  // initiating core of the die: bounds of outstanding requests are kept per core
  Payload payload;         // write and atomics; moves to the callee
};

struct Completion {
  std::uint32_t tag = 0;
  std::uint16_t core = 0;
  Outcome outcome = Outcome::done;
  std::uint32_t bytes = 0;
  Payload payload;  // read data; the callee releases it
};

// The die's way out. The caller calls at event time request.at; the completion comes later, at an event of
// the die.
class RemotePort {
 public:
  virtual void submit(const Request& request) = 0;

 protected:
  ~RemotePort() = default;
};

// The die as initiator: receives completions at the time they reach the die's network.
class RemoteClient {
 public:
  virtual void completed(const Completion& completion, Time at) = 0;
  // One is to follow soon: the place to ask the host's cache for what it touches.
  virtual void expect_completion(std::uint16_t core, std::uint32_t tag) const { (void)core, (void)tag; }

 protected:
  ~RemoteClient() = default;
};

// The die (or CPU socket) as target of requests that arrive from outside.
class RemoteTarget {
 public:
  // Performs the request at request.at (address already made local to the target: an offset in its memory).
  // Fills request.payload for reads and atomics (old value), consumes it for writes. Returns when its answer
  // may leave; sets `outcome`.
  virtual Time access(Request& request, Outcome& outcome) = 0;
  // One to this local address is to follow soon, as above.
  virtual void expect_access(std::uint64_t offset) const { (void)offset; }

 protected:
  ~RemoteTarget() = default;
};

}  // namespace cm384::sim
