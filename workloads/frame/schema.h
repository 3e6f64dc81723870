// The JSON schema (draft 2020-12) of result.json, made from the declared fields of the studies.
#pragma once

#include <span>

#include "base/text/json.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

Json result_schema(std::span<const Study> studies);

}  // namespace cm384::studies
