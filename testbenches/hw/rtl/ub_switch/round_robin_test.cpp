// The round-robin arbiter against its definition, all requests from all places.
#include <gtest/gtest.h>

#include "Vrtl_round_robin.h"

namespace cm384::ub::round_robin_test {
namespace {

TEST(RoundRobin, GrantsTheFirstRequestAtOrAfterItsPlace) {
  constexpr unsigned kRequesters = 5;
  VerilatedContext context;
  Vrtl_round_robin arbiter{&context};
  for (unsigned place = 0; place < kRequesters; ++place) {
    for (unsigned requests = 0; requests < 1u << kRequesters; ++requests) {
      arbiter.request_i = static_cast<CData>(requests);
      arbiter.next_i = static_cast<CData>(place);
      arbiter.eval();
      unsigned winner = kRequesters;
      for (unsigned k = 0; k < kRequesters && winner == kRequesters; ++k) {
        if (requests >> (place + k) % kRequesters & 1) winner = (place + k) % kRequesters;
      }
      ASSERT_EQ(arbiter.any_o != 0, winner != kRequesters);
      if (winner == kRequesters) continue;
      ASSERT_EQ(arbiter.index_o, winner) << "requests " << requests << " from place " << place;
      ASSERT_EQ(arbiter.grant_o, 1u << winner);
    }
  }
}

// Where the place moves behind each winner, as all callers have it do: a requester that keeps asking comes
// nearer with every grant to another, whoever asks beside it, so it waits for at most all the others once.
TEST(RoundRobin, NobodyStarves) {
  constexpr unsigned kRequesters = 5;
  VerilatedContext context;
  Vrtl_round_robin arbiter{&context};
  const auto grants_before = [](unsigned place, unsigned requester) {
    return (requester + kRequesters - place) % kRequesters;
  };
  for (unsigned requester = 0; requester < kRequesters; ++requester) {
    for (unsigned place = 0; place < kRequesters; ++place) {
      for (unsigned requests = 0; requests < 1u << kRequesters; ++requests) {
        if ((requests >> requester & 1) == 0) continue;
        arbiter.request_i = static_cast<CData>(requests);
        arbiter.next_i = static_cast<CData>(place);
        arbiter.eval();
        const unsigned winner = arbiter.index_o;
        if (winner == requester) continue;
        ASSERT_LT(grants_before((winner + 1) % kRequesters, requester), grants_before(place, requester))
            << requester << " asks beside " << requests << " from place " << place;
      }
    }
  }
}

}  // namespace
}  // namespace cm384::ub::round_robin_test
