// Brings results back to their tokens. A rank writes each row that it got into the window of the rank it came
// from, at its token and place, with a flag behind it; each rank waits for the results of a token and adds
// them up by their weights. Blocks share the rows, then the tokens.
#include "normal_window.h"

using namespace AscendC;

struct CombineTiling {
  Mc2InitTiling init;
  Mc2CcTiling group, groupOfTensors;
  uint32_t ranks, tensorRanks, rank, tensorRank, shared, experts, expertsOfRank, tokensOfAll, tokens, topK,
      hidden, blocks;
  uint64_t ubufferBytes, windowBytes;
  uint32_t pad[3];
};

class Combine {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR triples, GM_ADDR recvCount, GM_ADDR weights, GM_ADDR y,
                              const CombineTiling& tiling) {
    tiling_ = tiling;
    sizes_ = {tiling.tokens, tiling.topK, tiling.hidden};
    windows_.Init(&tiling);
    x_ = normal::At<bfloat16_t>(x);
    triples_ = normal::At<int32_t>(triples);
    recvCount_ = normal::At<int32_t>(recvCount);
    weights_ = normal::At<float>(weights);
    y_ = normal::At<bfloat16_t>(y);
    const uint32_t rowBytes = tiling.hidden * sizeof(bfloat16_t), flags = tiling.topK * normal::kBlock;
    pipe_.InitBuffer(rows_, 2, rowBytes);
    pipe_.InitBuffer(triplesBuf_, kRows * 3 * sizeof(int32_t));
    pipe_.InitBuffer(weightsBuf_, kRows * sizeof(float));
    pipe_.InitBuffer(flagBuf_, normal::kBlock);
    pipe_.InitBuffer(seenBuf_, flags);
    pipe_.InitBuffer(zerosBuf_, flags);
    pipe_.InitBuffer(results_, 1,
                     rowBytes);  // a second would set its flag while V still works before its wait
    pipe_.InitBuffer(valuesBuf_, tiling.hidden * sizeof(float));
    pipe_.InitBuffer(sumsBuf_, tiling.hidden * sizeof(float));
    pipe_.InitBuffer(out_, 1, rowBytes);
  }

  __aicore__ inline void Process() {
    Duplicate(flagBuf_.Get<int32_t>(), 1, normal::kFlagWords);
    Duplicate(zerosBuf_.Get<int32_t>(), 0, static_cast<int32_t>(tiling_.topK * normal::kFlagWords));
    normal::Order<HardEvent::V_MTE3>();
    SendBack();
    AddUp();
  }

 private:
  static constexpr uint32_t kRows = 256;  // whose triples, or weights, are looked at together

  template <typename T>
  __aicore__ inline void Read(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t count) {
    normal::Order<HardEvent::S_MTE2>();
    DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0},
                DataCopyPadExtParams<T>{});
    normal::Order<HardEvent::MTE2_S>();
  }

  __aicore__ inline void SendBack() {
    const LocalTensor<int32_t> triples = triplesBuf_.Get<int32_t>();
    Read(triples, recvCount_[tiling_.experts - 1], 1);
    const normal::Share mine(triples.GetValue(0));
    for (uint32_t first = mine.begin; first < mine.end; first += kRows) {
      const uint32_t rows = mine.end - first < kRows ? mine.end - first : kRows;
      Read(triples, triples_[3 * first], 3 * rows);
      for (uint32_t i = 0; i < rows; ++i) {
        LocalTensor<bfloat16_t> row = rows_.AllocTensor<bfloat16_t>();
        DataCopy(row, x_[static_cast<uint64_t>(first + i) * tiling_.hidden], tiling_.hidden);
        rows_.EnQue(row);
        row = rows_.DeQue<bfloat16_t>();
        const uint32_t source = triples.GetValue(3 * i), token = triples.GetValue(3 * i + 1),
                       k = triples.GetValue(3 * i + 2);
        DataCopy(normal::At<bfloat16_t>(windows_.Of(source, sizes_.Result(token, k))), row, tiling_.hidden);
        PipeBarrier<PIPE_MTE3>();  // the flag follows when the row has arrived
        DataCopy(normal::At<int32_t>(windows_.Of(source, Flag(token, k))), flagBuf_.Get<int32_t>(),
                 normal::kFlagWords);
        rows_.FreeTensor(row);
      }
    }
  }

  __aicore__ inline void AddUp() {
    const normal::Share mine(tiling_.tokens);
    const LocalTensor<float> weights = weightsBuf_.Get<float>(), values = valuesBuf_.Get<float>(),
                             sums = sumsBuf_.Get<float>();
    const auto count = static_cast<int32_t>(tiling_.hidden);
    const uint32_t together = kRows / tiling_.topK;
    for (uint32_t token = mine.begin; token < mine.end; ++token) {
      const uint32_t ahead = (token - mine.begin) % together;
      if (ahead == 0) {
        const uint32_t tokens = mine.end - token < together ? mine.end - token : together;
        Read(weights, weights_[token * tiling_.topK], tokens * tiling_.topK);
      }
      normal::AwaitFlags(windows_.Of(tiling_.rank, Flag(token, 0)), seenBuf_.Get<int32_t>(),
                         zerosBuf_.Get<int32_t>(), tiling_.topK);
      Duplicate(sums, 0.0F, count);
      for (uint32_t k = 0; k < tiling_.topK; ++k) {
        LocalTensor<bfloat16_t> row = results_.AllocTensor<bfloat16_t>();
        DataCopy(row, normal::At<bfloat16_t>(windows_.Of(tiling_.rank, sizes_.Result(token, k))),
                 tiling_.hidden);
        results_.EnQue(row);
        row = results_.DeQue<bfloat16_t>();
        Cast(values, row, RoundMode::CAST_NONE, tiling_.hidden);
        results_.FreeTensor(row);
        PipeBarrier<PIPE_V>();
        Axpy(sums, values, weights.GetValue(ahead * tiling_.topK + k), count);
        PipeBarrier<PIPE_V>();
      }
      LocalTensor<bfloat16_t> out = out_.AllocTensor<bfloat16_t>();
      Cast(out, sums, RoundMode::CAST_RINT, tiling_.hidden);
      out_.EnQue(out);
      out = out_.DeQue<bfloat16_t>();
      DataCopy(y_[static_cast<uint64_t>(token) * tiling_.hidden], out, tiling_.hidden);
      out_.FreeTensor(out);
    }
  }

  __aicore__ inline uint64_t Flag(uint32_t token, uint32_t k) const {
    return normal::kResultFlags + (static_cast<uint64_t>(token) * tiling_.topK + k) * normal::kBlock;
  }

  CombineTiling tiling_;
  normal::Sizes sizes_{};
  normal::Windows windows_;
  GlobalTensor<bfloat16_t> x_, y_;
  GlobalTensor<int32_t> triples_, recvCount_;
  GlobalTensor<float> weights_;
  TPipe pipe_;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> rows_;
  TQue<QuePosition::VECIN, 1> results_;
  TQue<QuePosition::VECOUT, 1> out_;
  TBuf<> triplesBuf_, weightsBuf_, flagBuf_, seenBuf_, zerosBuf_, valuesBuf_, sumsBuf_;
};

// The second `recvCount` and `statistics` are of the interface.
extern "C" __global__ __aicore__ void moe_combine_normal(GM_ADDR x, GM_ADDR triples, GM_ADDR recvCount,
                                                         GM_ADDR weights, GM_ADDR recvCountOfTensors,
                                                         GM_ADDR y, GM_ADDR statistics, GM_ADDR workspace,
                                                         GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(CombineTiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GET_TILING_DATA_WITH_STRUCT(CombineTiling, data, tiling);
  if (TILING_KEY_IS(0)) {
    Combine combine;
    combine.Init(x, triples, recvCount, weights, y, data);
    combine.Process();
  }
}
