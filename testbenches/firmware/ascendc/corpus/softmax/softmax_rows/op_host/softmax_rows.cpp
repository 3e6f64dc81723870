#include <algorithm>

#include "register/op_def_registry.h"
#include "softmax_rows_tiling.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  SoftmaxRowsTilingData tiling;
  const auto& shape = context->GetInputTensor(0)->GetOriginShape();
  const auto dtype = context->GetInputTensor(0)->GetDataType();
  const uint32_t typeSize = dtype == ge::DT_FLOAT ? 4 : 2;
  const uint32_t columns = shape.GetDim(shape.GetDimNum() - 1);
  const uint32_t rows = shape.GetShapeSize() / columns;
  const uint32_t perBlock = 32 / typeSize;
  const uint32_t aligned = (columns + perBlock - 1) / perBlock * perBlock;

  auto ascendcPlatform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const uint32_t coreNum = std::min(ascendcPlatform.GetCoreNumAiv(), rows);
  const uint32_t rowsOfCore = (rows + coreNum - 1) / coreNum;
  uint64_t ub = 0;
  ascendcPlatform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ub);
  const uint32_t rowsAtOnce =
      std::max<uint32_t>(1, std::min<uint64_t>(rowsOfCore, ub / 2 / (4ULL * aligned * typeSize)));

  const ge::Shape srcShape({rowsAtOnce, aligned});
  const uint32_t most = AscendC::GetSoftMaxMaxTmpSize(srcShape, typeSize, false);
  const uint32_t least = AscendC::GetSoftMaxMinTmpSize(srcShape, typeSize, false);
  const uint32_t tmp = std::max(std::min<uint32_t>(most, ub / 4), least);
  AscendC::SoftMaxTilingFunc(srcShape, typeSize, tmp, tiling.softmaxTilingData);

  tiling.set_totalRows(rows);
  tiling.set_columns(columns);
  tiling.set_columnsAligned(aligned);
  tiling.set_rowsOfCore(rowsOfCore);
  tiling.set_rowsAtOnce(rowsAtOnce);
  tiling.set_tmpBytes(tmp);
  context->SetBlockDim((rows + rowsOfCore - 1) / rowsOfCore);
  context->SetTilingKey(1);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  size_t* currentWorkspace = context->GetWorkspaceSizes(1);
  currentWorkspace[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class SoftmaxRows : public OpDef {
 public:
  explicit SoftmaxRows(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(SoftmaxRows);
}  // namespace ops
