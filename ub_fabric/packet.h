// Packets of the Unified Bus: plain 64 B records in one slab a machine, named by 32-bit indices.
#pragma once

#include <cstdint>

#include "base/engine/payload.h"
#include "base/engine/slab.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

namespace cm384::ub {

using PacketIndex = std::uint32_t;
inline constexpr PacketIndex kNoPacket = sim::kNoRecord;

// Port of a sub-plane: dies from 0, then CPU sockets (hw::Topology).
using Endpoint = std::uint16_t;

enum class PacketKind : std::uint8_t {
  read_request,
  write_request,
  atomic_request,
  read_response,
  write_ack,
  atomic_response
};
constexpr bool is_response(PacketKind kind) {
  return kind >= PacketKind::read_response;
}

constexpr PacketKind request_kind(sim::Operation operation) {
  if (operation == sim::Operation::read) return PacketKind::read_request;
  return operation == sim::Operation::write ? PacketKind::write_request : PacketKind::atomic_request;
}

// What decides the latency inside the receiving controller.
enum class InboundClass : std::uint8_t { read, write, response };
constexpr InboundClass inbound_class(PacketKind kind) {
  if (is_response(kind)) return InboundClass::response;
  return kind == PacketKind::read_request ? InboundClass::read : InboundClass::write;
}

// A request; its target turns the same record into the response.
struct alignas(64) Packet {
  std::uint64_t address = 0;           // global address
  sim::TransactionId transaction = 0;  // instruction it belongs to
  Time sent;                           // when the initiator's controller chose its port, last
  sim::Payload payload;                // write and atomic data; read data and old value on the way back
  // The queue of a controller it stands in; in a sub-plane: the chip it goes by first, if it makes a detour.
  PacketIndex next = kNoPacket;
  std::uint32_t tag = 0;  // the initiator's own
  Endpoint source = 0;
  Endpoint destination = 0;
  std::uint16_t core = 0;   // initiating core
  std::uint16_t bytes = 0;  // read, written or added, 1..512
  PacketKind kind = PacketKind::read_request;
  std::uint8_t plane = 0;
  std::uint8_t lane = 0;
  std::uint8_t flits = 0;  // on the wire, 20 B each
  std::uint8_t flow = 0;   // hash of what must stay in order: source, destination, core
  sim::Operation operation = sim::Operation::read;
  sim::Outcome outcome = sim::Outcome::done;
  bool performed = false;  // a request whose response was lost: its target answers it again
};
static_assert(sizeof(Packet) == 64);

// What a switch needs of a packet, in the one word an event carries: the record itself is touched at its ends
// only. At most 2^28 packets, 2^16 endpoints, 31 flits, 16 lanes.
class Hop {
 public:
  static constexpr int kMostFlits = 31;

  constexpr Hop() = default;
  constexpr explicit Hop(std::uint64_t bits) : bits_(bits) {}
  constexpr Hop(PacketIndex index, const Packet& p)
      : bits_(std::uint64_t{index} | std::uint64_t{p.destination} << 28 | std::uint64_t{p.flits} << 44 |
              std::uint64_t{p.lane} << 49 | std::uint64_t{p.flow} << 53 |
              std::uint64_t{static_cast<std::uint8_t>(inbound_class(p.kind))} << 61) {}

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr PacketIndex packet() const { return static_cast<PacketIndex>(bits_ & 0xfffffff); }
  constexpr Endpoint destination() const { return static_cast<Endpoint>(bits_ >> 28 & 0xffff); }
  constexpr unsigned flits() const { return static_cast<unsigned>(bits_ >> 44 & 0x1f); }
  // Credit cells it takes in an input buffer.
  constexpr int cells() const { return static_cast<int>(flits() + 7) / 8; }
  constexpr unsigned lane() const { return static_cast<unsigned>(bits_ >> 49 & 0xf); }
  constexpr unsigned flow() const { return static_cast<unsigned>(bits_ >> 53 & 0xff); }
  constexpr InboundClass inbound() const { return static_cast<InboundClass>(bits_ >> 61 & 3); }
  // On the first part of a detour: to the chip that Packet::next names.
  constexpr bool detours() const { return bits_ >> 63 != 0; }
  constexpr Hop on_detour(bool detours) const {
    return Hop((bits_ & ~(std::uint64_t{1} << 63)) | std::uint64_t{detours} << 63);
  }
  // The same hop for a packet with another index.
  constexpr Hop of_packet(PacketIndex index) const {
    return Hop((bits_ & ~std::uint64_t{0xfffffff}) | index);
  }
  constexpr Hop on_lane(unsigned lane) const {
    return Hop((bits_ & ~(std::uint64_t{0xf} << 49)) | std::uint64_t{lane} << 49);
  }

 private:
  std::uint64_t bits_ = 0;
};

// Packets of all of a machine: Hop has 28 bits for an index.
class PacketPool : public sim::Slab<Packet, 1u << 14, 1u << 28> {
 public:
  PacketPool() : Slab("unified bus: more than 2^28 packets at a time") {}

  // Allocates a packet that is in no queue.
  PacketIndex allocate() {
    const PacketIndex index = Slab::allocate();
    (*this)[index].next = kNoPacket;
    return index;
  }
};

using PacketQueue = sim::SlabQueue<Packet>;

}  // namespace cm384::ub
