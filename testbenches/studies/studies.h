// The studies, one file each; registry.cpp lists them.
#pragma once

#include "testbenches/studies/study.h"

namespace cm384::studies {

extern const Study kCombineStudy;
extern const Study kDispatchStudy;
extern const Study kKernelStudy;
extern const Study kMoeStudy;
extern const Study kP2pStudy;
extern const Study kStreamStudy;

}  // namespace cm384::studies
