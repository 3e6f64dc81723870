#pragma once

#include "cm384/operator.h"
#include "cm384/tiling_api.h"
#include "tiling/platform/platform_ascendc.h"
