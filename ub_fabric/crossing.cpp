#include "ub_fabric/crossing.h"

#include <algorithm>
#include <cassert>

#include "base/text/error.h"
#include "ub_fabric/crossing_carrier.h"

namespace cm384::ub {
namespace {

enum class Kind : std::uint8_t { event, hop, other_packet, credit, no_more_credits };

}  // namespace

void Crossings::pack(sim::Event& event, Brings brings) {
  ++records_;
  switch (brings) {
    case Brings::nothing:
      put(Kind::event);
      put(event);
      break;
    case Brings::hop:
      put(Kind::hop);
      put(event);
      pack_packet(Hop{event.argument}.packet());
      break;
    case Brings::other_packet:
      put(Kind::other_packet);
      put(event);
      others_->pack(event.argument, bytes_);
      break;
  }
  event = {event.at, kDeparted, 0, 0, kDeparted};
}

void Crossings::pack_packet(PacketIndex index) {
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

void Crossings::unpack(sim::Event& event) {
  if (carrier_ != nullptr && event.order != kDeparted) return;  // of this process
  Kind kind{};
  take(kind);
  take(event);
  if (kind == Kind::event) return;
  if (kind == Kind::other_packet) {
    std::span<const std::byte> left = std::span(bytes_).subspan(taken_);
    event.argument = others_->unpack(left);
    taken_ = bytes_.size() - left.size();
    return;
  }
  if (kind != Kind::hop) throw MachineError("crossings: credits where an event should stand");
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
  if (packing_) {
    links.each_posted([this](PostedCredits& credits) {
      ++records_;
      put(Kind::credit);
      put(credits);
      if (carrier_ != nullptr) carrier_->earliest_credits = std::min(carrier_->earliest_credits, credits.at);
      credits = {};
    });
    put(Kind::no_more_credits);
    if (carrier_ != nullptr) links.collect_held_credits();  // of none of its cells
    return;
  }
  const auto next = [this](PostedCredits& credits) {
    Kind kind{};
    take(kind);
    if (kind != Kind::credit && kind != Kind::no_more_credits)
      throw MachineError("crossings: an event where credits should stand");
    if (kind == Kind::credit) take(credits);
    return kind == Kind::credit;
  };
  if (carrier_ == nullptr) links.each_posted([&](PostedCredits& credits) { next(credits); });
  for (PostedCredits credits; next(credits);)
    links.post_credits(credits.link, credits.lane, credits.cells, credits.at);
  if (carrier_ == nullptr) links.collect_held_credits();
}

void Crossings::take(std::span<std::byte> to) {
  if (bytes_.size() - taken_ < to.size()) throw MachineError("crossings: more taken out than was put in");
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(taken_), to.size(), to.begin());
  taken_ += to.size();
}

void Crossings::turn() {
  packing_ = false;
  if (carrier_ != nullptr) carrier_->turned(bytes_);
}

void Crossings::clear() {
  if (taken_ != bytes_.size()) throw MachineError("crossings: less taken out than was put in");
  total_bytes_ += bytes_.size();
  bytes_.clear();
  taken_ = 0;
  packing_ = true;
}

}  // namespace cm384::ub
