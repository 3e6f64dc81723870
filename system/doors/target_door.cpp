#include "system/doors/target_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text/error.h"
#include "system/doors/phase_name.h"
#include "system/doors/time.h"

namespace cm384::doors {

TargetDoor::TargetDoor(const sc_core::sc_module_name& name, ForeignEndpoint& endpoint,
                       const TargetOptions& options)
    : sc_module(name), socket("socket"), endpoint_(endpoint), options_(options), next_(jobs_.end()) {
  if (options.latency < Time{} || options.latest < options.latency)
    throw InputError(fmt::format("target at {}: latency {} ps, latest {} ps; allowed: 0 <= latency <= latest",
                                 endpoint.place(), options.latency.ps, options.latest.ps));
  socket.register_nb_transport_bw(this, &TargetDoor::nb_transport_bw);
  SC_HAS_PROCESS(TargetDoor);
  SC_METHOD(dispatch);
  dont_initialize();
  sensitive << due_;
  endpoint.set_target(*this);
}

std::string TargetDoor::name_of(const Job& job) const {
  return fmt::format("target at {}: {} of {} B at {:#x}", endpoint_.place(),
                     job.transaction->is_read() ? "read" : "write", job.transaction->get_data_length(),
                     job.transaction->get_address());
}

void TargetDoor::fail(const Job& job, const std::string& what) {
  endpoint_.fail(fmt::format("{}, asked for at {:.6f} us: {}", name_of(job), job.due.us(), what));
}

// The controller may ask ahead of time: the model sees the request at request.at.
Time TargetDoor::access(sim::Request& request, sim::Outcome& outcome) {
  sim::PayloadPool& payloads = endpoint_.payloads();
  const bool write = request.operation == sim::Operation::write;
  const bool inside = options_.bytes == 0 || (request.address <= options_.bytes &&
                                              request.bytes <= options_.bytes - request.address);
  if (!inside || (!write && request.operation != sim::Operation::read)) {
    payloads.release(request.payload);
    outcome = sim::Outcome::address_fault;
    return request.at;
  }
  Job job;
  job.transaction = &pool_.acquire();
  job.transaction->set(write, request.address, request.bytes);
  job.due = request.at;
  job.request = endpoint_.controller().defer();
  if (write) {
    // Tensor payload without bytes (mode `control`) is written as its stand-in.
    unsigned char* const to = job.transaction->bytes.data();
    if (request.payload.chunk == sim::kNoChunk) {
      std::memset(to, static_cast<int>(sim::kStandIn), request.bytes);
    } else {
      std::memcpy(to, payloads.bytes(request.payload.chunk), request.bytes);
    }
    payloads.release(request.payload);
  }
  jobs_.push_back(job);
  if (next_ == jobs_.end()) next_ = std::prev(jobs_.end());
  due_.notify(to_sc(std::max(job.due - now(), Time{})));
  return request.at;
}

// Hands over what is due.
void TargetDoor::dispatch() {
  while (next_ != jobs_.end() && std::max(next_->due, request_free_) <= now() && !requesting_) {
    const Jobs::iterator job = next_++;
    if (options_.four_phases) {
      send(job);
      continue;
    }
    auto idle = std::ranges::find(callers_, false, &Caller::busy);
    if (idle == callers_.end()) {
      Caller& caller = callers_.emplace_back();
      sc_core::sc_spawn([this, &caller] { call(caller); });
      idle = std::prev(callers_.end());
    }
    idle->job = job;
    idle->busy = true;
    idle->go.notify(sc_core::SC_ZERO_TIME);
  }
  if (next_ == jobs_.end() || requesting_) return;
  due_.notify(to_sc(std::max(next_->due, request_free_) - now()));
}

void TargetDoor::call(Caller& caller) {
  while (true) {
    // Just made it may have its job already: then nobody notifies it again.
    if (!caller.busy) wait(caller.go);
    if (!caller.busy) continue;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    caller.job->phase = Phase::request;
    socket->b_transport(*caller.job->transaction, delay);
    const Jobs::iterator job = caller.job;
    caller.busy = false;
    finish(job, now() + of(delay));
  }
}

void TargetDoor::send(Jobs::iterator job) {
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  job->phase = Phase::request;
  requesting_ = true;
  tlm::tlm_generic_payload& transaction = *job->transaction;
  transaction.acquire();  // the job may end within the call
  const tlm::tlm_sync_enum status = socket->nb_transport_fw(transaction, phase, delay);
  const auto known = [&] {
    return std::ranges::any_of(jobs_, [&](const Job& j) { return j.transaction == &transaction; });
  };
  if (status == tlm::TLM_COMPLETED) {
    if (known()) {
      requesting_ = false;
      due_.notify(delay);
      finish(job, now() + of(delay));
    }
  } else if (status == tlm::TLM_UPDATED && known()) {
    proceed(job, phase, delay);
  }
  transaction.release();
}

bool TargetDoor::proceed(Jobs::iterator job, const tlm::tlm_phase& phase, const sc_core::sc_time& delay) {
  const bool response = phase == tlm::BEGIN_RESP;
  const bool first = job->phase == Phase::request;
  if (!(first && phase == tlm::END_REQ) && !(response && (first || job->phase == Phase::accepted))) {
    const char* const after[] = {"before BEGIN_REQ", "after BEGIN_REQ", "after END_REQ"};
    fail(*job, fmt::format("phase {} {}", phase_name(phase), after[static_cast<int>(job->phase)]));
    return false;
  }
  if (first) {  // BEGIN_RESP stands for END_REQ too; the next request may begin
    requesting_ = false;
    request_free_ = now() + of(delay);
    due_.notify(delay);
  }
  job->phase = Phase::accepted;
  if (response) finish(job, now() + of(delay));
  return true;
}

tlm::tlm_sync_enum TargetDoor::nb_transport_bw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                               sc_core::sc_time& delay) {
  const auto job = std::ranges::find_if(jobs_, [&](const Job& j) { return j.transaction == &transaction; });
  if (job == jobs_.end()) {
    endpoint_.fail(fmt::format(
        "target at {}: phase {} at {:.6f} us for a transaction that is complete or not of this door",
        endpoint_.place(), phase_name(phase), now().us()));
    return tlm::TLM_COMPLETED;
  }
  const bool response = phase == tlm::BEGIN_RESP;
  if (!proceed(job, phase, delay)) return tlm::TLM_COMPLETED;
  return response ? tlm::TLM_COMPLETED : tlm::TLM_ACCEPTED;
}

void TargetDoor::finish(Jobs::iterator job, Time at) {
  PooledTransaction& transaction = *job->transaction;
  if (transaction.get_response_status() == tlm::TLM_INCOMPLETE_RESPONSE)
    return fail(*job, "the model has left TLM_INCOMPLETE_RESPONSE");
  if (at - job->due < options_.latency)
    return fail(*job, fmt::format("answered after {} ps, sooner than its declared latency of {} ps",
                                  (at - job->due).ps, options_.latency.ps));
  if (at - job->due > options_.latest)
    return fail(*job, fmt::format("answered after {} ps, later than its declared {} ps", (at - job->due).ps,
                                  options_.latest.ps));
  if (at < endpoint_.horizon())
    return fail(*job,
                fmt::format("handed over {} ps before the answer is complete; with a declared latency of "
                            "{} ps a model annotates at least {} ps instead of waiting",
                            (at - now()).ps, options_.latency.ps, (endpoint_.horizon() - now()).ps));
  sim::Payload payload;
  const bool done = transaction.get_response_status() == tlm::TLM_OK_RESPONSE;
  if (done && transaction.is_read()) {
    payload.chunk = endpoint_.payloads().allocate();
    std::memcpy(endpoint_.payloads().bytes(payload.chunk), transaction.bytes.data(),
                transaction.get_data_length());
  }
  endpoint_.machine().foreign().progressed(at);
  endpoint_.controller().answer(job->request, payload,
                                done ? sim::Outcome::done : sim::Outcome::address_fault, at);
  if (next_ == job) ++next_;
  jobs_.erase(job);
  transaction.release();
  endpoint_.arm();
}

void TargetDoor::check(Time now, Time patience) const {
  const Time longest = std::min(patience, options_.latest);
  for (const Job& job : jobs_) {
    if (job.due > now || now - job.due <= longest) continue;
    throw MachineError(fmt::format("{} has not been answered since {:.6f} us: the model blocks", name_of(job),
                                   job.due.us()));
  }
}

std::string TargetDoor::report() const {
  std::string text;
  for (const Job& job : jobs_) {
    text += fmt::format("{}, {} since {:.6f} us\n", name_of(job),
                        job.phase == Phase::waiting ? "waits to begin" : "not answered", job.due.us());
  }
  return text;
}

unsigned TargetDoor::debug(tlm::tlm_generic_payload& transaction, std::uint64_t offset) {
  const std::uint64_t address = transaction.get_address();
  transaction.set_address(offset);
  const unsigned moved = socket->transport_dbg(transaction);
  transaction.set_address(address);
  return moved;
}

// Null where the model grants none; `bytes`: of those from `offset` on.
unsigned char* TargetDoor::direct(std::uint64_t offset, bool write, std::uint64_t& bytes) {
  PooledTransaction& transaction = pool_.acquire();
  transaction.set(write, offset, 1);
  tlm::tlm_dmi dmi;
  const bool granted = socket->get_direct_mem_ptr(transaction, dmi) && dmi.get_dmi_ptr() != nullptr &&
                       (write ? dmi.is_write_allowed() : dmi.is_read_allowed());
  transaction.release();
  if (!granted) return nullptr;
  const std::uint64_t start = dmi.get_start_address(), end = dmi.get_end_address();
  if (start > offset || end < offset || (options_.bytes != 0 && end >= options_.bytes))
    throw InputError(
        fmt::format("target at {}: grants direct access to {:#x} to {:#x} when asked for {:#x}; allowed: "
                    "what holds that address, within its {} B",
                    endpoint_.place(), start, end, offset, options_.bytes));
  bytes = std::min(bytes, end - offset + 1);
  return dmi.get_dmi_ptr() + (offset - start);
}

void TargetDoor::copy(std::uint64_t offset, std::byte* bytes, std::uint64_t count, bool write) {
  while (count != 0) {
    std::uint64_t piece = count;
    if (unsigned char* const at = direct(offset, write, piece)) {
      std::memcpy(write ? at : reinterpret_cast<unsigned char*>(bytes),
                  write ? reinterpret_cast<unsigned char*>(bytes) : at, piece);
    } else {
      piece = std::min<std::uint64_t>(count, sim::kRequestBytes);
      PooledTransaction& transaction = pool_.acquire();
      transaction.set(write, offset, static_cast<std::uint32_t>(piece));
      if (write) std::memcpy(transaction.bytes.data(), bytes, piece);
      const unsigned moved = socket->transport_dbg(transaction);
      if (!write) std::memcpy(bytes, transaction.bytes.data(), piece);
      transaction.release();
      if (moved != piece)
        throw InputError(fmt::format("target at {}: its debug transport {} {} B of {} B at {:#x}",
                                     endpoint_.place(), write ? "took" : "gave", moved, piece, offset));
    }
    offset += piece, bytes += piece, count -= piece;
  }
}

void TargetDoor::read(std::uint64_t offset, std::span<std::byte> into) {
  copy(offset, into.data(), into.size(), false);
}

void TargetDoor::write(std::uint64_t offset, std::span<const std::byte> from) {
  copy(offset, const_cast<std::byte*>(from.data()), from.size(), true);
}

}  // namespace cm384::doors
