// Vector calls of several steps, one case after another: operands of 8 KiB from memory, the whole destination
// back. fused_forms makes the cases and says what should come out.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kArea = 8192;

struct Case {
  uint32_t form, types, way, count;  // way: by count, mask as number, mask as words
  uint32_t repeats, dst_block, src0_block, src1_block, dst_repeat, src0_repeat, src1_repeat;
  float scalar;
  uint64_t mask[2];
};

template <typename Call>
void Ways(const Case& c, Call call) {
  const BinaryRepeatParams p(static_cast<uint8_t>(c.dst_block), static_cast<uint8_t>(c.src0_block),
                             static_cast<uint8_t>(c.src1_block), static_cast<uint8_t>(c.dst_repeat),
                             static_cast<uint8_t>(c.src0_repeat), static_cast<uint8_t>(c.src1_repeat));
  const auto repeats = static_cast<uint8_t>(c.repeats);
  if (c.way == 0) return call(static_cast<int32_t>(c.count));
  if (c.way == 1) return call(static_cast<uint64_t>(c.count), repeats, p);
  call(c.mask, repeats, p);
}
#define WAYS(...) return Ways(c, [&](const auto&... how) { __VA_ARGS__; })

template <typename T>
void Same(const Case& c, const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) {
  switch (c.form) {
    case 0:
      WAYS(AddRelu(d, a, b, how...));
    case 1:
      WAYS(SubRelu(d, a, b, how...));
    case 2:
      WAYS(FusedMulAdd(d, a, b, how...));
    case 3:
      WAYS(FusedMulAddRelu(d, a, b, how...));
    default:
      WAYS(MulAddRelu(d, a, b, how...));
  }
}
template <typename D, typename S>
void Converted(const Case& c, const LocalTensor<D>& d, const LocalTensor<S>& a, const LocalTensor<S>& b) {
  switch (c.form) {
    case 7:
      WAYS(AddReluCast<D, S>(d, a, b, how...));
    case 8:
      WAYS(SubReluCast<D, S>(d, a, b, how...));
    default:
      WAYS(MulCast<D, S>(d, a, b, how...));
  }
}

}  // namespace

extern "C" __global__ __aicore__ void fused_forms(GM_ADDR cases, GM_ADDR operands, GM_ADDR results,
                                                  uint64_t count) {
  TPipe pipe;
  // Little is left for temporaries, so that calls go piece by piece.
  TBuf<> buffer, rest;
  pipe.InitBuffer(buffer, 3 * kArea);
  pipe.InitBuffer(rest, TOTAL_UB_SIZE - 3 * kArea - 1024);
  const LocalTensor<uint8_t> all = buffer.Get<uint8_t>();
  GlobalTensor<uint8_t> from, to;
  for (uint64_t n = GetBlockIdx(); n < count; n += GetBlockNum()) {
    const Case c = reinterpret_cast<const Case*>(cases)[n];
    from.SetGlobalBuffer(operands + n * 3 * kArea);
    to.SetGlobalBuffer(results + n * kArea);
    DataCopy(all, from, 3 * kArea);
    PipeBarrier<PIPE_ALL>();
    const auto area = [&](uint32_t which) { return all[which * kArea]; };
    const LocalTensor<float> fd = area(0).ReinterpretCast<float>(), fa = area(1).ReinterpretCast<float>(),
                             fb = area(2).ReinterpretCast<float>();
    const LocalTensor<half> hd = area(0).ReinterpretCast<half>(), ha = area(1).ReinterpretCast<half>(),
                            hb = area(2).ReinterpretCast<half>();
    if (c.form < 5) {
      c.types == 0 ? Same(c, fd, fa, fb) : Same(c, hd, ha, hb);
    } else if (c.form == 5) {
      Ways(c, [&](const auto&... how) { MulAddDst<float, half>(fd, ha, hb, how...); });
    } else if (c.form == 6) {
      const UnaryRepeatParams p(static_cast<uint16_t>(c.dst_block), static_cast<uint16_t>(c.src0_block),
                                static_cast<uint8_t>(c.dst_repeat), static_cast<uint8_t>(c.src0_repeat));
      const half by = c.scalar;
      const auto repeats = static_cast<uint8_t>(c.repeats);
      if (c.way == 0) Axpy<float, half>(fd, ha, by, static_cast<int32_t>(c.count));
      if (c.way == 1) Axpy<float, half>(fd, ha, by, static_cast<uint64_t>(c.count), repeats, p);
      if (c.way == 2) Axpy<float, half>(fd, ha, by, c.mask, repeats, p);
    } else if (c.form == 10) {
      SetDeqScale(half(c.scalar));
      Ways(c, [&](const auto&... how) {
        AddDeqRelu<half, int32_t>(hd, area(1).ReinterpretCast<int32_t>(), area(2).ReinterpretCast<int32_t>(),
                                  how...);
      });
    } else if (c.types == 0) {
      Converted(c, hd, fa, fb);
    } else {
      Converted(c, area(0).ReinterpretCast<int8_t>(), ha, hb);
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, area(0), kArea);
    PipeBarrier<PIPE_ALL>();
  }
}
