// What a host program asks of the device that it runs on.
#pragma once

#include <cstdint>

#ifdef CM384_TILING
namespace cm384_host {
inline uint32_t cores[2];  // vector, cube
inline uint32_t cores_of(int kind) {
  return cores[kind];
}
}  // namespace cm384_host
#else
#include "cm384/device.h"
namespace cm384_host {
inline uint32_t cores_of(int kind) {
  return static_cast<uint32_t>(ask(CM384_HOST_CORES, static_cast<uint64_t>(kind)));
}
}  // namespace cm384_host
#endif

namespace platform_ascendc {

enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, FB, BT };
enum class SocVersion { ASCEND910B, ASCEND910_93, RESERVED_VERSION = 99999 };

class PlatformAscendC {
 public:
  PlatformAscendC() = default;
  explicit PlatformAscendC(const void*) {}
  uint32_t GetCoreNumAiv() const { return cm384_host::cores_of(0); }
  uint32_t GetCoreNumAic() const { return cm384_host::cores_of(1); }
  uint32_t CalcTschBlockDim(uint32_t slices, uint32_t, uint32_t) const { return slices; }
  uint32_t GetCoreNum() const { return GetCoreNumAiv(); }
  uint32_t GetLibApiWorkSpaceSize() const { return 0; }
  SocVersion GetSocVersion() const { return SocVersion::ASCEND910_93; }
  void GetCoreMemSize(const CoreMemType& type, uint64_t& bytes) const {
    switch (type) {
      case CoreMemType::UB:
        bytes = 192 << 10;
        return;
      case CoreMemType::L1:
        bytes = 512 << 10;
        return;
      case CoreMemType::L0_A:
      case CoreMemType::L0_B:
        bytes = 64 << 10;
        return;
      case CoreMemType::L0_C:
        bytes = 128 << 10;
        return;
      default:
        bytes = 0;
    }
  }
};
class PlatformAscendCManager {
 public:
  static PlatformAscendC* GetInstance() {
    static PlatformAscendC made;
    return &made;
  }
  static PlatformAscendC* GetInstance(const char*) { return GetInstance(); }
};

}  // namespace platform_ascendc
