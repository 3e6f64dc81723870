// The operator's definition: each column of element types is a build of the kernel.
#include "register/op_def_registry.h"
#include "scale_shift_tiling.h"

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
    this->AICore().AddConfig("ascend910_93");
  }
};
OP_ADD(ScaleShift);
}  // namespace ops
