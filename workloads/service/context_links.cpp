#include "workloads/service/context_links.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cm384::service {

int ContextMapping::prefill_rank(int dp_rank, int tp_rank) const {
  // floor(dp_rank / (decode_dp x decode_tp / prefill_tp)) in whole numbers.
  const std::int64_t group = std::int64_t{dp_rank} * prefill_tp / (std::int64_t{decode_dp} * decode_tp);
  return static_cast<int>(group) * decode_tp + tp_rank;
}

Bandwidth payload_rate(const hw::Rdma& plane) {
  const double share =
      static_cast<double>(plane.mtu.count) / static_cast<double>(plane.mtu.count + plane.header.count);
  return {std::llround(static_cast<double>(plane.link_rate.bytes_per_second) * share)};
}

Time write_latency(const hw::Rdma& plane) {
  const Time second_link = Clock(Bytes{1}, plane.link_rate).start(plane.mtu.count + plane.header.count);
  return plane.send_latency + second_link + plane.link_latency * 2 + plane.switch_latency +
         plane.receive_latency;
}

LinkTime take_links(Time from, double bytes, Bandwidth payload_rate, Time& sender, Time& receiver) {
  const Time begin = std::max({from, sender, receiver});
  const Time span{std::llround(bytes / static_cast<double>(payload_rate.bytes_per_second) * 1e12)};
  sender = receiver = begin + span;
  return {begin, begin + span};
}

}  // namespace cm384::service
