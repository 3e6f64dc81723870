// What a request from outside does to the bytes of a memory, without time.
#pragma once

#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "npu_core/memory/backing_store.h"

namespace cm384::npu {

// Fills the request's payload for a read, consumes it otherwise. False, with address_fault, where there is no
// memory; the address is an offset in it.
inline bool perform(BackingStore& store, sim::PayloadPool& payloads, sim::Request& request,
                    sim::Outcome& outcome) {
  sim::Payload& payload = request.payload;
  if (!store.contains(request.address, request.bytes)) {
    payloads.release(payload);
    outcome = sim::Outcome::address_fault;
    return false;
  }
  outcome = sim::Outcome::done;
  if (request.operation == sim::Operation::read) {
    payload.chunk = payloads.allocate();
    payload.tags = store.read(request.address, payloads.bytes(payload.chunk), request.bytes);
    if (payload.tags == sim::all_tags(request.bytes)) payloads.release(payload);
    return true;
  }
  const std::byte* const bytes = payload.chunk == sim::kNoChunk ? nullptr : payloads.bytes(payload.chunk);
  if (request.operation == sim::Operation::write) {
    store.write(request.address, bytes, request.bytes, payload.tags);
  } else {
    store.atomic_add(request.address, bytes, request.bytes, payload.tags, request.operation, nullptr);
  }
  payloads.release(payload);
  return true;
}

}  // namespace cm384::npu
