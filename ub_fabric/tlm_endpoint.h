// The TLM-2.0 edge of the fabric: a foreign initiator reads and writes global memory through one endpoint.
//
// A loosely timed initiator binds to `socket` and calls b_transport with a global address
// (firmware/abi/memory_map.h); the call returns at the simulated time at which the last of its requests
// completed. Other modules (sub-planes, dies) are run by their own processes.
#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>
#include <vector>

#include "sim/event_queue.h"
#include "sim/payload.h"
#include "sim/transaction.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/packet.h"
#include "ub_fabric/parameters.h"

namespace cm384::ub {

// Takes the place of the die or CPU socket `self`. It has no memory: requests to it come back with
// address_fault. `source` numbers its event queue. SystemC's resolution must be 1 ps (else InputError).
class TlmEndpoint final : public sc_core::sc_module,
                          private sim::RemoteClient,
                          private sim::RemoteTarget,
                          private sim::WakeListener {
 public:
  tlm_utils::simple_target_socket<TlmEndpoint> socket;

  TlmEndpoint(const sc_core::sc_module_name& name, const Parameters& parameters, Endpoint self,
              std::uint32_t source, PacketPool& packets, sim::PayloadPool& payloads);

  // To attach to the sub-planes.
  UbController& controller() { return controller_; }
  sim::EventQueue& queue() { return queue_; }

 private:
  enum Unit : std::uint32_t { kController, kSubmit };
  struct Transfer {
    sc_core::sc_event* done = nullptr;
    std::uint64_t left = 0;  // requests without completion
    sim::Outcome outcome = sim::Outcome::done;
  };
  struct Part {  // one request of a transfer
    sim::Request request;
    Transfer* transfer = nullptr;
    unsigned char* read_to = nullptr;
    std::uint32_t next_free = 0;
  };

  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  void run();
  std::uint32_t allocate_part();
  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override;
  void wake_at(Time t) override;

  sim::EventQueue queue_;
  sim::PayloadPool& payloads_;
  UbController controller_;
  std::vector<Part> parts_;
  std::uint32_t free_part_;
  sim::TransactionId transactions_ = 0;
  sc_core::sc_event wake_;
};

}  // namespace cm384::ub
