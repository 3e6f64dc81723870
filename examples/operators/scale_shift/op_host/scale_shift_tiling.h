#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
constexpr uint32_t kShifts = 3;

BEGIN_TILING_DATA_DEF(Offset)
TILING_DATA_FIELD_DEF(int64_t, rows);
TILING_DATA_FIELD_DEF(float, bias);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(OffsetOp, Offset)

BEGIN_TILING_DATA_DEF(ScaleShiftTiling)
TILING_DATA_FIELD_DEF(uint32_t, factor);
TILING_DATA_FIELD_DEF(uint16_t, count);
TILING_DATA_FIELD_DEF_ARR(int32_t, kShifts, shift);
TILING_DATA_FIELD_DEF_STRUCT(Offset, offset);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleShift, ScaleShiftTiling)
}  // namespace optiling
