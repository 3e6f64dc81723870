#ifndef SOFTMAX_ROWS_TILING_H
#define SOFTMAX_ROWS_TILING_H
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(SoftmaxRowsTilingData)
TILING_DATA_FIELD_DEF(uint32_t, totalRows);
TILING_DATA_FIELD_DEF(uint32_t, columns);
TILING_DATA_FIELD_DEF(uint32_t, columnsAligned);
TILING_DATA_FIELD_DEF(uint32_t, rowsOfCore);
TILING_DATA_FIELD_DEF(uint32_t, rowsAtOnce);
TILING_DATA_FIELD_DEF(uint32_t, tmpBytes);
TILING_DATA_FIELD_DEF_STRUCT(SoftMaxTiling, softmaxTilingData);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(SoftmaxRows, SoftmaxRowsTilingData)
}  // namespace optiling
#endif
