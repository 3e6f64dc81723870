// Makes the calls of a table of cases (cube_forms.h), each cube core those of its number: areas of L1 are
// filled from a pool, the calls are made, and what comes out goes to the case's row of the results. What
// stands in L0 is seen through products with an identity.
#include "cube_forms.h"

#include <type_traits>

#include "kernel_operator.h"

using namespace AscendC;

namespace {

struct Tiling {
  uint32_t cases;
};
const CubeCase* c;
GlobalTensor<uint8_t> result;
GM_ADDR pool;

template <typename T>
LocalTensor<T> Area(uint32_t n, TPosition position = TPosition::A1) {
  return LocalTensor<T>(position, n * CUBE_AREA, CUBE_AREA / sizeof(T));
}
template <typename T>
GlobalTensor<T> Row(uint32_t area) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<T*>(pool + static_cast<uint64_t>(c->row[area]) * CUBE_AREA));
  return tensor;
}
template <typename T>
GlobalTensor<T> Result() {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<T*>(result.GetPhyAddr()));
  return tensor;
}
uint16_t P(uint32_t n) {
  return static_cast<uint16_t>(c->p[n]);
}
void All() {
  PipeBarrier<PIPE_ALL>();
}
void Show() {
  All();
  DataCopy(result, Area<uint8_t>(0), CUBE_AREA);
}
DataCopyParams Blocks() {
  return {P(0), P(1), P(2), P(3)};
}
LoadData2DParams Fractals() {
  LoadData2DParams p;
  p.startIndex = P(0);
  p.repeatTimes = static_cast<uint8_t>(P(1));
  p.srcStride = P(2);
  p.dstGap = P(3);
  p.ifTranspose = P(4) != 0;
  p.addrMode = static_cast<uint8_t>(P(5));
  return p;
}
// `count` fractals as they stand.
template <typename T>
void Load(const LocalTensor<T>& to, uint32_t area, uint32_t count) {
  LoadData2DParams p;
  p.repeatTimes = static_cast<uint8_t>(count);
  p.srcStride = 1;
  LoadData(to, Area<T>(area), p);
}

template <typename T>
using SumOf = typename std::conditional<is_same_v<T, int8_t>, int32_t, float>::type;
template <typename T>
LocalTensor<T> A2() {
  return LocalTensor<T>(TPosition::A2, 0, 0);
}
template <typename T>
LocalTensor<T> B2() {
  return LocalTensor<T>(TPosition::B2, 0, 0);
}
template <typename T>
LocalTensor<SumOf<T>> C() {
  return LocalTensor<SumOf<T>>(TPosition::CO1, 0, 0);
}
template <typename T>
void Product(uint32_t m, uint32_t n, uint32_t k, uint32_t start = kZero) {
  All();
  MmadParams p;
  p.m = static_cast<uint16_t>(m);
  p.n = static_cast<uint16_t>(n);
  p.k = static_cast<uint16_t>(k);
  if (start == kBias) {
    const LocalTensor<SumOf<T>> bias(TPosition::C2, 64, 0);
    DataCopy(bias, Area<SumOf<T>>(3, TPosition::C1),
             DataCopyParams{1, static_cast<uint16_t>((n + 15) / 16), 0, 0});
    All();
    p.cmatrixInitVal = false;
    Mmad(C<T>(), A2<T>(), B2<T>(), bias, p);
  } else {
    Mmad(C<T>(), A2<T>(), B2<T>(), p);
  }
  All();
  if (start == kAdds) p.cmatrixInitVal = false;
  if (start == kIsBias) p.isBias = true;
  if (start == kAdds || start == kIsBias) Mmad(C<T>(), A2<T>(), B2<T>(), p);
  All();
}
template <typename T>
void Rows(uint32_t m, uint32_t n) {
  FixpipeParamsV220 p;
  p.mSize = static_cast<uint16_t>(m);
  p.nSize = static_cast<uint16_t>(n);
  p.srcStride = static_cast<uint16_t>((m + 15) / 16 * 16);
  p.dstStride = n;
  Fixpipe(Result<SumOf<T>>(), C<T>(), p);
}

// Eight fractals of L0A or L0B, of which the case's load changes some.
template <typename T>
void SeeA() {
  constexpr uint32_t kC0 = 32 / sizeof(T);
  Load(B2<T>(), 2, (kC0 + 15) / 16);
  Product<T>(128, kC0, kC0);
  Rows<T>(128, kC0);
}
template <typename T>
void SeeB() {
  constexpr uint32_t kC0 = 32 / sizeof(T);
  Load(A2<T>(), 2, (kC0 + 15) / 16);
  Product<T>(kC0, 128, kC0);
  Rows<T>(kC0, 128);
}
template <typename T>
void Turn(const LocalTensor<T>& to) {
  LoadData2dTransposeParams p;
  p.startIndex = P(0);
  p.repeatTimes = static_cast<uint8_t>(P(1));
  p.srcStride = P(2);
  p.dstGap = P(3);
  p.dstFracGap = P(4);
  LoadDataWithTranspose(to, Area<T>(1), p);
}

template <typename D, typename T>
void FixTo(const FixpipeParamsV220& p) {
  const bool nz = P(10) != 0;
  if (c->form == kFixpipeAtomic) SetAtomicAdd<D>();
  if (c->form == kFixpipeQuant) {
    const auto quant = Area<uint64_t>(3);
    if (nz) {
      Fixpipe<D, SumOf<T>, CFG_NZ>(Result<D>(), C<T>(), quant, p);
    } else {
      Fixpipe<D, SumOf<T>>(Result<D>(), C<T>(), quant, p);
    }
  } else if (nz) {
    Fixpipe<D, SumOf<T>, CFG_NZ>(Result<D>(), C<T>(), p);
  } else {
    Fixpipe<D, SumOf<T>, CFG_ROW_MAJOR>(Result<D>(), C<T>(), p);
  }
  SetAtomicNone();
}
template <typename T>
void Fix() {
  Product<T>(P(0), P(1), P(2));
  FixpipeParamsV220 p;
  p.mSize = P(3);
  p.nSize = P(4);
  p.srcStride = P(5);
  p.dstStride = c->p[6];
  p.ndNum = P(7);
  p.srcNdStride = P(8);
  p.dstNdStride = P(9);
  p.reluEn = P(11) != 0;
  p.isChannelSplit = P(12) != 0;
  p.quantPre = static_cast<QuantMode_t>(c->p[13]);
  p.deqScalar = c->p[14];
  switch (p.quantPre) {
    case NoQuant:
      return FixTo<SumOf<T>, T>(p);
    case F322BF16:
      return FixTo<bfloat16_t, T>(p);
    case F322F16:
    case DEQF16:
    case VDEQF16:
      return FixTo<half, T>(p);
    default:
      return FixTo<int8_t, T>(p);
  }
}

template <typename T>
void Make() {
  switch (c->form) {
    case kNd2Nz:
      DataCopy(Area<T>(0), Row<T>(1), Nd2NzParams{P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7)});
      return Show();
    case kCopyIn:
      c->variant == 0 ? DataCopy(Area<T>(0), Row<T>(1), c->p[0]) : DataCopy(Area<T>(0), Row<T>(1), Blocks());
      return Show();
    case kCopyOut:
      return c->variant == 0 ? DataCopy(Result<T>(), Area<T>(1), c->p[0])
                             : DataCopy(Result<T>(), Area<T>(1), Blocks());
    case kLoadGm:
      LoadData(Area<T>(0), Row<T>(1), Fractals());
      return Show();
    case kLoadA:
    case kTurnA:
      Load(A2<T>(), 0, 8);
      All();
      c->form == kLoadA ? LoadData(A2<T>(), Area<T>(1), Fractals()) : Turn(A2<T>());
      return SeeA<T>();
    case kLoadB:
    case kTurnB:
      Load(B2<T>(), 0, 8);
      All();
      c->form == kLoadB ? LoadData(B2<T>(), Area<T>(1), Fractals()) : Turn(B2<T>());
      return SeeB<T>();
    default:
      break;
  }
  Load(A2<T>(), 1, 16);
  Load(B2<T>(), 2, 16);
  if (c->form != kMmad) return Fix<T>();
  Product<T>(P(0), P(1), P(2), c->variant);
  Rows<T>(P(0), P(1));
}

}  // namespace

extern "C" __global__ __aicore__ void cube_forms(GM_ADDR cases, GM_ADDR rows, GM_ADDR results,
                                                 GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(Tiling);
  GET_TILING_DATA(data, tiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  pool = rows;
  for (uint32_t n = static_cast<uint32_t>(GetBlockIdx()); n < data.cases;
       n += static_cast<uint32_t>(GetBlockNum())) {
    c = reinterpret_cast<const CubeCase*>(cases) + n;
    for (uint32_t area = 0; area < CUBE_AREAS; ++area)
      DataCopy(Area<uint8_t>(area), Row<uint8_t>(area), CUBE_AREA);
    result.SetGlobalBuffer(results + static_cast<uint64_t>(n) * CUBE_AREA);
    Show();
    All();
    switch (c->type) {
      case kS8:
        Make<int8_t>();
        break;
      case kF16:
        Make<half>();
        break;
      case kBF16:
        Make<bfloat16_t>();
        break;
      default:
        Make<float>();
    }
    All();
  }
}
