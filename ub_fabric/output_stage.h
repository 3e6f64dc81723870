// One output with its arbiter, the same at a switch chip and at a controller's port: a packet goes out at
// once where nobody is before it, else it waits in its queue and the output wakes up for it.
#pragma once

#include "ub_fabric/link.h"
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

}  // namespace cm384::ub
