#include "ub_fabric/crossing.h"

#include <algorithm>
#include <cassert>

#include "hw/error.h"

namespace cm384::ub {
namespace {

enum class Kind : std::uint8_t { event, packet, credit };

// What a record leaves behind while it is in bytes.
constexpr std::uint64_t kGone = 0xdeadbeefdeadbeef;

}  // namespace

void Crossings::pack(sim::Event& event, bool packet) {
  ++records_;
  put(packet ? Kind::packet : Kind::event);
  put(event);
  if (packet) {
    const PacketIndex index = Hop{event.argument}.packet();
    Packet& p = packets_[index];
    const bool has_bytes = p.payload.chunk != sim::kNoChunk;
    put(p);
    if (has_bytes) {
      const std::byte* const chunk = payloads_.bytes(p.payload.chunk);
      bytes_.insert(bytes_.end(), chunk, chunk + p.bytes);
      payloads_.release(p.payload);
    }
    packets_.release(index);
  }
  event = {event.at, kGone, 0, 0, kGone};
}

void Crossings::unpack(sim::Event& event) {
  Kind kind{};
  take(kind);
  take(event);
  if (kind == Kind::event) return;
  if (kind != Kind::packet) throw MachineError("crossings: credits where an event should stand");
  const PacketIndex index = packets_.allocate();
  Packet& p = packets_[index];
  take(p);
  if (p.payload.chunk != sim::kNoChunk) {
    p.payload.chunk = payloads_.allocate();
    take({payloads_.bytes(p.payload.chunk), p.bytes});
  }
  event.argument = Hop{event.argument}.of_packet(index).bits();
}

void Crossings::credits(LinkBank& links) {
  links.each_posted([this](PostedCredits& credits) {
    if (packing_) {
      ++records_;
      put(Kind::credit);
      put(credits);
      credits = {};
      return;
    }
    Kind kind{};
    take(kind);
    if (kind != Kind::credit) throw MachineError("crossings: an event where credits should stand");
    take(credits);
  });
  if (!packing_) links.take_up_credits();
}

void Crossings::take(std::span<std::byte> to) {
  if (bytes_.size() - taken_ < to.size()) throw MachineError("crossings: more taken out than was put in");
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(taken_), to.size(), to.begin());
  taken_ += to.size();
}

void Crossings::turn() {
  packing_ = false;
}

void Crossings::clear() {
  if (taken_ != bytes_.size()) throw MachineError("crossings: less taken out than was put in");
  total_bytes_ += bytes_.size();
  bytes_.clear();
  taken_ = 0;
  packing_ = true;
}

}  // namespace cm384::ub
