// A product by the older and rarer forms of cube cores: A through three-dimensional loads, FIX behind M by
// unitFlag, results by each form there is. cube_older_forms says what should come out.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint16_t kM = 48, kN = 32, kK = 64;

extern "C" __global__ __aicore__ void cube_older_forms(GM_ADDR a, GM_ADDR b, GM_ADDR rows, GM_ADDR columns,
                                                       GM_ADDR halves, GM_ADDR parts, GM_ADDR bytes,
                                                       GM_ADDR scales) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  TPipe pipe;
  TBuf<TPosition::A1> l1;
  TBuf<TPosition::A2> l0a;
  TBuf<TPosition::B2> l0b;
  TBuf<TPosition::CO1> l0c;
  pipe.InitBuffer(l1, (kM * kK + kK * kN) * sizeof(half));
  pipe.InitBuffer(l0a, kM * kK * sizeof(half));
  pipe.InitBuffer(l0b, kK * kN * sizeof(half));
  pipe.InitBuffer(l0c, kM * kN * sizeof(float));
  const LocalTensor<half> a1 = l1.Get<half>(), b1 = a1[kM * kK], a2 = l0a.Get<half>(), b2 = l0b.Get<half>();
  const LocalTensor<float> c = l0c.Get<float>();
  GlobalTensor<half> from, to_half;
  GlobalTensor<float> to;
  from.SetGlobalBuffer(reinterpret_cast<half*>(a));
  DataCopy(a1, from, Nd2NzParams{1, kM, kK, 0, kK, kM, 1, 0});
  from.SetGlobalBuffer(reinterpret_cast<half*>(b));
  DataCopy(b1, from, {1, kK, kN, 0, kN, kK, 1, 0});
  PipeBarrier<PIPE_ALL>();
  // The image is kM / 8 x 8 pixels of kK channels. The first 16 rows by the call's own matrix, the rest by
  // the core's.
  LoadData3DParamsV2<half> load;
  load.l1H = kM / 8;
  load.l1W = 8;
  load.channelSize = kK;
  load.kExtension = kK;
  load.mExtension = 16;
  LoadData(a2, a1, load);
  const uint8_t none[4] = {0, 0, 0, 0};
  SetFmatrix(kM / 8, 8, none, FmatrixMode::FMATRIX_LEFT);
  SetLoadDataPaddingValue<half>(half(0.0f));
  SetLoadDataRepeat({0, 1, 0});
  SetLoadDataBoundary(0);
  static constexpr IsResetLoad3dConfig kKeep{false, false};
  load.l1H = load.l1W = 1;
  load.mStartPt = 16;
  load.mExtension = kM - 16;
  LoadData<half, kKeep>(a2[16 * kK], a1, load);
  LoadData2dParams square;
  square.repeatTimes = kN / 16;
  square.srcStride = kK / 16;
  square.ifTranspose = true;
  for (uint32_t i = 0; i < kK / 16; ++i) LoadData(b2[i * 16 * kN], b1[i * 256], square);
  PipeBarrier<PIPE_ALL>();
  MmadParams mmad;
  mmad.m = kM;
  mmad.n = kN;
  mmad.k = kK;
  mmad.unitFlag = 3;
  Mmad(c, a2, b2, mmad);
  // No flag from M to FIX, and none back: the second product stands in the same place.
  to.SetGlobalBuffer(reinterpret_cast<float*>(rows));
  FixpipeParams<float> fixpipe(kN / 16, kM * 16 * sizeof(float) / 32, 0, kN);
  fixpipe.nz2ndParams.nz2ndEn = true;
  fixpipe.nz2ndParams.originalNSize = kN;
  fixpipe.unitFlag = 3;
  Fixpipe(to, c, fixpipe);
  mmad.cmatrixInitVal = false;
  Mmad(c, a2, b2, mmad);
  to.SetGlobalBuffer(reinterpret_cast<float*>(columns));
  fixpipe.nz2ndParams.nz2ndEn = false;
  fixpipe.dstStride = kM * 2;
  Fixpipe(to, c, fixpipe);
  // The state of the core: two matrices, the left and the right half of C; halves with ReLU.
  to_half.SetGlobalBuffer(reinterpret_cast<half*>(halves));
  DataCopyCO12DstParams copy;
  copy.nSize = kN;
  copy.mSize = kM;
  copy.srcStride = kM;
  copy.dstStride = kN;
  copy.quantPre = QuantMode_t::F322F16;
  copy.reluPre = 1;
  copy.nz2ndEn = true;
  copy.unitFlag = 3;
  SetFixpipeNz2ndFlag(1, 0, 0);
  DataCopy(to_half, c, copy);
  to.SetGlobalBuffer(reinterpret_cast<float*>(parts));
  copy.nSize = 16;
  copy.dstStride = 16;
  copy.quantPre = QuantMode_t::NoQuant;
  copy.reluPre = 0;
  SetFixpipeNz2ndFlag(2, kM * 16 * sizeof(float) / 1024, kM * 16);
  DataCopy(to, c, copy);
  // A scale a column, from the buffer of FIX.
  TBuf<TPosition::C1> scales_l1;
  TBuf<TPosition::C2PIPE2GM> buffer;
  pipe.InitBuffer(scales_l1, kN * sizeof(uint64_t));
  pipe.InitBuffer(buffer, kN * sizeof(uint64_t));
  const LocalTensor<uint64_t> one_a_column = buffer.Get<uint64_t>();
  GlobalTensor<uint64_t> of_scales;
  GlobalTensor<int8_t> to_bytes;
  of_scales.SetGlobalBuffer(reinterpret_cast<uint64_t*>(scales));
  to_bytes.SetGlobalBuffer(reinterpret_cast<int8_t*>(bytes));
  DataCopy(scales_l1.Get<uint64_t>(), of_scales, kN);
  PipeBarrier<PIPE_ALL>();
  DataCopy(one_a_column, scales_l1.Get<uint64_t>(), DataCopyParams{1, 2, 0, 0});
  PipeBarrier<PIPE_ALL>();
  SetFixPipeConfig(one_a_column);
  copy.nSize = kN;
  copy.dstStride = kN;
  copy.quantPre = QuantMode_t::VQF322B8_PRE;
  SetFixpipeNz2ndFlag(1, 0, 0);
  DataCopy(to_bytes, c, copy);
}
