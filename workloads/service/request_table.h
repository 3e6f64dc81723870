// Where each request of a service stands. Every change of state is checked against the state before it, so
// that no time is read that is not there yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "workloads/service/simulation.h"

namespace cm384::service {

class RequestTable {
 public:
  explicit RequestTable(const RequestTrace& trace) : trace_(trace), served_(trace.requests.size()) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(served_.size()); }
  const Request& request(std::uint32_t k) const { return trace_.requests[k]; }
  const Served& served(std::uint32_t k) const { return served_[k]; }
  RequestState state(std::uint32_t k) const { return served_[k].state; }
  // That prefill makes the context of: of a preempted request with all tokens that it was given.
  std::int32_t prompt_tokens(std::uint32_t k) const { return request(k).prompt + served(k).made; }
  // Tokens of its context when it arrives at a die of decode.
  std::int32_t context_tokens(std::uint32_t k) const { return prompt_tokens(k) + served(k).kept; }
  // Tokens of the answer that decode has to make.
  std::int32_t decode_tokens(std::uint32_t k) const {
    return request(k).output - 1 - served(k).made - served(k).kept;
  }
  // Whether it has its first token, and is not done.
  bool has_context(std::uint32_t k) const {
    return state(k) >= RequestState::ready && state(k) <= RequestState::swapped;
  }

  void arrive(std::uint32_t k, Time at);
  void refuse(std::uint32_t k, Time at);
  // Tokens of a waiting prompt that the memory service has.
  void set_cached(std::uint32_t k, std::int32_t dram, std::int32_t evs, std::int32_t obs);
  void begin_prefill(std::uint32_t k, std::uint32_t instance, Time at);
  void end_prefill(std::uint32_t k, Time at);
  // `die` of decode, over all instances; `steps` that the answer takes there.
  void begin_transfer(std::uint32_t k, int die, std::int32_t steps, Time at);
  void end_transfer(std::uint32_t k, Time at);
  // Two deliveries of its tokens were so far apart.
  void note_gap(std::uint32_t k, Time wait) {
    served_[k].longest_gap = std::max(served_[k].longest_gap, wait);
  }
  void complete(std::uint32_t k, Time at);
  // A fault took what was made of it: it waits again.
  void restart(std::uint32_t k);
  // Its context was dropped after `tokens` of decode, the last of them `at`: it waits again, and keeps them.
  void preempt(std::uint32_t k, std::int32_t tokens, Time at);
  // Its context went to host memory after `tokens` of decode, the last of them `at`; and came back to a die,
  // where the rest of the answer takes `steps`.
  void swap_out(std::uint32_t k, std::int32_t tokens, Time at);
  void begin_return(std::uint32_t k, int die, std::int32_t steps);
  void end_return(std::uint32_t k);
  void lose_return(std::uint32_t k);  // its die was lost on the way
  // The table is empty then.
  std::vector<Served> release() { return std::move(served_); }

 private:
  Served& advance(std::uint32_t k, RequestState from, RequestState to);

  const RequestTrace& trace_;
  std::vector<Served> served_;
};

}  // namespace cm384::service
