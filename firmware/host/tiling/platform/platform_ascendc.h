// What a host program asks of the device that it runs on.
#pragma once

#include <cstdint>

#include "cm384/device.h"

namespace platform_ascendc {

enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, FB, BT };
enum class SocVersion { ASCEND910B, ASCEND910_93, RESERVED_VERSION = 99999 };

class PlatformAscendC {
 public:
  uint32_t GetCoreNumAiv() const { return static_cast<uint32_t>(cm384_host::ask(CM384_HOST_CORES, 0)); }
  uint32_t GetCoreNumAic() const { return static_cast<uint32_t>(cm384_host::ask(CM384_HOST_CORES, 1)); }
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
