// Y = max(A * W + bias, 0) on groups of a cube core and its two vector cores: the cube core multiplies a
// strip of 32 rows of A and writes the sums to a workspace, each vector core takes half of the strip's rows
// from there. While the vector cores work on a strip, the cube core multiplies the next: the workspace has
// two places.
#include "kernel_operator.h"

using namespace AscendC;

struct LinearTiling {
  uint32_t m, n, k;  // m a multiple of 32; n and k of 16, n at most 512, k at most 128
};

constexpr uint32_t kRows = 32;            // of a strip
constexpr uint16_t kFull = 0, kFree = 2;  // flags of place 0 and 1

// Strips of a group, and where they stand.
struct Strips {
  LinearTiling tiling;
  uint32_t first, step;
  GlobalTensor<float> workspace;

  __aicore__ inline Strips(const LinearTiling& data, GM_ADDR space, uint32_t group)
      : tiling(data), first(group), step(GetBlockNum()) {
    workspace.SetGlobalBuffer((__gm__ float*)space + group * 2 * kRows * data.n);
  }
  __aicore__ inline uint32_t Count() const { return tiling.m / kRows; }
  __aicore__ inline GlobalTensor<float> Place(uint32_t turn) const {
    return workspace[turn % 2 * kRows * tiling.n];
  }
};

__aicore__ inline void OnCube(const Strips& s, GM_ADDR a, GM_ADDR w) {
  const uint32_t n = s.tiling.n, k = s.tiling.k;
  TPipe pipe;
  TQue<TPosition::A1, 1> a1_;
  TQue<TPosition::B1, 1> b1_;
  TQue<TPosition::A2, 1> a2_;
  TQue<TPosition::CO1, 2> co1_;
  TBuf<TPosition::B2> b2_;
  pipe.InitBuffer(a1_, 2, kRows * k * sizeof(half));
  pipe.InitBuffer(b1_, 1, k * n * sizeof(half));
  pipe.InitBuffer(a2_, 2, kRows * k * sizeof(half));
  pipe.InitBuffer(b2_, k * n * sizeof(half));
  pipe.InitBuffer(co1_, 2, kRows * n * sizeof(float));
  GlobalTensor<half> rows, weights;
  rows.SetGlobalBuffer((__gm__ half*)a);
  weights.SetGlobalBuffer((__gm__ half*)w);

  // The weights stay in L0B.
  LocalTensor<half> b1 = b1_.AllocTensor<half>(), b2 = b2_.Get<half>();
  DataCopy(b1, weights, Nd2NzParams{1, (uint16_t)k, (uint16_t)n, 0, (uint16_t)n, (uint16_t)k, 1, 0});
  b1_.EnQue(b1);
  b1 = b1_.DeQue<half>();
  LoadData2DParams load;
  load.repeatTimes = n / 16;
  load.srcStride = k / 16;
  load.ifTranspose = true;
  for (uint32_t i = 0; i < k / 16; ++i) LoadData(b2[i * 16 * n], b1[i * 256], load);
  b1_.FreeTensor(b1);

  load.repeatTimes = k / 16;
  load.srcStride = kRows / 16;
  load.ifTranspose = false;
  uint32_t turn = 0;
  for (uint32_t strip = s.first; strip < s.Count(); strip += s.step, ++turn) {
    LocalTensor<half> a1 = a1_.AllocTensor<half>();
    DataCopy(a1, rows[strip * kRows * k], Nd2NzParams{1, kRows, (uint16_t)k, 0, (uint16_t)k, kRows, 1, 0});
    a1_.EnQue(a1);
    a1 = a1_.DeQue<half>();
    LocalTensor<half> a2 = a2_.AllocTensor<half>();
    for (uint32_t i = 0; i < kRows / 16; ++i) LoadData(a2[i * 16 * k], a1[i * 256], load);
    a2_.EnQue(a2);
    a1_.FreeTensor(a1);
    a2 = a2_.DeQue<half>();
    LocalTensor<float> sums = co1_.AllocTensor<float>();
    MmadParams mmad;
    mmad.m = kRows;
    mmad.n = n;
    mmad.k = k;
    Mmad(sums, a2, b2, mmad);
    co1_.EnQue(sums);
    a2_.FreeTensor(a2);
    sums = co1_.DeQue<float>();
    if (turn >= 2) CrossCoreWaitFlag(kFree + turn % 2);
    FixpipeParamsV220 fixpipe;
    fixpipe.nSize = n;
    fixpipe.mSize = kRows;
    fixpipe.srcStride = kRows;
    fixpipe.dstStride = n;
    Fixpipe(s.Place(turn), sums, fixpipe);
    CrossCoreSetFlag<2, PIPE_FIX>(kFull + turn % 2);
    co1_.FreeTensor(sums);
  }
  // Every flag that is set has its wait.
  for (uint32_t last = turn < 2 ? 0 : turn - 2; last < turn; ++last) CrossCoreWaitFlag(kFree + last % 2);
}

__aicore__ inline void OnVector(const Strips& s, GM_ADDR bias, GM_ADDR y) {
  const uint32_t n = s.tiling.n, half_rows = kRows / 2;
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in_;
  TQue<TPosition::VECOUT, 1> out_;
  TBuf<TPosition::VECCALC> bias_;
  pipe.InitBuffer(in_, 2, half_rows * n * sizeof(float));
  pipe.InitBuffer(out_, 2, half_rows * n * sizeof(float));
  pipe.InitBuffer(bias_, n * sizeof(float));
  GlobalTensor<float> added, to;
  added.SetGlobalBuffer((__gm__ float*)bias);
  to.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> column = bias_.Get<float>();
  DataCopy(column, added, n);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID7);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID7);

  const uint32_t own = GetSubBlockIdx() * half_rows;
  uint32_t turn = 0;
  for (uint32_t strip = s.first; strip < s.Count(); strip += s.step, ++turn) {
    CrossCoreWaitFlag(kFull + turn % 2);
    LocalTensor<float> in = in_.AllocTensor<float>();
    DataCopy(in, s.Place(turn)[own * n], half_rows * n);
    in_.EnQue(in);
    CrossCoreSetFlag<2, PIPE_MTE2>(kFree + turn % 2);
    in = in_.DeQue<float>();
    LocalTensor<float> out = out_.AllocTensor<float>();
    for (uint32_t row = 0; row < half_rows; ++row) Add(out[row * n], in[row * n], column, n);
    PipeBarrier<PIPE_V>();
    Maxs(out, out, 0.0f, half_rows * n);
    out_.EnQue(out);
    in_.FreeTensor(in);
    out = out_.DeQue<float>();
    DataCopy(to[(strip * kRows + own) * n], out, half_rows * n);
    out_.FreeTensor(out);
  }
}

extern "C" __global__ __aicore__ void linear_relu(GM_ADDR a, GM_ADDR w, GM_ADDR bias, GM_ADDR y,
                                                  GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  REGISTER_TILING_DEFAULT(LinearTiling);
  GET_TILING_DATA(data, tiling);
  const uint32_t group = GetBlockIdx() / (g_coreType == AIV ? GetTaskRatio() : 1);
  const Strips strips(data, GetUserWorkspace(workspace), group);
  if ASCEND_IS_AIC {
    OnCube(strips, a, w);
  }
  if ASCEND_IS_AIV {
    OnVector(strips, bias, y);
  }
}
