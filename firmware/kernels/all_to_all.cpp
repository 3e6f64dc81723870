// What a die computes between the copies of the basic flow: one launch a step. Arguments, buffers:
// firmware/abi/all_to_all.h.
//
// No branch and no address depends on a row's values.
#include "firmware/abi/all_to_all.h"

#include "firmware/kernels/count_equal.h"
#include "firmware/kernels/quantise.h"
#include "firmware/kernels/row_sum.h"
#include "firmware/kernels/share.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

// In the `scalars` region of the UBuffer, as byte offsets. The maximum of a row is payload.
constexpr uint32_t kSum = 0, kMaximum = 512;

class AllToAll {
 public:
  explicit AllToAll(const cm384_all_to_all& arguments)
      : a_(arguments),
        block_(static_cast<uint32_t>(GetBlockIdx())),
        blocks_(static_cast<uint32_t>(GetBlockNum())),
        l_(cm384_all_to_all_ubuffer(&a_, blocks_)),
        pairs_(a_.batch * a_.top_k),
        cells_(a_.ranks * a_.local_experts),
        row_bytes_(a_.hidden * 2ull) {
    if (l_.end > kUBufferBytes) Abort("all_to_all: batch, ranks and hidden size do not fit the UBuffer");
    if (a_.hidden == 0 || a_.hidden % 32 != 0) Abort("all_to_all: the hidden size is no multiple of 32");
  }

  void Run() {
    switch (a_.step) {
      case CM384_STEP_PACK:
        return Pack();
      case CM384_STEP_QUANTISE:
      case CM384_STEP_UNSORT:
        return Resort();
      case CM384_STEP_SUM:
        return Sum();
      default:
        Abort("all_to_all: no such step");
    }
  }

 private:
  template <typename T>
  LocalTensor<T> At(uint64_t offset) const {
    return LocalTensor<T>(static_cast<uint32_t>(offset));
  }
  void Load(uint64_t to, uint64_t from, uint64_t bytes) const {
    if (bytes != 0)
      DataCopyPad(At<uint8_t>(to), GlobalAt<uint8_t>(from), {1, static_cast<uint32_t>(bytes), 0, 0});
  }
  template <HardEvent E>
  static void Sync(int32_t id) {
    SetFlag<E>(id);
    WaitFlag<E>(id);
  }
  void Clear(uint64_t from, uint64_t to) const {
    Duplicate(At<int32_t>(from), 0, static_cast<int32_t>((to - from) / 4));
  }

  // How many of the first `count` pairs chose `expert`.
  uint32_t CountPairs(uint32_t expert, uint32_t count) const {
    return CountEqual(At<int32_t>(l_.ids), At<int32_t>(l_.work0), At<int32_t>(l_.work1),
                      At<int32_t>(l_.scalars + kSum), expert, count);
  }

  // Counts rows for each expert and tells them to the messages; then each block copies its share of the
  // pairs to where they leave from.
  void Pack() {
    Clear(l_.scalars, l_.rows);
    Sync<HardEvent::V_MTE2>(EVENT_ID0);
    Load(l_.ids, a_.expert_ids, pairs_ * 4ull);
    Load(l_.cells, a_.cell_experts, cells_ * 4ull);
    Sync<HardEvent::MTE2_V>(EVENT_ID0);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
    const Range share = Share(cells_, blocks_, block_);
    for (uint32_t cell = share.first; cell < share.last; ++cell) {
      const int32_t expert = At<int32_t>(l_.cells).GetValue(cell);
      const uint64_t entry = l_.entries + (cell - share.first) * 32ull;
      At<uint32_t>(entry).SetValue(0, expert < 0 ? 0 : CountPairs(static_cast<uint32_t>(expert), pairs_));
    }
    Sync<HardEvent::S_MTE3>(EVENT_ID0);
    for (uint32_t cell = share.first; cell < share.last; ++cell) {
      const uint64_t entry = l_.entries + (cell - share.first) * 32ull;
      const uint64_t to = a_.sent_counts + cell / a_.local_experts * static_cast<uint64_t>(a_.message_bytes) +
                          cell % a_.local_experts * 4ull;
      DataCopyPad(GlobalAt<uint32_t>(to), At<uint32_t>(entry), {1, 4, 0, 0});
    }
    SyncAll();
    Load(l_.counts, a_.sent_counts, static_cast<uint64_t>(a_.ranks) * a_.message_bytes);
    Load(l_.cells, a_.expert_cells, a_.experts * 4ull);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
    CopyPairs();
  }

  void CopyPairs() {
    const Range share = Share(pairs_, blocks_, block_);
    const auto order = At<uint32_t>(l_.places);
    for (int32_t b = 0; b < 2; ++b) SetFlag<HardEvent::MTE3_MTE2>(b);
    for (uint32_t pair = share.first; pair < share.last; ++pair) {
      const uint32_t expert = At<uint32_t>(l_.ids).GetValue(pair);
      if (expert >= a_.experts) Abort("all_to_all: an expert id is out of range");
      const uint32_t cell = At<uint32_t>(l_.cells).GetValue(expert);
      const uint32_t rank = cell / a_.local_experts, local = cell % a_.local_experts;
      uint32_t place = rank * a_.region_rows + CountPairs(expert, pair);
      for (uint32_t before = 0; before < local; ++before) place += CountOf(rank, before);
      order.SetValue(pair - share.first, place);
      CopyRow(a_.send + place * row_bytes_, a_.x + pair / a_.top_k * row_bytes_);
    }
    for (int32_t b = 0; b < 2; ++b) WaitFlag<HardEvent::MTE3_MTE2>(b);
    if (share.size() == 0) return;
    Sync<HardEvent::S_MTE3>(EVENT_ID0);
    DataCopyPad(GlobalAt<uint32_t>(a_.order + share.first * 4ull), order, {1, share.size() * 4, 0, 0});
  }
  uint32_t CountOf(uint32_t rank, uint32_t local) const {
    return At<uint32_t>(l_.counts + rank * static_cast<uint64_t>(a_.message_bytes)).GetValue(local);
  }

  // An even share of the rows that arrived, in the order local expert, rank, pair. Quantise: from where they
  // arrived; unsort: back to a region for each rank.
  void Resort() {
    Clear(l_.scalars, l_.rows);
    Sync<HardEvent::V_MTE2>(EVENT_ID0);
    Sync<HardEvent::V_S>(EVENT_ID0);
    Load(l_.counts, a_.received_counts, static_cast<uint64_t>(a_.ranks) * a_.message_bytes);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
    const Range share = Share(RowsArrived(), blocks_, block_);
    const auto used = At<uint32_t>(l_.used);  // rows of each region that stand before the entry
    for (int32_t b = 0; b < 2; ++b) {
      SetFlag<HardEvent::MTE3_MTE2>(b);
      SetFlag<HardEvent::V_MTE2>(b);
      SetFlag<HardEvent::MTE3_V>(b);
      SetFlag<HardEvent::MTE3_S>(b);
    }
    uint32_t row = 0;
    for (uint32_t local = 0; local < a_.local_experts && row < share.last; ++local) {
      for (uint32_t rank = 0; rank < a_.ranks && row < share.last; ++rank) {
        const uint32_t count = CountOf(rank, local), before = used.GetValue(rank);
        for (uint32_t i = 0; i < count && row < share.last; ++i, ++row) {
          if (row < share.first) continue;
          const uint64_t place = (static_cast<uint64_t>(rank) * a_.region_rows + before + i) * row_bytes_;
          if (a_.step == CM384_STEP_QUANTISE)
            Quantise(a_.received + place, row);
          else
            CopyRow(a_.results + place, a_.expert_x + row * row_bytes_);
        }
        used.SetValue(rank, before + count);
      }
    }
    if (a_.step == CM384_STEP_QUANTISE) QuantiseLoaded();
    for (int32_t b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::MTE3_MTE2>(b);
      WaitFlag<HardEvent::V_MTE2>(b);
      WaitFlag<HardEvent::MTE3_V>(b);
      WaitFlag<HardEvent::MTE3_S>(b);
    }
  }
  // The sum of all counts; what fills the messages up is 0.
  uint32_t RowsArrived() const {
    Sync<HardEvent::MTE2_V>(EVENT_ID2);
    TreeSum(At<int32_t>(l_.scalars + kSum), At<int32_t>(l_.counts), At<int32_t>(l_.cells),
            static_cast<int32_t>(a_.ranks * a_.message_bytes / 4));
    Sync<HardEvent::V_S>(EVENT_ID0);
    return At<uint32_t>(l_.scalars + kSum).GetValue(0);
  }

  void CopyRow(uint64_t to, uint64_t from) {
    const uint32_t b = moved_++ & 1;
    const auto buffer = At<uint16_t>(l_.rows + b * l_.row_bytes);
    WaitFlag<HardEvent::MTE3_MTE2>(b);
    DataCopy(buffer, GlobalAt<uint16_t>(from), a_.hidden);
    SetFlag<HardEvent::MTE2_MTE3>(b);
    WaitFlag<HardEvent::MTE2_MTE3>(b);
    DataCopy(GlobalAt<uint16_t>(to), buffer, a_.hidden);
    SetFlag<HardEvent::MTE3_MTE2>(b);
  }

  // Loads a row, and quantises the one before it while that is under way.
  void Quantise(uint64_t from, uint32_t row) {
    const uint32_t b = moved_ & 1;
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(At<bfloat16_t>(l_.rows + b * l_.row_bytes), GlobalAt<bfloat16_t>(from), a_.hidden);
    SetFlag<HardEvent::MTE2_V>(b);
    QuantiseLoaded();
    loaded_row_ = row;
    ++moved_;
  }
  // The row that was loaded last, where there is one.
  void QuantiseLoaded() {
    if (moved_ == 0) return;
    const uint32_t b = (moved_ - 1) & 1;
    const uint64_t out = l_.out + b * l_.out_bytes;
    const float scale =
        QuantiseRow(At<bfloat16_t>(l_.rows + b * l_.row_bytes), At<float>(l_.row), At<float>(l_.product),
                    At<float>(l_.scalars + kMaximum), At<int8_t>(out), a_.hidden, static_cast<event_t>(b));
    WaitFlag<HardEvent::V_MTE3>(b);
    Sync<HardEvent::V_S>(EVENT_ID1);  // whole repeats are written: the last one reaches the scale's block
    WaitFlag<HardEvent::MTE3_S>(b);   // the transfer from this buffer before
    At<float>(out + a_.hidden).SetValue(0, scale);
    Sync<HardEvent::S_MTE3>(EVENT_ID0);
    DataCopyPad(GlobalAt<int8_t>(a_.expand_x + static_cast<uint64_t>(loaded_row_) * a_.hidden),
                At<int8_t>(out), {1, a_.hidden, 0, 0});
    DataCopyPad(GlobalAt<int8_t>(a_.expand_scales + loaded_row_ * 4ull), At<int8_t>(out + a_.hidden),
                {1, 4, 0, 0});
    SetFlag<HardEvent::MTE3_V>(b);
    SetFlag<HardEvent::MTE3_S>(b);
  }

  // The own tokens, from the rows that came back.
  void Sum() {
    const Range share = Share(a_.batch, blocks_, block_);
    if (share.size() == 0) return;
    Clear(l_.scalars, l_.rows);
    Sync<HardEvent::V_MTE2>(EVENT_ID0);
    const uint64_t first = share.first * static_cast<uint64_t>(a_.top_k);
    Load(l_.places, a_.order + first * 4, share.size() * a_.top_k * 4ull);
    Load(l_.work0, a_.scales + first * 4, share.size() * a_.top_k * 4ull);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
    RowSum sum({l_.rows, l_.row_bytes, l_.row, l_.product, l_.sum, l_.out}, a_.hidden);
    sum.Open();
    for (uint32_t token = share.first; token < share.last; ++token) {
      const uint32_t pair = (token - share.first) * a_.top_k;
      sum.Begin();
      for (uint32_t k = 0; k < a_.top_k; ++k)
        sum.AddRow(a_.returned + At<uint32_t>(l_.places).GetValue(pair + k) * row_bytes_,
                   At<float>(l_.work0).GetValue(pair + k));
      if (a_.shared_x != 0) sum.AddRow(a_.shared_x + token * row_bytes_);
      sum.Store(a_.out + token * row_bytes_);
    }
    sum.Close();
  }

  const cm384_all_to_all a_;
  const uint32_t block_, blocks_;
  const cm384_all_to_all_layout l_;
  const uint32_t pairs_, cells_;
  const uint64_t row_bytes_;
  uint32_t moved_ = 0;
  uint32_t loaded_row_ = 0;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR arguments) {
  AllToAll step(*reinterpret_cast<const cm384_all_to_all*>(arguments));
  step.Run();
}
