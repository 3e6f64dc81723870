// Rows of a table by indices of int32 or int64, rows of any width; an index out of range gives zeros.
#include "kernel_operator.h"
using namespace AscendC;

struct EmbeddingTiling {
  int64_t indices, width, rows;
  int64_t tile;  // elements of a row at once, a multiple of 32
};

template <typename T, typename I>
class Embedding {
 public:
  __aicore__ inline void Init(GM_ADDR table, GM_ADDR indices, GM_ADDR y, const EmbeddingTiling& t,
                              TPipe& pipe) {
    t_ = t;
    table_.SetGlobalBuffer((__gm__ T*)table);
    indices_.SetGlobalBuffer((__gm__ I*)indices);
    y_.SetGlobalBuffer((__gm__ T*)y);
    pipe.InitBuffer(rows_, 2, t.tile * sizeof(T));
    pipe.InitBuffer(indexBuf_, kAtOnce * sizeof(I));
  }
  __aicore__ inline void Process() {
    const int64_t each = (t_.indices + GetBlockNum() - 1) / GetBlockNum(), first = GetBlockIdx() * each,
                  last = first + each < t_.indices ? first + each : t_.indices;
    for (int64_t at = first; at < last; at += kAtOnce) {
      const uint32_t now = last - at < kAtOnce ? last - at : kAtOnce;
      LocalTensor<I> index = indexBuf_.template Get<I>();
      DataCopyExtParams in{1, static_cast<uint32_t>(now * sizeof(I)), 0, 0, 0};
      DataCopyPadExtParams<I> pad{false, 0, 0, 0};
      DataCopyPad(index, indices_[at], in, pad);
      const int32_t eventId = static_cast<int32_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_S));
      SetFlag<HardEvent::MTE2_S>(eventId);
      WaitFlag<HardEvent::MTE2_S>(eventId);
      for (uint32_t i = 0; i < now; ++i) Row(index.GetValue(i), at + i);
      SetFlag<HardEvent::S_MTE2>(eventId);
      WaitFlag<HardEvent::S_MTE2>(eventId);
    }
  }

 private:
  static constexpr int64_t kAtOnce = 64;

  __aicore__ inline void Row(int64_t index, int64_t to) {
    for (int64_t c = 0; c < t_.width; c += t_.tile) {
      const uint32_t bytes = (t_.width - c < t_.tile ? t_.width - c : t_.tile) * sizeof(T);
      LocalTensor<T> row = rows_.template AllocTensor<T>();
      if (index >= 0 && index < t_.rows) {
        DataCopyPad(row, table_[index * t_.width + c], {1, bytes, 0, 0, 0}, {false, 0, 0, 0});
      } else {
        event_t mte2ToV = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_V));
        SetFlag<HardEvent::MTE2_V>(mte2ToV);
        WaitFlag<HardEvent::MTE2_V>(mte2ToV);
        Duplicate(row, static_cast<T>(0), t_.tile);
        event_t vToMte2 = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_MTE2));
        SetFlag<HardEvent::V_MTE2>(vToMte2);
        WaitFlag<HardEvent::V_MTE2>(vToMte2);
        event_t vToMte3 = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_MTE3));
        SetFlag<HardEvent::V_MTE3>(vToMte3);
        WaitFlag<HardEvent::V_MTE3>(vToMte3);
      }
      rows_.EnQue(row);
      row = rows_.template DeQue<T>();
      DataCopyPad(y_[to * t_.width + c], row, {1, bytes, 0, 0, 0});
      rows_.FreeTensor(row);
    }
  }

  EmbeddingTiling t_;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> rows_;
  TBuf<> indexBuf_;
  GlobalTensor<T> table_, y_;
  GlobalTensor<I> indices_;
};

extern "C" __global__ __aicore__ void embedding(GM_ADDR table, GM_ADDR indices, GM_ADDR y, GM_ADDR workspace,
                                                GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(EmbeddingTiling, t, tiling);
  TPipe pipe;
#if ORIG_DTYPE_INDICES == DT_INT64
  Embedding<DTYPE_TABLE, int64_t> op;
#else
  Embedding<DTYPE_TABLE, int32_t> op;
#endif
  op.Init(table, indices, y, t, pipe);
  op.Process();
}
