// Every collective that a kernel can ask its server for, some at once: block 0 prepares and commits, all
// blocks wait. ITEM: a numpy-like type of the elements.
#include "kernel_operator.h"
#include "lib/hccl/hccl.h"

using namespace AscendC;

#ifndef ITEM
#define ITEM float
#define ITEM_TYPE HcclDataType::HCCL_DATA_TYPE_FP32
#endif

struct CollectivesTiling {
  Mc2InitTiling mc2InitTiling;
  Mc2CcTiling mc2CcTiling;
  uint32_t count;  // elements for each rank
  uint32_t repeat;
};

extern "C" __global__ __aicore__ void collectives(GM_ADDR x, GM_ADDR counts, GM_ADDR gathered,
                                                  GM_ADDR reduced, GM_ADDR scattered, GM_ADDR exchanged,
                                                  GM_ADDR dealt, GM_ADDR seen, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(CollectivesTiling);
  GET_TILING_DATA_WITH_STRUCT(CollectivesTiling, t, tiling);
  TPipe pipe;
  TBuf<> one;
  pipe.InitBuffer(one, 64);
  Hccl<HcclServerType::HCCL_SERVER_TYPE_AICPU> hccl;
  hccl.InitV2(GetHcclContext<HCCL_GROUP_ID_0>(), &t);
  if (hccl.SetCcTilingV2(offsetof(CollectivesTiling, mc2CcTiling)) != 0) return;
  const uint32_t ranks = hccl.GetRankDim();
  const auto repeat = static_cast<uint8_t>(t.repeat);
  const uint64_t each = t.count / repeat;

  // Tiles of a gather one after another, with another task under way.
  const HcclHandle gather = hccl.AllGather(x, gathered, each, ITEM_TYPE, t.count, repeat);
  const HcclHandle reduce = hccl.AllReduce<true>(x, reduced, t.count * ranks, ITEM_TYPE, HCCL_REDUCE_SUM);
  for (uint8_t n = 0; n < repeat; ++n) hccl.Commit(gather);
  for (uint8_t n = 0; n < repeat; ++n) {
    if (hccl.Wait(gather) != 0) Abort("the gather fails");
  }
  if (hccl.Wait(gather) != 0 || hccl.Query(gather) != repeat) Abort("a Wait too many is no error");
  hccl.Wait(reduce);
  // All at once, waited for in their order.
  __gm__ uint64_t* of = reinterpret_cast<__gm__ uint64_t*>(counts);
  const HcclHandle handles[] = {
      hccl.ReduceScatter<true>(x, scattered, t.count, ITEM_TYPE, HcclReduceOp::HCCL_REDUCE_MAX, 0),
      hccl.AlltoAll<true>(x, exchanged, t.count, ITEM_TYPE),
      hccl.AlltoAllV<true>(x, of, of + ranks, ITEM_TYPE, dealt, of + 2 * ranks, of + 3 * ranks, ITEM_TYPE)};
  for (const HcclHandle handle : handles) hccl.Wait(handle);
  if (hccl.Wait(-1) != -1) Abort("no handle is none");

  // Every block has seen the end: each looks at the last element of what was dealt out.
  GlobalTensor<uint32_t> words;
  words.SetGlobalBuffer((__gm__ uint32_t*)seen + GetBlockIdx() * 8);
  LocalTensor<uint32_t> found = one.Get<uint32_t>();
  GlobalTensor<uint8_t> last;
  last.SetGlobalBuffer((__gm__ uint8_t*)exchanged + (t.count * ranks - 32 / sizeof(ITEM)) * sizeof(ITEM));
  DataCopy(found.ReinterpretCast<uint8_t>(), last, 32);
  PipeBarrier<PIPE_ALL>();
  DataCopy(words, found, 8);
  hccl.Finalize();
}
