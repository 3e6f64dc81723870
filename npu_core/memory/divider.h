// Division of 32-bit numbers by one that is known before: a product in place of the host's division.
#pragma once

#include <cstdint>

namespace cm384::npu {

class Divider {
 public:
  // Divides by a number above 0.
  explicit Divider(std::uint32_t by) : by_(by), reciprocal_(~std::uint64_t{0} / by + 1) {}

  std::uint32_t by() const { return by_; }
  // Exact: the reciprocal exceeds 2^64 / by by less than 1, which over 2^32 is less than a 2^-32 of a
  // quotient's step.
  std::uint32_t quotient(std::uint32_t n) const {
    if (reciprocal_ == 0) return n;  // by 1
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint32_t>((static_cast<Wide>(reciprocal_) * n) >> 64);
  }
  std::uint32_t remainder(std::uint32_t n) const { return n - quotient(n) * by_; }

 private:
  std::uint32_t by_;
  std::uint64_t reciprocal_;
};

}  // namespace cm384::npu
