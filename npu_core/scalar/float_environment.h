// The host's float unit while a scalar core runs: round to nearest even, no traps, sticky flags as RISC-V's.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace cm384::npu {

class FloatEnvironment {
 public:
#if defined(__SSE2__)
  FloatEnvironment() : saved_(_mm_getcsr()) {
    clear();
  }
  ~FloatEnvironment() {
    _mm_setcsr(saved_);
  }
  // Reading the register costs the host less than writing it.
  static void clear() {
    constexpr unsigned kNothingRaised = 0x1f80;
    if (_mm_getcsr() != kNothingRaised) _mm_setcsr(kNothingRaised);
  }
  // The flags raised since clear(), in fcsr's order.
  static std::uint8_t flags() {
    const unsigned raised = _mm_getcsr();
    return static_cast<std::uint8_t>((raised & 1) << 4 | (raised & 4) << 1 | (raised & 8) >> 1 |
                                     (raised & 16) >> 3 | (raised & 32) >> 5);
  }
#else
  FloatEnvironment() {
    std::feholdexcept(&saved_);
  }
  ~FloatEnvironment() {
    std::fesetenv(&saved_);
  }
  static void clear() {
    std::feclearexcept(FE_ALL_EXCEPT);
  }
  static std::uint8_t flags() {
    const int raised = std::fetestexcept(FE_ALL_EXCEPT);
    return static_cast<std::uint8_t>(((raised & FE_INVALID) != 0) << 4 | ((raised & FE_DIVBYZERO) != 0) << 3 |
                                     ((raised & FE_OVERFLOW) != 0) << 2 |
                                     ((raised & FE_UNDERFLOW) != 0) << 1 | ((raised & FE_INEXACT) != 0));
  }
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__SSE2__)
  unsigned saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace cm384::npu
