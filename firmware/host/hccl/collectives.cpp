// A collective of a host program, on one vector core of each rank.
#include "firmware/host/hccl/collective_task.h"
#include "kernel_operator.h"
#include "lib/hccl/hccl.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void collectives(cm384_collective_task task) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  Hccl<> group;
  group.Init(GetHcclContext<0>());
  const auto send = reinterpret_cast<GM_ADDR>(task.send), receive = reinterpret_cast<GM_ADDR>(task.receive);
  const auto type = static_cast<HcclDataType>(task.type);
  const auto op = static_cast<HcclReduceOp>(task.op);
  HcclHandle handle = -1;
  switch (task.kind) {
    case CM384_TASK_ALL_REDUCE:
      handle = group.AllReduce<true>(send, receive, task.count, type, op);
      break;
    case CM384_TASK_ALL_GATHER:
      handle = group.AllGather<true>(send, receive, task.count, type, 0);
      break;
    case CM384_TASK_REDUCE_SCATTER:
      handle = group.ReduceScatter<true>(send, receive, task.count, type, op, 0);
      break;
    case CM384_TASK_ALL_TO_ALL:
      handle = group.AlltoAll<true>(send, receive, task.count, type);
      break;
    case CM384_TASK_ALL_TO_ALL_V:
      handle = group.AlltoAllV<true>(send, task.numbers[0], task.numbers[1], type, receive, task.numbers[2],
                                     task.numbers[3], type);
      break;
  }
  ascendc_assert(group.Wait(handle) == 0, "a collective of a type that is not there");
  group.Finalize();
}
