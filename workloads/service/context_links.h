// Contexts on their way from a prefill instance to a die of decode over the RDMA plane: which dies, how long
// in closed form, and the links of a whole service.
#pragma once

#include <cstdint>
#include <vector>

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
LinkTime reserve_links(Time from, double bytes, Bandwidth payload_rate, Time& sender, Time& receiver);

// The links of all dies of a service, and the requests whose contexts are on their way. By the published
// mapping a die of decode asks one die of each prefill instance.
class ContextLinks {
 public:
  // `payload_rate` of a die's link.
  ContextLinks(const ContextMapping& mapping, Bandwidth payload_rate)
      : mapping_(mapping), rate_(payload_rate) {}

  // To a die of decode, counted over all instances; as soon as both links are free.
  LinkTime send(std::uint32_t request, std::uint32_t prefill, int die, double bytes, Time now);
  // What send() began has ended, whether or not the context was lost meanwhile.
  void end_transfer() { --transfers_; }
  // The request's context is not on its way to this die any more.
  void remove(std::uint32_t request, int die);
  // Requests whose contexts are on their way to a die.
  const std::vector<std::uint32_t>& bound_for(int die);
  // The die was lost, or its instance: the link is free.
  void reset(int die) { receiver(die).free = {}; }

  int transfers() const { return transfers_; }
  double busy_s() const { return busy_s_; }  // over receiving links

 private:
  struct Receiver {
    Time free{};
    std::vector<std::uint32_t> requests;
  };
  Receiver& receiver(int die);

  ContextMapping mapping_;
  Bandwidth rate_;
  std::vector<std::vector<Time>> senders_;  // from when on each link is free, by instance and die
  std::vector<Receiver> receivers_;         // by die
  int transfers_ = 0;
  double busy_s_ = 0;
};

}  // namespace cm384::service
