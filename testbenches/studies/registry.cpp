// The table of studies: one line a subject of `cm384 run`.
#include <array>

#include "testbenches/studies/studies.h"

namespace cm384::studies {

std::span<const Study> registry() {
  static const std::array<Study, 6> table{kP2pStudy, kDispatchStudy, kCombineStudy,
                                          kMoeStudy, kStreamStudy,   kKernelStudy};
  return table;
}

}  // namespace cm384::studies
