// The bench of the model that most tests use.
#pragma once

#include "Vrtl_link_small.h"
#include "testbenches/rtl/ub_link/link_shapes.h"

namespace cm384::rtl {

using SmallLink = LinkBench<Vrtl_link_small, kSmall>;
inline constexpr int kSmallRetryTimeout = 300;
inline constexpr int kSmallReturnDelay = 64;
inline constexpr int kAckGrain = 32;
inline constexpr int kCreditGrain = 4;

}  // namespace cm384::rtl
