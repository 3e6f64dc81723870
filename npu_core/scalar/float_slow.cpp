// Float operations that go through the integer implementation: any rounding mode but nearest-even,
// conversions, comparisons.
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/float32.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {

namespace fp = float32;

bool ScalarCore::float_slow(const Operation& op) {
  const std::uint32_t a = f_[op.rs1], b = f_[op.rs2], c = f_[op.rs3];
  std::uint8_t& flags = state_.float_flags;
  switch (op.kind) {  // without a rounding mode
    case Kind::fmin:
      f_[op.rd] = fp::minimum(a, b, flags);
      return true;
    case Kind::fmax:
      f_[op.rd] = fp::maximum(a, b, flags);
      return true;
    case Kind::feq:
      x_[op.rd] = fp::equal(a, b, flags) ? 1 : 0;
      return true;
    case Kind::flt:
      x_[op.rd] = fp::less(a, b, flags) ? 1 : 0;
      return true;
    case Kind::fle:
      x_[op.rd] = fp::less_or_equal(a, b, flags) ? 1 : 0;
      return true;
    case Kind::fclass:
      x_[op.rd] = fp::classify(a);
      return true;
    default:
      break;
  }
  const std::uint32_t field = (raw_of(op) >> 12) & 7;
  const std::uint32_t mode = field == 7 ? state_.rounding : field;
  if (mode > fp::rmm) return false;
  const auto rounding = static_cast<fp::Rounding>(mode);
  const std::uint64_t integer = x_[op.rs1];
  switch (op.kind) {
    case Kind::fadd:
      f_[op.rd] = fp::add(a, b, rounding, flags);
      return true;
    case Kind::fsub:
      f_[op.rd] = fp::add(a, fp::is_nan(b) ? b : b ^ fp::kSign, rounding, flags);
      return true;
    case Kind::fmul:
      f_[op.rd] = fp::multiply(a, b, rounding, flags);
      return true;
    case Kind::fdiv:
      f_[op.rd] = fp::divide(a, b, rounding, flags);
      return true;
    case Kind::fsqrt:
      f_[op.rd] = fp::square_root(a, rounding, flags);
      return true;
    case Kind::fmadd:
      f_[op.rd] = fp::fused_multiply_add(a, b, c, rounding, flags);
      return true;
    case Kind::fmsub:
      f_[op.rd] = fp::fused_multiply_add(a, b, c ^ fp::kSign, rounding, flags);
      return true;
    case Kind::fnmsub:
      f_[op.rd] = fp::fused_multiply_add(a ^ fp::kSign, b, c, rounding, flags);
      return true;
    case Kind::fnmadd:
      f_[op.rd] = fp::fused_multiply_add(a ^ fp::kSign, b, c ^ fp::kSign, rounding, flags);
      return true;
    case Kind::fcvt_w_s:
      x_[op.rd] = fp::to_int32(a, rounding, flags);
      return true;
    case Kind::fcvt_wu_s:
      x_[op.rd] = fp::to_uint32(a, rounding, flags);
      return true;
    case Kind::fcvt_l_s:
      x_[op.rd] = fp::to_int64(a, rounding, flags);
      return true;
    case Kind::fcvt_lu_s:
      x_[op.rd] = fp::to_uint64(a, rounding, flags);
      return true;
    case Kind::fcvt_s_w:
      f_[op.rd] = fp::from_int64(static_cast<std::int32_t>(integer), rounding, flags);
      return true;
    case Kind::fcvt_s_wu:
      f_[op.rd] = fp::from_uint64(static_cast<std::uint32_t>(integer), rounding, flags);
      return true;
    case Kind::fcvt_s_l:
      f_[op.rd] = fp::from_int64(static_cast<std::int64_t>(integer), rounding, flags);
      return true;
    case Kind::fcvt_s_lu:
      f_[op.rd] = fp::from_uint64(integer, rounding, flags);
      return true;
    default:
      return false;
  }
}

}  // namespace cm384::npu
