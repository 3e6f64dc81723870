// Whole rows sorted, descending, with where each came from: runs of 32, then merges of four lists, and of
// those that are left, until one list is there.
#include "kernel_operator.h"
using namespace AscendC;

struct SortTiling {
  uint32_t rows, n;  // n: a multiple of 32, at most 4096
};

template <typename T>
class SortRows {
 public:
  __aicore__ inline SortRows(TPipe* pipe, const SortTiling& t) : t_(t) {
    pipe->InitBuffer(in_, 1, t.n * sizeof(T));
    pipe->InitBuffer(values_, 1, t.n * sizeof(T));
    pipe->InitBuffer(places_, 1, t.n * sizeof(int32_t));
    pipe->InitBuffer(index_, t.n * sizeof(int32_t));
    pipe->InitBuffer(ping_, t.n * 8);
    pipe->InitBuffer(pong_, t.n * 8);
    ArithProgression<int32_t>(index_.Get<int32_t>(), 0, 1, t.n);
  }
  __aicore__ inline void Process(GM_ADDR x, GM_ADDR values, GM_ADDR places) {
    GlobalTensor<T> xGm, vGm;
    GlobalTensor<int32_t> pGm;
    xGm.SetGlobalBuffer((__gm__ T*)x);
    vGm.SetGlobalBuffer((__gm__ T*)values);
    pGm.SetGlobalBuffer((__gm__ int32_t*)places);
    for (uint32_t row = GetBlockIdx(); row < t_.rows; row += GetBlockNum()) {
      LocalTensor<T> in = in_.template AllocTensor<T>();
      DataCopy(in, xGm[row * t_.n], t_.n);
      in_.EnQue(in);
      in = in_.template DeQue<T>();
      LocalTensor<T> sorted = Merge(in);
      LocalTensor<T> v = values_.template AllocTensor<T>();
      LocalTensor<int32_t> p = places_.template AllocTensor<int32_t>();
      Extract(v, p.template ReinterpretCast<uint32_t>(), sorted, t_.n / 32);
      values_.EnQue(v);
      places_.EnQue(p);
      in_.FreeTensor(in);
      v = values_.template DeQue<T>();
      p = places_.template DeQue<int32_t>();
      DataCopy(vGm[row * t_.n], v, t_.n);
      DataCopy(pGm[row * t_.n], p, t_.n);
      values_.FreeTensor(v);
      places_.FreeTensor(p);
    }
  }

 private:
  // Elements of a structure of 8 B.
  static constexpr uint32_t kWide = 8 / sizeof(T);

  __aicore__ inline LocalTensor<T> Merge(const LocalTensor<T>& in) {
    LocalTensor<T> from = ping_.template Get<T>(), to = pong_.template Get<T>();
    Sort32<T>(from, in, index_.template Get<uint32_t>(), t_.n / 32);
    PipeBarrier<PIPE_V>();
    for (uint32_t length = 32; length < t_.n; length *= 4) {
      for (uint32_t first = 0; first < t_.n; first += 4 * length) {
        uint16_t lengths[4] = {};
        uint16_t lists = 0, valid = 0;
        LocalTensor<T> list[4];
        for (uint32_t at = first; at < t_.n && lists < 4; at += length, ++lists) {
          list[lists] = from[at * kWide];
          lengths[lists] = t_.n - at < length ? t_.n - at : length;
          valid |= 1 << lists;
        }
        if (lists == 1) {
          DataCopy(to[first * kWide], from[first * kWide], lengths[0] * kWide);
          continue;
        }
        MrgSort4Info params;
        params.elementLengths[0] = lengths[0];
        params.elementLengths[1] = lengths[1];
        params.elementLengths[2] = lengths[2];
        params.elementLengths[3] = lengths[3];
        params.ifExhaustedSuspension = false;
        params.validBit = valid;
        params.repeatTimes = 1;
        MrgSortSrcList<T> srcList;
        srcList.src1 = list[0];
        srcList.src2 = list[1];
        srcList.src3 = list[2];
        srcList.src4 = list[3];
        MrgSort<T>(to[first * kWide], srcList, params);
      }
      PipeBarrier<PIPE_V>();
      LocalTensor<T> other = from;
      from = to;
      to = other;
    }
    return from;
  }

  const SortTiling t_;
  TQue<TPosition::VECIN, 1> in_;
  TQue<TPosition::VECOUT, 1> values_, places_;
  TBuf<> index_, ping_, pong_;
};

extern "C" __global__ __aicore__ void sort_rows(GM_ADDR x, GM_ADDR values, GM_ADDR places, GM_ADDR workspace,
                                                GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(SortTiling, t, tiling);
  TPipe pipe;
  SortRows<DTYPE_X> op(&pipe, t);
  op.Process(x, values, places);
}
