#include "workloads/service/request_table.h"

#include <cassert>

namespace cm384::service {

Served& RequestTable::advance(std::uint32_t k, [[maybe_unused]] RequestState from, RequestState to) {
  Served& served = served_[k];
  assert(served.state == from);
  served.state = to;
  return served;
}

void RequestTable::arrive(std::uint32_t k, Time at) {
  advance(k, RequestState::pending, RequestState::waiting).arrival = at;
}

void RequestTable::set_cached(std::uint32_t k, std::int32_t dram, std::int32_t evs, std::int32_t obs) {
  Served& served = served_[k];
  assert(served.state == RequestState::waiting);
  served.cached_dram = dram;
  served.cached_evs = evs;
  served.cached_obs = obs;
}

void RequestTable::begin_prefill(std::uint32_t k, std::uint32_t instance, Time at) {
  Served& served = advance(k, RequestState::waiting, RequestState::prefilling);
  if (served.made == 0) served.prefill_start = at;
  served.instance = static_cast<std::int16_t>(instance);
}

void RequestTable::end_prefill(std::uint32_t k, Time at) {
  Served& served = advance(k, RequestState::prefilling, RequestState::ready);
  if (served.made == 0) served.first_token = at;
  served.last_token = at;
}

void RequestTable::begin_transfer(std::uint32_t k, int die, std::int32_t steps, Time at) {
  Served& served = advance(k, RequestState::ready, RequestState::transferring);
  served.transfer_start = at;
  served.die = die;
  served.steps = steps;
}

void RequestTable::end_transfer(std::uint32_t k, Time at) {
  advance(k, RequestState::transferring, RequestState::decoding).transferred = at;
}

// Where no token is left for decode it is done with prefill.
void RequestTable::complete(std::uint32_t k, Time at) {
  const RequestState last = decode_tokens(k) <= 0 ? RequestState::ready : RequestState::decoding;
  advance(k, last, RequestState::done).done = at;
}

void RequestTable::restart(std::uint32_t k) {
  Served& served = served_[k];
  assert(served.state == RequestState::prefilling || has_context(k));
  served.state = RequestState::waiting;
  served.die = -1;
  served.made = served.kept = 0;
  served.longest_gap = {};
  ++served.restarts;
}

void RequestTable::preempt(std::uint32_t k, std::int32_t tokens, Time at) {
  Served& served = advance(k, RequestState::decoding, RequestState::waiting);
  served.made += 1 + served.kept + tokens;
  served.kept = 0;
  served.last_token = at;
  served.die = -1;
  ++served.preemptions;
}

void RequestTable::swap_out(std::uint32_t k, std::int32_t tokens, Time at) {
  Served& served = advance(k, RequestState::decoding, RequestState::swapped);
  served.kept += tokens;
  served.last_token = at;
  served.die = -1;
  ++served.preemptions;
}

void RequestTable::begin_return(std::uint32_t k, int die, std::int32_t steps) {
  Served& served = advance(k, RequestState::swapped, RequestState::swapped);
  served.die = die;
  served.steps = steps;
}

void RequestTable::end_return(std::uint32_t k) {
  advance(k, RequestState::swapped, RequestState::decoding);
}

void RequestTable::lose_return(std::uint32_t k) {
  advance(k, RequestState::swapped, RequestState::swapped).die = -1;
}

void RequestTable::refuse(std::uint32_t k, Time at) {
  advance(k, RequestState::pending, RequestState::refused).arrival = at;
}

}  // namespace cm384::service
