#include "system/doors/plain_memory.h"

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/doors/initiator_door.h"
#include "system/doors/target_door.h"
#include "system/doors/time.h"

namespace cm384::doors {

TargetDoor* PlainMemory::target_at(std::uint64_t address) const {
  if (!cm384_is_gm(address)) return nullptr;
  const auto unit = static_cast<int>(cm384_gm_unit(address));
  const hw::Topology& topology = machine_.parameters().topology;
  const int endpoint = cm384_gm_is_cpu(address) ? topology.socket_endpoint(unit) : unit;
  for (const Foreign& f : targets_) {
    if (f.endpoint == endpoint) return f.door;
  }
  return nullptr;
}

// nullptr: of nobody that takes part.
npu::BackingStore* PlainMemory::store_of(std::uint64_t address) const {
  if (!cm384_is_gm(address)) return nullptr;
  const auto unit = static_cast<int>(cm384_gm_unit(address));
  if (!cm384_gm_is_cpu(address)) return machine_.takes_part(unit) ? &machine_.die(unit).store() : nullptr;
  try {
    return &machine_.socket_store(unit);
  } catch (const InputError&) {
    return nullptr;
  }
}

unsigned PlainMemory::transport_dbg(tlm::tlm_generic_payload& transaction) {
  const std::uint64_t address = transaction.get_address(), offset = cm384_gm_offset(address);
  if (TargetDoor* target = target_at(address)) return target->debug(transaction, offset);
  npu::BackingStore* store = store_of(address);
  if (store == nullptr || offset >= store->capacity()) return 0;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(transaction.get_data_length(), store->capacity() - offset);
  auto* const data = reinterpret_cast<std::byte*>(transaction.get_data_ptr());
  if (transaction.is_read()) {
    store->read_bytes(offset, data, bytes);
  } else if (transaction.is_write()) {
    store->write_bytes(offset, data, bytes);
  } else {
    return 0;
  }
  return static_cast<unsigned>(bytes);
}

bool PlainMemory::get_direct_mem_ptr(tlm::tlm_generic_payload& transaction, tlm::tlm_dmi& dmi) {
  const std::uint64_t address = transaction.get_address(), offset = cm384_gm_offset(address);
  const std::uint64_t within = offset % sim::kRequestBytes;
  dmi.init();
  dmi.set_start_address(address - within);
  dmi.set_end_address(address - within + sim::kRequestBytes - 1);
  npu::BackingStore* store = store_of(address);
  std::byte* line = store != nullptr && store->contains(offset - within, sim::kRequestBytes)
                        ? store->lend_line(offset)
                        : nullptr;
  if (line == nullptr) return false;
  dmi.set_dmi_ptr(reinterpret_cast<unsigned char*>(line));
  dmi.allow_read_write();
  // The least that the way there and back takes.
  const sc_core::sc_time latency = to_sc(machine_.lookahead() + machine_.lookahead());
  dmi.set_read_latency(latency);
  dmi.set_write_latency(latency);
  const std::uint64_t base = address - offset;
  if (std::ranges::none_of(lent_, [&](const Lent& l) { return l.store == store && l.base == base; }))
    lent_.push_back({store, base});
  return true;
}

void PlainMemory::invalidate_pointers() {
  for (const Lent& lent : lent_) {
    for (const std::uint64_t line : lent.store->pop_invalidated_lines()) {
      for (InitiatorDoor* door : initiators_)
        door->invalidate(lent.base + line, lent.base + line + sim::kRequestBytes - 1);
    }
  }
}

}  // namespace cm384::doors
