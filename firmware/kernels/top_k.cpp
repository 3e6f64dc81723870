// The tokens with the largest scores, on vector cores. Arguments: firmware/abi/indexer.h.
//
// Blocks of 2,048 tokens are sorted (Sort32, MrgSort) and merged into the list of the best so far, three at a
// time, as the public kernel of this operator works: what it takes follows from the number of tokens alone.
// Of equal scores those of earlier lists come first, so lists stand in the order of their tokens.
#include "firmware/abi/indexer.h"
#include "row_pipeline.h"

using namespace AscendC;

namespace {

constexpr uint32_t kStructureBytes = 8, kLists = 3, kPageTokens = CM384_INDEX_PAGE_TOKENS;
constexpr uint32_t kBlock = CM384_TOP_K_BLOCK, kBlockPages = kBlock / kPageTokens;

uint32_t Up(uint32_t count, uint32_t to) {
  return (count + to - 1) / to * to;
}

// A query: a row of scores.
struct Row {
  Row(const cm384_top_k& a, uint32_t row)
      : number(row),
        batch(row / a.queries),
        tokens(reinterpret_cast<const uint32_t*>(a.kv_lens)[batch] + row - batch * a.queries),
        blocks(tokens > a.k ? (tokens + kBlock - 1) / kBlock : 0),
        parts(blocks < a.parts ? blocks : a.parts) {}
  Range Part(uint32_t part) const { return Share(blocks, parts, part); }
  // Structures in the list of a part.
  uint32_t Kept(const cm384_top_k& a, uint32_t part) const {
    const Range own = Part(part);
    const uint32_t end = own.last * kBlock, seen = (end < tokens ? end : tokens) - own.first * kBlock;
    return seen < a.k ? seen : a.k;
  }
  uint32_t number, batch, tokens, blocks, parts;
};

class TopK {
 public:
  explicit TopK(const cm384_top_k& a) : a_(a) {
    Places places;
    for (uint32_t b = 0; b < 2; ++b) {
      scores_[b] = places.Allocate(kBlock * 4);
      scales_[b] = places.Allocate(kBlock * 4);
    }
    numbers_ = places.Allocate(kBlock * 4);
    other_ = places.Allocate(kBlock * kStructureBytes);
    for (uint32_t& list : lists_) list = places.Allocate(kBlock * kStructureBytes);
    best_ = places.Allocate(a.k * kStructureBytes);
    merged_ = places.Allocate((a.k + kLists * kBlock) * kStructureBytes);
  }

  // Leaves the list of some blocks of a row in best_.
  void Choose(const Row& row, Range blocks) {
    row_ = &row;
    best_count_ = opened_ = 0;
    RunRows(*this, blocks, 2);
    Merge();
    PipeBarrier<PIPE_ALL>();
  }
  // For RunRows(): a block is an item.
  void Load(uint32_t block, uint32_t b) const {
    const uint32_t count = Count(block), first = block * kBlockPages;
    const uint64_t scores =
        a_.scores +
        (static_cast<uint64_t>(row_->number) * CM384_INDEX_PITCH(a_.table_width) + block * kBlock) * 4;
    DataCopyPad(LocalTensor<float>(scores_[b]), GlobalAt<float>(scores),
                DataCopyExtParams{1, count * 4, 0, 0, 0},
                DataCopyPadExtParams<float>{true, 0, static_cast<uint8_t>(Up(count, 8) - count), kLast});
    const auto* table = reinterpret_cast<const uint32_t*>(a_.page_table) + row_->batch * a_.table_width;
    for (uint32_t page = 0; page * kPageTokens < count; ++page) {
      const uint64_t keys = a_.keys + static_cast<uint64_t>(table[first + page]) * CM384_INDEX_PAGE_BYTES;
      DataCopy(LocalTensor<float>(scales_[b] + page * kPageTokens * 4),
               GlobalAt<float>(keys + CM384_INDEX_KEY_BYTES), kPageTokens);
    }
  }
  void Compute(uint32_t block, uint32_t b) {
    const uint32_t count = Count(block), all = Up(count, 32);
    const LocalTensor<float> scores(scores_[b]), scales(scales_[b]);
    const LocalTensor<int32_t> numbers(numbers_);
    PipeBarrier<PIPE_V>();
    if (Up(count, 8) < all) Duplicate(scores[Up(count, 8)], kLast, static_cast<int>(all - Up(count, 8)));
    Mul(scores, scores, scales, static_cast<int>(count));
    CreateVecIndex(numbers, static_cast<int32_t>(block * kBlock), all);
    PipeBarrier<PIPE_V>();
    const auto index = numbers.ReinterpretCast<uint32_t>();
    Sort<float, true>(LocalTensor<float>(lists_[opened_]), scores, index, LocalTensor<float>(other_),
                      static_cast<int32_t>(all / 32));
    counts_[opened_++] = count;
    if (opened_ == kLists) Merge();
  }
  void Store(uint32_t, uint32_t) const {}

  void Keep(const Row& row, uint32_t part) const {
    DataCopyPad(GlobalAt<float>(List(row, part)), LocalTensor<float>(best_),
                DataCopyExtParams{1, best_count_ * kStructureBytes, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
  }
  // Of the lists that cores have kept.
  void ChooseFromLists(const Row& row) {
    best_count_ = opened_ = 0;
    for (uint32_t part = 0; part < row.parts; ++part) {
      const uint32_t count = row.Kept(a_, part);
      DataCopyPad(LocalTensor<float>(lists_[opened_]), GlobalAt<float>(List(row, part)),
                  DataCopyExtParams{1, count * kStructureBytes, 0, 0, 0}, DataCopyPadExtParams<float>{});
      counts_[opened_++] = count;
      if (opened_ < kLists && part + 1 < row.parts) continue;
      PipeBarrier<PIPE_ALL>();
      Merge();
      PipeBarrier<PIPE_ALL>();
    }
  }

  // The tokens of best_, or all of the row, as places in the cache.
  void Finish(const Row& row) const {
    const uint32_t count = row.tokens < a_.k ? row.tokens : a_.k, elements = Up(count, 64);
    const LocalTensor<int32_t> tokens(numbers_), pages(other_), places(scores_[0]), table(merged_);
    DataCopyPad(table, GlobalAt<int32_t>(a_.page_table + row.batch * a_.table_width * 4ull),
                DataCopyExtParams{1, (row.tokens + kPageTokens - 1) / kPageTokens * 4, 0, 0, 0},
                DataCopyPadExtParams<int32_t>{});
    if (row.blocks == 0) {
      CreateVecIndex(tokens, 0, elements);
    } else {
      GatherMaskRepeats(LocalTensor<float>(numbers_), LocalTensor<float>(best_), 2, 0, 2 * a_.k,
                        {1, 1, 8, 0});
    }
    PipeBarrier<PIPE_ALL>();
    ShiftRight(pages, tokens, 7, static_cast<int>(elements));
    PipeBarrier<PIPE_V>();
    ShiftLeft(places, pages, 7, static_cast<int>(elements));
    ShiftLeft(pages, pages, 2, static_cast<int>(elements));
    PipeBarrier<PIPE_V>();
    Sub(tokens, tokens, places, static_cast<int>(elements));
    // Numbers behind the last token may lie behind the table: they are not stored.
    Mins(pages, pages, static_cast<int32_t>((row.tokens - 1) / kPageTokens * 4), static_cast<int>(elements));
    PipeBarrier<PIPE_V>();
    Gather(places, table, pages.ReinterpretCast<uint32_t>(), 0, elements);
    PipeBarrier<PIPE_V>();
    ShiftLeft(places, places, 7, static_cast<int>(elements));
    PipeBarrier<PIPE_V>();
    Add(places, places, tokens, static_cast<int>(elements));
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(GlobalAt<int32_t>(a_.chosen + static_cast<uint64_t>(row.number) * a_.k * 4), places,
                DataCopyExtParams{1, count * 4, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr float kLast = -__builtin_inff();  // behind all scores

  uint32_t Count(uint32_t block) const {
    const uint32_t left = row_->tokens - block * kBlock;
    return left < kBlock ? left : kBlock;
  }
  uint64_t List(const Row& row, uint32_t part) const {
    return a_.lists + (static_cast<uint64_t>(row.number) * a_.parts + part) * a_.k * kStructureBytes;
  }

  // The open lists into best_.
  void Merge() {
    if (opened_ == 0) return;
    uint16_t lengths[4] = {static_cast<uint16_t>(best_count_), 0, 0, 0}, valid = best_count_ != 0 ? 1 : 0;
    uint32_t all = best_count_;
    for (uint32_t n = 0; n < opened_; ++n) {
      lengths[n + 1] = static_cast<uint16_t>(counts_[n]);
      valid = static_cast<uint16_t>(valid | 2u << n);
      all += counts_[n];
    }
    opened_ = 0;
    best_count_ = all < a_.k ? all : a_.k;
    const auto list = [&](uint32_t n) { return LocalTensor<float>(lists_[n]); };
    PipeBarrier<PIPE_V>();
    MergeLists(LocalTensor<float>(merged_),
               MrgSortSrcList<float>{LocalTensor<float>(best_), list(0), list(1), list(2)}, lengths, valid);
    PipeBarrier<PIPE_V>();
    DataCopy(LocalTensor<float>(best_), LocalTensor<float>(merged_), Up(best_count_ * 2, 8));
  }

  const cm384_top_k& a_;
  const Row* row_ = nullptr;
  uint32_t scores_[2], scales_[2], numbers_, other_, lists_[kLists], best_, merged_;  // in the UBuffer
  uint32_t best_count_ = 0, opened_ = 0, counts_[kLists];
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_top_k& a = *reinterpret_cast<const cm384_top_k*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  const uint32_t rows = a.batch * a.queries;
  TopK top(a);
  // Parts of all rows, one behind the other, are dealt out in turn.
  uint32_t part = block;
  for (uint32_t number = 0; number < rows; ++number) {
    const Row row(a, number);
    for (; part < row.parts; part += blocks) {
      top.Choose(row, row.Part(part));
      if (a.parts == 1) {
        top.Finish(row);
      } else {
        top.Keep(row, part);
      }
    }
    part -= row.parts;
  }
  if (a.parts > 1) SyncAll();
  for (uint32_t number = block; number < rows; number += blocks) {
    const Row row(a, number);
    if (row.blocks != 0 && a.parts == 1) continue;
    top.ChooseFromLists(row);
    top.Finish(row);
  }
}
