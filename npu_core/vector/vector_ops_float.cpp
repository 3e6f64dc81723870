#include <cmath>

#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_ops.h"
#include "npu_core/vector/vector_ops_elementwise.h"

namespace cm384::npu {
namespace {

template <class Format>
void run(const VectorInstruction& v, UBuffer& u) {
  const float s = scalar_value<Format>(v);
  const auto each = [&](const auto& f) { for_each_element<Format>(v, u, f); };
  switch (v.operation) {
    case CM384_VADD:
      return each([](float a, float b, float) { return a + b; });
    case CM384_VSUB:
      return each([](float a, float b, float) { return a - b; });
    case CM384_VMUL:
      return each([](float a, float b, float) { return a * b; });
    case CM384_VDIV:
      return each([](float a, float b, float) { return a / b; });
    case CM384_VMAX:
      return each([](float a, float b, float) { return max_f32(a, b); });
    case CM384_VMIN:
      return each([](float a, float b, float) { return min_f32(a, b); });
    case CM384_VADDS:
      return each([s](float a, float, float) { return a + s; });
    case CM384_VMULS:
      return each([s](float a, float, float) { return a * s; });
    case CM384_VMAXS:
      return each([s](float a, float, float) { return max_f32(a, s); });
    case CM384_VMINS:
      return each([s](float a, float, float) { return min_f32(a, s); });
    case CM384_VABS:
      return each([](float a, float, float) { return with_sign_of(a, 1.0f); });
    case CM384_VRELU:
      return each([](float a, float, float) { return max_f32(a, 0.0f); });
    case CM384_VEXP:
      return each([](float a, float, float) { return exp_f32(a); });
    case CM384_VLN:
      return each([](float a, float, float) { return ln_f32(a); });
    case CM384_VSQRT:
      return each([](float a, float, float) { return std::sqrt(a); });
    case CM384_VRSQRT:
      return each([](float a, float, float) { return 1.0f / Format::round(std::sqrt(a)); });
    case CM384_VREC:
      return each([](float a, float, float) { return 1.0f / a; });
    case CM384_VDUP:
      return each([s](float, float, float) { return s; });
    case CM384_VCOPY:
      return each([](float a, float, float) { return a; });
    case CM384_VMADD:
      return each([](float a, float b, float d) { return Format::round(a * b) + d; });
    case CM384_VAXPY:
      return each([s](float a, float, float d) { return Format::round(a * s) + d; });
    case CM384_VINDEX:
      return for_each_index<Format>(v, u, [s](std::uint32_t i) { return s + static_cast<float>(i); });
    default:
      fault(v.pc, "no such floating-point vector operation");
  }
}

}  // namespace

void execute_float(const VectorInstruction& v, UBuffer& u) {
  v.type == CM384_F32 ? run<FormatF32>(v, u) : run<FormatF16>(v, u);
}

}  // namespace cm384::npu
