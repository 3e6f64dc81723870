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

LinkTime reserve_links(Time from, double bytes, Bandwidth payload_rate, Time& sender, Time& receiver) {
  const Time begin = std::max({from, sender, receiver});
  const Time span{std::llround(bytes / static_cast<double>(payload_rate.bytes_per_second) * 1e12)};
  sender = receiver = begin + span;
  return {begin, begin + span};
}

LinkTime ContextLinks::send(std::uint32_t request, std::uint32_t prefill, int die, double bytes, Time now) {
  if (prefill >= senders_.size())
    senders_.resize(prefill + 1, std::vector<Time>(static_cast<std::size_t>(mapping_.prefill_tp)));
  const int rank = mapping_.prefill_rank(die % (mapping_.decode_dp * mapping_.decode_tp));
  Receiver& to = receiver(die);
  const LinkTime time =
      reserve_links(now, bytes, rate_, senders_[prefill][static_cast<std::size_t>(rank)], to.free);
  to.requests.push_back(request);
  ++transfers_;
  busy_s_ += (time.end - time.begin).us() * 1e-6;
  return time;
}

void ContextLinks::remove(std::uint32_t request, int die) {
  std::erase(receiver(die).requests, request);
}

const std::vector<std::uint32_t>& ContextLinks::bound_for(int die) {
  return receiver(die).requests;
}

ContextLinks::Receiver& ContextLinks::receiver(int die) {
  const auto k = static_cast<std::size_t>(die);
  if (k >= receivers_.size()) receivers_.resize(k + 1);
  return receivers_[k];
}

}  // namespace cm384::service
