// Packets of the RDMA plane, and the requests of at most 512 B that they carry.
#pragma once

#include <cstdint>

#include "base/engine/payload.h"
#include "base/engine/slab.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

namespace cm384::rdma {

// One request as its initiator submitted it; its answer takes its place.
struct Piece {
  std::uint64_t address = 0;  // global
  sim::TransactionId transaction = 0;
  Time ready;  // its packet may leave from then on
  sim::Payload payload;
  std::uint32_t next = sim::kNoRecord;
  std::uint32_t tag = 0;
  std::uint16_t core = 0;
  std::uint16_t bytes = 0;
  sim::Operation operation = sim::Operation::read;
  sim::Outcome outcome = sim::Outcome::done;
};

// Pieces of one transaction that lie one behind the other; its target makes the response of it.
struct Packet {
  sim::SlabQueue<Piece> pieces;
  std::uint32_t next = sim::kNoRecord;
  std::uint32_t payload = 0;  // bytes read, written or added: what counts against the window
  std::uint32_t wire = 0;     // bytes on a link
  std::uint16_t source = 0, destination = 0;
  bool response = false;
};

struct Pools {
  sim::Slab<Piece> pieces;
  sim::Slab<Packet> packets;
  void set_workers(unsigned workers) {
    pieces.set_workers(workers);
    packets.set_workers(workers);
  }
};

}  // namespace cm384::rdma
