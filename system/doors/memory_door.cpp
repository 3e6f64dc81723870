#include "system/doors/memory_door.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "system/doors/phase_name.h"
#include "system/doors/time.h"

namespace cm384::doors {

MemoryDoor::MemoryDoor(const sc_core::sc_module_name& name, supernode::Supernode& machine, int die,
                       const MemoryOptions& options)
    : sc_module(name), socket("socket"), die_(machine.die(die)), options_(options) {
  // The model is called from within the die's window.
  machine.need_order("a foreign memory");
  die_.memory().replace_hbm(*this);
}

Time MemoryDoor::access(bool write, std::uint64_t offset, std::uint32_t bytes, Time at) {
  PooledTransaction& transaction = pool_.acquire();
  transaction.set(write, offset, bytes);
  if (write) die_.store().read_bytes(offset, reinterpret_cast<std::byte*>(transaction.bytes.data()), bytes);
  const sc_core::sc_time ahead = to_sc(std::max(at - now(), Time{}));
  sc_core::sc_time delay = ahead;
  const auto fail = [&](const std::string& what) {
    throw MachineError(fmt::format("memory of die {}: {} of {} B at {:#x}, asked for at {:.6f} us: {}",
                                   die_.number(), write ? "write" : "read", bytes, offset, at.us(), what));
  };
  try {
    socket->b_transport(transaction, delay);
  } catch (const sc_core::sc_report& report) {
    if (std::string_view(report.get_msg_type()) == sc_core::SC_ID_WAIT_NOT_ALLOWED_)
      fail("the model waits in b_transport; a memory behind a die adds its latency to the delay instead");
    fail(fmt::format("{}: {}", report.get_msg_type(), report.get_msg()));
  }
  const tlm::tlm_response_status status = transaction.get_response_status();
  if (status == tlm::TLM_INCOMPLETE_RESPONSE) fail("the model has left TLM_INCOMPLETE_RESPONSE");
  if (status != tlm::TLM_OK_RESPONSE) fail("the model answers " + transaction.get_response_string());
  const Time taken = of(delay) - of(ahead);
  if (taken < Time{}) fail(fmt::format("answered {} ps before it was asked for", -taken.ps));
  if (taken > options_.latest)
    fail(fmt::format("answered after {} ps, later than its declared {} ps", taken.ps, options_.latest.ps));
  transaction.release();
  ++requests_;
  bytes_ += bytes;
  return at + taken;
}

}  // namespace cm384::doors
