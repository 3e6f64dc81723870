// The table of studies: one line a subject of `cm384 run`.
#include <array>

#include "studies/studies.h"

namespace cm384::studies {

std::span<const Study> registry() {
  static const std::array<Study, 10> table{kP2pStudy,    kDispatchStudy, kCombineStudy, kMoeStudy,
                                           kGemmStudy,   kFfnStudy,      kMlaStudy,     kStreamStudy,
                                           kSwitchStudy, kKernelStudy};
  return table;
}

}  // namespace cm384::studies
