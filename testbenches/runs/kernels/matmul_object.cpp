// C = A * B + bias by Matmul<>, rows of C dealt out to the cores that ask: -DTYPE_A, TYPE_C, TURNED_A,
// TURNED_B, and WAY: 0 all of C at once, 1 tile after tile to memory, 2 through the UBuffer, doubled there.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;
using namespace matmul;

using AType = MatmulType<TPosition::GM, CubeFormat::ND, TYPE_A, TURNED_A>;
using BType = MatmulType<TPosition::GM, CubeFormat::ND, TYPE_A, TURNED_B>;
using CType = MatmulType<TPosition::GM, CubeFormat::ND, TYPE_C>;
using SumType = std::conditional<is_same_v<TYPE_A, int8_t>, int32_t, float>::type;
using BiasType = MatmulType<TPosition::GM, CubeFormat::ND, SumType>;

extern "C" __global__ __aicore__ void matmul_object(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c,
                                                    GM_ADDR workspace, GM_ADDR tiling) {
#if WAY == 3
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
#else
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
#endif
  SetSysWorkspace(workspace);
  TPipe pipe;
  TCubeTiling t;
  CopyTiling(&t, tiling, sizeof t);
  Matmul<AType, BType, CType, BiasType> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  GlobalTensor<TYPE_A> x, y;
  GlobalTensor<TYPE_C> z;
  GlobalTensor<SumType> added;
  x.SetGlobalBuffer((__gm__ TYPE_A*)a);
  y.SetGlobalBuffer((__gm__ TYPE_A*)b);
  z.SetGlobalBuffer((__gm__ TYPE_C*)c);
  added.SetGlobalBuffer((__gm__ SumType*)bias);
  const int32_t first = GetBlockIdx() * t.singleCoreM;
  if (first < t.M) {
    mm.SetTail(t.M - first < t.singleCoreM ? t.M - first : t.singleCoreM);
    mm.SetTensorA(x[TURNED_A ? first : first * t.Ka]);
    mm.SetTensorB(y);
    if (t.isBias != 0) mm.SetBias(added);
    const GlobalTensor<TYPE_C> own = z[first * t.N];
#if WAY == 1
    while (mm.Iterate()) mm.GetTensorC(own);
#elif WAY == 2
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, t.baseM * t.baseN * sizeof(TYPE_C));
    LocalTensor<TYPE_C> tile = buffer.Get<TYPE_C>();
    const int32_t rows = t.M - first < t.singleCoreM ? t.M - first : t.singleCoreM;
    for (int32_t n = 0; mm.Iterate(); ++n) {
      mm.GetTensorC(tile);
      Adds(tile, tile, (TYPE_C)1, t.baseM * t.baseN);
      PipeBarrier<PIPE_ALL>();
      const int32_t down = (rows + t.baseM - 1) / t.baseM;
      const int32_t row = n % down * t.baseM, column = n / down * t.baseN;
      for (int32_t r = 0; r < t.baseM && row + r < rows; ++r) {
        const uint32_t columns = t.N - column < t.baseN ? t.N - column : t.baseN;
        DataCopyPad(own[(row + r) * t.N + column], tile[r * t.baseN],
                    DataCopyExtParams{1, (uint32_t)(columns * sizeof(TYPE_C)), 0, 0, 0});
      }
      PipeBarrier<PIPE_ALL>();
    }
#else
    mm.IterateAll(own);
#endif
  }
  mm.End();
}
