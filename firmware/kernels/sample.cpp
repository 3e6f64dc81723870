// Chooses a word for each row: top-k, top-p, a draw. Arguments: firmware/abi/sample.h.
//
// A core goes through its part of a row in chunks and keeps the largest as a sorted list. Of a chunk only
// what is larger than the list's last is sorted and merged into it: all of a row's first pieces, little of
// the rest.
#include "firmware/abi/sample.h"

#include "row_pipeline.h"

using namespace AscendC;

namespace {

using Vector = LocalTensor<float>;

constexpr uint32_t kStructureBytes = 8;
constexpr uint32_t kFirst = 512;            // elements of a piece that is sorted whole, a multiple of 64
constexpr float kLast = -__builtin_inff();  // behind all that a row has

CM384_INLINE uint32_t Up(uint32_t count, uint32_t to) {
  return (count + to - 1) / to * to;
}
CM384_INLINE uint32_t Least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// The largest of what has been seen, as structures {value, column}, largest first.
class Largest {
 public:
  Largest(Places& places, uint32_t top_k) : top_k_(top_k) {
    for (Vector& list : lists_) list = Vector(places.Allocate(4 * top_k * kStructureBytes));
  }
  void Clear() { held_ = 0; }
  uint32_t Held() const { return held_; }
  bool Full() const { return held_ == top_k_; }
  const Vector& List() const { return lists_[now_]; }

  // Sorted lists that stand behind in the row.
  void Merge(const Vector more[3], const uint32_t counts[3]) {
    uint16_t lengths[4] = {static_cast<uint16_t>(held_)}, valid = held_ > 0 ? 1 : 0;
    uint32_t all = held_;
    for (uint32_t n = 0; n < 3; ++n) {
      lengths[n + 1] = static_cast<uint16_t>(Least(counts[n], top_k_));
      if (counts[n] > 0) valid = static_cast<uint16_t>(valid | 2 << n);
      all += lengths[n + 1];
    }
    PipeBarrier<PIPE_V>();
    MrgSort(lists_[1 - now_], MrgSortSrcList<float>{lists_[now_], more[0], more[1], more[2]},
            MrgSort4Info(lengths, false, valid, 1));
    PipeBarrier<PIPE_V>();
    now_ = 1 - now_;
    held_ = Least(all, top_k_);
  }

 private:
  const uint32_t top_k_;
  Vector lists_[2];  // room for four lists
  uint32_t now_ = 0, held_ = 0;
};

class Sample {
 public:
  explicit Sample(const cm384_sample& a) : a_(a), largest_(places_, a.top_k) {
    for (uint32_t b = 0; b < 2; ++b) in_[b] = Vector(places_.Allocate(a.chunk * 4));
    numbers_ = LocalTensor<int32_t>(places_.Allocate(a.chunk * 4));
    values_ = Vector(places_.Allocate(a.chunk * 4));
    columns_ = LocalTensor<int32_t>(places_.Allocate(a.chunk * 4));
    for (Vector& sorted : sorted_) sorted = Vector(places_.Allocate(a.chunk * kStructureBytes));
    bits_ = LocalTensor<uint8_t>(places_.Allocate(a.chunk / 8));
    ones_ = Vector(places_.Allocate(256));
    value_ = Vector(places_.Allocate(256));
    draws_ = Vector(places_.Allocate(CM384_SAMPLE_ROWS * 4));
    words_ = LocalTensor<int32_t>(places_.Allocate(CM384_SAMPLE_ROWS * 4));
    chosen_ = Vector(places_.Allocate(CM384_SAMPLE_ROWS * 4));
  }

  // Once: draws of these rows, and the columns of a chunk.
  void Open(Range rows) {
    rows_ = rows;
    DataCopyPad(draws_, GlobalAt<float>(a_.draws + rows.first * 4ull),
                DataCopyExtParams{1, rows.size() * 4, 0, 0, 0}, DataCopyPadExtParams<float>{});
    CreateVecIndex(numbers_, 0, a_.chunk);
    Duplicate(ones_, 1.0f, 64);
    SetFlag<HardEvent::MTE2_S>(0);
    WaitFlag<HardEvent::MTE2_S>(0);
  }

  // The largest of a row's columns.
  void Gather(uint32_t row, Range columns) {
    first_ = static_cast<uint64_t>(row) * a_.width;
    part_ = columns;
    largest_.Clear();
    RunRows(*this, {0, (columns.size() + a_.chunk - 1) / a_.chunk}, 2);
  }
  // The list that Gather() has left, for the row's first block.
  void Leave(uint32_t row, uint32_t part, uint32_t parts) {
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopyPad(GlobalAt<float>(ListOf(row, part, parts)), largest_.List(),
                DataCopyExtParams{1, ListBytes(), 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
  }
  // Merges the lists of a row's other blocks, three at a time.
  void Take(uint32_t row, uint32_t parts) {
    for (uint32_t part = 1; part < parts; part += 3) {
      const uint32_t now = Least(3, parts - part);
      Vector more[3];
      uint32_t counts[3] = {};
      for (uint32_t n = 0; n < now; ++n) {
        more[n] = sorted_[0][n * ListBytes() / 4];
        counts[n] = a_.top_k;
      }
      DataCopyPad(sorted_[0], GlobalAt<float>(ListOf(row, part, parts)),
                  DataCopyExtParams{1, now * ListBytes(), 0, 0, 0}, DataCopyPadExtParams<float>{});
      SetFlag<HardEvent::MTE2_V>(0);
      WaitFlag<HardEvent::MTE2_V>(0);
      largest_.Merge(more, counts);
      SetFlag<HardEvent::V_MTE2>(0);
      WaitFlag<HardEvent::V_MTE2>(0);
    }
  }
  // The word on which the row's draw falls. Sums are the scalar unit's, largest first.
  void Choose(uint32_t row) {
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    const Vector& list = largest_.List();
    float sum = 0;
    uint32_t kept = 0;
    while (kept < largest_.Held() && (kept == 0 || sum < a_.top_p)) sum += list.GetValue(2 * kept++);
    const float wanted = draws_.GetValue(row - rows_.first) * sum;
    uint32_t n = 0;
    for (float below = list.GetValue(0); below <= wanted && n + 1 < kept;) below += list.GetValue(2 * ++n);
    words_.SetValue(row - rows_.first, list.ReinterpretCast<int32_t>().GetValue(2 * n + 1));
    chosen_.SetValue(row - rows_.first, list.GetValue(2 * n) / sum);
    ToVector();
  }
  void Close() {
    SetFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::S_MTE3>(0);
    const DataCopyExtParams bytes{1, rows_.size() * 4, 0, 0, 0};
    DataCopyPad(GlobalAt<int32_t>(a_.words + rows_.first * 4ull), words_, bytes);
    DataCopyPad(GlobalAt<float>(a_.chosen + rows_.first * 4ull), chosen_, bytes);
    PipeBarrier<PIPE_ALL>();
  }

  // For RunRows: a chunk of the part.
  void Load(uint32_t chunk, uint32_t b) {
    const uint32_t count = Count(chunk);
    DataCopyPad(in_[b], GlobalAt<float>(a_.shares + (first_ + First(chunk)) * 4),
                DataCopyExtParams{1, count * 4, 0, 0, 0},
                DataCopyPadExtParams<float>{true, 0, static_cast<uint8_t>(Up(count, 8) - count), kLast});
  }
  void Compute(uint32_t chunk, uint32_t b) {
    const uint32_t count = Count(chunk), loaded = Up(count, 8), all = Up(count, 64);
    PipeBarrier<PIPE_V>();
    if (loaded < all) Duplicate(in_[b][loaded], kLast, static_cast<int>(all - loaded));
    PipeBarrier<PIPE_V>();
    uint32_t at = 0;
    for (; at < count && !largest_.Full(); at += kFirst) {
      const uint32_t now = Least(count - at, kFirst);
      Adds(columns_, numbers_[at], static_cast<int32_t>(First(chunk)), static_cast<int>(Up(now, 64)));
      PipeBarrier<PIPE_V>();
      Add(in_[b][at], now);
    }
    if (at < count) AddLarger(in_[b][at], at, all - at, static_cast<int32_t>(First(chunk)));
  }
  void Store(uint32_t, uint32_t) {}

 private:
  uint32_t First(uint32_t chunk) const { return part_.first + chunk * a_.chunk; }
  uint32_t Count(uint32_t chunk) const { return Least(part_.size() - chunk * a_.chunk, a_.chunk); }
  // 32 B blocks.
  uint32_t ListBytes() const { return Up(a_.top_k, 4) * kStructureBytes; }
  uint64_t ListOf(uint32_t row, uint32_t part, uint32_t parts) const {
    return a_.lists + (static_cast<uint64_t>(row) * parts + part) * ListBytes();
  }

  // Marks in bits_ what is larger than the list's last; how many these are.
  uint32_t Larger(const Vector& in, uint32_t all) {
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    const float last = largest_.List().GetValue(2 * (a_.top_k - 1));
    ToVector();
    CompareScalar(bits_, in, last, CMPMODE::GT, all);
    PipeBarrier<PIPE_V>();
    Select(values_, bits_, ones_, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, uint64_t{64},
           static_cast<uint8_t>(all / 64), BinaryRepeatParams{1, 1, 1, 8, 0, 0});
    Fold<CM384_VADD>(values_, all);
    WholeReduceSum(value_, values_, 64, 1, 1, 1, 8);
    const auto larger = static_cast<uint32_t>(FromVector(value_));
    ToVector();
    return larger;
  }
  // Of a chunk from `at` on, what is larger than the list's last.
  void AddLarger(const Vector& in, uint32_t at, uint32_t all, int32_t base) {
    const uint32_t larger = Larger(in, all);
    if (larger == 0) return;
    const auto padded = static_cast<int>(Up(larger, 64));
    Duplicate(values_, kLast, padded);
    Duplicate(columns_, 0, padded);
    PipeBarrier<PIPE_V>();
    GatherMaskRepeats(values_, in, 8, bits_.GetPhyAddr(), all, {1, 1, 8, 0});
    GatherMaskRepeats(columns_, numbers_[at], 8, bits_.GetPhyAddr(), all, {1, 1, 8, 0});
    PipeBarrier<PIPE_V>();
    Adds(columns_, columns_, base, padded);
    PipeBarrier<PIPE_V>();
    Add(values_, larger);
  }
  // Sorts `count` values, whose columns are in columns_, and merges them into the largest.
  void Add(const Vector& values, uint32_t count) {
    Sort<float, true>(sorted_[0], values, columns_.ReinterpretCast<uint32_t>(), sorted_[1],
                      static_cast<int32_t>(Up(count, 32) / 32));
    const Vector more[3] = {sorted_[0]};
    const uint32_t counts[3] = {count};
    largest_.Merge(more, counts);
  }

  const cm384_sample& a_;
  Places places_;
  Largest largest_;
  Vector in_[2], values_, sorted_[2], ones_, value_, draws_, chosen_;
  LocalTensor<int32_t> numbers_, columns_, words_;
  LocalTensor<uint8_t> bits_;
  Range rows_{}, part_{};
  uint64_t first_ = 0;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_sample& a = *reinterpret_cast<const cm384_sample*>(address);
  const auto blocks = static_cast<uint32_t>(GetBlockNum()), block = static_cast<uint32_t>(GetBlockIdx());
  const uint32_t parts = blocks > a.rows ? blocks / a.rows : 1;
  const uint32_t row = block / parts, part = block % parts;
  const Range rows = parts > 1 ? Range{row, row + 1} : Share(a.rows, blocks, block);
  Sample sample(a);
  sample.Open(rows);
  for (uint32_t r = rows.first; r < rows.last; ++r) {
    sample.Gather(r, Share(a.width, parts, part));
    if (parts > 1) {
      if (part > 0) sample.Leave(r, part, parts);
      SyncAll();
      if (part > 0) return;
      sample.Take(r, parts);
    }
    sample.Choose(r);
  }
  sample.Close();
}
