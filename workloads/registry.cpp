// The table of studies, in the order in which `cm384 run --help` lists them.
#include <array>

#include "workloads/studies.h"

namespace cm384::studies {

std::span<const Study> registry() {
  static const std::array table{
      kP2pStudy,      kDispatchStudy, kCombineStudy, kMoeStudy,         kGemmStudy,    kFfnStudy,
      kMlaStudy,      kLayerStudy,    kDecodeStudy,  kPrefillStudy,     kBalanceStudy, kEmsStudy,
      kTransferStudy, kServeStudy,    kJobsStudy,    kReliabilityStudy, kOpStudy,      kStreamStudy,
      kSwitchStudy,   kTrafficStudy,  kKernelStudy,  kProgramStudy};
  return table;
}

}  // namespace cm384::studies
