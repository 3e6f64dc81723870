// Products whose operands and results do not all stand in memory: A scaled in the UBuffer, C back to it;
// int8_t with one scale, and one of each column, to half; tiles of C by a copy of the kernel's own, into rows
// that are further apart.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
using namespace matmul;

struct MatmulPartsTiling {
  TCubeTiling cube;
  uint32_t pitch;  // of the rows that the kernel copies itself, in elements
  float factor;
};

// Where tiles go: what the kernel gives its own copies of them.
struct CopyData {
  uint32_t pitch, n;
  uint64_t begin;  // of C as the product sees it
};
__aicore__ inline void CopyTile(const __gm__ void* gm, const LocalTensor<int8_t>& co1,
                                const void* dataCopyOutParams, const uint64_t tilingPtr,
                                const uint64_t dataPtr) {
  const auto* params = reinterpret_cast<const DataCopyOutParams*>(dataCopyOutParams);
  const auto* data = reinterpret_cast<const __gm__ CopyData*>(dataPtr);
  const auto* tiling = reinterpret_cast<const __gm__ MatmulPartsTiling*>(tilingPtr);
  const uint64_t place = (reinterpret_cast<uint64_t>(gm) - data->begin) / sizeof(float);
  const uint64_t row = place / data->n, column = place % data->n;
  GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)data->begin);
  FixpipeParamsV220 fixpipe;
  fixpipe.nSize = params->oriNSize;
  fixpipe.mSize = params->burstLen / 2;
  fixpipe.srcStride = (params->burstLen + params->srcStride) / 2;
  fixpipe.dstStride = tiling->pitch;
  Fixpipe(to[row * tiling->pitch + column], co1.ReinterpretCast<float>(), fixpipe);
}

template <typename T, TPosition at = TPosition::GM, bool transposed = false>
using Of = MatmulType<at, CubeFormat::ND, T, transposed>;

extern "C" __global__ __aicore__ void matmul_parts(GM_ADDR a, GM_ADDR b, GM_ADDR a8, GM_ADDR b8,
                                                   GM_ADDR scales, GM_ADDR scaled, GM_ADDR one, GM_ADDR many,
                                                   GM_ADDR apart, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(MatmulPartsTiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  Matmul<Of<half, TPosition::VECCALC>, Of<half, TPosition::GM, true>, Of<float, TPosition::VECIN>, Of<float>>
      local;
  Matmul<Of<int8_t>, Of<int8_t>, Of<half>, Of<int32_t>> quant;
  Matmul<Of<half>, Of<half, TPosition::GM, true>, Of<float>, Of<float>, CFG_NORM,
         MatmulCallBackFunc<CopyTile>>
      own;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), local, &t.cube, quant, &t.cube, own, &t.cube);
  const uint32_t m = t.cube.M, n = t.cube.N, k = t.cube.Ka;
  GlobalTensor<half> aGm, bGm, oneGm, manyGm;
  GlobalTensor<int8_t> a8Gm, b8Gm;
  GlobalTensor<float> scaledGm, apartGm;
  GlobalTensor<uint64_t> scalesGm;
  aGm.SetGlobalBuffer((__gm__ half*)a);
  bGm.SetGlobalBuffer((__gm__ half*)b);
  a8Gm.SetGlobalBuffer((__gm__ int8_t*)a8);
  b8Gm.SetGlobalBuffer((__gm__ int8_t*)b8);
  oneGm.SetGlobalBuffer((__gm__ half*)one);
  manyGm.SetGlobalBuffer((__gm__ half*)many);
  scaledGm.SetGlobalBuffer((__gm__ float*)scaled);
  apartGm.SetGlobalBuffer((__gm__ float*)apart);
  scalesGm.SetGlobalBuffer((__gm__ uint64_t*)scales);

  if (GetSubBlockIdx() == 0) {
    TBuf<TPosition::VECCALC> part, sums;
    pipe.InitBuffer(part, m * k * sizeof(half));
    pipe.InitBuffer(sums, m * n * sizeof(float));
    LocalTensor<half> x = part.Get<half>();
    LocalTensor<float> c = sums.Get<float>();
    DataCopy(x, aGm, m * k);
    PipeBarrier<PIPE_ALL>();
    Muls(x, x, static_cast<half>(t.factor), m * k);
    PipeBarrier<PIPE_ALL>();
    local.SetTensorA(x);
    local.SetTensorB(bGm, true);
    local.IterateAll(c);
    Adds(c, c, 1.0f, m * n);
    PipeBarrier<PIPE_ALL>();
    DataCopy(scaledGm, c, m * n);
    // The same tile by tile.
    uint32_t tiles = 0;
    while (local.Iterate()) {
      local.GetTensorC(c);
      tiles += static_cast<uint32_t>(c.GetValue(0) != 12345.0f);
    }
    ASSERT(tiles == CeilDivision(m, t.cube.baseM) * CeilDivision(n, t.cube.baseN));
    auto* data = reinterpret_cast<__gm__ CopyData*>(workspace);
    data->pitch = t.pitch;
    data->n = n;
    data->begin = reinterpret_cast<uint64_t>(apart);
    dcci(data, SINGLE_CACHE_LINE);
    own.SetTensorA(aGm);
    own.SetTensorB(bGm, true);
    own.SetUserDefInfo(reinterpret_cast<uint64_t>(tiling));
    own.SetSelfDefineData(reinterpret_cast<uint64_t>(data));
    own.IterateAll(apartGm);
  } else {
    quant.SetTensorA(a8Gm);
    quant.SetTensorB(b8Gm);
    const float scale = 0.5f;
    quant.SetQuantScalar(static_cast<uint64_t>(*reinterpret_cast<const int32_t*>(&scale)));
    quant.IterateAll(oneGm);
    quant.SetQuantVector(scalesGm);
    quant.IterateAll(manyGm);
  }
  local.End();
  quant.End();
  own.End();
}
