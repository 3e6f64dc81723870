// Two objects of Matmul<> in one kernel of groups: rows in memory, NZ, rows of whole blocks, batches; every
// vector core takes its part of the columns. By tiling: which operands are NZ is chosen by -D.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

constexpr CubeFormat kA = NZ_A ? CubeFormat::NZ : CubeFormat::ND, kB = NZ_B ? CubeFormat::NZ : CubeFormat::ND,
                     kC = NZ_C ? CubeFormat::NZ : CubeFormat::ND_ALIGN;
using AType = MatmulType<TPosition::GM, kA, half, TURNED_A>;
using BType = MatmulType<TPosition::GM, kB, half, TURNED_B>;
using CType = MatmulType<TPosition::GM, kC, float>;
constexpr MatmulConfig kConfig = GetMDLConfig(false, false, 2);
using First = matmul::MatmulImpl<AType, BType, CType, CType, kConfig>;
using PlainA = MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NORMAL>;
using PlainC = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Second = Matmul<PlainA, PlainA, PlainC, CType, CFG_NORM, MatmulCallBackFunc<nullptr, nullptr, nullptr>>;

// a (m x k), b (k x n), c (m x n); batches of x (m x k) by y (k x n) in half.
extern "C" __global__ __aicore__ void matmul_objects(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR x, GM_ADDR y,
                                                     GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  SetSysWorkspace(workspace);
  TPipe pipe;
  First first;
  Second second;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), first, second, (TCubeTiling*)nullptr);
  const auto* const sizes = reinterpret_cast<const TCubeTiling*>(tiling);
  if (GetBlockIdx() % 2 != 0) return;
  first.Init(sizes, &pipe);
  second.Init(sizes + 1);
  first.SetHF32(false);
  GlobalTensor<half> of_a, of_b, of_x, of_y, of_z;
  GlobalTensor<float> of_c;
  of_a.SetGlobalBuffer((__gm__ half*)a);
  of_b.SetGlobalBuffer((__gm__ half*)b);
  of_x.SetGlobalBuffer((__gm__ half*)x);
  of_y.SetGlobalBuffer((__gm__ half*)y);
  of_z.SetGlobalBuffer((__gm__ half*)z);
  of_c.SetGlobalBuffer((__gm__ float*)c);
  first.SetTensorA(of_a);
  first.SetTensorB(of_b);
  second.SetTensorA(of_x);
  second.SetTensorB(of_y);
  first.IterateAll<false>(of_c, 0, false, true);
  first.WaitIterateAll();
  second.IterateBatch(of_z, 3, 1);  // three of x with the same y
  first.IterateAll(of_c, 1);        // and once more on top
  first.End();
  second.End();
}
