// Division by a number known before, against the language's own.
#include "npu_core/memory/divider.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cm384::npu::divider_test {
namespace {

TEST(Divider, AgreesWithDivision) {
  constexpr std::uint32_t kMost = ~std::uint32_t{0};
  for (const std::uint32_t by : {1u, 2u, 3u, 5u, 7u, 96u, 641u, 24'576u, 65'535u, 65'536u, 1'000'003u,
                                 0x80000000u, kMost - 1, kMost}) {
    const Divider divider(by);
    EXPECT_EQ(divider.by(), by);
    const auto agree = [&](std::uint32_t n) {
      EXPECT_EQ(divider.quotient(n), n / by) << n << " / " << by;
      EXPECT_EQ(divider.remainder(n), n % by) << n << " % " << by;
    };
    for (std::uint32_t n = 0; n < 1000; ++n) agree(n), agree(kMost - n);
    // Where the quotient steps.
    for (std::uint64_t multiple = by; multiple <= kMost;
         multiple += by * std::uint64_t{1 + kMost / by / 500}) {
      agree(static_cast<std::uint32_t>(multiple - 1));
      agree(static_cast<std::uint32_t>(multiple));
    }
  }
}

}  // namespace
}  // namespace cm384::npu::divider_test
