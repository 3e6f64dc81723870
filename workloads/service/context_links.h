// Contexts on their way from a prefill instance to a die of decode over the RDMA plane: which dies, and how
// long in closed form.
#pragma once

#include "base/text/units.h"
#include "hw/parameters/rdma.h"

namespace cm384::service {

// The published mapping ([P] 4.3.3). A context lies on every rank of tensor parallelism, since latents are
// not split over heads; the mapping spreads the ranks of decode over those that have it.
struct ContextMapping {
  int prefill_tp = 32;  // ranks of a prefill instance
  int decode_tp = 1;    // ranks that each have a context of decode
  int decode_dp = 320;  // that share a decode instance's requests

  // Of a prefill instance, for a rank of decode: floor(dp_rank / group_size) x decode_tp + tp_rank, with
  // group_size = decode_dp / (prefill_tp / decode_tp), which need not be a whole number.
  int prefill_rank(int dp_rank, int tp_rank = 0) const;
};

// Payload that a link carries in packets of the whole MTU: the peak of a write.
Bandwidth payload_rate(const hw::Rdma& plane);
// Of a packet of the whole MTU within a leaf: from the write's request until it is at the target's memory,
// less its time on the first link. Of a write of b bytes the last is there b / payload_rate() later.
Time write_latency(const hw::Rdma& plane);

// A closed form of the links of two dies that take one context at a time, in the order of the calls.
struct LinkTime {
  Time begin, end;  // on the links
};
// `sender` and `receiver`: from when on their links are free, which moves to the end.
LinkTime take_links(Time from, double bytes, Bandwidth payload_rate, Time& sender, Time& receiver);

}  // namespace cm384::service
