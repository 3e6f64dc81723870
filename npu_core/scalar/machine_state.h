// The machine-mode CSRs a bare-metal program expects at start-up. PMP and address translation are not
// implemented: their CSRs ignore writes. The float unit is always on, whatever mstatus.FS says.
#pragma once

#include <cstdint>

namespace cm384::npu {

struct MachineState {
  std::uint64_t mstatus = 0;
  std::uint64_t mtvec = 0;
  std::uint64_t mepc = 0;
  std::uint64_t mcause = 0;
  std::uint64_t mtval = 0;
  std::uint64_t mscratch = 0;
  std::uint64_t medeleg = 0;
  std::uint64_t mie = 0;
  std::uint64_t stvec = 0;
  std::uint64_t reservation = ~std::uint64_t{0};  // LR/SC: the reserved 64 B, as address / 64
  std::uint8_t privilege = 3;                     // 3 machine, 1 supervisor, 0 user
  std::uint8_t float_flags = 0;                   // NV 16, DZ 8, OF 4, UF 2, NX 1
  std::uint8_t rounding = 0;                      // frm

  std::uint32_t fcsr() const { return static_cast<std::uint32_t>(float_flags | rounding << 5); }
  void set_fcsr(std::uint32_t value) {
    float_flags = static_cast<std::uint8_t>(value & 31);
    rounding = static_cast<std::uint8_t>((value >> 5) & 7);
  }
};

}  // namespace cm384::npu
