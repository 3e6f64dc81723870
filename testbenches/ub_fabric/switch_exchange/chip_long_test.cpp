// RTL chips in a fabric whose buffers hold two packets; chip_test.cpp has more room and fewer runs.
#include "testbenches/ub_fabric/switch_exchange/chip_bench.h"

namespace cm384::ub::chip_long_test {
namespace {

TEST(RtlChipLong, KeepsToScarceCredits) {
  for (const char* cells : {"8", "16", "32"}) expect_same_times_with(cells, 20);
}

}  // namespace
}  // namespace cm384::ub::chip_long_test
