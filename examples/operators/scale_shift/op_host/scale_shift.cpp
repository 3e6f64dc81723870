// The operator's definition: each column of element types is a build of the kernel; and its tiling function.
#include "register/op_def_registry.h"
#include "scale_shift_tiling.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
// As many blocks as take at least 64 elements each.
static ge::graphStatus Tiling(gert::TilingContext* context) {
  const int64_t all = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  const uint32_t cores = platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
  uint32_t blocks = 1;
  while (blocks * 2 <= cores && all % (blocks * 128) == 0) blocks *= 2;
  if (all % blocks != 0 || all / blocks > 16384) return ge::GRAPH_FAILED;

  ScaleShiftTiling tiling;
  const int32_t shift[kShifts] = {1, 2, 4};
  tiling.set_factor(static_cast<uint32_t>(*context->GetAttrs()->GetInt(0)));
  tiling.set_count(static_cast<uint16_t>(all / blocks));
  tiling.set_shift(shift);
  tiling.offset.set_rows(context->GetInputShape(0)->GetStorageShape().GetDim(0));
  tiling.offset.set_bias(0.5f);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->SetBlockDim(blocks);
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class ScaleShift : public OpDef {
 public:
  explicit ScaleShift(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("factor").AttrType(OPTIONAL).Int(3);
    this->AICore().SetTiling(optiling::Tiling).AddConfig("ascend910_93");
  }
};
OP_ADD(ScaleShift);
}  // namespace ops
