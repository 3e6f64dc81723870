// A foreign target on a Unified Bus port: requests of dies, CPU sockets and other foreign models reach the
// model as transactions of at most 512 B, with offsets in its memory as addresses.
//
// A request comes to the model at the time at which it would come to a die's memory, and its answer leaves at
// the time at which the model's is complete: b_transport's return plus its delay, or BEGIN_RESP plus its own.
// A response other than TLM_OK_RESPONSE reaches whoever asked as an address fault, as does an atomic add,
// which TLM has no command for.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "system/doors/foreign_endpoint.h"
#include "system/doors/transaction_pool.h"

namespace cm384::doors {

struct TargetOptions {
  // No answer is complete sooner after its request. It is the machine's lookahead: with one of a link's
  // latency the machine runs as far ahead as without foreign models. In return the model hands over an answer
  // that much (at most a link's latency) before it is complete: it annotates its latency instead of waiting.
  // 0: it may wait as it likes.
  Time latency{};
  // An answer that is complete later than so long after its request ends the run; never(): any is taken.
  Time latest = Time::never();
  // By nb_transport_fw and _bw instead of b_transport, of which several may be under way.
  bool four_phases = false;
  // Of the memory behind; requests beyond are answered with an address fault. 0: all that has addresses.
  std::uint64_t bytes = 0;
};

class TargetDoor final : public sc_core::sc_module {
 public:
  // Binds to the user's target.
  tlm_utils::simple_initiator_socket<TargetDoor> socket;

  TargetDoor(const sc_core::sc_module_name& name, ForeignEndpoint& endpoint, const TargetOptions& options);

  const TargetOptions& options() const { return options_; }
  // The memory behind, without time: by the model's direct memory pointer where it grants one, else by its
  // debug transport. Throws InputError where the model does not take all of it, or grants what it has not.
  void read(std::uint64_t offset, std::span<std::byte> into);
  void write(std::uint64_t offset, std::span<const std::byte> from);
  // Requests that the model has and has not answered.
  std::size_t pending() const { return jobs_.size(); }

  // Called by ForeignEndpoint and PlainMemory.
  Time access(sim::Request& request, sim::Outcome& outcome);
  unsigned debug(tlm::tlm_generic_payload& transaction, std::uint64_t offset);
  void check(Time now, Time patience) const;
  std::string report() const;

 private:
  enum class Phase : std::uint8_t { waiting, request, accepted };
  struct Job {
    PooledTransaction* transaction = nullptr;
    Time due;                   // reaches the model
    std::uint32_t request = 0;  // as the controller knows it
    Phase phase = Phase::waiting;
  };
  using Jobs = std::list<Job>;
  struct Caller {  // a process of its own, for a model that waits
    Jobs::iterator job;
    bool busy = false;
    sc_core::sc_event go;
  };

  void dispatch();
  void call(Caller& caller);
  void send(Jobs::iterator job);
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay);
  // A step of the four phases; false where the protocol does not have it.
  bool proceed(Jobs::iterator job, const tlm::tlm_phase& phase, const sc_core::sc_time& delay);
  // The model's answer is complete at `at`.
  void finish(Jobs::iterator job, Time at);
  std::string name_of(const Job& job) const;
  void fail(const Job& job, const std::string& what);
  unsigned char* direct(std::uint64_t offset, bool write, std::uint64_t& bytes);
  void copy(std::uint64_t offset, std::byte* bytes, std::uint64_t count, bool write);

  ForeignEndpoint& endpoint_;
  TargetOptions options_;
  TransactionPool pool_;
  Jobs jobs_;                // in the order in which they come to the model
  Jobs::iterator next_;      // the first that has not gone to it
  bool requesting_ = false;  // BEGIN_REQ without END_REQ
  Time request_free_;        // from when on the next may begin
  std::deque<Caller> callers_;
  sc_core::sc_event due_;
};

}  // namespace cm384::doors
