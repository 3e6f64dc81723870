// What a scalar unit sees of its surroundings. Only slow paths come here: pipe instructions, host calls,
// cache misses, UBuffer accesses, custom CSRs. Implemented by the core's glue in npu_core/die; tests use a
// stand-in.
//
// Cycles are core cycles since the start of the run, in the core's own local time, which may be ahead of the
// die's event queue. A callee that needs the event queue to catch up first answers IssueAnswer::park();
// ScalarCore::run() then returns Stop::parked and, after ScalarCore::resume(cycle), makes the same call again
// with the same arguments and the cycle at which it was made first (or the resume cycle, if that is later).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/engine/payload.h"
#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::npu {

enum class FillKind : std::uint8_t {
  instruction,  // instruction cache miss
  load,         // data cache miss of a load or an atomic
  store,        // data cache miss of a store (write allocate)
  write_back    // a dirty line leaves the data cache: eviction or clean (CM384_DCCI)
};

// What an AMO makes of a word or double word in memory.
struct AtomicUpdate {
  std::uint32_t function = 0;  // bits 31..27 of its encoding
  std::uint32_t bytes = 4;     // 4 or 8
  std::uint64_t operand = 0;
  bool payload = false;  // of the operand: what is written is payload

  std::uint64_t operator()(std::uint64_t old) const;
};

class ScalarEnvironment {
 public:
  // A custom-1 instruction other than CM384_DCCI, which the scalar unit does itself. The next instruction
  // issues at release_cycle, but not before cycle + 1.
  virtual IssueAnswer pipe(const PipeInstruction& instruction, std::int64_t cycle) = 0;

  // A custom-0 instruction (cm384_host_call). `result` goes to rd. CM384_HOST_EXIT ends the core
  // (Stop::ended) when it is not parked. CM384_HOST_ABORT should throw MachineError.
  virtual IssueAnswer host_call(std::uint32_t number, std::uint64_t a, std::uint64_t b, std::int64_t cycle,
                                std::uint64_t& result) = 0;

  // A cache line (`bytes` long, aligned) is filled or written back; release_cycle is when the unit goes on:
  // a fill blocks it until its data is there.
  // Private addresses: `line` is null, only time passes. GM addresses: load and store fill `line` and set
  // `tags` (bit k: bytes [32 k, 32 k + 32) are payload; their bytes are not used); write_back takes both.
  // The transfer takes place in the call that is not parked. Throws MachineError where there is no memory.
  virtual IssueAnswer fill(std::uint64_t address, FillKind kind, std::int64_t cycle, std::byte* line,
                           std::uint32_t bytes, sim::TagMask& tags) = 0;

  // Performs `update` on aligned global memory in one moment, at the memory: `old` becomes what was there,
  // and `payload` whether that was payload, which then stays. The unit goes on at release_cycle, when the old
  // value is there.
  virtual IssueAnswer atomic(std::uint64_t address, const AtomicUpdate& update, std::int64_t cycle,
                             std::uint64_t& old, bool& payload) = 0;

  // Before a load or store in the UBuffer window by a program whose rules order them (npu::KernelRules): the
  // unit makes its access at release_cycle.
  virtual IssueAnswer ubuffer_order(std::uint32_t offset, std::uint32_t bytes, bool write,
                                    std::int64_t cycle) {
    (void)offset, (void)bytes, (void)write;
    return IssueAnswer::at(cycle);
  }

  // These two must not compute in floating point: the program's accrued flags are the host's meanwhile.
  // Scalar loads and stores in the UBuffer window; [offset, offset + bytes) lies inside, bytes is 1, 2, 4, 8.
  // The time they take is a parameter of the scalar core. A load returns true when any byte is payload (the
  // scalar unit then uses stand-in bytes); a store with payload = true makes its blocks payload blocks.
  virtual bool ubuffer_load(std::uint32_t offset, std::uint32_t bytes, std::int64_t cycle, std::byte* to) = 0;
  virtual void ubuffer_store(std::uint32_t offset, std::uint32_t bytes, std::int64_t cycle,
                             const std::byte* from, bool payload) = 0;

  // The custom CSRs of firmware/abi/isa.h, except CM384_CSR_CYCLE, which is the core's own local time. Also
  // asked for CM384_CSR_SYS_COUNT when the program reads `time`.
  virtual std::uint64_t csr(std::uint32_t number, std::int64_t cycle) = 0;

  // The program writes to a page of its private memory for the first time, which counts as progress: it can
  // happen only so often.
  virtual void page_allocated() {}

  // For a debugger: global memory as it is now, without time, one byte of it. Payload reads as stand-in
  // bytes. Returns false where there is no memory.
  virtual bool peek(std::uint64_t address, std::byte& to) const {
    (void)address, (void)to;
    return false;
  }
  virtual bool poke(std::uint64_t address, std::byte from) {
    (void)address, (void)from;
    return false;
  }

 protected:
  ~ScalarEnvironment() = default;
};

}  // namespace cm384::npu
