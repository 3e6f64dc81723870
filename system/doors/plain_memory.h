// Global memory without time, for the debug transport and direct memory pointers of initiators: what the
// host's copies see, which is what the machine has done by the end of its window.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <tlm>
#include <vector>

#include "npu_core/memory/backing_store.h"
#include "system/machine/supernode.h"

namespace cm384::doors {

class InitiatorDoor;
class TargetDoor;

class PlainMemory {
 public:
  explicit PlainMemory(supernode::Supernode& machine) : machine_(machine) {}

  void add(InitiatorDoor& door) { initiators_.push_back(&door); }
  // Reads and writes of the memory behind a target's door go to its model.
  void add(int endpoint, TargetDoor& door) { targets_.push_back({endpoint, &door}); }

  // Bytes read or written: fewer than asked for where the memory ends, 0 where there is none.
  unsigned transport_dbg(tlm::tlm_generic_payload& transaction);
  // Grants the 512 B around an address of a die or CPU socket that takes part, while no byte of them is
  // tensor payload. What is written so wakes no core that polls it.
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& transaction, tlm::tlm_dmi& dmi);
  // Invalidates the direct memory pointers of all initiators to lines that have become tensor payload.
  void invalidate_pointers();

 private:
  struct Foreign {
    int endpoint;
    TargetDoor* door;
  };
  struct Lent {
    npu::BackingStore* store;
    std::uint64_t base;  // global address of its first byte
  };
  npu::BackingStore* store_of(std::uint64_t address) const;
  TargetDoor* target_at(std::uint64_t address) const;

  supernode::Supernode& machine_;
  std::vector<InitiatorDoor*> initiators_;
  std::vector<Foreign> targets_;
  std::vector<Lent> lent_;
};

}  // namespace cm384::doors
