// What passes from a module (a package, the CPU sockets, a sub-plane) to another: an event, an event with a
// packet, credits. The sender posts it to the receiver, which collects it when it runs next. Crossings
// serialises everything posted to bytes and back: nothing of it may refer to memory that modules share, so
// that modules can run in different processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/fabric.h"
#include "base/engine/payload.h"
#include "ub_fabric/link.h"
#include "ub_fabric/packet.h"

namespace cm384::ub {

struct CrossingCarrier;

// What an event's argument names: a packet of the Unified Bus, or of another fabric.
enum class Brings : std::uint8_t { nothing, hop, other_packet };

class Crossings {
 public:
  // `carrier`: takes what is packed to other processes and brings theirs; nullptr: it comes back to where it
  // was.
  Crossings(PacketPool& packets, sim::PayloadPool& payloads, CrossingCarrier* carrier = nullptr)
      : packets_(packets), payloads_(payloads), carrier_(carrier) {}
  // Packets of another fabric cross too.
  void add_packer(sim::PacketPacker& others) { others_ = &others; }

  // Between two windows every receiver calls these twice in the same order, before and after turn(): first
  // all that was put down goes into bytes, packets with their payload, and leaves the pools; then it comes
  // back. `brings(event)`: Brings, or whether it is a hop.
  template <class WhatItBrings>
  void events(sim::EventQueue& queue, WhatItBrings&& brings) {
    queue.each_posted([&](sim::Event& event) {
      if (packing_) {
        pack(event, static_cast<Brings>(brings(event)));
      } else {
        unpack(event);
      }
    });
  }
  // Credits posted to links after hold_credits(); the links collect them in the second call.
  void credits(LinkBank& links);
  void turn();
  // Starts anew. Requires that everything was unpacked.
  void clear();

  // Records and bytes so far.
  std::uint64_t records() const { return records_; }
  std::uint64_t bytes() const { return total_bytes_ + bytes_.size(); }

 private:
  void pack(sim::Event& event, Brings brings);
  void pack_packet(PacketIndex index);
  void unpack(sim::Event& event);
  template <class T>
  void put(const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto from = std::as_bytes(std::span(&record, 1));
    bytes_.insert(bytes_.end(), from.begin(), from.end());
  }
  template <class T>
  void take(T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    take(std::as_writable_bytes(std::span(&record, 1)));
  }
  void take(std::span<std::byte> to);

  PacketPool& packets_;
  sim::PayloadPool& payloads_;
  CrossingCarrier* carrier_;
  sim::PacketPacker* others_ = nullptr;
  bool packing_ = true;
  std::vector<std::byte> bytes_;
  std::size_t taken_ = 0;
  std::uint64_t records_ = 0, total_bytes_ = 0;
};

}  // namespace cm384::ub
