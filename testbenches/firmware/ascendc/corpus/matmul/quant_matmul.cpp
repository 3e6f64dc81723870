// int8 x int8 with a scale for each column to half, on cube cores: the whole of k in L1, bias in the table,
// scales by the pipe that writes.
#include "kernel_operator.h"
using namespace AscendC;

struct QuantMatmulTiling {
  uint32_t m, n, k;  // m and n: multiples of 32; k: of 64
};

class QuantMatmul {
 public:
  static constexpr uint32_t BASE = 32;

  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR scale, GM_ADDR c,
                              const QuantMatmulTiling& t) {
    t_ = t;
    a_.SetGlobalBuffer((__gm__ int8_t*)a);
    b_.SetGlobalBuffer((__gm__ int8_t*)b);
    bias_.SetGlobalBuffer((__gm__ int32_t*)bias);
    scale_.SetGlobalBuffer((__gm__ uint64_t*)scale);
    c_.SetGlobalBuffer((__gm__ half*)c);
    pipe_.InitBuffer(inA1, 1, BASE * t.k);
    pipe_.InitBuffer(inB1, 1, BASE * t.k);
    pipe_.InitBuffer(inC1, 1, BASE * sizeof(int32_t));
    pipe_.InitBuffer(inQ1, 1, BASE * sizeof(uint64_t));
    pipe_.InitBuffer(inA2, 1, BASE * t.k);
    pipe_.InitBuffer(inB2, 1, BASE * t.k);
    pipe_.InitBuffer(inC2, 1, BASE * sizeof(int32_t));
    pipe_.InitBuffer(outCO1, 1, BASE * BASE * sizeof(int32_t));
  }
  __aicore__ inline void Process() {
    const uint32_t across = t_.n / BASE, tiles = t_.m / BASE * across;
    for (uint32_t i = GetBlockIdx(); i < tiles; i += GetBlockNum()) {
      row_ = i / across * BASE;
      column_ = i % across * BASE;
      CopyIn();
      Split();
      Compute();
      CopyOut();
    }
  }

 private:
  __aicore__ inline void CopyIn() {
    LocalTensor<int8_t> a1 = inA1.AllocTensor<int8_t>(), b1 = inB1.AllocTensor<int8_t>();
    LocalTensor<int32_t> c1 = inC1.AllocTensor<int32_t>();
    LocalTensor<uint64_t> q1 = inQ1.AllocTensor<uint64_t>();
    // B stands transposed, [n, k]: both are rows of k.
    Nd2NzParams rows;
    rows.ndNum = 1;
    rows.nValue = BASE;
    rows.dValue = t_.k;
    rows.srcNdMatrixStride = 0;
    rows.srcDValue = t_.k;
    rows.dstNzC0Stride = BASE;
    rows.dstNzNStride = 1;
    rows.dstNzMatrixStride = 0;
    DataCopy(a1, a_[row_ * t_.k], rows);
    DataCopy(b1, b_[column_ * t_.k], rows);
    DataCopy(c1, bias_[column_], BASE);
    DataCopy(q1, scale_[column_], BASE);
    inA1.EnQue(a1);
    inB1.EnQue(b1);
    inC1.EnQue(c1);
    inQ1.EnQue(q1);
  }
  __aicore__ inline void Split() {
    LocalTensor<int8_t> a1 = inA1.DeQue<int8_t>(), b1 = inB1.DeQue<int8_t>(), a2 = inA2.AllocTensor<int8_t>(),
                        b2 = inB2.AllocTensor<int8_t>();
    LocalTensor<int32_t> c1 = inC1.DeQue<int32_t>(), c2 = inC2.AllocTensor<int32_t>();
    const uint32_t fractals = t_.k / 32;
    LoadData2DParams load;
    load.repeatTimes = fractals;
    load.srcStride = BASE / 16;
    load.ifTranspose = false;
    for (uint32_t i = 0; i < BASE / 16; ++i) LoadData(a2[i * fractals * 512], a1[i * 512], load);
    for (uint32_t k = 0; k < fractals; ++k) {
      LoadData2DParams columns;
      columns.repeatTimes = BASE / 16;
      columns.srcStride = 1;
      LoadData(b2[k * BASE / 16 * 512], b1[k * BASE / 16 * 512], columns);
    }
    DataCopy(c2, c1, {1, (uint16_t)(BASE * sizeof(int32_t) / 64), 0, 0});
    inA2.EnQue(a2);
    inB2.EnQue(b2);
    inC2.EnQue(c2);
    inA1.FreeTensor(a1);
    inB1.FreeTensor(b1);
    inC1.FreeTensor(c1);
  }
  __aicore__ inline void Compute() {
    LocalTensor<int8_t> a2 = inA2.DeQue<int8_t>(), b2 = inB2.DeQue<int8_t>();
    LocalTensor<int32_t> c2 = inC2.DeQue<int32_t>(), co1 = outCO1.AllocTensor<int32_t>();
    MmadParams mmad;
    mmad.m = BASE;
    mmad.n = BASE;
    mmad.k = t_.k;
    mmad.cmatrixInitVal = false;
    Mmad(co1, a2, b2, c2, mmad);
    outCO1.EnQue<int32_t>(co1);
    inA2.FreeTensor(a2);
    inB2.FreeTensor(b2);
    inC2.FreeTensor(c2);
  }
  __aicore__ inline void CopyOut() {
    LocalTensor<int32_t> co1 = outCO1.DeQue<int32_t>();
    LocalTensor<uint64_t> q1 = inQ1.DeQue<uint64_t>();
    FixpipeParamsV220 fixpipe;
    fixpipe.nSize = BASE;
    fixpipe.mSize = BASE;
    fixpipe.srcStride = BASE;
    fixpipe.dstStride = t_.n;
    fixpipe.quantPre = QuantMode_t::VDEQF16;
    fixpipe.ndNum = 1;
    Fixpipe<half, int32_t, CFG_ROW_MAJOR>(c_[row_ * t_.n + column_], co1, q1, fixpipe);
    outCO1.FreeTensor(co1);
    inQ1.FreeTensor(q1);
  }

  QuantMatmulTiling t_;
  uint32_t row_ = 0, column_ = 0;
  TPipe pipe_;
  TQue<QuePosition::A1, 1> inA1;
  TQue<QuePosition::B1, 1> inB1;
  TQue<QuePosition::C1, 1> inC1, inQ1;
  TQue<QuePosition::A2, 1> inA2;
  TQue<QuePosition::B2, 1> inB2;
  TQue<QuePosition::C2, 1> inC2;
  TQue<QuePosition::CO1, 1> outCO1;
  GlobalTensor<int8_t> a_, b_;
  GlobalTensor<int32_t> bias_;
  GlobalTensor<uint64_t> scale_;
  GlobalTensor<half> c_;
};

extern "C" __global__ __aicore__ void quant_matmul(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR scale,
                                                   GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GET_TILING_DATA_WITH_STRUCT(QuantMatmulTiling, t, tiling);
  QuantMatmul op;
  op.Init(a, b, bias, scale, c, t);
  op.Process();
}
