#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_ops.h"
#include "npu_core/vector/vector_ops_elementwise.h"

namespace cm384::npu {
namespace {

template <class Format>
void run(const VectorInstruction& v, UBuffer& u) {
  using T = typename Format::Value;
  using Bits = typename Format::Bits;
  constexpr auto kWidth = static_cast<std::uint32_t>(8 * sizeof(T));
  const T s = scalar_value<Format>(v);
  const auto each = [&](const auto& f) { for_each_element<Format>(v, u, f); };
  // Wrapping arithmetic; 16-bit operands are widened to unsigned, never to int.
  const auto add = [](T a, T b) {
    return static_cast<T>(static_cast<Bits>(std::uint32_t(a) + std::uint32_t(b)));
  };
  const auto sub = [](T a, T b) {
    return static_cast<T>(static_cast<Bits>(std::uint32_t(a) - std::uint32_t(b)));
  };
  const auto mul = [](T a, T b) {
    return static_cast<T>(static_cast<Bits>(std::uint32_t(a) * std::uint32_t(b)));
  };
  switch (v.operation) {
    case CM384_VADD:
      return each([=](T a, T b, T) { return add(a, b); });
    case CM384_VSUB:
      return each([=](T a, T b, T) { return sub(a, b); });
    case CM384_VMUL:
      return each([=](T a, T b, T) { return mul(a, b); });
    case CM384_VMAX:
      return each([](T a, T b, T) { return a > b ? a : b; });
    case CM384_VMIN:
      return each([](T a, T b, T) { return a < b ? a : b; });
    case CM384_VADDS:
      return each([=](T a, T, T) { return add(a, s); });
    case CM384_VMULS:
      return each([=](T a, T, T) { return mul(a, s); });
    case CM384_VMAXS:
      return each([s](T a, T, T) { return a > s ? a : s; });
    case CM384_VMINS:
      return each([s](T a, T, T) { return a < s ? a : s; });
    case CM384_VABS:
      return each([=](T a, T, T) { return a < 0 ? sub(0, a) : a; });
    case CM384_VRELU:
      return each([](T a, T, T) { return a > 0 ? a : T{0}; });
    case CM384_VDUP:
      return each([s](T, T, T) { return s; });
    case CM384_VCOPY:
      return each([](T a, T, T) { return a; });
    case CM384_VAND:
      return each([](T a, T b, T) { return static_cast<T>(a & b); });
    case CM384_VOR:
      return each([](T a, T b, T) { return static_cast<T>(a | b); });
    case CM384_VNOT:
      return each([](T a, T, T) { return static_cast<T>(~a); });
    case CM384_VMADD:
      return each([=](T a, T b, T d) { return add(mul(a, b), d); });
    case CM384_VAXPY:
      return each([=](T a, T, T d) { return add(mul(a, s), d); });
    case CM384_VSHLS: {
      const std::uint32_t by = v.scalar;
      return each([by](T a, T, T) {
        return by >= kWidth ? T{0} : static_cast<T>(static_cast<Bits>(std::uint32_t(a) << by));
      });
    }
    case CM384_VSHRS: {
      const std::uint32_t by = std::min(v.scalar, kWidth - 1);
      return each([by](T a, T, T) { return static_cast<T>(a >> by); });
    }
    case CM384_VSHRU: {
      const std::uint32_t by = v.scalar;
      return each([by](T a, T, T) { return by >= kWidth ? T{0} : static_cast<T>(Bits(a) >> by); });
    }
    case CM384_VINDEX:
      return for_each_index<Format>(v, u, [=](std::uint32_t i) { return add(s, static_cast<T>(i)); });
    default:
      fault(v.pc, "no such integer vector operation");
  }
}

// Whether it was a copy of the scalar over whole ranges, which is done then.
bool fill(const VectorInstruction& v, UBuffer& u) {
  const VectorOperand& d = v.destination;
  if (v.operation != CM384_VDUP || !v.full_mask() || d.piece_stride != d.piece_bytes) return false;
  const std::uint32_t word = v.element_bytes() == 4 ? v.scalar : (v.scalar & 0xffff) * 0x10001;
  d.any_range([&](std::uint32_t offset, std::uint32_t bytes) {
    u.fill(offset, bytes, word);
    return false;
  });
  return true;
}

}  // namespace

void execute_integer(const VectorInstruction& v, UBuffer& u) {
  if (fill(v, u)) return;
  v.element_bytes() == 4 ? run<FormatS32>(v, u) : run<FormatS16>(v, u);
}

}  // namespace cm384::npu
