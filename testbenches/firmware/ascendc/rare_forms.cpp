// Calls that few kernels make, one case after another: four operands of 4 KiB from memory, the first and the
// last of them back. rare_forms makes the cases and says what should come out.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kArea = 4096;

struct Case {
  uint32_t form, type, variant, count, rows, pitch, width;
  float scalar;
};

template <typename T>
struct Areas {
  LocalTensor<T> d, a, b, e;
};
GM_ADDR first_source, result;

template <typename T>
void Rows(const Case& c, const Areas<T>& o) {
  const LocalTensor<float> ef = o.e.template ReinterpretCast<float>();
  const LocalTensor<float> bf = o.b.template ReinterpretCast<float>();
  const LayerNormPara p{c.rows, c.width, c.pitch};
  switch (c.form) {
    case 5: {
      SoftMaxTiling tiling{};
      const SoftMaxShapeInfo shape{c.rows, c.pitch, c.rows, c.width};
      // Behind the results: sums, maxima and factors; before them those of an earlier piece.
      const LocalTensor<T> expMax = o.e[3072 / sizeof(T)];
      if (c.variant == 0)
        return SoftmaxFlash<T>(o.d, ef, ef[256], o.a, expMax, bf, bf[64], tiling, false, shape);
      return SoftmaxFlash<T>(o.d, ef, ef[256], o.a, expMax, bf, bf[64], tiling, true, shape);
    }
    case 6: {
      const SoftMaxShapeInfo shape{c.rows, c.pitch, c.rows, c.pitch};
      const bool found = AdjustSoftMaxRes<T, float>(o.d, bf, 0xff7fffff, T(c.scalar), shape);
      ef.SetValue(0, found ? 1.0f : 0.0f);
      return Cm384AfterScalarTurn();
    }
    case 7: {
      static constexpr LayerNormConfig kBare{true, true, false};
      if (c.variant == 0)
        return LayerNorm<T, T, false, kBare>(o.d, ef, ef[64], o.a, o.b, o.b, c.scalar, p,
                                             LayerNormSeparateTiling{});
      return LayerNorm<T, T>(o.d, ef, ef[64], o.a, o.b, o.b[c.pitch], c.scalar, p, LayerNormSeparateTiling{});
    }
    case 8:
      return Normalize<T, T>(o.d, ef, bf[512], bf[768], o.a, o.b, o.b[c.pitch], c.scalar, p);
    case 9: {
      LayerNormGradTiling tiling{};
      tiling.bLength = 1;
      tiling.sLength = c.rows;
      tiling.hLength = c.pitch;
      tiling.originalHLength = c.width;
      // Variances, means and gamma stand in b.
      return LayerNormGrad<T>(o.d, o.e, o.d, o.a, o.b, o.b[64], o.b[128], T(c.scalar), tiling,
                              LayerNormGradShapeInfo{DataFormat::ND});
    }
    case 10: {
      LayerNormGradBetaTiling tiling{};
      tiling.bLength = c.rows;
      tiling.sLength = 1;
      tiling.hLength = c.pitch;
      tiling.originalHLength = c.width;
      return LayerNormGradBeta<T>(o.d, o.e, o.a, o.b, tiling);
    }
    case 11: {
      const WelfordUpdateParam w{1, c.count, c.count, c.scalar};
      return WelfordUpdate<T, float>(o.d.template ReinterpretCast<float>(), ef, bf, bf[512], o.a, w);
    }
  }
}

template <typename T>
void Call(const Case& c, const Areas<T>& o) {
  const LocalTensor<float> df = o.d.template ReinterpretCast<float>(),
                           af = o.a.template ReinterpretCast<float>(),
                           bf = o.b.template ReinterpretCast<float>(),
                           ef = o.e.template ReinterpretCast<float>();
  const LocalTensor<half> dh = o.d.template ReinterpretCast<half>(),
                          ah = o.a.template ReinterpretCast<half>(),
                          bh = o.b.template ReinterpretCast<half>();
  const auto repeats = static_cast<uint8_t>(c.rows);
  switch (c.form) {
    case 0: {
      const RoundMode modes[] = {RoundMode::CAST_RINT, RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL,
                                 RoundMode::CAST_TRUNC};
      return Cast(o.d.template ReinterpretCast<int4b_t>()[c.pitch], ah, modes[c.variant], c.count);
    }
    case 1:
      return Cast(dh, o.a.template ReinterpretCast<int4b_t>()[c.pitch], RoundMode::CAST_NONE, c.count);
    case 2:
      return Gatherb(o.d, o.a, o.b.template ReinterpretCast<uint32_t>(), repeats,
                     GatherRepeatParams(static_cast<uint8_t>(c.variant % 2 + 1),
                                        static_cast<uint8_t>(8 * (c.variant % 2 + 1) + c.variant / 2)));
    case 3: {
      const UnaryRepeatParams p(1, 1, 8, 8);
      if constexpr (is_same_v<T, float>) {
        return ShiftRight(o.d.template ReinterpretCast<int32_t>(), o.a.template ReinterpretCast<int32_t>(),
                          static_cast<int32_t>(c.width), static_cast<uint64_t>(c.count), repeats, p,
                          c.variant != 0);
      } else {
        return ShiftRight(o.d.template ReinterpretCast<int16_t>(), o.a.template ReinterpretCast<int16_t>(),
                          static_cast<int16_t>(c.width), static_cast<uint64_t>(c.count), repeats, p,
                          c.variant != 0);
      }
    }
    case 4: {
      GlobalTensor<T> from;
      from.SetGlobalBuffer(reinterpret_cast<T*>(first_source));
      if (c.variant == 0) SetPadValue<T>(T(c.scalar));
      if (c.variant == 1) SetPadValue<T, TPosition::VECIN>(T(c.scalar));
      if (c.variant == 2) SetPadValue<int8_t>(1);  // of another size: zeros
      DataCopyPadExtParams<T> pad{};
      if (c.variant < 2) pad.leftPadding = static_cast<uint8_t>(c.pitch);
      DataCopyPad(o.d, from,
                  DataCopyExtParams{static_cast<uint16_t>(c.rows), static_cast<uint32_t>(c.width * sizeof(T)),
                                    0, 0, 0},
                  pad);
      return SetPadValue<int8_t>(0);
    }
    case 12: {
      WelfordFinalizePara p{1,    c.count, c.width, c.count - c.pitch, c.rows, c.variant == 1 ? c.pitch : 0,
                            1.0f, 1.0f};
      if (c.variant == 0) {
        p.abRec = 1.0f / static_cast<float>(c.count);
        p.rRec = p.abRec / static_cast<float>(c.width);
        return WelfordFinalize(df, ef, af, bf, LocalTensor<uint8_t>(), p);
      }
      p.rRec = c.scalar;
      if (c.variant == 1) return WelfordFinalize(df, ef, af, bf, LocalTensor<uint8_t>(), p);
      return WelfordFinalize(df, ef, af, bf, bf[512].ReinterpretCast<int32_t>(), LocalTensor<uint8_t>(), p);
    }
    case 13: {
      LocalTensor<int4b_t> from = o.a.template ReinterpretCast<int4b_t>();
      from.SetSize(c.rows * c.pitch);
      if (c.variant == 0)
        return AscendAntiQuant<int4b_t, half, false>(dh, from, bh, bh[128], c.rows, {1, c.pitch, 1, c.pitch});
      if (c.variant == 1)
        return AscendAntiQuant<int4b_t, half, false>(dh, from, half(c.scalar), half(2), c.rows * c.pitch);
      LocalTensor<int8_t> bytes = o.a.template ReinterpretCast<int8_t>();
      bytes.SetSize(c.rows * c.pitch);
      return AscendAntiQuant<int8_t, half, false>(dh, bytes, bh, bh[128], c.rows, {1, c.pitch, 1, c.pitch});
    }
    case 14: {
      const uint32_t to[2] = {c.rows, c.width};
      const uint32_t from[2] = {c.variant == 0 ? 1 : c.rows, c.variant == 0 ? c.width : 1};
      const auto d = o.d.template ReinterpretCast<int8_t>(), a = o.a.template ReinterpretCast<int8_t>();
      if (c.variant == 0) return BroadCast<int8_t, 2, 0>(d, a, to, from);
      return BroadCast<int8_t, 2, 1>(d, a, to, from);
    }
    case 15: {
      GlobalTensor<T> to;
      to.SetGlobalBuffer(reinterpret_cast<T*>(result));
      return DataCopy(to, o.a,
                      Nz2NdParamsFull(1, static_cast<uint16_t>(c.rows), static_cast<uint16_t>(c.width), 0,
                                      static_cast<uint16_t>(c.variant == 0 ? c.rows : 16),
                                      static_cast<uint16_t>(c.pitch), 0));
    }
    case 16: {
      uint64_t kept = 0;
      GatherMask(o.d, o.a, static_cast<uint8_t>(c.variant), true, c.count, {1, 1, 8, 0}, kept);
      ef.SetValue(0, static_cast<float>(GetGatherMaskRemainCount()));
      return Cm384AfterScalarTurn();
    }
    case 17: {  // scalars of 16 bits in place
      T x = o.a.GetValue(0);
      bfloat16_t y(static_cast<float>(x));
      for (uint32_t i = 1; i < 5; ++i) {
        const T by = o.a.GetValue(i);
        if (i == 1) x += by, y += by;
        if (i == 2) x *= by, y *= by;
        if (i == 3) x -= by, y -= by;
        if (i == 4) x /= 3, y /= 3;
      }
      o.d.SetValue(0, x);
      ef.SetValue(0, static_cast<float>(y));
      return Cm384AfterScalarTurn();
    }
    case 18: {
      const LocalTensor<int16_t> from = o.a.template ReinterpretCast<int16_t>();
      const LocalTensor<int8_t> to = o.d.template ReinterpretCast<int8_t>();
      if (c.variant < 2)
        SetDeqScale(c.scalar, static_cast<int16_t>(static_cast<int32_t>(c.pitch) / 16 - 2), c.variant == 0);
      if (c.variant == 0) return CastDeq<int8_t, int16_t, false, true>(to, from, c.count);
      if (c.variant == 1)
        return CastDeq<uint8_t, int16_t, false, false>(to.template ReinterpretCast<uint8_t>(), from, c.count);
      VdeqInfo info;
      for (int32_t k = 0; k < 16; ++k) {
        info.vdeqScale[k] = c.scalar * static_cast<float>(k + 1);
        info.vdeqOffset[k] = static_cast<int16_t>(k * 20 - 160);
        info.vdeqSignMode[k] = k % 3 != 0;
      }
      SetDeqScale(o.b.template ReinterpretCast<uint64_t>(), info);
      if (c.variant == 2) return CastDeq<int8_t, int16_t>(to, from, c.count);
      return CastDeq<int8_t, int16_t, true, true, true>(to, from, static_cast<uint64_t>(c.count), repeats,
                                                        UnaryRepeatParams(1, 1, 8, 8));
    }
    case 19: {
      const auto left = static_cast<uint16_t>(c.count & 255), right = static_cast<uint16_t>(c.count >> 8);
      if (c.variant == 1) return UnPad(o.d, o.a, UnPadParams{left, right}, UnPadTiling{c.rows, c.pitch});
      return Pad(o.d, o.a, PadParams{left, right, static_cast<int32_t>(c.rows)}, LocalTensor<uint8_t>(),
                 PadTiling{c.rows, c.pitch, c.width});
    }
    case 20: {
      ConfusionTransposeTiling tiling{c.rows, c.width, c.count, c.pitch};
      return ConfusionTranspose(o.d, o.a, LocalTensor<uint8_t>(), static_cast<TransposeType>(c.variant),
                                tiling);
    }
    case 21: {
      c.variant == 0 ? ReduceMax(o.d, o.a, o.e, static_cast<int32_t>(c.count), true)
                     : ReduceMin(o.d, o.a, o.e, static_cast<int32_t>(c.count), true);
      T value, index;
      GetReduceMaxMinCount(value, index);
      o.e.SetValue(0, value);
      o.e.SetValue(1, index);
      return Cm384AfterScalarTurn();
    }
    default:
      return Rows(c, o);
  }
}

template <typename T>
void One(const Case& c, const LocalTensor<uint8_t>& all) {
  const auto area = [&](uint32_t n) { return all[n * kArea].ReinterpretCast<T>(); };
  Call<T>(c, {area(0), area(1), area(2), area(3)});
}

}  // namespace

extern "C" __global__ __aicore__ void rare_forms(GM_ADDR cases, GM_ADDR operands, GM_ADDR results,
                                                 uint64_t count) {
  TPipe pipe;
  // Little is left for temporaries, so that calls go piece by piece.
  TBuf<> buffer, rest;
  pipe.InitBuffer(buffer, 4 * kArea);
  pipe.InitBuffer(rest, TOTAL_UB_SIZE - 4 * kArea - 10240);
  const LocalTensor<uint8_t> all = buffer.Get<uint8_t>();
  GlobalTensor<uint8_t> from, to;
  for (uint64_t n = GetBlockIdx(); n < count; n += GetBlockNum()) {
    const Case c = reinterpret_cast<const Case*>(cases)[n];
    first_source = operands + (4 * n + 1) * kArea;
    result = results + 2 * n * kArea;
    from.SetGlobalBuffer(operands + 4 * n * kArea);
    to.SetGlobalBuffer(result);
    DataCopy(all, from, 4 * kArea);
    PipeBarrier<PIPE_ALL>();
    if (c.form == 15) {  // into memory, on what was in d
      DataCopy(to, all, kArea);
      PipeBarrier<PIPE_ALL>();
    }
    c.type == 0 ? One<float>(c, all) : One<half>(c, all);
    PipeBarrier<PIPE_ALL>();
    if (c.form != 15) DataCopy(to, all, kArea);
    DataCopy(to[kArea], all[3 * kArea], kArea);
    PipeBarrier<PIPE_ALL>();
  }
}
