// Sends tokens to their experts. A rank writes its rows into its own window, by expert, as layout and notify
// have counted them, and tells the others; each reads the rows for its experts from the windows of all and
// writes them to the output, by expert, source and token. Blocks share tokens, then pairs of expert and
// source.
#include "normal_window.h"

using namespace AscendC;

struct DispatchTiling {
  Mc2InitTiling init;
  Mc2CcTiling group, groupOfTensors;
  uint32_t ranks, tensorRanks, rank, tensorRank, experts, quantMode, tokensOfAll, tokens, topK, hidden,
      blocks, pad;
  uint64_t ubufferBytes, windowBytes;
};

template <typename Row>
class Dispatch {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR chosen, GM_ADDR sendOffset, GM_ADDR index,
                              GM_ADDR recvOffset, GM_ADDR recvCount, GM_ADDR out, GM_ADDR scales,
                              GM_ADDR triples, const DispatchTiling& tiling) {
    tiling_ = tiling;
    sizes_ = {tiling.tokens, tiling.topK, tiling.hidden};
    windows_.Init(&tiling);
    x_ = normal::At<bfloat16_t>(x);
    chosen_ = normal::At<int32_t>(chosen);
    index_ = normal::At<int32_t>(index);
    sendOffset_ = normal::At<int32_t>(sendOffset);
    recvOffset_ = normal::At<int32_t>(recvOffset);
    recvCount_ = normal::At<int32_t>(recvCount);
    out_ = normal::At<Row>(out);
    scales_ = normal::At<float>(scales);
    triples_ = normal::At<int32_t>(triples);
    const uint32_t rowBytes = tiling.hidden * sizeof(Row), table = tiling.experts * sizeof(int32_t);
    together_ = rowBytes < kRowsBytes ? kRowsBytes / rowBytes : 1;
    pipe_.InitBuffer(rows_, 2, together_ * rowBytes);
    pipe_.InitBuffer(notesBuf_, kNotes * normal::kNoteBytes);
    pipe_.InitBuffer(chosenBuf_, kTokens * tiling.topK * sizeof(int32_t));
    pipe_.InitBuffer(indexBuf_, kTokens * tiling.topK * sizeof(int32_t));
    pipe_.InitBuffer(firstTable_, table);
    pipe_.InitBuffer(secondTable_, table);
    pipe_.InitBuffer(flagsBuf_, GetBlockNum() * normal::kBlock);
    pipe_.InitBuffer(seenBuf_, normal::kBlock);
    pipe_.InitBuffer(zerosBuf_, normal::kBlock);
    if constexpr (kQuantised) {
      pipe_.InitBuffer(tokens_, 1, tiling.hidden * sizeof(bfloat16_t));
      pipe_.InitBuffer(floatsBuf_, tiling.hidden * sizeof(float));
      pipe_.InitBuffer(absolutesBuf_, tiling.hidden * sizeof(float));
      pipe_.InitBuffer(largestBuf_, normal::kBlock);
    }
  }

  __aicore__ inline void Process() {
    Duplicate(flagsBuf_.Get<int32_t>(), 1, static_cast<int32_t>(GetBlockNum() * normal::kFlagWords));
    Duplicate(zerosBuf_.Get<int32_t>(), 0, normal::kFlagWords);
    normal::Order<HardEvent::V_MTE3>();
    Send();
    PipeBarrier<PIPE_ALL>();
    SyncAll();  // the rows of all blocks stand in the window
    for (uint32_t rank = GetBlockIdx(); rank < tiling_.ranks; rank += GetBlockNum()) {
      DataCopy(normal::At<int32_t>(windows_.Of(rank, RowFlag(tiling_.rank, 0))), flagsBuf_.Get<int32_t>(),
               GetBlockNum() * normal::kFlagWords);
    }
    Receive();
  }

 private:
  static constexpr bool kQuantised = std::is_same_v<Row, int8_t>;
  static constexpr uint32_t kTokens = 32;  // whose choices are looked at together
  static constexpr uint32_t kNotes = 256;  // that are copied together, at least kTokens x top-k
  // Of rows that are copied together, in each of two buffers; where rows are quantised, there are those of a
  // token as well.
  static constexpr uint32_t kRowsBytes = kQuantised ? 28'672 : 57'344;
  // Words of a note: the output's triple, and in its second half the scale.
  static constexpr uint32_t kSource = 0, kToken = 1, kPlace = 2, kScale = normal::kFlagWords;

  __aicore__ inline uint64_t RowFlag(uint32_t source, uint32_t block) const {
    return normal::kRowFlags + (source * normal::kBlocks + block) * normal::kBlock;
  }
  __aicore__ inline GlobalTensor<Row> RowsOf(uint32_t rank, uint32_t first) const {
    return normal::At<Row>(
        windows_.Of(rank, sizes_.Rows() + static_cast<uint64_t>(first) * tiling_.hidden * sizeof(Row)));
  }
  __aicore__ inline GlobalTensor<int32_t> NotesOf(uint32_t rank, uint32_t first) const {
    return normal::At<int32_t>(
        windows_.Of(rank, sizes_.Notes() + static_cast<uint64_t>(first) * normal::kNoteBytes));
  }

  __aicore__ inline void Send() {
    const normal::Share mine(tiling_.tokens);
    const LocalTensor<int32_t> offsets = firstTable_.Get<int32_t>(), notes = notesBuf_.Get<int32_t>(),
                               chosen = chosenBuf_.Get<int32_t>(), index = indexBuf_.Get<int32_t>();
    DataCopy(offsets, sendOffset_, tiling_.experts);
    for (uint32_t first = mine.begin; first < mine.end; first += kTokens) {
      const uint32_t tokens = mine.end - first < kTokens ? mine.end - first : kTokens;
      normal::Order<HardEvent::S_MTE2>();
      DataCopyPad(chosen, chosen_[first * tiling_.topK], Whole(tokens * tiling_.topK),
                  DataCopyPadExtParams<int32_t>{});
      DataCopyPad(index, index_[first * tiling_.topK], Whole(tokens * tiling_.topK),
                  DataCopyPadExtParams<int32_t>{});
      normal::Order<HardEvent::MTE2_S>();
      normal::Order<HardEvent::MTE3_S>();
      for (uint32_t token = 0; token < tokens; ++token) {
        for (uint32_t k = 0; k < tiling_.topK; ++k) {
          const uint32_t note = (token * tiling_.topK + k) * normal::kNoteWords;
          notes.SetValue(note + kSource, static_cast<int32_t>(tiling_.rank));
          notes.SetValue(note + kToken, static_cast<int32_t>(first + token));
          notes.SetValue(note + kPlace, static_cast<int32_t>(k));
        }
      }
      normal::Order<HardEvent::S_MTE3>();
      for (uint32_t token = 0; token < tokens; ++token) {
        const uint32_t pair = token * tiling_.topK;
        LocalTensor<Row> row = Load(first + token, notes[pair * normal::kNoteWords]);
        for (uint32_t k = 0; k < tiling_.topK; ++k) {
          const uint32_t expert = chosen.GetValue(pair + k),
                         place = offsets.GetValue(expert) + index.GetValue(pair + k);
          DataCopy(RowsOf(tiling_.rank, place), row, tiling_.hidden);
          DataCopy(NotesOf(tiling_.rank, place), notes[(pair + k) * normal::kNoteWords], normal::kNoteWords);
        }
        rows_.FreeTensor(row);
      }
    }
  }

  __aicore__ inline DataCopyExtParams Whole(uint32_t words) const {
    return DataCopyExtParams{1, static_cast<uint32_t>(words * sizeof(int32_t)), 0, 0, 0};
  }

  // A token as it is sent; its notes get the scale.
  __aicore__ inline LocalTensor<Row> Load(uint32_t token, const LocalTensor<int32_t>& notes) {
    LocalTensor<Row> row = rows_.template AllocTensor<Row>();
    const GlobalTensor<bfloat16_t> from = x_[static_cast<uint64_t>(token) * tiling_.hidden];
    if constexpr (kQuantised) {
      LocalTensor<bfloat16_t> in = tokens_.AllocTensor<bfloat16_t>();
      DataCopy(in, from, tiling_.hidden);
      tokens_.EnQue(in);
      in = tokens_.DeQue<bfloat16_t>();
      const float scale = Quantise(row, in);
      tokens_.FreeTensor(in);
      for (uint32_t k = 0; k < tiling_.topK; ++k)
        notes.ReinterpretCast<float>().SetValue(k * normal::kNoteWords + kScale, scale);
      normal::Order<HardEvent::S_MTE3>();
    } else {
      DataCopy(row, from, tiling_.hidden);
    }
    rows_.EnQue(row);
    return rows_.template DeQue<Row>();
  }

  // Values from -127 to 127 times the scale that is returned.
  __aicore__ inline float Quantise(const LocalTensor<Row>& to, const LocalTensor<bfloat16_t>& from) {
    const auto count = static_cast<int32_t>(tiling_.hidden);
    const LocalTensor<float> values = floatsBuf_.Get<float>(), absolutes = absolutesBuf_.Get<float>(),
                             largest = largestBuf_.Get<float>();
    Cast(values, from, RoundMode::CAST_NONE, tiling_.hidden);
    PipeBarrier<PIPE_V>();
    Abs(absolutes, values, count);
    PipeBarrier<PIPE_V>();
    ReduceMax(largest, absolutes, absolutes, count);
    PipeBarrier<PIPE_V>();
    Maxs(largest, largest, 1e-30F, normal::kFlagWords);  // a row of zeros stays one
    normal::Order<HardEvent::V_S>();
    const float most = largest.GetValue(0);
    Muls(values, values, 127.0F / most, count);
    PipeBarrier<PIPE_V>();
    Cast(values.ReinterpretCast<int32_t>(), values, RoundMode::CAST_RINT, tiling_.hidden);
    SetDeqScale(static_cast<half>(1.0F));
    PipeBarrier<PIPE_V>();
    Cast(absolutes.ReinterpretCast<half>(), values.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE,
         tiling_.hidden);
    PipeBarrier<PIPE_V>();
    Cast(to, absolutes.ReinterpretCast<half>(), RoundMode::CAST_TRUNC, tiling_.hidden);
    normal::Order<HardEvent::V_MTE3>();
    return most / 127.0F;
  }

  __aicore__ inline void Receive() {
    const LocalTensor<int32_t> counts = firstTable_.Get<int32_t>(), offsets = secondTable_.Get<int32_t>();
    DataCopy(counts, recvCount_, tiling_.experts);
    DataCopy(offsets, recvOffset_, tiling_.experts);
    normal::Order<HardEvent::MTE2_S>();
    uint64_t heard[normal::kRanks / 64] = {};
    for (uint32_t entry = GetBlockIdx(); entry < tiling_.experts; entry += GetBlockNum()) {
      const int32_t before = entry == 0 ? 0 : counts.GetValue(entry - 1);
      Await(entry % tiling_.ranks, heard);
      Fetch(entry % tiling_.ranks, offsets.GetValue(entry), before, counts.GetValue(entry) - before);
    }
    for (uint32_t source = 0; source < tiling_.ranks; ++source) Await(source, heard);
  }

  __aicore__ inline void Await(uint32_t source, uint64_t heard[]) {
    if ((heard[source / 64] >> source % 64 & 1) != 0) return;
    heard[source / 64] |= uint64_t{1} << source % 64;
    normal::AwaitFlags(windows_.Of(tiling_.rank, RowFlag(source, GetBlockIdx())), seenBuf_.Get<int32_t>(),
                       zerosBuf_.Get<int32_t>(), 1);
  }

  // Rows and triples from a rank's window to the output.
  __aicore__ inline void Fetch(uint32_t source, uint32_t from, uint32_t to, uint32_t count) {
    if (count == 0) return;
    const LocalTensor<int32_t> notes = notesBuf_.Get<int32_t>();
    for (uint32_t done = 0; done < count; done += kNotes) {
      const uint32_t n = count - done < kNotes ? count - done : kNotes;
      normal::Order<HardEvent::MTE3_MTE2>();
      DataCopy(notes, NotesOf(source, from + done), n * normal::kNoteWords);
      normal::Order<HardEvent::MTE2_MTE3>();
      const auto halves = static_cast<uint16_t>(n);
      DataCopyPad(triples_[3 * (to + done)], notes, DataCopyExtParams{halves, 3 * sizeof(int32_t), 1, 0, 0});
      if constexpr (kQuantised)
        DataCopyPad(scales_[to + done], notes.ReinterpretCast<float>()[kScale],
                    DataCopyExtParams{halves, sizeof(float), 1, 0, 0});
    }
    normal::Order<HardEvent::MTE3_MTE2>();  // rows set their flags when MTE3 waits for them
    for (uint32_t done = 0; done < count; done += together_) {
      const uint32_t n = count - done < together_ ? count - done : together_;
      LocalTensor<Row> rows = rows_.template AllocTensor<Row>();
      DataCopy(rows, RowsOf(source, from + done), n * tiling_.hidden);
      rows_.EnQue(rows);
      rows = rows_.template DeQue<Row>();
      DataCopy(out_[static_cast<uint64_t>(to + done) * tiling_.hidden], rows, n * tiling_.hidden);
      rows_.FreeTensor(rows);
    }
  }

  DispatchTiling tiling_;
  normal::Sizes sizes_{};
  normal::Windows windows_;
  uint32_t together_ = 1;
  GlobalTensor<bfloat16_t> x_;
  GlobalTensor<int32_t> chosen_, index_, sendOffset_, recvOffset_, recvCount_, triples_;
  GlobalTensor<Row> out_;
  GlobalTensor<float> scales_;
  TPipe pipe_;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> rows_;
  TQue<QuePosition::VECIN, 1> tokens_;
  TBuf<> notesBuf_, chosenBuf_, indexBuf_, firstTable_, secondTable_, flagsBuf_, seenBuf_, zerosBuf_;
  TBuf<> floatsBuf_, absolutesBuf_, largestBuf_;
};

// `statistics` is of the interface.
extern "C" __global__ __aicore__ void moe_dispatch_normal(GM_ADDR x, GM_ADDR chosen, GM_ADDR sendOffset,
                                                          GM_ADDR index, GM_ADDR recvOffset,
                                                          GM_ADDR recvCount, GM_ADDR out, GM_ADDR scales,
                                                          GM_ADDR triples, GM_ADDR statistics,
                                                          GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(DispatchTiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GET_TILING_DATA_WITH_STRUCT(DispatchTiling, data, tiling);
#if ORIG_DTYPE_RECV_X == DT_INT8
  if (TILING_KEY_IS(10002)) {
#else
  if (TILING_KEY_IS(10000)) {
#endif
    Dispatch<DTYPE_RECV_X> dispatch;
    dispatch.Init(x, chosen, sendOffset, index, recvOffset, recvCount, out, scales, triples, data);
    dispatch.Process();
  }
}
