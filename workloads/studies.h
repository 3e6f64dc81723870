// The studies, one file each; registry.cpp lists them.
#pragma once

#include "workloads/frame/study.h"

namespace cm384::studies {

extern const Study kBalanceStudy;
extern const Study kCombineStudy;
extern const Study kCopiesStudy;
extern const Study kDecodeStudy;
extern const Study kDispatchStudy;
extern const Study kEmsStudy;
extern const Study kFfnStudy;
extern const Study kGemmStudy;
extern const Study kKernelStudy;
extern const Study kLayerStudy;
extern const Study kPrefillStudy;
extern const Study kProgramStudy;
extern const Study kMlaStudy;
extern const Study kMoeStudy;
extern const Study kOpStudy;
extern const Study kP2pStudy;
extern const Study kReliabilityStudy;
extern const Study kServeStudy;
extern const Study kJobsStudy;
extern const Study kStreamStudy;
extern const Study kSwitchStudy;
extern const Study kTrafficStudy;
extern const Study kTrainStudy;
extern const Study kTransferStudy;

}  // namespace cm384::studies
