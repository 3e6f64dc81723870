// The links of a service: which contexts are on their way to which die, and from when on a link is free.
#include "workloads/service/context_links.h"

#include <gmock/gmock.h>

namespace cm384::service::context_links_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two dies of prefill for four of decode: the dies 0 and 1 of each decode instance ask the first.
class Links : public ::testing::Test {
 protected:
  LinkTime send(std::uint32_t request, std::uint32_t prefill, int die, Time now = {}) {
    return links_.send(request, prefill, die, 1e6, now);
  }
  ContextLinks links_{{2, 1, 4}, 1_GBps};
};

TEST_F(Links, TakeOneContextAtATimeOnBothSides) {
  EXPECT_EQ(send(0, 0, 0).end, 1_ms);
  EXPECT_EQ(send(1, 0, 1).end, 2_ms) << "the same sender";
  EXPECT_EQ(send(2, 0, 2).end, 1_ms) << "the other die of that instance";
  EXPECT_EQ(send(3, 1, 0).end, 2_ms) << "the same receiver";
  EXPECT_EQ(send(4, 2, 4).end, 1_ms) << "instances that came later, of both pools";
  EXPECT_EQ(send(5, 2, 4, 5_ms).begin, 5_ms);
  EXPECT_EQ(links_.transfers(), 6);
  EXPECT_NEAR(links_.busy_s(), 6e-3, 1e-12);
}

TEST_F(Links, KnowWhoIsBoundForADie) {
  send(7, 0, 3);
  send(2, 1, 3);
  send(5, 0, 1);
  EXPECT_THAT(links_.bound_for(3), ElementsAre(7, 2));
  links_.remove(7, 3);
  EXPECT_THAT(links_.bound_for(3), ElementsAre(2));
  EXPECT_THAT(links_.bound_for(1), ElementsAre(5));
  EXPECT_THAT(links_.bound_for(100), IsEmpty());
  EXPECT_EQ(links_.transfers(), 3) << "a lost context's time on its way goes on";
  links_.end_transfer();
  EXPECT_EQ(links_.transfers(), 2);
}

TEST_F(Links, OfALostDieAreFree) {
  send(0, 0, 0);
  links_.reset(0);
  EXPECT_EQ(send(1, 1, 0).begin, Time{});
  EXPECT_EQ(send(2, 0, 1).begin, 1_ms) << "its sender's is not";
}

}  // namespace
}  // namespace cm384::service::context_links_test
