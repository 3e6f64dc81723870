// Of rows of any length: sums, largest values and where they are. Long rows by repeats that accumulate.
#include "kernel_operator.h"

using namespace AscendC;

struct ReduceRowsTiling {
  uint32_t rows;
  uint32_t columns;
  uint32_t rowsPerCore;
  uint32_t alignedColumns;  // to 64
};

class KernelReduceRows {
 public:
  __aicore__ inline KernelReduceRows() = default;
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR sum, GM_ADDR most, GM_ADDR where, ReduceRowsTiling* tiling) {
    t = tiling;
    first = GetBlockIdx() * t->rowsPerCore;
    xGm.SetGlobalBuffer((__gm__ float*)x);
    sumGm.SetGlobalBuffer((__gm__ float*)sum);
    mostGm.SetGlobalBuffer((__gm__ float*)most);
    whereGm.SetGlobalBuffer((__gm__ int32_t*)where);
    pipe.InitBuffer(inQue, 2, t->alignedColumns * sizeof(float));
    pipe.InitBuffer(workBuf, t->alignedColumns * sizeof(float));
    pipe.InitBuffer(resultBuf, 96 * sizeof(float));
    pipe.InitBuffer(sumQue, 1, 32);
    pipe.InitBuffer(mostQue, 1, 32);
    pipe.InitBuffer(whereQue, 1, 32);
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < t->rowsPerCore && first + i < t->rows; ++i) {
      CopyIn(first + i);
      Compute();
      CopyOut(first + i);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t row) {
    LocalTensor<float> x = inQue.AllocTensor<float>();
    // The last block is filled up with the lowest number.
    const uint32_t over = (8 - t->columns % 8) % 8;
    DataCopyPadExtParams<float> pad{over != 0, 0, static_cast<uint8_t>(over), -3.0e38f};
    DataCopyExtParams copy{1, static_cast<uint32_t>(t->columns * sizeof(float)), 0, 0, 0};
    DataCopyPad(x, xGm[row * t->columns], copy, pad);
    inQue.EnQue(x);
  }
  __aicore__ inline void Compute() {
    LocalTensor<float> x = inQue.DeQue<float>();
    LocalTensor<float> work = workBuf.Get<float>();
    LocalTensor<float> result = resultBuf.Get<float>();
    LocalTensor<float> sum = sumQue.AllocTensor<float>();
    LocalTensor<float> most = mostQue.AllocTensor<float>();
    LocalTensor<int32_t> where = whereQue.AllocTensor<int32_t>();
    const int32_t n = t->columns;

    // The sum: whole repeats onto the first, the rest under a mask, then one repeat.
    Duplicate(work, 0.0f, 64);
    PipeBarrier<PIPE_V>();
    const uint8_t repeats = n / 64;
    if (repeats != 0) Add(work, work, x, 64, repeats, {1, 1, 1, 0, 0, 8});
    PipeBarrier<PIPE_V>();
    if (n % 64 != 0) Add(work, work, x[repeats * 64], n % 64, 1, {1, 1, 1, 8, 8, 8});
    PipeBarrier<PIPE_V>();
    WholeReduceSum(sum, work, 64, 1, 1, 1, 8);

    // The largest of each repeat with its place there, then of these.
    const int32_t turns = (n + 63) / 64;
    Duplicate(result, -3.0e38f, 96);
    PipeBarrier<PIPE_V>();
    if (repeats != 0) WholeReduceMax(result, x, 64, repeats, 1, 1, 8, ReduceOrder::ORDER_VALUE_INDEX);
    if (n % 64 != 0) WholeReduceMax(result[repeats * 2], x[repeats * 64], n % 64, 1, 1, 1, 8);
    event_t eventVS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(eventVS);
    WaitFlag<HardEvent::V_S>(eventVS);
    int32_t best = 0;
    for (int32_t i = 1; i < turns; ++i) {
      if (result.GetValue(2 * i) > result.GetValue(2 * best)) best = i;
    }
    most.SetValue(0, result.GetValue(2 * best));
    where.SetValue(0, best * 64 + result.ReinterpretCast<uint32_t>().GetValue(2 * best + 1));
    event_t eventSMte3 = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_MTE3));
    SetFlag<HardEvent::S_MTE3>(eventSMte3);
    WaitFlag<HardEvent::S_MTE3>(eventSMte3);
    sumQue.EnQue(sum);
    mostQue.EnQue(most);
    whereQue.EnQue(where);
    inQue.FreeTensor(x);
  }
  __aicore__ inline void CopyOut(uint32_t row) {
    LocalTensor<float> sum = sumQue.DeQue<float>();
    LocalTensor<float> most = mostQue.DeQue<float>();
    LocalTensor<int32_t> where = whereQue.DeQue<int32_t>();
    const DataCopyExtParams one{1, 4, 0, 0, 0};
    DataCopyPad(sumGm[row], sum, one);
    DataCopyPad(mostGm[row], most, one);
    DataCopyPad(whereGm[row], where, one);
    sumQue.FreeTensor(sum);
    mostQue.FreeTensor(most);
    whereQue.FreeTensor(where);
  }

  TPipe pipe;
  TQue<QuePosition::VECIN, 1> inQue;
  TQue<QuePosition::VECOUT, 1> sumQue, mostQue, whereQue;
  TBuf<> workBuf, resultBuf;
  GlobalTensor<float> xGm, sumGm, mostGm;
  GlobalTensor<int32_t> whereGm;
  ReduceRowsTiling* t;
  uint32_t first;
};

extern "C" __global__ __aicore__ void reduce_rows(GM_ADDR x, GM_ADDR sum, GM_ADDR most, GM_ADDR where,
                                                  GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(ReduceRowsTiling, data, tiling);
  KernelReduceRows op;
  op.Init(x, sum, most, where, &data);
  op.Process();
}
