// What passes from a module (a package, the CPU sockets, a sub-plane) to another: an event, an event with a
// packet, credits. Whoever sends puts it down at the receiver, who takes it up when it runs next. This turns
// all that is put down into bytes and back: nothing of it may refer to memory that modules share, so that
// they could as well run in different processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/event_queue.h"
#include "sim/payload.h"
#include "ub_fabric/link.h"
#include "ub_fabric/packet.h"

namespace cm384::ub {

class Crossings {
 public:
  Crossings(PacketPool& packets, sim::PayloadPool& payloads) : packets_(packets), payloads_(payloads) {}

  // Between two windows every receiver calls these twice in the same order, before and after turn(): first
  // all that was put down goes into bytes, packets with their payload, and leaves the pools; then it comes
  // back. `carries_packet(event)`: the event's argument is a Hop.
  template <class CarriesPacket>
  void events(sim::EventQueue& queue, CarriesPacket&& carries_packet) {
    queue.each_posted([&](sim::Event& event) {
      if (packing_) {
        pack(event, carries_packet(event));
      } else {
        unpack(event);
      }
    });
  }
  // Of links that hold_credits(); takes them up in the end.
  void credits(LinkBank& links);
  void turn();
  // Begins anew. Requires that all was taken out.
  void clear();

  // Records and bytes so far.
  std::uint64_t records() const { return records_; }
  std::uint64_t bytes() const { return total_bytes_ + bytes_.size(); }

 private:
  void pack(sim::Event& event, bool packet);
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
  bool packing_ = true;
  std::vector<std::byte> bytes_;
  std::size_t taken_ = 0;
  std::uint64_t records_ = 0, total_bytes_ = 0;
};

}  // namespace cm384::ub
