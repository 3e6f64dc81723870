// Searches: combinations, how much each rung serves, and the best of all against trying all of them.
#include "workloads/service/study/serve_search.h"

#include <gmock/gmock.h>

#include "base/text/error.h"

namespace cm384::studies::serve_search_test {
namespace {

using ::testing::ElementsAre;

TEST(Search, CombinesEachValueWithEach) {
  EXPECT_THAT(combinations_of({"a=1,2", "b=x,y,z"}),
              ElementsAre(ElementsAre("a=1", "b=x"), ElementsAre("a=1", "b=y"), ElementsAre("a=1", "b=z"),
                          ElementsAre("a=2", "b=x"), ElementsAre("a=2", "b=y"), ElementsAre("a=2", "b=z")));
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"a"}, {"a="}, {"a=1", "a=2"}, std::vector<std::string>(20, "x=1,2,3")})
    EXPECT_THROW(combinations_of(bad), InputError);
}

// 216 deployments serve a 27th of the requests, 72 a ninth, 24 a third, and 8 all.
TEST(Search, BeginsWithSoFewRequestsThatTheLastServeAll) {
  EXPECT_NEAR(first_share(216, 1'000'000), 1.0 / 27, 1e-12);
  EXPECT_NEAR(first_share(217, 1'000'000), 1.0 / 81, 1e-12);
  EXPECT_EQ(first_share(8, 1'000'000), 1);
  EXPECT_EQ(first_share(216, 2000), 0.1) << "200 requests at least";
  EXPECT_EQ(first_share(216, 100), 1);
  EXPECT_EQ(kept_of(216), 72u);
  EXPECT_EQ(kept_of(25), 9u);
  EXPECT_EQ(kept_of(9), 8u);
  EXPECT_EQ(kept_of(3), 3u);
}

// Of requests that come by themselves the first; of users who ask in turn the first of each, whoever stands
// first in the file.
TEST(Search, APartOfSessionsHasAllOfThemForAShorterTime) {
  service::RequestTrace trace;
  for (int k = 0; k < 10; ++k) trace.requests.push_back({.prompt = k + 1, .output = 1});
  EXPECT_EQ(first_of(trace, 0.35).requests.size(), 4u);
  EXPECT_EQ(first_of(trace, 0.35).requests.back().prompt, 4);
  EXPECT_EQ(first_of(trace, 1).requests.size(), 10u);
  // Three sessions of 1, 3 and 6 requests, one behind another.
  for (const int follower : {2, 3, 5, 6, 7, 8, 9})
    trace.requests[static_cast<std::size_t>(follower)].follows = follower - 1;
  const auto part = first_of(trace, 0.5).requests;
  std::vector<std::pair<int, int>> prompts;
  for (const service::Request& request : part) prompts.emplace_back(request.prompt, request.follows);
  using Pair = std::pair<int, int>;
  EXPECT_THAT(prompts,
              ElementsAre(Pair{1, -1}, Pair{2, -1}, Pair{3, 1}, Pair{5, -1}, Pair{6, 3}, Pair{7, 4}));
}

}  // namespace
}  // namespace cm384::studies::serve_search_test
