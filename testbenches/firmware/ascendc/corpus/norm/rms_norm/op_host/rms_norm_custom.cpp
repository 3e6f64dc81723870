#include "register/op_def_registry.h"
#include "rms_norm_custom_tiling.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint32_t UB_RESERVED = 1024;
constexpr uint32_t ALIGN = 16;

static uint32_t CeilDiv(uint32_t a, uint32_t b) {
  return b == 0 ? a : (a + b - 1) / b;
}

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const uint32_t cores = platform.GetCoreNumAiv();
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);

  const gert::Shape xShape = context->GetInputShape(0)->GetStorageShape();
  const gert::Shape gammaShape = context->GetInputShape(1)->GetStorageShape();
  const size_t xDims = xShape.GetDimNum(), gammaDims = gammaShape.GetDimNum();
  if (gammaDims > xDims) return ge::GRAPH_FAILED;
  uint64_t numRow = 1, numCol = gammaShape.GetShapeSize();
  for (size_t i = 0; i < xDims - gammaDims; i++) numRow *= xShape.GetDim(i);
  if (numCol % ALIGN != 0) return ge::GRAPH_FAILED;

  const ge::DataType dtype = context->GetInputDesc(0)->GetDataType();
  uint64_t key = 0;
  uint32_t bytes = 4;
  switch (dtype) {
    case ge::DT_FLOAT:
      key = 1;
      break;
    case ge::DT_FLOAT16:
      key = 2;
      bytes = 2;
      break;
    case ge::DT_BF16:
      key = 3;
      bytes = 2;
      break;
    default:
      return ge::GRAPH_FAILED;
  }
  RmsNormCustomTilingData tiling;
  const uint32_t blockFactor = CeilDiv(numRow, cores);
  // Two buffers in, two out, two of float, gamma twice.
  const uint32_t perRow = numCol * (4 * bytes + 8);
  const uint32_t rowFactor = (ubSize - UB_RESERVED - numCol * (bytes + 4)) / perRow;
  if (rowFactor == 0) return ge::GRAPH_FAILED;
  tiling.set_numRow(numRow);
  tiling.set_numCol(numCol);
  tiling.set_blockFactor(blockFactor);
  tiling.set_rowFactor(rowFactor < blockFactor ? rowFactor : blockFactor);
  tiling.set_epsilon(*context->GetAttrs()->GetFloat(0));
  tiling.set_avgFactor(1.0f / numCol);
  context->SetTilingKey(key);
  context->SetBlockDim(CeilDiv(numRow, blockFactor));
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  size_t* workspaces = context->GetWorkspaceSizes(1);
  workspaces[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  const gert::Shape* xShape = context->GetInputShape(0);
  const gert::Shape* gammaShape = context->GetInputShape(1);
  gert::Shape* yShape = context->GetOutputShape(0);
  gert::Shape* rstdShape = context->GetOutputShape(1);
  *yShape = *xShape;
  const size_t outer = xShape->GetDimNum() - gammaShape->GetDimNum();
  rstdShape->SetDimNum(xShape->GetDimNum());
  for (size_t i = 0; i < xShape->GetDimNum(); i++) rstdShape->SetDim(i, i < outer ? xShape->GetDim(i) : 1);
  return GRAPH_SUCCESS;
}
static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  context->SetOutputDataType(1, ge::DT_FLOAT);
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class RmsNormCustom : public OpDef {
 public:
  explicit RmsNormCustom(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("gamma")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("rstd")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT, ge::DT_FLOAT, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-6);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(RmsNormCustom);
}  // namespace ops
