// A foreign initiator on a Unified Bus port: reads and writes global memory
// (firmware/abi/memory_map.h) like a die or a CPU socket.
//
// Blocking: b_transport returns at the simulated time at which the last of its requests completed. Four
// phases: BEGIN_REQ is answered with END_REQ at once, BEGIN_RESP comes at that same time, one after another.
// Both leave at the annotated time. A transaction of any length is cut into requests of at most 512 B that
// cross no 512 B boundary. Byte enables and streaming are answered with TLM's errors, an address of no memory
// with TLM_ADDRESS_ERROR_RESPONSE.
#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "system/doors/foreign_endpoint.h"
#include "system/doors/plain_memory.h"

namespace cm384::doors {

class InitiatorDoor final : public sc_core::sc_module {
 public:
  // The user's initiator binds to it.
  tlm_utils::simple_target_socket<InitiatorDoor> socket;

  InitiatorDoor(const sc_core::sc_module_name& name, ForeignEndpoint& endpoint, PlainMemory& memory);

  // Supernode::run() goes on while the door is held, beside what is under way: an initiator holds it while it
  // has something to do.
  void hold();
  void release();
  // Transactions in flight.
  std::size_t pending() const { return transfers_.size(); }

  // Called by ForeignEndpoint and PlainMemory.
  void completed(const sim::Completion& completion, Time at);
  void check(Time now, Time patience) const;
  std::string report() const;
  void invalidate(std::uint64_t start, std::uint64_t end);

 private:
  struct Transfer {
    tlm::tlm_generic_payload* transaction = nullptr;
    std::unique_ptr<sc_core::sc_event> done;  // blocking
    Time begun;
    std::uint64_t left = 0;  // requests without completion
    sim::Outcome outcome = sim::Outcome::done;
  };
  struct Part {  // one request
    Transfer* transfer = nullptr;
    unsigned char* read_to = nullptr;
  };
  struct Response {
    tlm::tlm_generic_payload* transaction;
    Time at;
  };

  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay);
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& transaction, tlm::tlm_dmi& dmi) {
    return memory_.get_direct_mem_ptr(transaction, dmi);
  }
  unsigned transport_dbg(tlm::tlm_generic_payload& transaction) { return memory_.transport_dbg(transaction); }
  static bool is_supported(tlm::tlm_generic_payload& transaction);
  Transfer& begin(tlm::tlm_generic_payload& transaction, Time at);
  void end(Transfer& transfer, Time at);
  void respond();
  void responded(Time at);
  void fail(const std::string& what);

  ForeignEndpoint& endpoint_;
  PlainMemory& memory_;
  std::map<tlm::tlm_generic_payload*, Transfer> transfers_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> free_;  // of parts_
  sim::TransactionId transactions_ = 0;
  int held_ = 0;
  std::deque<Response> responses_;  // the first one is under way where responding_
  bool responding_ = false;
  Time responding_since_;
  Time response_free_;  // from when on the next may begin
  sc_core::sc_event next_response_;
};

}  // namespace cm384::doors
