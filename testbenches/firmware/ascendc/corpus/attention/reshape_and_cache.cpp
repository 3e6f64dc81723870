// Keys and values of new tokens to their slots of a paged cache; a slot below 0 is none.
#include "kernel_operator.h"

using AscendC::DataCopy;
using AscendC::GlobalTensor;
using AscendC::LocalTensor;

struct CacheTiling {
  uint32_t tokens;
  uint32_t row;  // elements of a token, all heads: a multiple of 16
};

class ReshapeAndCache {
 public:
  __aicore__ inline void Init(GM_ADDR key, GM_ADDR value, GM_ADDR keyCache, GM_ADDR valueCache, GM_ADDR slots,
                              uint32_t row) {
    from_[0].SetGlobalBuffer((__gm__ half*)key);
    from_[1].SetGlobalBuffer((__gm__ half*)value);
    to_[0].SetGlobalBuffer((__gm__ half*)keyCache);
    to_[1].SetGlobalBuffer((__gm__ half*)valueCache);
    slots_.SetGlobalBuffer((__gm__ int64_t*)slots);
    row_ = row;
    pipe_.InitBuffer(bind_, 4, row * sizeof(half));
  }
  __aicore__ inline void Process(uint32_t tokens) {
    for (uint32_t token = AscendC::GetBlockIdx(); token < tokens; token += AscendC::GetBlockNum()) {
      const int64_t slot = slots_.GetValue(token);
      if (slot < 0) continue;
      for (int which = 0; which < 2; ++which) {
        LocalTensor<half> in = bind_.AllocTensor<half>();
        DataCopy(in, from_[which][token * row_], row_);
        bind_.EnQue(in);
        LocalTensor<half> out = bind_.DeQue<half>();
        DataCopy(to_[which][slot * row_], out, row_);
        bind_.FreeTensor(out);
      }
    }
  }

 private:
  AscendC::TPipe pipe_;
  AscendC::TQueBind<AscendC::QuePosition::VECIN, AscendC::QuePosition::VECOUT, 4> bind_;
  GlobalTensor<half> from_[2], to_[2];
  GlobalTensor<int64_t> slots_;
  uint32_t row_;
};

extern "C" __global__ __aicore__ void reshape_and_cache(GM_ADDR key, GM_ADDR value, GM_ADDR keyCache,
                                                        GM_ADDR valueCache, GM_ADDR slots, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(CacheTiling, t, tiling);
  ReshapeAndCache op;
  op.Init(key, value, keyCache, valueCache, slots, t.row);
  op.Process(t.tokens);
}
