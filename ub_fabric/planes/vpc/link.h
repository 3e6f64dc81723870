// One direction of a card, or a storage's way out: packets wait, one is sent at a time.
#pragma once

#include <array>
#include <cstdint>

#include "base/engine/slab.h"
#include "base/text/units.h"

namespace cm384::vpc {

// What a packet is on its way: the reader's request; the server's request to storage; its answer; the data.
enum class Kind : std::uint8_t { request, fetch, fetched, data };

struct Packet {
  std::uint32_t next = sim::kNoRecord;
  std::uint32_t read = 0;     // number of the read that it belongs to
  std::uint32_t payload = 0;  // bytes of the block that it asks for or carries
  Kind kind = Kind::request;

  bool carries() const { return kind == Kind::fetched || kind == Kind::data; }
};

// Requests and packets with data wait apart and take turns, so that no request stands behind a window of
// data; each of the two is first in, first out.
class Link {
 public:
  // `header`: bytes on the wire beside a packet's payload.
  Link(Bandwidth rate, Bytes header) : byte_(Bytes{1}, rate), header_(header.count) {}

  void wait(sim::Slab<Packet>& packets, std::uint32_t packet) {
    waiting_[packets[packet].carries() ? 1 : 0].push(packets, packet);
  }
  // Takes the next packet in turn; sim::kNoRecord: none waits, or one is being sent. Its last byte has left
  // at now + `takes`; sent() is due then.
  std::uint32_t send(sim::Slab<Packet>& packets, Time& takes) {
    if (sending_) return sim::kNoRecord;
    unsigned from = turn_;
    if (waiting_[from].empty()) from ^= 1;
    if (waiting_[from].empty()) return sim::kNoRecord;
    turn_ = from ^ 1;
    sending_ = true;
    const std::uint32_t packet = waiting_[from].pop(packets);
    const Packet& sent = packets[packet];
    const std::int64_t bytes = header_ + (sent.carries() ? sent.payload : 0);
    takes = byte_.start(bytes);
    busy_ += takes;
    bytes_ += static_cast<std::uint64_t>(bytes);
    ++packets_;
    return packet;
  }
  void sent() { sending_ = false; }

  Time busy() const { return busy_; }
  std::uint64_t bytes() const { return bytes_; }  // on the wire
  std::uint64_t packets() const { return packets_; }

 private:
  Clock byte_;
  std::int64_t header_;
  std::array<sim::SlabQueue<Packet>, 2> waiting_;  // requests, data
  unsigned turn_ = 0;
  bool sending_ = false;
  Time busy_;
  std::uint64_t bytes_ = 0, packets_ = 0;
};

}  // namespace cm384::vpc
