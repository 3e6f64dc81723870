// A product whose operands stand with pitches and places that the kernel alone knows: functions for copies of
// A and B.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
struct Defs {
  int32_t pitchA, pitchB, skip;
};
__aicore__ inline void CopyA1(const LocalTensor<int8_t>& dst, const __gm__ void* gm, int row, int col,
                              int useM, int useK, const uint64_t tilingPtr, const uint64_t dataPtr) {
  auto d = reinterpret_cast<__gm__ Defs*>(dataPtr);
  LocalTensor<half> l1 = dst.ReinterpretCast<half>();
  GlobalTensor<half> g;
  g.SetGlobalBuffer((__gm__ half*)gm);
  // every row of A stands twice the pitch apart
  Nd2NzParams p;
  p.ndNum = 1;
  p.nValue = useM;
  p.dValue = useK;
  p.srcDValue = d->pitchA;
  p.dstNzC0Stride = (useM + 15) / 16 * 16;
  p.dstNzNStride = 1;
  p.srcNdMatrixStride = 0;
  p.dstNzMatrixStride = 0;
  DataCopy(l1, g[row * d->pitchA + col], p);
}
__aicore__ inline void CopyB1(const LocalTensor<int8_t>& dst, const __gm__ void* gm, int row, int col,
                              int useK, int useN, const uint64_t tilingPtr, const uint64_t dataPtr) {
  auto d = reinterpret_cast<__gm__ Defs*>(dataPtr);
  LocalTensor<half> l1 = dst.ReinterpretCast<half>();
  GlobalTensor<half> g;
  g.SetGlobalBuffer((__gm__ half*)gm);
  Nd2NzParams p;
  p.ndNum = 1;
  p.nValue = useK;
  p.dValue = useN;
  p.srcDValue = d->pitchB;
  p.dstNzC0Stride = (useK + 15) / 16 * 16;
  p.dstNzNStride = 1;
  p.srcNdMatrixStride = 0;
  p.dstNzMatrixStride = 0;
  DataCopy(l1, g[row * d->pitchB + col + d->skip], p);
}
extern "C" __global__ __aicore__ void own_copies(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR defs, GM_ADDR ws,
                                                 GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GET_TILING_DATA_WITH_STRUCT(TCubeTiling, t, tiling);
  TPipe pipe;
  using A = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  MatmulImpl<A, A, C, C, CFG_MDL, MatmulCallBackFunc<nullptr, CopyA1, CopyB1>> mm;
  SetSysWorkspace(ws);
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  GlobalTensor<half> ag, bg;
  GlobalTensor<float> cg;
  ag.SetGlobalBuffer((__gm__ half*)a);
  bg.SetGlobalBuffer((__gm__ half*)b);
  cg.SetGlobalBuffer((__gm__ float*)c);
  mm.SetSelfDefineData(reinterpret_cast<uint64_t>(defs));
  mm.SetTensorA(ag);
  mm.SetTensorB(bg);
  mm.IterateAll(cg);
  mm.End();
}
