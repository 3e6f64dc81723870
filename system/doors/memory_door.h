// A foreign memory in the place of a die's HBM, behind its L2: its times are the model's, the
// bytes stay with the die.
//
// L2 asks while the die runs ahead of SystemC's time, so the model is called by b_transport with how far
// ahead in `delay`, adds its latency, and must not wait. Requests come about in the order of now + delay, at
// most 512 B each, within a line. A write's answer is when the memory took it. Writes carry the bytes that
// the die's store holds then (0x3c for tensor payload in mode `control`); what a read brings is not looked
// at.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <string>
#include <systemc>

#include "npu_core/memory/memory_behind_l2.h"
#include "system/doors/transaction_pool.h"
#include "system/machine/supernode.h"

namespace cm384::doors {

struct MemoryOptions {
  // An answer later than so long after its request ends the run; never(): any is taken.
  Time latest = Time::never();
};

class MemoryDoor final : public sc_core::sc_module, private npu::MemoryBehindL2 {
 public:
  // Binds to the user's memory; offsets in the die's memory are its addresses.
  tlm_utils::simple_initiator_socket<MemoryDoor> socket;

  MemoryDoor(const sc_core::sc_module_name& name, supernode::Supernode& machine, int die,
             const MemoryOptions& options);

  std::uint64_t requests() const { return requests_; }

 private:
  Time read(std::uint64_t offset, std::uint32_t bytes, Time at) override {
    return access(false, offset, bytes, at);
  }
  Time write(std::uint64_t offset, std::uint32_t bytes, Time at) override {
    return access(true, offset, bytes, at);
  }
  std::uint64_t bytes() const override { return bytes_; }
  Time access(bool write, std::uint64_t offset, std::uint32_t bytes, Time at);

  npu::Die& die_;
  MemoryOptions options_;
  TransactionPool pool_;
  std::uint64_t requests_ = 0, bytes_ = 0;
};

}  // namespace cm384::doors
