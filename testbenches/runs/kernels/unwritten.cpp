// Reads bytes of its UBuffer that it has not written, by each unit, and loads a word that is not aligned.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void unwritten(GM_ADDR x) {
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, 2048);
  LocalTensor<float> t = buffer.Get<float>();
  Duplicate(t, 1.0f, 20);
  Adds(t[64], t, 1.0f, 20);  // masked: what is not written is not read
  PipeBarrier<PIPE_ALL>();
  const GlobalTensor<float> to = GlobalAt<float>(reinterpret_cast<uint64_t>(x));
  DataCopyPad(to, t[64], DataCopyExtParams{1, 80, 0, 0, 0});
  const float last = t.GetValue(19);
#ifdef MISTAKE
  Adds(t[128], t, 1.0f, 21);
  DataCopyPad(to, t[64], DataCopyExtParams{1, 84, 0, 0, 0});
  t.SetValue(200, t.GetValue(199));
  t.SetValue(201, last);
  const auto* odd = reinterpret_cast<__ubuf__ volatile uint32_t*>(t.GetPhyAddr() + 2);
  PRINTF("%u\n", *odd);
#else
  t.SetValue(200, last);
#endif
}
