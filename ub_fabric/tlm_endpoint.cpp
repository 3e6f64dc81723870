#include "ub_fabric/tlm_endpoint.h"

#include <algorithm>
#include <cstring>

#include "hw/error.h"

namespace cm384::ub {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

Time now() {
  return Time{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
}

sc_core::sc_time to_sc_time(Time t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps));
}

}  // namespace

TlmEndpoint::TlmEndpoint(const sc_core::sc_module_name& name, const Parameters& parameters, Endpoint self,
                         std::uint32_t source, PacketPool& packets, sim::PayloadPool& payloads)
    : sc_module(name),
      socket("socket"),
      queue_(source),
      payloads_(payloads),
      controller_(parameters, self, queue_, kController, packets, payloads),
      free_part_(kNone) {
  if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS)) {
    throw InputError("TLM endpoint: SystemC's time resolution is not 1 ps");
  }
  controller_.set_client(*this);
  controller_.set_target(*this);
  socket.register_b_transport(this, &TlmEndpoint::b_transport);
  SC_HAS_PROCESS(TlmEndpoint);
  SC_METHOD(run);
  dont_initialize();
  sensitive << wake_;
  queue_.set_listener(this);
}

std::uint32_t TlmEndpoint::allocate_part() {
  if (free_part_ == kNone) {
    parts_.emplace_back();
    return static_cast<std::uint32_t>(parts_.size() - 1);
  }
  const std::uint32_t part = free_part_;
  free_part_ = parts_[part].next_free;
  return part;
}

// Cuts the transaction into requests of at most 512 B that cross no 512 B boundary.
void TlmEndpoint::b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  const std::uint64_t length = transaction.get_data_length();
  if (transaction.get_byte_enable_ptr() != nullptr) {
    transaction.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    return;
  }
  if (transaction.get_streaming_width() < length) {
    transaction.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  if (transaction.is_read() == transaction.is_write() || length == 0) {
    transaction.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
    return;
  }
  sc_core::sc_event done;
  Transfer transfer{&done, 0, sim::Outcome::done};
  const Time at = now() + Time{static_cast<std::int64_t>(delay.value())};
  const sim::TransactionId id = std::uint64_t{controller_.endpoint()} << 48 | ++transactions_;
  for (std::uint64_t offset = 0; offset < length;) {
    const std::uint64_t address = transaction.get_address() + offset;
    const std::uint64_t room = sim::kRequestBytes - address % sim::kRequestBytes;
    const auto bytes = static_cast<std::uint32_t>(std::min(room, length - offset));
    const std::uint32_t index = allocate_part();
    Part& part = parts_[index];
    part.transfer = &transfer;
    part.request = sim::Request{};
    part.request.address = address;
    part.request.at = at;
    part.request.transaction = id;
    part.request.bytes = bytes;
    part.request.tag = index;
    unsigned char* data = transaction.get_data_ptr() + offset;
    if (transaction.is_read()) {
      part.read_to = data;
    } else {
      part.request.operation = sim::Operation::write;
      part.request.payload.chunk = payloads_.allocate();
      std::memcpy(payloads_.bytes(part.request.payload.chunk), data, bytes);
    }
    queue_.push(at, kSubmit, 0, index);
    ++transfer.left;
    offset += bytes;
  }
  delay = sc_core::SC_ZERO_TIME;
  wait(done);
  transaction.set_dmi_allowed(false);
  transaction.set_response_status(transfer.outcome == sim::Outcome::done ? tlm::TLM_OK_RESPONSE
                                                                         : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

// Handles the events of this very moment, not of a window: a foreign initiator may call at any time.
void TlmEndpoint::run() {
  queue_.run_until(now() + Time{1}, [this](const sim::Event& event) {
    if (event.unit == kController) {
      controller_.handle(event);
    } else {
      controller_.submit(parts_[event.argument].request);
    }
  });
}

void TlmEndpoint::wake_at(Time t) {
  wake_.notify(to_sc_time(t - now()));
}

void TlmEndpoint::completed(const sim::Completion& completion, Time) {
  Part& part = parts_[completion.tag];
  sim::Payload payload = completion.payload;
  if (completion.outcome != sim::Outcome::done) {
    part.transfer->outcome = completion.outcome;
  } else if (part.read_to != nullptr) {
    // A payload block of mode `control` has no bytes: it reads as its stand-in.
    if (payload.chunk == sim::kNoChunk) {
      std::memset(part.read_to, static_cast<int>(sim::kStandIn), completion.bytes);
    } else {
      std::memcpy(part.read_to, payloads_.bytes(payload.chunk), completion.bytes);
    }
  }
  payloads_.release(payload);
  if (--part.transfer->left == 0) part.transfer->done->notify(sc_core::SC_ZERO_TIME);
  part.transfer = nullptr;
  part.read_to = nullptr;
  part.next_free = free_part_;
  free_part_ = completion.tag;
}

Time TlmEndpoint::access(sim::Request& request, sim::Outcome& outcome) {
  outcome = sim::Outcome::address_fault;
  return request.at;
}

}  // namespace cm384::ub
