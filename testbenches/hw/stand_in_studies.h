// Studies that end in every way a study can, for tests of the command.
#pragma once

#include <span>

#include "workloads/frame/study.h"

namespace cm384::studies {

std::span<const Study> stand_in_studies();

}  // namespace cm384::studies
