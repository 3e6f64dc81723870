// The studies by what they are about, in the order in which `cm384 run --help` lists them.
#include "workloads/studies.h"

namespace cm384::studies {

const std::vector<StudyGroup>& study_groups() {
  static const std::vector<StudyGroup> groups{
      {"memory, links and switches", {kP2pStudy, kCopiesStudy, kStreamStudy, kSwitchStudy, kTrafficStudy}},
      {"kernels and operators",
       {kKernelStudy, kProgramStudy, kOpStudy, kGemmStudy, kFfnStudy, kMlaStudy, kDispatchStudy,
        kCombineStudy}},
      {"models", {kMoeStudy, kLayerStudy, kDecodeStudy, kPrefillStudy, kTrainStudy, kBalanceStudy}},
      {"services and clusters", {kServeStudy, kEmsStudy, kTransferStudy, kJobsStudy, kReliabilityStudy}}};
  return groups;
}

std::span<const Study> registry() {
  static const std::vector<Study> all = [] {
    std::vector<Study> studies;
    for (const StudyGroup& group : study_groups())
      studies.insert(studies.end(), group.studies.begin(), group.studies.end());
    return studies;
  }();
  return all;
}

}  // namespace cm384::studies
