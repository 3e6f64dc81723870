// |x - y| < 1 ? (x - y)^2 / 2 : |x - y| - 1 / 2, of half in half, by the names of the layer below.
#include "kernel_operator.h"

struct SmoothTiling {
  uint32_t total;  // of a core, a multiple of 128
};

extern "C" __global__ __aicore__ void smooth_l1(GM_ADDR x, GM_ADDR y, GM_ADDR loss, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(SmoothTiling, t, tiling);
  AscendC::TPipe pipe;
  AscendC::TBuf<> room;
  pipe.InitBuffer(room, 5 * t.total * sizeof(half));
  const uint32_t bytes = t.total * sizeof(half);
  const uint64_t offset = AscendC::GetBlockIdx() * t.total;
  __gm__ half* from_x = (__gm__ half*)x + offset;
  __gm__ half* from_y = (__gm__ half*)y + offset;
  __gm__ half* to = (__gm__ half*)loss + offset;
  __ubuf__ half* a = (__ubuf__ half*)(uintptr_t)0;
  __ubuf__ half* b = (__ubuf__ half*)(uintptr_t)bytes;
  __ubuf__ half* d = (__ubuf__ half*)(uintptr_t)(2 * bytes);
  __ubuf__ half* e = (__ubuf__ half*)(uintptr_t)(3 * bytes);
  __ubuf__ half* one = (__ubuf__ half*)(uintptr_t)(4 * bytes);
  const uint8_t repeat = t.total / 128;
  copy_gm_to_ubuf(a, from_x, 0, 1, bytes / 32, 0, 0);
  copy_gm_to_ubuf(b, from_y, 0, 1, bytes / 32, 0, 0);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  set_mask_norm();
  set_vector_mask((uint64_t)-1, (uint64_t)-1);
  vsub(d, a, b, repeat, 1, 1, 1, 8, 8, 8);
  pipe_barrier(PIPE_V);
  vabs(d, d, repeat, 1, 1, 8, 8);
  pipe_barrier(PIPE_V);
  // q = min(|d|, 1); loss = q * (|d| - q / 2)
  vmins(e, d, half(1.0f), repeat, 1, 1, 8, 8);
  pipe_barrier(PIPE_V);
  vmuls(one, e, half(0.5f), repeat, 1, 1, 8, 8);
  pipe_barrier(PIPE_V);
  vsub(d, d, one, repeat, 1, 1, 1, 8, 8, 8);
  pipe_barrier(PIPE_V);
  vmul(d, d, e, repeat, 1, 1, 1, 8, 8, 8);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  copy_ubuf_to_gm(to, d, 0, 1, bytes / 32, 0, 0);
  pipe_barrier(PIPE_ALL);
}
