// One output with its arbiter, the same at a switch chip and at a controller's port: a packet is sent at once
// where none waits before it, else it is queued and the output schedules a wake-up.
#pragma once

#include <array>
#include <bit>

#include "ub_fabric/link.h"
#include "ub_fabric/service_classes.h"
#include "ub_fabric/virtual_output_queues.h"

namespace cm384::ub {

// A packet of `input` is ready for `lane` of `output`. `send(input, output, lane, hop)` puts it on the link;
// its credits are taken. hop.lane() is the lane it came by.
template <class Send>
inline void offer(LinkBank& links, VirtualOutputQueues& waiting, unsigned output, unsigned lane,
                  unsigned input, Hop hop, Time now, Send&& send) {
  const unsigned lanes = waiting.lanes_waiting(output);
  const bool idle = links.accepts_at(output) <= now;
  if (lanes >> lane & 1) {  // the output will wake up for those before it
    waiting.push(output, lane, input, hop);
    return;
  }
  // An output that is to wake up at this very moment arbitrates then, after all arrivals of the moment.
  const bool due = lanes != 0 && links.armed_at(output) <= now;
  if (idle && !due && links.take_credits(output, lane, hop.cells(), now)) {
    send(input, output, lane, hop);
    return;
  }
  waiting.push(output, lane, input, hop);
  if (!idle) {
    links.arm(output, links.accepts_at(output));
  } else if (!due) {
    links.await_credits(output, lane);
  }
}

// The output has woken up: sends the packet whose turn it is among the lanes that have credits.
template <class Send>
inline void serve(LinkBank& links, VirtualOutputQueues& waiting, unsigned output, Time now, Send&& send) {
  unsigned lanes = waiting.lanes_waiting(output);
  if (lanes == 0) return;
  if (links.accepts_at(output) > now) {
    links.arm(output, links.accepts_at(output));
    return;
  }
  while (lanes != 0) {
    const unsigned lane = waiting.next_lane(output, lanes);
    const unsigned input = waiting.next_input(output, lane);
    const Hop hop = waiting.front(output, lane, input);
    if (links.take_credits(output, lane, hop.cells(), now)) {
      waiting.pop(output, lane, input);
      send(input, output, lane, hop);
      if (waiting.lanes_waiting(output) != 0) links.arm(output, links.accepts_at(output));
      return;
    }
    links.await_credits(output, lane);
    lanes &= ~(1u << lane);
  }
}

// A packet that an output may send: `hop` of `input`, by `lane`.
struct Candidate {
  Hop hop;
  unsigned lane = 0, input = 0;
};

// Age arbitration: of the packets at the heads of their queues that have credits, the one that chose its port
// first, with round robin over lanes and inputs among equals; false where none has credits.
inline bool find_oldest(LinkBank& links, const VirtualOutputQueues& waiting, const PacketPool& packets,
                        unsigned output, Time now, Candidate& oldest) {
  Time sent = Time::never();
  for (unsigned lanes = waiting.lanes_waiting(output); lanes != 0;) {
    const unsigned lane = waiting.next_lane(output, lanes);
    lanes &= ~(1u << lane);
    waiting.for_each_input(output, lane, [&](unsigned input) {
      const Hop hop = waiting.front(output, lane, input);
      const Time since = packets[hop.packet()].sent;
      if (since >= sent || links.credits(output, lane, now) < hop.cells()) return;
      sent = since;
      oldest = {hop, lane, input};
    });
  }
  return sent != Time::never();
}

// Class arbitration: the packet of the class whose turn it is among those that have credits, with round robin
// over the lanes of a class and the inputs of a lane; false where none has credits.
inline bool find_by_class(LinkBank& links, const VirtualOutputQueues& waiting, ClassTurns& turns,
                          unsigned output, Time now, Candidate& chosen) {
  std::array<Candidate, ServiceClasses::kMostLanes> heads;  // by lane
  unsigned lanes = 0, classes = 0;                          // that have credits
  for (unsigned left = waiting.lanes_waiting(output); left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const unsigned input = waiting.next_input(output, lane);
    const Hop hop = waiting.front(output, lane, input);
    if (links.credits(output, lane, now) < hop.cells()) continue;
    heads[lane] = {hop, lane, input};
    lanes |= 1u << lane;
    classes |= 1u << turns.classes().of_lane(lane);
  }
  if (lanes == 0) return false;
  const auto lane_of = [&](unsigned c) {
    return turns.next_lane(output, c, lanes & turns.classes().lanes_of(c));
  };
  const unsigned c = turns.next(
      output, classes, [&](unsigned of) { return static_cast<int>(heads[lane_of(of)].hop.flits()); });
  chosen = heads[lane_of(c)];
  turns.sent(output, chosen.lane);
  return true;
}

// As serve(), where service classes arbitrate.
template <class Send>
inline void serve_classes(LinkBank& links, VirtualOutputQueues& waiting, ClassTurns& turns,
                          const PacketPool& packets, unsigned output, Time now, Send&& send) {
  const unsigned lanes = waiting.lanes_waiting(output);
  if (lanes == 0) return;
  if (links.accepts_at(output) > now) {
    links.arm(output, links.accepts_at(output));
    return;
  }
  Candidate next;
  const bool found = turns.classes().arbitration() == Arbitration::age
                         ? find_oldest(links, waiting, packets, output, now, next)
                         : find_by_class(links, waiting, turns, output, now, next);
  if (!found) {
    for (unsigned left = lanes; left != 0; left &= left - 1)
      links.await_credits(output, static_cast<unsigned>(std::countr_zero(left)));
    return;
  }
  links.take_credits(output, next.lane, next.hop.cells(), now);
  waiting.pop(output, next.lane, next.input);
  const unsigned c = turns.classes().of_lane(next.lane);
  if ((waiting.lanes_waiting(output) & turns.classes().lanes_of(c)) == 0) turns.emptied(output, c);
  send(next.input, output, next.lane, next.hop);
  if (waiting.lanes_waiting(output) != 0) links.arm(output, links.accepts_at(output));
}

}  // namespace cm384::ub
