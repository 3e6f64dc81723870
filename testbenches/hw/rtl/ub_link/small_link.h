// The bench of the model that most tests use.
#pragma once

#ifdef CM384_LINK_COVERED
#include "Vrtl_link_covered.h"
#else
#include "Vrtl_link_small.h"
#endif
#include "testbenches/hw/rtl/ub_link/link_shapes.h"

namespace cm384::rtl {

#ifdef CM384_LINK_COVERED
using SmallLink = LinkBench<Vrtl_link_covered, kSmall>;
#else
using SmallLink = LinkBench<Vrtl_link_small, kSmall>;
#endif
inline constexpr int kSmallRetryTimeout = 300;
inline constexpr int kSmallReturnDelay = 64;
inline constexpr int kAckGrain = 32;
inline constexpr int kCreditGrain = 4;

}  // namespace cm384::rtl
