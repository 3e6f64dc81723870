// Calls of Ascend C's library, one case after another: operands of 4 KiB from memory, the whole destination
// back. library_forms makes the cases and says what should come out.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kArea = 4096;

struct Case {
  uint32_t form, type, variant, count;
  float scalar;
  uint32_t extra[3];
};

template <typename T>
struct Areas {
  LocalTensor<T> d, a, b;
  LocalTensor<uint8_t> tmp;
};

// (dst, src[, tmp][, count]), the four ways.
#define MATH(n, Name)                                                                       \
  case n: {                                                                                 \
    LocalTensor<T> a = o.a;                                                                 \
    a.SetSize(c.count);                                                                     \
    if (c.variant == 0) return Name(o.d, a);                                                \
    if (c.variant == 1) return Name(o.d, o.a, c.count);                                     \
    return c.variant == 2 ? Name(o.d, a, o.tmp) : Name<T, false>(o.d, o.a, o.tmp, c.count); \
  }
#define TWO(n, Name)                                                                                  \
  case n: {                                                                                           \
    LocalTensor<T> a = o.a;                                                                           \
    a.SetSize(c.count);                                                                               \
    if (c.variant == 0) return Name(o.d, a, o.b);                                                     \
    if (c.variant == 1) return Name(o.d, o.a, o.b, c.count);                                          \
    return c.variant == 2 ? Name(o.d, a, o.b, o.tmp) : Name<T, false>(o.d, o.a, o.b, o.tmp, c.count); \
  }
#define OPERATOR(n, op)              \
  case n: {                          \
    LocalTensor<T> a = o.a, d = o.d; \
    a.SetSize(c.count);              \
    d = a op o.b;                    \
    return;                          \
  }
#define COMPARISON(n, op)                                             \
  case n: {                                                           \
    LocalTensor<T> a = o.a;                                           \
    LocalTensor<uint8_t> d = o.d.template ReinterpretCast<uint8_t>(); \
    a.SetSize(c.count);                                               \
    d = a op o.b;                                                     \
    return;                                                           \
  }

template <typename T>
T* At(const LocalTensor<T>& tensor) {
  return reinterpret_cast<T*>(tensor.GetPhyAddr());
}
void SetBits(uint32_t count) {
  set_vector_mask(0, count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1);
}
GM_ADDR memory;  // of the case's first source

template <typename T>
void Call(const Case& c, const Areas<T>& o) {
  const T scalar = static_cast<T>(c.scalar);
  const uint32_t rows = c.extra[0], pitch = c.extra[1], width = c.extra[2];
  switch (c.form) {
    MATH(0, Sigmoid)
    MATH(1, Tanh)
    MATH(2, Log)
    MATH(3, Log2)
    MATH(4, Log10)
    MATH(5, Floor)
    MATH(6, Ceil)
    MATH(7, Trunc)
    MATH(8, Round)
    MATH(9, Frac)
    MATH(10, Sign)
    MATH(11, Silu)
    MATH(12, Gelu)
    MATH(13, FasterGelu)
    MATH(14, Sinh)
    MATH(15, Cosh)
    MATH(16, Asinh)
    MATH(17, Acosh)
    MATH(18, Atanh)
    MATH(19, Erf)
    MATH(20, Erfc)
    MATH(21, Sin)
    MATH(22, Cos)
    TWO(23, GeGLU)
    TWO(24, ReGlu)
    TWO(25, Power)
    OPERATOR(26, +)
    OPERATOR(27, -)
    OPERATOR(28, *)
    OPERATOR(29, /)
    COMPARISON(30, <)
    COMPARISON(31, >)
    COMPARISON(32, <=)
    COMPARISON(33, >=)
    COMPARISON(34, ==)
    COMPARISON(35, !=)
    case 36:
      return c.variant % 2 == 0 ? ClampMax<T>(o.d, o.a, o.tmp, scalar, c.count)
                                : ClampMax<T>(o.d, o.a, scalar, c.count);
    case 37:
      return c.variant % 2 == 0 ? ClampMin<T>(o.d, o.a, o.tmp, scalar, c.count)
                                : ClampMin<T>(o.d, o.a, scalar, c.count);
    case 38:  // in place too
      if (c.variant == 0) {
        Adds(o.d, o.a, T(0), static_cast<int32_t>(c.count));
        PipeBarrier<PIPE_V>();
        return LeakyRelu(o.d, o.d, scalar, static_cast<int32_t>(c.count));
      }
      if (c.variant == 1) return LeakyRelu(o.d, o.a, scalar, static_cast<int32_t>(c.count));
      return LeakyRelu(o.d, o.a, scalar, static_cast<uint64_t>(width), static_cast<uint8_t>(rows),
                       UnaryRepeatParams(1, 1, 8, 8));
    case 39:
      return Swish(o.d, o.a, c.count, scalar);
    case 40:
      return c.variant % 2 == 0 ? SwiGLU<T>(o.d, o.a, o.b, c.scalar, o.tmp, c.count)
                                : SwiGLU<T>(o.d, o.a, o.b, c.scalar, c.count);
    case 41:
      return Power<T>(o.d, o.a, scalar, c.count);
    case 42:
      return ArithProgression<T>(o.d, scalar, T(0.5f), static_cast<int32_t>(c.count));
    case 43: {
      const uint32_t to[2] = {rows, width}, from[2] = {rows, 1};
      return c.variant % 2 == 0 ? BroadCast<T, 2, 1>(o.d, o.a, to, from)
                                : BroadCast<T, 2, 1>(o.d, o.a, to, from, o.tmp);
    }
    case 44: {
      const uint32_t to[2] = {rows, width}, from[2] = {1, width};
      return c.variant % 2 == 0 ? BroadCast<T, 2, 0>(o.d, o.a, to, from)
                                : Broadcast<T, 2, 0>(o.d, o.a, to, from);
    }
    case 45: {
      LocalTensor<T> to[16], from[16];
      uint64_t to_at[16], from_at[16];
      for (uint32_t n = 0; n < 16; ++n) {
        to[n] = o.d[n * 32 / sizeof(T)];
        from[n] = o.a[n * 64 / sizeof(T)];
        to_at[n] = to[n].GetPhyAddr();
        from_at[n] = from[n].GetPhyAddr();
      }
      const TransDataTo5HDParams p(false, false, static_cast<uint8_t>(rows),
                                   static_cast<uint16_t>(rows == 1 ? 0 : 16),
                                   static_cast<uint16_t>(rows == 1 ? 0 : 1));
      return c.variant % 2 == 0 ? TransDataTo5HD<T>(to, from, p) : TransDataTo5HD<T>(to_at, from_at, p);
    }
    case 46: {
      SoftMaxTiling tiling{};
      tiling.srcM = rows;
      tiling.srcK = pitch;
      LocalTensor<T> a = o.a;
      a.SetSize(rows * pitch);
      const SoftMaxShapeInfo shape{rows, pitch, rows, width};
      LocalTensor<float> sum = o.b.template ReinterpretCast<float>(), most = sum[512];
      if (c.variant == 0) return SoftMax<T>(o.d, a, tiling, shape);
      if (c.variant == 1) return SoftMax<T>(o.d, a, o.tmp, tiling, shape);
      SoftMax<T>(o.d, sum, most, a, o.tmp, tiling, shape);
      if (c.variant == 2) return;
      return SimpleSoftMax<T>(o.d, sum, most, a, tiling, shape);
    }
    case 47: {
      RmsNormTiling tiling{};
      tiling.bLength = 1, tiling.sLength = rows, tiling.hLength = pitch, tiling.originalHLength = width;
      return c.variant % 2 == 0 ? RmsNorm<T>(o.d, o.a, o.b, o.tmp, scalar, tiling)
                                : RmsNorm<T>(o.d, o.a, o.b, scalar, tiling);
    }
    case 48: {
      LayerNormTiling tiling{};
      tiling.bLength = 1, tiling.sLength = rows, tiling.hLength = pitch, tiling.originalHLength = width;
      const LocalTensor<T> mean = o.d[3072 / sizeof(T)], variance = o.d[3584 / sizeof(T)];
      return c.variant % 2 == 0
                 ? LayerNorm<T>(o.d, mean, variance, o.a, o.b, o.b[1024 / sizeof(T)], o.tmp, scalar, tiling)
                 : LayerNorm<T>(o.d, mean, variance, o.a, o.b, o.b[1024 / sizeof(T)], scalar, tiling);
    }
    case 49:
      return c.variant % 2 == 0 ? Mean<T>(o.d, o.a, o.tmp, MeanParams{rows, pitch, width})
                                : Mean<T>(o.d, o.a, MeanParams{rows, pitch, width});
    case 51: {  // names of the layer below
      T *d = At(o.d), *a = At(o.a), *b = At(o.b);
      const auto repeat = static_cast<uint8_t>(rows);
      SetBits(width);
      if (c.variant == 0) vadd(d, a, b, repeat, 1, 1, 1, 8, 8, 8);
      if (c.variant == 1) vsub(d, a, b, repeat, 1, 1, 1, 8, 8, 8);
      if (c.variant == 2) vmul(d, a, b, repeat, 1, 1, 1, 8, 8, 8);
      if (c.variant == 3) vmla(d, a, b, repeat, 1, 1, 1, 8, 8, 8);
      return ResetMask();
    }
    case 52: {
      T *d = At(o.d), *a = At(o.a);
      const auto repeat = static_cast<uint8_t>(rows);
      SetBits(width);
      if (c.variant == 0) vector_dup(d, scalar, repeat, 1, 1, 8, 8);
      if (c.variant == 1) vabs(d, a, repeat, 1, 1, 8, 8);
      if (c.variant == 2) vmuls(d, a, scalar, repeat, 1, 1, 8, 8);
      if (c.variant == 3) vcopy(d, a, repeat, 1, 1, 8, 8);
      return ResetMask();
    }
    case 53: {  // in counter mode, too
      T *d = At(o.d), *a = At(o.a);
      if (c.variant == 3) {
        set_mask_count();
        set_vector_mask(0, c.count);
        vadds(d, a, scalar, 1, 1, 1, 8, 8);
        set_mask_norm();
        return ResetMask();
      }
      const auto repeat = static_cast<uint8_t>(rows);
      SetBits(width);
      if (c.variant == 0) vcadd(d, a, repeat, 1, 1, 8);
      if (c.variant == 1) vcgmax(d, a, repeat, 1, 1, 8);
      ResetMask();
      if (c.variant == 2) {
        copy_gm_to_ubuf(d, reinterpret_cast<T*>(memory), 0, static_cast<uint16_t>(rows), 2, 1, 0);
      }
      return;
    }
    case 54: {
      const LocalTensor<int8_t> bytes = o.d.template ReinterpretCast<int8_t>();
      LocalTensor<T> a = o.a;
      a.SetSize(c.count);
      if (c.variant == 0) return AscendQuant(bytes, a, c.scalar * 8, 1.0f);
      if (c.variant == 1) return AscendQuant(bytes, a, c.scalar * 8, 1.0f, c.count);
      if (c.variant == 2) return AscendQuant(bytes, a, o.tmp, c.scalar * 8, 1.0f);
      return AscendQuant(bytes, a, o.tmp, c.scalar * 8, 1.0f, c.count);
    }
    case 55: {
      const LocalTensor<int32_t> from = o.a.template ReinterpretCast<int32_t>();
      const DequantParams p{rows, pitch, width};
      if (c.variant == 0) return AscendDequant(o.d, from, c.scalar, o.tmp, p);
      return c.variant == 1 ? AscendDequant(o.d, from, o.b, p) : AscendDequant(o.d, from, o.b, o.tmp, p);
    }
    case 56: {
      SoftMaxTiling tiling{};
      tiling.srcM = rows;
      tiling.srcK = pitch;
      LocalTensor<T> a = o.a;
      a.SetSize(rows * pitch);
      const SoftMaxShapeInfo shape{rows, pitch, rows, width};
      const LocalTensor<T> sum = o.b, most = o.b[512 / sizeof(T)];
      return c.variant % 2 == 0 ? LogSoftMax<T>(o.d, sum, most, a, o.tmp, tiling, shape)
                                : LogSoftMax<T>(o.d, sum, most, a, tiling, shape);
    }
    case 57: {  // two pieces of a row: what stands in d is the second one, its sum and factor behind it
      SoftMaxTiling tiling{};
      tiling.srcM = rows;
      tiling.srcK = pitch;
      LocalTensor<T> a = o.a, b = o.b;
      a.SetSize(rows * pitch);
      b.SetSize(rows * pitch);
      const SoftMaxShapeInfo shape{rows, pitch, rows, width};
      const LocalTensor<float> sum = o.d[2048 / sizeof(T)].template ReinterpretCast<float>(), most = sum[64],
                               first_sum = sum[128], first_most = sum[192];
      const LocalTensor<T> factor = o.d[3584 / sizeof(T)];
      SoftmaxFlashV2<T, false>(o.d, first_sum, first_most, a, factor, first_sum, first_most, o.tmp, tiling,
                               shape);
      return c.variant % 2 == 0
                 ? SoftmaxFlashV2<T, true>(o.d, sum, most, b, factor, first_sum, first_most, o.tmp, tiling,
                                           shape)
                 : SoftmaxFlashV2<T, true>(o.d, sum, most, b, factor, first_sum, first_most, tiling, shape);
    }
    case 58: {  // values, then indices behind them
      const TopKInfo info{static_cast<int32_t>(rows), static_cast<int32_t>(pitch),
                          static_cast<int32_t>(width)};
      const LocalTensor<int32_t> index = o.d[2048 / sizeof(T)].template ReinterpretCast<int32_t>(),
                                 from = o.b.template ReinterpretCast<int32_t>();
      const auto k = static_cast<int32_t>(c.count);
      const LocalTensor<bool> ended = o.b[3584 / sizeof(T)].template ReinterpretCast<bool>();
      const LocalTensor<T> a = o.a;
      if (c.variant == 0) return TopK<T>(o.d, index, a, from, ended, k, TopkTiling{}, info);
      if (c.variant == 1) return TopK<T, true>(o.d, index, a, from, ended, o.tmp, k, TopkTiling{}, info);
      return c.variant == 2 ? TopK<T, false, true>(o.d, index, a, from, ended, o.tmp, k, TopkTiling{}, info)
                            : TopK<T>(o.d, index, a, from, ended, o.tmp, k, TopkTiling{}, info, false);
    }
    case 59: {
      if constexpr (is_same_v<T, half>) {
        LocalTensor<int8_t> from = o.a.template ReinterpretCast<int8_t>();
        const LocalTensor<half> offset = o.b, scale = o.b[256];
        from.SetSize(rows * pitch);
        LocalTensor<half> first = scale;
        first.SetSize(pitch);
        if (c.variant == 0) return AscendAntiQuant<half>(o.d, from, half(3.0f), scalar, rows);
        if (c.variant == 1) return AscendAntiQuant<half>(o.d, from, half(3.0f), scalar, o.tmp, rows);
        if (c.variant == 2) return AscendAntiQuant<half>(o.d, from, offset, first, rows);
        return AscendAntiQuant<half>(o.d, from, offset, scale, o.tmp, rows, {1, pitch, 1, pitch});
      }
      return;
    }
    case 60: {
      const uint32_t shape[2] = {rows, width};
      if (c.variant == 0) return ReduceSum<T, Pattern::Reduce::AR>(o.d, o.a, o.tmp, shape, true);
      if (c.variant == 1) return ReduceMax<T, Pattern::Reduce::RA>(o.d, o.a, shape, true);
      if (c.variant == 2) return ReduceMin<T, Pattern::Reduce::AR, true>(o.d, o.a, shape, true);
      return ReduceSum<T, Pattern::Reduce::RA>(o.d, o.a, o.tmp, shape, true);
    }
    case 61: {
      const LocalTensor<uint8_t> mask = o.b.template ReinterpretCast<uint8_t>();
      const uint32_t row = c.variant < 2 ? pitch : 32;
      const DropOutShapeInfo shape{rows, pitch, row};
      if (c.variant == 0) return DropOut<T>(o.d, o.a, mask, o.tmp, 0.75f, shape);
      if (c.variant == 1) return DropOut<T, false, 1>(o.d, o.a, mask, 0.75f, shape);
      return c.variant == 2 ? DropOut<T, true, 3>(o.d, o.a, mask, o.tmp, 0.75f, shape)
                            : DropOut<T, false, 4>(o.d, o.a, mask, 0.75f, shape);
    }
      MATH(62, Atan)
      MATH(63, Asin)
      MATH(64, Acos)
      TWO(65, Fmod)
      TWO(66, Hypot)
    case 67: {
      LocalTensor<T> a = o.a;
      a.SetSize(c.count);
      if (c.variant == 0) return Power<T, false>(o.d, o.a, scalar, o.tmp, c.count);
      if (c.variant == 1) return Power<T>(o.d, scalar, o.b, c.count);
      return c.variant == 2 ? Power<T>(o.d, scalar, o.b, o.tmp, c.count) : Power<T>(o.d, a, scalar, o.tmp);
    }
    case 68: {  // rows with a scale an element, an offset an element or one
      const LocalTensor<int8_t> bytes = o.d.template ReinterpretCast<int8_t>();
      LocalTensor<T> a = o.a, scale = o.b, offset = o.b[256];
      a.SetSize(rows * pitch);
      scale.SetSize(pitch);
      if (c.variant == 0) return AscendQuant<T>(bytes, a, o.tmp, scale, offset, pitch, pitch, rows * pitch);
      if (c.variant == 1) return AscendQuant<T>(bytes, a, scale, offset, pitch, pitch, rows * pitch);
      return c.variant == 2 ? AscendQuant<T>(bytes, a, o.tmp, scale, T(2.0f))
                            : AscendQuant<T>(bytes, a, scale, T(2.0f));
    }
    case 69: {
      const uint32_t shape[2] = {rows, width};
      if (c.variant == 0) return ReduceAny<T, Pattern::Reduce::AR>(o.d, o.a, o.tmp, shape, true);
      if (c.variant == 1) return ReduceAll<T, Pattern::Reduce::RA>(o.d, o.a, shape, true);
      if (c.variant == 2) return ReduceAll<T, Pattern::Reduce::AR, true>(o.d, o.a, o.tmp, shape, true);
      return ReduceAny<T, Pattern::Reduce::RA>(o.d, o.a, shape, true);
    }
    default:
      Abort("no such form");
  }
}

template <typename T>
void One(const Case& c, const LocalTensor<uint8_t>& areas) {
  Call<T>(c, {areas.template ReinterpretCast<T>(), areas[kArea].template ReinterpretCast<T>(),
              areas[2 * kArea].template ReinterpretCast<T>(), areas[3 * kArea]});
}

}  // namespace

extern "C" __global__ __aicore__ void library_forms(GM_ADDR cases, GM_ADDR operands, GM_ADDR results,
                                                    uint64_t count) {
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, 3 * kArea + 8192);
  LocalTensor<uint8_t> areas = buffer.Get<uint8_t>();
  GlobalTensor<uint8_t> in, out;
  in.SetGlobalBuffer(operands);
  out.SetGlobalBuffer(results);
  for (uint64_t n = static_cast<uint64_t>(GetBlockIdx()); n < count;
       n += static_cast<uint64_t>(GetBlockNum())) {
    const Case& c = reinterpret_cast<const Case*>(cases)[n];
    DataCopy(areas, in[n * 3 * kArea], 3 * kArea);
    PipeBarrier<PIPE_ALL>();
    memory = operands + n * 3 * kArea + kArea;
    // InitGlobalMemory writes to memory by itself.
    if (c.form == 50) {
      GlobalTensor<float> memory;
      memory.SetGlobalBuffer(reinterpret_cast<float*>(results + n * kArea));
      if (c.variant % 2 == 0) {
        InitGlobalMemory<float>(memory, c.count, c.scalar);
      } else {
        InitOutput<float>(memory, c.count, c.scalar);
      }
      continue;
    }
    if (c.type == 0) {
      One<float>(c, areas);
    } else {
      One<half>(c, areas);
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(out[n * kArea], areas, kArea);
    PipeBarrier<PIPE_ALL>();
  }
}
