// Sorts rows of float, largest first, with the columns they stood in. Arguments: firmware/abi/rows.h.
//
// A row is cut into runs that fit the UBuffer. A core sorts its runs and merges them, four lists to one,
// until one list is left; the lists of a row's cores are then merged by ever fewer of them. Until then
// a row lies in memory as structures {value, column}, which its cores take apart at last.
#include "row_pipeline.h"

using namespace AscendC;

namespace {

constexpr uint32_t kStructureBytes = 8;

CM384_INLINE void StoreBytes(uint64_t to, uint32_t from, uint32_t bytes) {
  DataCopyPad(GlobalAt<float>(to), LocalTensor<float>(from), DataCopyExtParams{1, bytes, 0, 0, 0});
}

// Sorts runs, each to a list.
class SortRuns {
 public:
  SortRuns(const cm384_rows& a, uint32_t row, uint32_t runs)
      : a_(a), first_(static_cast<uint64_t>(row) * a.width), runs_(runs) {
    Places places;
    for (uint32_t b = 0; b < a.buffers; ++b) {
      in_[b] = places.Allocate(a.chunk * 4);
      out_[b] = places.Allocate(a.chunk * kStructureBytes);
    }
    columns_ = places.Allocate(a.chunk * 4);
    other_ = places.Allocate(a.chunk * kStructureBytes);
  }

  void Load(uint32_t run, uint32_t b) {
    const Range columns = Share(a_.width, runs_, run);
    const uint32_t count = columns.size();
    DataCopyPad(LocalTensor<float>(in_[b]), GlobalAt<float>(a_.in[0] + (first_ + columns.first) * 4),
                DataCopyExtParams{1, count * 4, 0, 0, 0},
                DataCopyPadExtParams<float>{true, 0, static_cast<uint8_t>(Up(count, 8) - count), kLast});
  }
  void Compute(uint32_t run, uint32_t b) {
    const Range columns = Share(a_.width, runs_, run);
    const LocalTensor<float> in(in_[b]), out(out_[b]), other(other_);
    const LocalTensor<int32_t> numbers(columns_);
    const uint32_t loaded = Up(columns.size(), 8), all = Up(columns.size(), 32);
    const auto repeats = static_cast<int32_t>(all / 32);
    PipeBarrier<PIPE_V>();
    if (loaded < all) Duplicate(in[loaded], kLast, static_cast<int>(all - loaded));
    CreateVecIndex(numbers, static_cast<int32_t>(columns.first), all);
    PipeBarrier<PIPE_V>();
    const auto index = numbers.ReinterpretCast<uint32_t>();
    Sort<float, true>(out, in, index, other, repeats);
  }
  void Store(uint32_t run, uint32_t b) {
    const Range columns = Share(a_.width, runs_, run);
    StoreBytes(a_.in[1] + (first_ + columns.first) * kStructureBytes, out_[b],
               columns.size() * kStructureBytes);
  }

 private:
  static constexpr float kLast = -__builtin_inff();  // behind all that a row has
  static uint32_t Up(uint32_t count, uint32_t to) { return (count + to - 1) / to * to; }

  const cm384_rows& a_;
  const uint64_t first_;
  const uint32_t runs_;
  uint32_t in_[2], out_[2], columns_, other_;
};

// Merges up to four lists from memory to memory: two buffers of each list, one loaded while the other is
// merged; a merge ends when a buffer is used up.
class MergeStream {
 public:
  // The next list: `count` structures.
  void Open(uint64_t from, uint32_t count) {
    List& list = lists_[opened_];
    list.next = from;
    list.behind = count;
    list.slot = list.at = 0;
    for (uint32_t slot = 0; slot < 2; ++slot) Load(opened_, slot);
    ++opened_;
  }
  // Merges what has been opened.
  void Run(uint64_t to) {
    for (int b = 0; b < 2; ++b) SetFlag<HardEvent::MTE3_V>(b);
    for (uint32_t b = 0;; b = 1 - b) {
      const uint32_t merged = Merge(b);
      if (merged == 0) break;
      SetFlag<HardEvent::V_MTE3>(static_cast<int>(b));
      WaitFlag<HardEvent::V_MTE3>(static_cast<int>(b));
      StoreBytes(to, kMerged + b * 4 * kSlotBytes, merged * kStructureBytes);
      SetFlag<HardEvent::MTE3_V>(static_cast<int>(b));
      to += merged * kStructureBytes;
    }
    for (int b = 0; b < 2; ++b) WaitFlag<HardEvent::MTE3_V>(b);
    PipeBarrier<PIPE_ALL>();
    opened_ = 0;
  }

 private:
  static constexpr uint32_t kSlot = 1024;  // structures in a buffer of a list
  static constexpr uint32_t kSlotBytes = kSlot * kStructureBytes;
  static constexpr uint32_t kMerged = 8 * kSlotBytes;  // two buffers of all lists together

  struct List {
    uint64_t next;    // in memory
    uint32_t behind;  // structures from there on
    uint32_t slot, at;
    uint32_t held[2];
    bool loading[2];
  };
  static uint32_t Place(uint32_t list, uint32_t slot) { return (2 * list + slot) * kSlotBytes; }

  void Load(uint32_t number, uint32_t slot) {
    List& list = lists_[number];
    const uint32_t count = list.behind < kSlot ? list.behind : kSlot;
    list.held[slot] = count;
    list.loading[slot] = false;
    if (count == 0) return;
    DataCopyPad(LocalTensor<float>(Place(number, slot)), GlobalAt<float>(list.next),
                DataCopyExtParams{1, count * kStructureBytes, 0, 0, 0}, DataCopyPadExtParams<float>{});
    SetFlag<HardEvent::MTE2_V>(static_cast<int>(2 * number + slot));
    list.loading[slot] = true;
    list.next += count * kStructureBytes;
    list.behind -= count;
  }
  // What is in hand of the lists, until one buffer is used up. Returns how many structures; 0: all lists are
  // through.
  uint32_t Merge(uint32_t b) {
    uint16_t lengths[4] = {}, taken[4], valid = 0;
    LocalTensor<float> from[4];
    for (uint32_t n = 0; n < opened_; ++n) {
      List& list = lists_[n];
      if (list.held[list.slot] == 0) continue;
      if (list.loading[list.slot]) WaitFlag<HardEvent::MTE2_V>(static_cast<int>(2 * n + list.slot));
      list.loading[list.slot] = false;
      valid = static_cast<uint16_t>(valid | 1 << n);
      lengths[n] = static_cast<uint16_t>(list.held[list.slot] - list.at);
      from[n] = LocalTensor<float>(Place(n, list.slot) + list.at * kStructureBytes);
    }
    if (valid == 0) return 0;
    WaitFlag<HardEvent::MTE3_V>(static_cast<int>(b));
    MrgSort(LocalTensor<float>(kMerged + b * 4 * kSlotBytes),
            MrgSortSrcList<float>{from[0], from[1], from[2], from[3]}, MrgSort4Info(lengths, true, valid, 1));
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    GetMrgSortResult(taken[0], taken[1], taken[2], taken[3]);
    uint32_t all = 0;
    for (uint32_t n = 0; n < opened_; ++n) {
      List& list = lists_[n];
      list.at += taken[n];
      all += taken[n];
      if (taken[n] == 0 || list.at != list.held[list.slot]) continue;
      Load(n, list.slot);
      list.slot = 1 - list.slot;
      list.at = 0;
    }
    return all;
  }

  List lists_[4];
  uint32_t opened_ = 0;
};

// Sorted lists that follow each other in a row, in one of two places in memory.
class Lists {
 public:
  Lists(const cm384_rows& a, uint32_t row, uint32_t place)
      : a_(a), first_(static_cast<uint64_t>(row) * a.width), place_(place) {}

  void Begin(uint32_t column) { begin_[count_++] = column; }
  void End(uint32_t column) { begin_[count_] = column; }
  uint32_t Count() const { return count_; }
  uint32_t Place() const { return place_; }

  // Makes four lists, or fewer, to one, in the other place: of the merges those from `index` on, each
  // `stride`-th.
  void Merge(uint32_t index, uint32_t stride) {
    const uint32_t groups = (count_ + 3) / 4;
    const uint64_t from = a_.in[1 + place_], to = a_.in[2 - place_];
    for (uint32_t group = index; group < groups; group += stride) {
      const Range lists = Share(count_, groups, group);
      for (uint32_t n = lists.first; n < lists.last; ++n)
        stream_.Open(from + (first_ + begin_[n]) * kStructureBytes, begin_[n + 1] - begin_[n]);
      stream_.Run(to + (first_ + begin_[lists.first]) * kStructureBytes);
    }
    for (uint32_t group = 0; group < groups; ++group)
      begin_[group] = begin_[Share(count_, groups, group).first];
    begin_[groups] = begin_[count_];
    count_ = groups;
    place_ = 1 - place_;
  }

 private:
  const cm384_rows& a_;
  const uint64_t first_;
  uint32_t place_, count_ = 0;
  uint32_t begin_[CM384_SORT_RUNS + 1];
  MergeStream stream_;
};

// Columns of a row's one list, which stands in the given place, to values and columns by themselves.
class Parts {
 public:
  Parts(const cm384_rows& a, uint32_t row, uint32_t place, Range columns)
      : a_(a),
        first_(static_cast<uint64_t>(row) * a.width + columns.first),
        count_(columns.size()),
        from_(a.in[1 + place]) {
    Places places;
    for (uint32_t b = 0; b < 2; ++b) {
      list_[b] = places.Allocate(kPart * kStructureBytes);
      values_[b] = places.Allocate(kPart * 4);
      numbers_[b] = places.Allocate(kPart * 4);
    }
  }
  uint32_t Count() const { return (count_ + kPart - 1) / kPart; }

  void Load(uint32_t part, uint32_t b) {
    DataCopyPad(LocalTensor<float>(list_[b]), GlobalAt<float>(from_ + First(part) * kStructureBytes),
                DataCopyExtParams{1, Size(part) * kStructureBytes, 0, 0, 0}, DataCopyPadExtParams<float>{});
  }
  void Compute(uint32_t part, uint32_t b) {
    const LocalTensor<float> list(list_[b]);
    GatherMaskRepeats(LocalTensor<float>(values_[b]), list, 1, 0, 2 * Size(part), {1, 1, 8, 0});
    GatherMaskRepeats(LocalTensor<float>(numbers_[b]), list, 2, 0, 2 * Size(part), {1, 1, 8, 0});
  }
  void Store(uint32_t part, uint32_t b) {
    StoreBytes(a_.out[0] + First(part) * 4, values_[b], Size(part) * 4);
    StoreBytes(a_.out[1] + First(part) * 4, numbers_[b], Size(part) * 4);
  }

 private:
  static constexpr uint32_t kPart = 4096;  // structures in the UBuffer at a time
  uint64_t First(uint32_t part) const { return first_ + part * kPart; }
  uint32_t Size(uint32_t part) const {
    const uint32_t left = count_ - part * kPart;
    return left < kPart ? left : kPart;
  }

  const cm384_rows& a_;
  const uint64_t first_;
  const uint32_t count_;
  const uint64_t from_;
  uint32_t list_[2], values_[2], numbers_[2];
};

// One of `parts` cores at a row.
void SortRow(const cm384_rows& a, uint32_t row, uint32_t part, uint32_t parts) {
  const uint32_t most = (a.width + parts - 1) / parts, each = (most + a.chunk - 1) / a.chunk;
  const uint32_t runs = parts * each;
  const auto column = [&](uint32_t run) { return run < runs ? Share(a.width, runs, run).first : a.width; };
  SortRuns sort(a, row, runs);
  RunRows(sort, {part * each, (part + 1) * each}, a.buffers);
  PipeBarrier<PIPE_ALL>();
  Lists own(a, row, 0);
  for (uint32_t run = part * each; run < (part + 1) * each; ++run) own.Begin(column(run));
  own.End(column((part + 1) * each));
  while (own.Count() > 1) own.Merge(0, 1);
  Lists all(a, row, own.Place());
  for (uint32_t n = 0; n < parts; ++n) all.Begin(column(n * each));
  all.End(a.width);
  while (all.Count() > 1) {
    SyncAll();
    all.Merge(part, parts);
  }
  if (parts > 1) SyncAll();
  Parts apart(a, row, all.Place(), Share(a.width, parts, part));
  RunRows(apart, {0, apart.Count()}, 2);
  PipeBarrier<PIPE_ALL>();
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  const auto blocks = static_cast<uint32_t>(GetBlockNum()), block = static_cast<uint32_t>(GetBlockIdx());
  const uint32_t parts = blocks / a.rows;
  if (parts > 1) return SortRow(a, block / parts, block % parts, parts);
  const Range rows = Share(a.rows, blocks, block);
  for (uint32_t row = rows.first; row < rows.last; ++row) SortRow(a, row, 0, 1);
}
