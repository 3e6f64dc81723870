#pragma once

#include "cm384/operator.h"
#include "tiling/platform/platform_ascendc.h"
