// What a controller does where parts of its sub-planes go out of order while the machine runs.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "ub_fabric/controller.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {

UbController::Breaks& UbController::breaks() {
  if (breaks_ == nullptr) {
    breaks_ = std::make_unique<Breaks>();
    breaks_->changes.resize(planes_.size());
  }
  return *breaks_;
}

void UbController::change_at(unsigned port, const NetworkChange& change) {
  std::vector<NetworkChange>& changes = breaks().changes[port];
  queue_.push(change.at, unit_, kChange, std::uint64_t{port} << 32 | changes.size());
  changes.push_back(change);
}

void UbController::narrow_at(Time at, unsigned port, double width) {
  auto& narrowings = breaks().narrowings;
  queue_.push(at, unit_, kNarrow, narrowings.size());
  narrowings.emplace_back(port, width);
}

// What waits for the port and is not led to its destination by it any more goes by another.
void UbController::change(unsigned port, unsigned number, Time now) {
  networks_[port] = breaks_->changes[port][number].network;
  const Network& network = *networks_[port];
  whole_ = false;
  reach_.resize(planes_.size() * network.endpoints(), Reach::unknown);
  std::fill_n(reach_.begin() + static_cast<std::ptrdiff_t>(std::size_t{port} * network.endpoints()),
              network.endpoints(), Reach::unknown);
  std::vector<PacketIndex> waited;
  while (waiting_.lanes_waiting(port) != 0) {
    const unsigned lane = waiting_.next_lane(port, waiting_.lanes_waiting(port));
    waited.push_back(waiting_.front(port, lane, 0).packet());
    waiting_.pop(port, lane, 0);
  }
  ports_.forget(port);
  for (const PacketIndex index : waited) {
    if (usable(port, packets_[index].destination)) {
      enqueue(port, index, now);
    } else {
      enqueue_elsewhere(index, now);
    }
  }
}

void UbController::enqueue_elsewhere(PacketIndex index, Time now) {
  Packet& p = packets_[index];
  p.plane = static_cast<std::uint8_t>(usable_port(turn_, p.destination));
  turn_ = p.plane + 1u == planes_.size() ? 0 : p.plane + 1u;
  p.lane = static_cast<std::uint8_t>(p.lane % (2 * lane_pairs_));
  enqueue(p.plane, index, now);
}

// The packet that was lost becomes its request again; of one that was a response its target has kept the
// answer.
void UbController::resend(PacketIndex index, Time now) {
  Packet& p = packets_[index];
  if (is_response(p.kind)) {
    std::swap(p.source, p.destination);
    p.performed = true;
  }
  const bool read = p.operation == sim::Operation::read;
  p.kind = request_kind(p.operation);
  p.flits = static_cast<std::uint8_t>(packet_flits(p.kind, read ? 0 : p.bytes));
  p.lane = static_cast<std::uint8_t>(p.lane / 2 * 2 % (2 * lane_pairs_));
  ++counters_.resent;
  choose_port(index, now);
}

}  // namespace cm384::ub
