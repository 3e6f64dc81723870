#include "system/doors/initiator_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text/error.h"
#include "system/doors/phase_name.h"
#include "system/doors/time.h"

namespace cm384::doors {

InitiatorDoor::InitiatorDoor(const sc_core::sc_module_name& name, ForeignEndpoint& endpoint,
                             PlainMemory& memory)
    : sc_module(name), socket("socket"), endpoint_(endpoint), memory_(memory) {
  socket.register_b_transport(this, &InitiatorDoor::b_transport);
  socket.register_nb_transport_fw(this, &InitiatorDoor::nb_transport_fw);
  socket.register_get_direct_mem_ptr(this, &InitiatorDoor::get_direct_mem_ptr);
  socket.register_transport_dbg(this, &InitiatorDoor::transport_dbg);
  SC_HAS_PROCESS(InitiatorDoor);
  SC_METHOD(respond);
  dont_initialize();
  sensitive << next_response_;
  endpoint.set_initiator(*this);
}

void InitiatorDoor::hold() {
  ++held_;
  ++endpoint_.machine().unfinished();
}

void InitiatorDoor::release() {
  if (held_ == 0) throw InputError(fmt::format("initiator at {}: released, but not held", endpoint_.place()));
  --held_;
  --endpoint_.machine().unfinished();
}

void InitiatorDoor::fail(const std::string& what) {
  endpoint_.fail(fmt::format("initiator at {}: {}, at {:.6f} us", endpoint_.place(), what, now().us()));
}

// Sets TLM's error where it does not.
bool InitiatorDoor::is_supported(tlm::tlm_generic_payload& t) {
  if (t.get_byte_enable_ptr() != nullptr) {
    t.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  } else if (t.get_streaming_width() < t.get_data_length()) {
    t.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  } else if (t.is_read() == t.is_write() || t.get_data_length() == 0) {
    t.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  } else {
    return true;
  }
  return false;
}

InitiatorDoor::Transfer& InitiatorDoor::begin(tlm::tlm_generic_payload& transaction, Time at) {
  Transfer& transfer = transfers_[&transaction];
  transfer.transaction = &transaction;
  transfer.begun = at;
  ++endpoint_.machine().unfinished();
  const sim::TransactionId id =
      (std::uint64_t{endpoint_.controller().endpoint()} + 1) << 48 | ++transactions_;
  const std::uint64_t length = transaction.get_data_length();
  for (std::uint64_t offset = 0; offset < length;) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(parts_.size()));
      parts_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    sim::Request request;
    request.address = transaction.get_address() + offset;
    const std::uint64_t room = sim::kRequestBytes - request.address % sim::kRequestBytes;
    request.bytes = static_cast<std::uint32_t>(std::min(room, length - offset));
    request.at = at;
    request.transaction = id;
    request.tag = index;
    unsigned char* const data = transaction.get_data_ptr() + offset;
    parts_[index] = {&transfer, transaction.is_read() ? data : nullptr};
    if (transaction.is_write()) {
      request.operation = sim::Operation::write;
      request.payload.chunk = endpoint_.payloads().allocate();
      std::memcpy(endpoint_.payloads().bytes(request.payload.chunk), data, request.bytes);
    }
    ++transfer.left;
    endpoint_.submit(request);
    offset += request.bytes;
  }
  return transfer;
}

void InitiatorDoor::b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  if (!is_supported(transaction)) return;
  transaction.set_dmi_allowed(false);
  if (transfers_.contains(&transaction)) {
    fail("b_transport with a transaction that is under way");
    transaction.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
    return;
  }
  if (sc_core::sc_get_current_process_handle().proc_kind() == sc_core::SC_METHOD_PROC_) {
    fail(
        "b_transport called from an SC_METHOD, which cannot wait; allowed: an SC_THREAD, or nb_transport_fw");
    transaction.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
    return;
  }
  Transfer& transfer = begin(transaction, now() + of(delay));
  transfer.done = std::make_unique<sc_core::sc_event>();
  delay = sc_core::SC_ZERO_TIME;
  wait(*transfer.done);
  transfers_.erase(&transaction);
}

void InitiatorDoor::completed(const sim::Completion& completion, Time at) {
  Part& part = parts_[completion.tag];
  Transfer& transfer = *part.transfer;
  sim::Payload payload = completion.payload;
  if (completion.outcome != sim::Outcome::done) {
    transfer.outcome = completion.outcome;
  } else if (part.read_to != nullptr) {
    // Of tensor payload that has no bytes (mode `control`) its stand-in is read.
    if (payload.chunk == sim::kNoChunk) {
      std::memset(part.read_to, static_cast<int>(sim::kStandIn), completion.bytes);
    } else {
      std::memcpy(part.read_to, endpoint_.payloads().bytes(payload.chunk), completion.bytes);
    }
  }
  endpoint_.payloads().release(payload);
  free_.push_back(completion.tag);
  if (--transfer.left == 0) end(transfer, at);
}

void InitiatorDoor::end(Transfer& transfer, Time at) {
  endpoint_.machine().foreign().progressed(at);
  transfer.transaction->set_response_status(
      transfer.outcome == sim::Outcome::done ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  if (transfer.done) {
    --endpoint_.machine().unfinished();
    transfer.done->notify(to_sc(at - now()));
    return;
  }
  transfer.transaction->set_dmi_allowed(false);
  responses_.push_back({transfer.transaction, at});
  if (responses_.size() == 1) next_response_.notify(to_sc(std::max(at, response_free_) - now()));
}

tlm::tlm_sync_enum InitiatorDoor::nb_transport_fw(tlm::tlm_generic_payload& transaction,
                                                  tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase == tlm::BEGIN_REQ) {
    if (!is_supported(transaction)) return tlm::TLM_COMPLETED;
    if (!transaction.has_mm()) {
      fail("nb_transport_fw with a transaction without memory manager");
    } else if (transfers_.contains(&transaction)) {
      fail("BEGIN_REQ for a transaction that is under way");
    } else {
      transaction.acquire();
      begin(transaction, now() + of(delay));
      phase = tlm::END_REQ;
      return tlm::TLM_UPDATED;
    }
  } else if (phase == tlm::END_RESP) {
    if (responding_ && responses_.front().transaction == &transaction) {
      responded(now() + of(delay));
      return tlm::TLM_COMPLETED;
    }
    fail("END_RESP without a BEGIN_RESP that it answers");
  } else {
    fail(fmt::format("nb_transport_fw with phase {}; allowed: BEGIN_REQ, END_RESP", phase_name(phase)));
  }
  transaction.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
  return tlm::TLM_COMPLETED;
}

// The first response goes out; the next follows its END_RESP.
void InitiatorDoor::respond() {
  if (responding_ || responses_.empty()) return;
  const Time at = std::max(responses_.front().at, response_free_);
  if (at > now()) return next_response_.notify(to_sc(at - now()));
  responding_ = true;
  responding_since_ = now();
  tlm::tlm_generic_payload& transaction = *responses_.front().transaction;
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const tlm::tlm_sync_enum status = socket->nb_transport_bw(transaction, phase, delay);
  if (status == tlm::TLM_ACCEPTED) return;
  if (status == tlm::TLM_UPDATED && phase != tlm::END_RESP)
    return fail(fmt::format("BEGIN_RESP answered with phase {}; allowed: END_RESP", phase_name(phase)));
  // It may have called END_RESP within the call.
  if (!responding_ || responses_.front().transaction != &transaction)
    return fail("END_RESP twice for one BEGIN_RESP");
  responded(now() + of(delay));
}

void InitiatorDoor::responded(Time at) {
  tlm::tlm_generic_payload& transaction = *responses_.front().transaction;
  responses_.pop_front();
  responding_ = false;
  response_free_ = at;
  transfers_.erase(&transaction);
  --endpoint_.machine().unfinished();
  transaction.release();
  if (!responses_.empty()) next_response_.notify(to_sc(std::max(responses_.front().at, at) - now()));
}

void InitiatorDoor::check(Time now, Time patience) const {
  if (responding_ && now - responding_since_ > patience)
    throw MachineError(fmt::format("initiator at {}: no END_RESP for its BEGIN_RESP of {:.6f} us",
                                   endpoint_.place(), responding_since_.us()));
}

std::string InitiatorDoor::report() const {
  std::vector<const Transfer*> oldest_first;
  for (const auto& [transaction, transfer] : transfers_) oldest_first.push_back(&transfer);
  std::ranges::sort(oldest_first, {},
                    [](const Transfer* t) { return std::pair(t->begun, t->transaction->get_address()); });
  std::string text;
  for (const Transfer* t : oldest_first) {
    text += fmt::format(
        "initiator at {}: {} of {} B at {:#x}, since {:.6f} us, {}\n", endpoint_.place(),
        t->transaction->is_read() ? "read" : "write", t->transaction->get_data_length(),
        t->transaction->get_address(), t->begun.us(),
        t->left != 0 ? fmt::format("{} requests not answered", t->left) : "its response waits for END_RESP");
  }
  if (held_ != 0) text += fmt::format("initiator at {}: its door is held\n", endpoint_.place());
  return text;
}

void InitiatorDoor::invalidate(std::uint64_t start, std::uint64_t end) {
  socket->invalidate_direct_mem_ptr(start, end);
}

}  // namespace cm384::doors
