// A switch chip of 48 ports that tells classes apart, of a library of its own, among transaction-level ones.
#include <cstdlib>

#include "testbenches/ub_fabric/switch_exchange/chip_bench.h"

namespace cm384::ub::wide_classes_test {
namespace {

// The library that testbenches/ub_fabric/switch_exchange/wide_classes has built.
TEST(RtlWideChip, TellsClassesApartAsTheModelDoes) {
  const char* library = std::getenv("CM384_CLASSES_LIBRARY");
  if (library == nullptr) GTEST_SKIP() << "wide_classes builds the chip, and runs this test";
  const TenantsCase rtl{.rtl = true, .arbitration = "drr", .wide = true, .library = library};
  const Tenants got = two_tenants(rtl), model = two_tenants({.arbitration = "drr", .wide = true});
  for (unsigned n = 0; n < 2; ++n) EXPECT_NEAR(got.done[n] / model.done[n], 1, 0.02) << "class " << n;
  const double flits_of[] = {28, 12};  // of 512 and 200 B: 28 B before the payload, 4 B behind
  EXPECT_NEAR(got.done[1] * flits_of[1] / (got.done[0] * flits_of[0]), 2, 0.04);
  for (const char* arbitration : {"strict", "drr"}) {
    const Tenants single = two_tenants({.rtl = true,
                                        .arbitration = arbitration,
                                        .pauses = true,
                                        .wide = true,
                                        .library = library}),
                  wanted = two_tenants({.arbitration = arbitration, .pauses = true, .wide = true});
    // A chip picks its next packet a packet's length ahead.
    EXPECT_NEAR(single.longest, wanted.longest, 28 * 0.7143 + 10) << arbitration;
  }
}

}  // namespace
}  // namespace cm384::ub::wide_classes_test
