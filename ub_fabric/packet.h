// Packets of the Unified Bus: plain 64 B records in one slab a machine, named by 32-bit indices.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "base/engine/worker.h"
#include "base/text/units.h"

namespace cm384::ub {

using PacketIndex = std::uint32_t;
inline constexpr PacketIndex kNoPacket = 0xffffffff;

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
  // The same of a packet that has another place.
  constexpr Hop of_packet(PacketIndex index) const {
    return Hop((bits_ & ~std::uint64_t{0xfffffff}) | index);
  }
  constexpr Hop on_lane(unsigned lane) const {
    return Hop((bits_ & ~(std::uint64_t{0xf} << 49)) | std::uint64_t{lane} << 49);
  }

 private:
  std::uint64_t bits_ = 0;
};

// Slab of packets. One pool a machine; each worker has a list of free ones. References stay valid until
// release.
class PacketPool {
 public:
  void set_workers(unsigned workers) { lists_.set_workers(workers); }

  PacketIndex allocate() {
    List& list = lists_.mine();
    std::vector<PacketIndex>& free = list.free;
    if (free.empty()) grow(free);
    const PacketIndex index = free.back();
    free.pop_back();
    if (free.size() >= kAhead) __builtin_prefetch(&(*this)[free[free.size() - kAhead]], 1);
    (*this)[index].next = kNoPacket;
    ++list.taken;
    return index;
  }
  void release(PacketIndex index) {
    List& list = lists_.mine();
    list.free.push_back(index);
    --list.taken;
  }
  Packet& operator[](PacketIndex index) { return pages_[index >> kPageShift][index & (kPage - 1)]; }
  const Packet& operator[](PacketIndex index) const {
    return pages_[index >> kPageShift][index & (kPage - 1)];
  }
  std::size_t in_use() const {
    std::ptrdiff_t sum = 0;
    lists_.each([&](const List& list) { sum += list.taken; });
    return static_cast<std::size_t>(sum);
  }

 private:
  static constexpr unsigned kPageShift = 14;
  static constexpr PacketIndex kPage = 1u << kPageShift;
  static constexpr PacketIndex kPages = (1u << 28) / kPage;  // Hop has 28 bits for an index
  static constexpr std::size_t kAhead = 4;  // allocations that the host's cache is asked ahead for
  struct List {
    std::vector<PacketIndex> free;  // the last released last
    std::ptrdiff_t taken = 0;
  };
  void grow(std::vector<PacketIndex>& free);

  sim::PerWorker<List> lists_;
  std::unique_ptr<std::mutex> growing_ = std::make_unique<std::mutex>();
  PacketIndex used_ = 0;  // pages
  // Never moves: others read it while one grows.
  std::unique_ptr<std::unique_ptr<Packet[]>[]> pages_ = std::make_unique<std::unique_ptr<Packet[]>[]>(kPages);
};

// First-in first-out list of packets, linked through Packet::next. A packet stands in one list at a time.
struct PacketQueue {
  PacketIndex head = kNoPacket;
  PacketIndex tail = kNoPacket;

  bool empty() const { return head == kNoPacket; }
  void push(PacketPool& pool, PacketIndex index) {
    pool[index].next = kNoPacket;
    if (empty()) {
      head = index;
    } else {
      pool[tail].next = index;
    }
    tail = index;
  }
  PacketIndex pop(PacketPool& pool) {
    const PacketIndex index = head;
    head = pool[index].next;
    return index;
  }
};

}  // namespace cm384::ub
