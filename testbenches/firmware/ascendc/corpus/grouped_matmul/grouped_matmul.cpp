// y = x W[e] over groups of rows: how many each expert has stands in memory, tiles go round over cores,
// weights are a list of tensors.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;
using namespace matmul;

struct GmmTiling {
  TCubeTiling mm;
  uint32_t experts, k, n, baseM, baseN;
};

using AType = MatmulType<TPosition::GM, CubeFormat::ND, bfloat16_t>;
using BType = MatmulType<TPosition::GM, CubeFormat::ND, bfloat16_t>;
using CType = MatmulType<TPosition::GM, CubeFormat::ND, bfloat16_t>;
constexpr MatmulConfig MDL_CFG = GetMDLConfig(false, false, 0, false, false, false, true);

template <class MM>
class GroupedMatmul {
 public:
  __aicore__ inline GroupedMatmul(MM& matmul) : mm(matmul) {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR weight, GM_ADDR groups, GM_ADDR y, const GmmTiling* t) {
    tiling = t;
    xGm.SetGlobalBuffer((__gm__ bfloat16_t*)x);
    yGm.SetGlobalBuffer((__gm__ bfloat16_t*)y);
    groupsGm.SetGlobalBuffer((__gm__ int64_t*)groups);
    weights.Init((__gm__ void*)weight);
  }
  __aicore__ inline void Process() {
    if ASCEND_IS_AIV {
      if (GetSubBlockIdx() != 0) return;
    }
    const uint32_t core = GetBlockIdx() / (g_coreType == AIV ? GetTaskRation() : 1);
    uint32_t count = 0;
    int64_t before = 0;
    for (uint32_t e = 0; e < tiling->experts; ++e) {
      const int64_t m = groupsGm.GetValue(e) - before;
      if (m <= 0) continue;
      const uint32_t down = DivCeil(static_cast<uint32_t>(m), tiling->baseM),
                     across = DivCeil(tiling->n, tiling->baseN);
      for (uint32_t tile = 0; tile < down * across; ++tile, ++count) {
        if (count % GetBlockNum() != core) continue;
        Tile(e, before, m, tile / across * tiling->baseM, tile % across * tiling->baseN);
      }
      before += m;
    }
  }

 private:
  __aicore__ inline void Tile(uint32_t e, int64_t first, int64_t m, uint32_t row, uint32_t column) {
    const uint32_t rows = m - row < tiling->baseM ? m - row : tiling->baseM;
    const uint32_t columns = tiling->n - column < tiling->baseN ? tiling->n - column : tiling->baseN;
    GlobalTensor<bfloat16_t> w;
    w.SetGlobalBuffer(weights.GetDataPtr<bfloat16_t>(e));
    mm.SetOrgShape(m, tiling->n, tiling->k);
    mm.SetSingleShape(rows, columns, tiling->k);
    mm.SetTensorA(xGm[(first + row) * tiling->k]);
    mm.SetTensorB(w[column]);
    mm.template IterateAll<false>(yGm[(first + row) * tiling->n + column], 0, false, true);
    mm.WaitIterateAll();
  }

  MM& mm;
  const GmmTiling* tiling;
  GlobalTensor<bfloat16_t> xGm, yGm;
  GlobalTensor<int64_t> groupsGm;
  ListTensorDesc weights;
};

extern "C" __global__ __aicore__ void grouped_matmul(GM_ADDR x, GM_ADDR weight, GM_ADDR groups, GM_ADDR y,
                                                     GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  TPipe tPipe;
  GET_TILING_DATA_WITH_STRUCT(GmmTiling, tilingData, tiling);
  using Object = MatmulImpl<AType, BType, CType, CType, MDL_CFG>;
  Object mm;
  REGIST_MATMUL_OBJ(&tPipe, GetSysWorkSpacePtr(), mm, &tilingData.mm);
  GroupedMatmul<Object> op(mm);
  op.Init(x, weight, groups, y, &tilingData);
  op.Process();
}
