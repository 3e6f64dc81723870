// Each call form of forms.h as a function, Do and its name, that makes the call of the case `c`.
#pragma once

#include "forms.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

const Case* c;
uint64_t kept;
GlobalTensor<uint8_t> result, gm_source;

template <typename T>
LocalTensor<T> Area(uint32_t n) {
  return LocalTensor<T>(n * AREA, AREA / sizeof(T));
}
template <typename T>
T Scalar() {
  T value;
  __builtin_memcpy(&value, &c->scalar, sizeof value);
  return value;
}
BinaryRepeatParams Strides() {
  return {static_cast<uint8_t>(c->block[0]),  static_cast<uint8_t>(c->block[1]),
          static_cast<uint8_t>(c->block[2]),  static_cast<uint8_t>(c->stride[0]),
          static_cast<uint8_t>(c->stride[1]), static_cast<uint8_t>(c->stride[2])};
}
UnaryRepeatParams UnaryStrides() {
  return {static_cast<uint16_t>(c->block[0]), static_cast<uint16_t>(c->block[1]),
          static_cast<uint8_t>(c->stride[0]), static_cast<uint8_t>(c->stride[1])};
}

// The six variants of a call; `...`: its template arguments behind the element type, and its strides.
#define VARIANTS(Name, T, strides, ...)                                  \
  switch (c->variant) {                                                  \
    case kCount:                                                         \
      return Name(__VA_ARGS__, c->count);                                \
    case kNumber:                                                        \
      return Name(__VA_ARGS__, c->mask[0], c->repeat, strides);          \
    case kWords:                                                         \
      return Name(__VA_ARGS__, c->mask, c->repeat, strides);             \
  }                                                                      \
  /* The modes of masks are the same code for every type. */             \
  if constexpr (is_same_v<T, float> || is_same_v<T, int16_t>) {          \
    if (c->variant == kPlaceholder) {                                    \
      SetVectorMask<T, MaskMode::NORMAL>(c->mask[1], c->mask[0]);        \
      Name<T, false>(__VA_ARGS__, MASK_PLACEHOLDER, c->repeat, strides); \
      return ResetMask();                                                \
    }                                                                    \
    SetMaskCount();                                                      \
    if (c->variant == kCounter) {                                        \
      SetVectorMask<T, MaskMode::COUNTER>(0, c->count);                  \
      Name<T, false>(__VA_ARGS__, MASK_PLACEHOLDER, 1, strides);         \
    } else {                                                             \
      Name(__VA_ARGS__, static_cast<uint64_t>(c->count), 1, strides);    \
    }                                                                    \
    SetMaskNorm();                                                       \
    ResetMask();                                                         \
  }

#define BINARY(Name)                                                 \
  template <typename T>                                              \
  void Do##Name() {                                                  \
    VARIANTS(Name, T, Strides(), Area<T>(0), Area<T>(1), Area<T>(2)) \
  }
#define UNARY(Name)                                           \
  template <typename T>                                       \
  void Do##Name() {                                           \
    VARIANTS(Name, T, UnaryStrides(), Area<T>(0), Area<T>(1)) \
  }
#define SCALAR(Name)                                                       \
  template <typename T>                                                    \
  void Do##Name() {                                                        \
    VARIANTS(Name, T, UnaryStrides(), Area<T>(0), Area<T>(1), Scalar<T>()) \
  }
BINARY(Add)
BINARY(Sub)
BINARY(Mul)
BINARY(Div)
BINARY(Max)
BINARY(Min)
BINARY(And)
BINARY(Or)
BINARY(MulAddDst)
UNARY(Abs)
UNARY(Relu)
UNARY(Exp)
UNARY(Ln)
UNARY(Sqrt)
UNARY(Rsqrt)
UNARY(Reciprocal)
UNARY(Not)
SCALAR(Adds)
SCALAR(Muls)
SCALAR(Maxs)
SCALAR(Mins)
SCALAR(Axpy)
SCALAR(ShiftLeft)
SCALAR(ShiftRight)
template <typename T>
void DoCopy() {
  const CopyRepeatParams strides{static_cast<uint16_t>(c->block[0]), static_cast<uint16_t>(c->block[1]),
                                 static_cast<uint16_t>(c->stride[0]), static_cast<uint16_t>(c->stride[1])};
  VARIANTS(Copy, T, strides, Area<T>(0), Area<T>(1))
}
#define FILL_STRIDES static_cast<uint16_t>(c->block[0]), static_cast<uint8_t>(c->stride[0])
template <typename T>
void DoDuplicate() {
  VARIANTS(Duplicate, T, FILL_STRIDES, Area<T>(0), Scalar<T>())
}
template <typename T>
void DoCreateVecIndex() {
  VARIANTS(CreateVecIndex, T, FILL_STRIDES, Area<T>(0), Scalar<T>())
}

template <typename Dst, typename Src>
void CastTo() {
  const auto mode = static_cast<RoundMode>(c->mode);
  if (c->variant == kCount) return Cast(Area<Dst>(0), Area<Src>(1), mode, c->count);
  if (c->variant == kNumber)
    return Cast(Area<Dst>(0), Area<Src>(1), mode, c->mask[0], c->repeat, UnaryStrides());
  return Cast(Area<Dst>(0), Area<Src>(1), mode, c->mask, c->repeat, UnaryStrides());
}
#define PAIR(a, b) (static_cast<int>(a) * static_cast<int>(kTypes) + static_cast<int>(b))
void DoCast() {
  if (c->extra[0] != 0) SetDeqScale(Scalar<half>());
  switch (PAIR(c->type, c->type2)) {
#define CAST(from, From, to, To) \
  case PAIR(from, to):           \
    CastTo<To, From>();          \
    break;
    CAST(kBF16, bfloat16_t, kF32, float)
    CAST(kF32, float, kBF16, bfloat16_t)
    CAST(kF16, half, kF32, float)
    CAST(kF32, float, kF16, half)
    CAST(kF32, float, kS32, int32_t)
    CAST(kS32, int32_t, kF32, float)
    CAST(kS32, int32_t, kF16, half)
    CAST(kF16, half, kS8, int8_t)
    CAST(kS8, int8_t, kF16, half)
    CAST(kF32, float, kF32, float)
    CAST(kF16, half, kS32, int32_t)
    CAST(kS32, int32_t, kS16, int16_t)
    CAST(kS16, int16_t, kS32, int32_t)
    CAST(kF16, half, kU8, uint8_t)
    CAST(kU8, uint8_t, kF16, half)
    CAST(kF32, float, kS16, int16_t)
    CAST(kF16, half, kS16, int16_t)
    CAST(kS16, int16_t, kF16, half)
    CAST(kBF16, bfloat16_t, kS32, int32_t)
    CAST(kF32, float, kS64, int64_t)
    CAST(kS64, int64_t, kF32, float)
    CAST(kS32, int32_t, kS64, int64_t)
    CAST(kS64, int64_t, kS32, int32_t)
    CAST(kS16, int16_t, kF32, float)
    default:
      Abort("no such pair of types");
  }
  if (c->extra[0] != 0) SetDeqScale(half(1.0f));
}

template <typename T>
void DoCompare() {
  const auto mode = static_cast<CMPMODE>(c->mode);
  const auto to = Area<uint8_t>(0);
  const auto a = Area<T>(1), b = Area<T>(2);
  if (c->variant == kCount) return Compare(to, a, b, mode, c->count);
  if (c->variant == kNumber) return Compare(to, a, b, mode, c->mask[0], c->repeat, Strides());
  return Compare(to, a, b, mode, c->mask, c->repeat, Strides());
}
template <typename T>
void DoCompareScalar() {
  const auto mode = static_cast<CMPMODE>(c->mode);
  const auto to = Area<uint8_t>(0);
  const auto a = Area<T>(1);
  if (c->variant == kCount) return CompareScalar(to, a, Scalar<T>(), mode, c->count);
  if (c->variant == kNumber)
    return CompareScalar(to, a, Scalar<T>(), mode, c->mask[0], c->repeat, UnaryStrides());
  return CompareScalar(to, a, Scalar<T>(), mode, c->mask, c->repeat, UnaryStrides());
}
template <typename T>
void DoSelect() {
  const auto mode = static_cast<SELMODE>(c->mode);
  const auto bits = Area<uint8_t>(3);
  const auto to = Area<T>(0), a = Area<T>(1), b = Area<T>(2);
  if (c->variant == kCount) return Select(to, bits, a, b, mode, c->count);
  if (c->variant == kNumber) return Select(to, bits, a, b, mode, c->mask[0], c->repeat, Strides());
  return Select(to, bits, a, b, mode, c->mask, c->repeat, Strides());
}
template <typename T>
void DoSelectScalar() {
  const auto mode = static_cast<SELMODE>(c->mode);
  const auto bits = Area<uint8_t>(3);
  const auto to = Area<T>(0), a = Area<T>(1);
  if (c->variant == kCount) return Select(to, bits, a, Scalar<T>(), mode, c->count);
  if (c->variant == kNumber) return Select(to, bits, a, Scalar<T>(), mode, c->mask[0], c->repeat, Strides());
  return Select(to, bits, a, Scalar<T>(), mode, c->mask, c->repeat, Strides());
}

#define REDUCE(Name, ...)                                                                             \
  template <typename T>                                                                               \
  void Do##Name() {                                                                                   \
    const auto to = Area<T>(0), a = Area<T>(1), work = Area<T>(3);                                    \
    const auto stride = static_cast<int32_t>(c->stride[1]), repeat = static_cast<int32_t>(c->repeat); \
    if (c->variant == kCount) return Name(to, a, work, static_cast<int32_t>(c->count) __VA_ARGS__);   \
    if (c->variant == kNumber)                                                                        \
      return Name(to, a, work, static_cast<int32_t>(c->mask[0]), repeat, stride __VA_ARGS__);         \
    return Name(to, a, work, c->mask, repeat, stride __VA_ARGS__);                                    \
  }
REDUCE(ReduceSum)
REDUCE(ReduceMax, , c->mode != 0)
REDUCE(ReduceMin, , c->mode != 0)
#define WHOLE(Name, ...)                                                                                     \
  template <typename T>                                                                                      \
  void Do##Name() {                                                                                          \
    const auto repeat = static_cast<int32_t>(c->repeat), d = static_cast<int32_t>(c->stride[0]),             \
               b = static_cast<int32_t>(c->block[1]), s = static_cast<int32_t>(c->stride[1]);                \
    if (c->variant == kNumber)                                                                               \
      return Name<T>(Area<T>(0), Area<T>(1), static_cast<int32_t>(c->mask[0]), repeat, d, b, s __VA_ARGS__); \
    return Name<T>(Area<T>(0), Area<T>(1), c->mask, repeat, d, b, s __VA_ARGS__);                            \
  }
WHOLE(WholeReduceSum)
WHOLE(WholeReduceMax, , static_cast<ReduceOrder>(c->mode))
WHOLE(WholeReduceMin, , static_cast<ReduceOrder>(c->mode))
#define GROUPS(Name)                                                                             \
  template <typename T>                                                                          \
  void Do##Name() {                                                                              \
    const auto repeat = static_cast<int32_t>(c->repeat), d = static_cast<int32_t>(c->stride[0]), \
               b = static_cast<int32_t>(c->block[1]), s = static_cast<int32_t>(c->stride[1]);    \
    if (c->variant == kNumber)                                                                   \
      return Name<T>(Area<T>(0), Area<T>(1), repeat, static_cast<int32_t>(c->mask[0]), d, b, s); \
    return Name<T>(Area<T>(0), Area<T>(1), repeat, c->mask, d, b, s);                            \
  }
GROUPS(BlockReduceSum)
GROUPS(BlockReduceMax)
GROUPS(BlockReduceMin)
GROUPS(PairReduceSum)
template <typename T>
void DoRepeatReduceSum() {
  RepeatReduceSum<T>(Area<T>(0), Area<T>(1), static_cast<int32_t>(c->repeat),
                     static_cast<int32_t>(c->mask[0]), 0, static_cast<int32_t>(c->block[1]),
                     static_cast<int32_t>(c->stride[0]), static_cast<int32_t>(c->stride[1]));
}
template <typename T>
void DoSum() {
  Sum(Area<T>(0), Area<T>(1), SumParams{c->repeat, c->extra[0], c->count});
}

GatherMaskParams Gathering() {
  return {static_cast<uint8_t>(c->block[1]), static_cast<uint16_t>(c->repeat),
          static_cast<uint16_t>(c->stride[1]), static_cast<uint8_t>(c->stride[2])};
}
template <typename T>
void DoGatherMask() {
  GatherMask(Area<T>(0), Area<T>(1), static_cast<uint8_t>(c->mode), c->extra[0] != 0, c->count, Gathering(),
             kept);
}
template <typename T>
void DoGatherMaskTensor() {
  if constexpr (sizeof(T) == 4) {
    GatherMask(Area<T>(0), Area<T>(1), Area<uint32_t>(3), c->extra[0] != 0, c->count, Gathering(), kept);
  } else {
    GatherMask(Area<T>(0), Area<T>(1), Area<uint16_t>(3), c->extra[0] != 0, c->count, Gathering(), kept);
  }
}
template <typename T>
void DoGather() {
  // Offsets inside source 0: the third area's numbers, made small.
  const auto offsets = Area<int32_t>(3);
  const auto words = offsets.template ReinterpretCast<uint16_t>();
  Duplicate<int32_t>(Area<int32_t>(2), 0x7fc, 1024);
  PipeBarrier<PIPE_V>();
  And(words, words, Area<uint16_t>(2), 2048);
  PipeBarrier<PIPE_V>();
  const auto u = Area<uint32_t>(3);
  if (c->variant == kCount) return Gather(Area<T>(0), Area<T>(1), u, c->extra[0], c->count);
  if (c->variant == kNumber)
    return Gather(Area<T>(0), Area<T>(1), u, c->extra[0], c->mask[0], static_cast<uint8_t>(c->repeat),
                  static_cast<uint16_t>(c->stride[0]));
  return Gather(Area<T>(0), Area<T>(1), u, c->extra[0], c->mask, static_cast<uint8_t>(c->repeat),
                static_cast<uint16_t>(c->stride[0]));
}
template <typename T>
void DoBrcb() {
  Brcb(Area<T>(0), Area<T>(1), static_cast<uint8_t>(c->repeat),
       {static_cast<uint16_t>(c->block[0]), static_cast<uint16_t>(c->stride[0])});
}
template <typename T>
void DoTranspose() {
  if constexpr (sizeof(T) == 2) Transpose(Area<T>(0), Area<T>(1));
}

template <typename T>
void DoSort32() {
  Sort32(Area<T>(0), Area<T>(1), Area<uint32_t>(2), static_cast<int32_t>(c->repeat));
}
template <typename T>
void DoSort() {
  LocalTensor<T> scores;
  Concat(scores, Area<T>(1), Area<T>(3), static_cast<int32_t>(c->repeat));
  if (c->mode != 0)
    return Sort<T, true>(Area<T>(0), scores, Area<uint32_t>(2), Area<T>(3), static_cast<int32_t>(c->repeat));
  Sort<T, false>(Area<T>(0), scores, Area<uint32_t>(2), Area<T>(3), static_cast<int32_t>(c->repeat));
}
// What a merge with suspension has taken of its lists, 16 bits each.
void Keep(const uint32_t (&taken)[4]) {
  for (int n = 3; n >= 0; --n) kept = kept << 16 | taken[n];
}
// Four sorted lists of up to 32 stand in the third area; of them so many, by the bits of `mode`.
template <typename T>
void DoMrgSort() {
  Sort32(Area<T>(3), Area<T>(1), Area<uint32_t>(2), 4);
  PipeBarrier<PIPE_V>();
  const auto lists = Area<T>(3);
  constexpr uint32_t kList = 32 * 8 / sizeof(T);
  const MrgSortSrcList<T> from{lists, lists[kList], lists[2 * kList], lists[3 * kList]};
  uint16_t lengths[4];
  for (int n = 0; n < 4; ++n) lengths[n] = static_cast<uint16_t>(c->extra[n]);
  if (c->variant == kCount) {
    uint32_t sorted[4];
    if (c->extra[4] == 0)
      return MrgSort(Area<T>(0), from, lengths, sorted, static_cast<uint16_t>(c->mode), 1);
    MrgSort<T, true>(Area<T>(0), from, lengths, sorted, static_cast<uint16_t>(c->mode), 1);
    return Keep(sorted);
  }
  MrgSort(Area<T>(0), from, MrgSort4Info(lengths, c->extra[4] != 0, static_cast<uint16_t>(c->mode), 1));
  if (c->extra[4] == 0) return;
  SetFlag<HardEvent::V_S>(EVENT_ID0);
  WaitFlag<HardEvent::V_S>(EVENT_ID0);
  uint16_t taken[4];
  GetMrgSortResult(taken[0], taken[1], taken[2], taken[3]);
  Keep({taken[0], taken[1], taken[2], taken[3]});
}
template <typename T>
void DoExtract() {
  Extract(Area<T>(0), Area<uint32_t>(0)[512], Area<T>(1), static_cast<int32_t>(c->repeat));
}

template <typename T>
GlobalTensor<T> Of(const GlobalTensor<uint8_t>& bytes) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<T*>(bytes.GetPhyAddr()));
  return tensor;
}
DataCopyParams Blocks() {
  return {static_cast<uint16_t>(c->repeat), static_cast<uint16_t>(c->extra[0]),
          static_cast<uint16_t>(c->stride[1]), static_cast<uint16_t>(c->stride[0])};
}
DataCopyExtParams Bursts() {
  return {static_cast<uint16_t>(c->repeat), c->extra[0], c->stride[1], c->stride[0], 0};
}
template <typename T>
void DoDataCopy() {
  if (c->variant == kCount) return DataCopy(Area<T>(0), Of<T>(gm_source), c->count);
  DataCopy(Area<T>(0), Of<T>(gm_source), Blocks());
}
template <typename T>
void DoDataCopyOut() {
  if (c->variant == kCount) return DataCopy(Of<T>(result), Area<T>(1), c->count);
  DataCopy(Of<T>(result), Area<T>(1), Blocks());
}
template <typename T>
void DoDataCopyLocal() {
  if (c->variant == kCount) return DataCopy(Area<T>(0), Area<T>(1), c->count);
  DataCopy(Area<T>(0), Area<T>(1), Blocks());
}
template <typename T>
void DoDataCopyPad() {
  DataCopyPadExtParams<T> pad{c->mode != 0, static_cast<uint8_t>(c->extra[1]),
                              static_cast<uint8_t>(c->extra[2]), Scalar<T>()};
  DataCopyPad(Area<T>(0), Of<T>(gm_source), Bursts(), pad);
}
template <typename T>
void DoDataCopyPadOut() {
  DataCopyPad(Of<T>(result), Area<T>(1), Bursts());
}
template <typename T>
void DoAtomicCopy() {
  if (c->mode == 0) SetAtomicAdd<T>();
  if (c->mode == 1) SetAtomicMax<T>();
  if (c->mode == 2) SetAtomicMin<T>();
  DataCopyPad(Of<T>(result), Area<T>(1), DataCopyExtParams{1, c->extra[0], 0, 0, 0});
  SetAtomicNone();
}

}  // namespace
