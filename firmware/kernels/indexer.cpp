// Scores of cached tokens by a lightning indexer, on cube cores. Arguments: firmware/abi/indexer.h.
//
// Products of a page of keys with the heads of a query go from L0C through the fixpipe, which drops the
// negative ones, to L1 as FP16, and are the second matrix of a product with the query's weights: the sum over
// heads needs no vector core. The fixpipe writes 2 B a head and token, longer than all else takes; while it
// writes those of one query the sums of the query before are made.
#include "firmware/abi/indexer.h"

#include "kernel_operator.h"
#include "share.h"

using namespace AscendC;

namespace {

// Pages of a block of the launch, sequence after sequence.
class PageWalker {
 public:
  PageWalker(const cm384_indexer& a, uint32_t block, uint32_t blocks) : a_(a) {
    uint32_t all = 0;
    for (uint32_t b = 0; b < a.batch; ++b) all += PagesOf(b);
    const Range own = Share(all, blocks, block);
    left_ = own.size();
    page_ = own.first;
    while (left_ != 0 && page_ >= PagesOf(batch_)) page_ -= PagesOf(batch_++);
  }

  struct Page {
    uint32_t batch, number, tokens;
  };
  CM384_INLINE bool Next(Page& page) {
    if (left_ == 0) return false;
    --left_;
    while (page_ == PagesOf(batch_)) ++batch_, page_ = 0;
    const uint32_t behind = Tokens(batch_) - page_ * CM384_INDEX_PAGE_TOKENS;
    page = {batch_, page_++, behind < CM384_INDEX_PAGE_TOKENS ? behind : CM384_INDEX_PAGE_TOKENS};
    return true;
  }

 private:
  // That the last query sees.
  CM384_INLINE uint32_t Tokens(uint32_t batch) const {
    return reinterpret_cast<const uint32_t*>(a_.kv_lens)[batch] + a_.queries - 1;
  }
  CM384_INLINE uint32_t PagesOf(uint32_t batch) const {
    const uint32_t tokens = Tokens(batch);
    return tokens > a_.chosen ? (tokens + CM384_INDEX_PAGE_TOKENS - 1) / CM384_INDEX_PAGE_TOKENS : 0;
  }

  const cm384_indexer& a_;
  uint32_t batch_ = 0, page_ = 0, left_ = 0;
};
using Page = PageWalker::Page;

class IndexCube {
 public:
  IndexCube(const cm384_indexer& a, uint32_t block, uint32_t blocks)
      : a_(a),
        heads_(a.heads),
        queries_(a.queries),
        rows_(queries_ * heads_),
        product_bytes_(heads_ * kPageTokens * 2),
        query_bytes_(heads_ * CM384_INDEX_WIDTH),
        weight_bytes_(heads_ * 32),
        taken_(kKeySlots * CM384_INDEX_KEY_BYTES + 2 * product_bytes_),
        pitch_(CM384_INDEX_PITCH(a.table_width) * 4ull),
        load_(a, block, blocks),
        compute_(a, block, blocks) {}

  CM384_INLINE void Run() {
    for (int e = 0; e < kKeySlots + 2; ++e) SetFlag<HardEvent::MTE1_MTE2>(e);
    for (int e = 0; e < kQueriesInL0; ++e) SetFlag<HardEvent::M_MTE1>(e);
    for (int e = 0; e < kProductPlaces + 2; ++e) SetFlag<HardEvent::FIX_M>(e);
    for (int e = 0; e < 2; ++e) SetFlag<HardEvent::MTE1_FIX>(e);
    // Weights: rows of other queries stay 0.
    for (uint32_t b = 0; b < 2; ++b)
      cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_FILL>(Taken(b) + rows_ * CM384_INDEX_WIDTH, 0,
                                                                 1 | static_cast<uint64_t>(rows_) << 16);
    PipeBarrier<PIPE_MTE2>();
    for (int n = 0; n < kKeySlots; ++n) Load();
    Page page, next;
    for (bool more = compute_.Next(page); more; page = next, ++pages_) {
      more = compute_.Next(next);
      if (page.batch != batch_) TakeQueries(page.batch);
      const bool joins = more && within_ + 1 < kGroup && next.batch == page.batch;
      for (uint32_t query = 0; query < queries_; ++query) Products(page, query, joins);
      within_ = joins ? within_ + 1 : 0;
      Load();
    }
    Sums();
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr uint32_t kPageTokens = CM384_INDEX_PAGE_TOKENS, kColumns = CM384_INDEX_WIDTH / 32;
  static constexpr int kKeySlots = 4;       // pages in L1; events between MTE2 and MTE1, behind them queries'
  static constexpr int kProductPlaces = 3;  // in L0C; events between M and FIX, behind them those of sums
  static constexpr int kQueriesInL0 = 4;    // event between MTE1 and M; 0, 1: keys, 2, 3: products
  static constexpr uint32_t kGroup = 2;     // pages whose sums go out together
  static constexpr uint32_t kPageSums = 16 * kPageTokens * 4;  // in L0C
  static constexpr uint32_t kL0Products = 2 * CM384_INDEX_KEY_BYTES;

  // The next page to L1, before it the queries of its sequence where it is the first.
  CM384_INLINE void Load() {
    Page page;
    if (!load_.Next(page)) return;
    if (page.batch != loaded_batch_) {
      loaded_batch_ = page.batch;
      const uint32_t b = loaded_queries_++ & 1, at = Taken(b);
      const uint64_t first = static_cast<uint64_t>(page.batch) * rows_;
      WaitFlag<HardEvent::MTE1_MTE2>(kKeySlots + static_cast<int>(b));
      CopyNd2Nz(at, a_.q + first * CM384_INDEX_WIDTH, rows_, CM384_INDEX_WIDTH, CM384_INDEX_WIDTH,
                rows_ * 32);
      // Those of a query are its row of a matrix whose other rows are 0.
      for (uint32_t query = 0; query < queries_; ++query)
        CopyNd2Nz(at + rows_ * CM384_INDEX_WIDTH + query * (weight_bytes_ + 32),
                  a_.weights + (first + query * heads_) * 2, 1, heads_ * 2, heads_ * 2, 512);
      SetFlag<HardEvent::MTE2_MTE1>(kKeySlots + static_cast<int>(b));
    }
    const auto slot = static_cast<int>(loaded_pages_++ % kKeySlots);
    const auto* table = reinterpret_cast<const uint32_t*>(a_.page_table) + page.batch * a_.table_width;
    WaitFlag<HardEvent::MTE1_MTE2>(slot);
    CopyToL1(static_cast<uint32_t>(slot) * CM384_INDEX_KEY_BYTES,
             a_.keys + static_cast<uint64_t>(table[page.number]) * CM384_INDEX_PAGE_BYTES, page.tokens * 32,
             kColumns, kPageTokens * 32, kPageTokens * 32);
    SetFlag<HardEvent::MTE2_MTE1>(slot);
  }

  // Queries and weights of the next sequence to L0A, behind what the one before has there.
  CM384_INLINE void TakeQueries(uint32_t batch) {
    Sums();
    batch_ = batch;
    const uint32_t b = taken_queries_++ & 1, at = Taken(b);
    const int event = kKeySlots + static_cast<int>(b);
    WaitFlag<HardEvent::MTE2_MTE1>(event);
    SetFlag<HardEvent::M_MTE1>(kQueriesInL0);
    WaitFlag<HardEvent::M_MTE1>(kQueriesInL0);
    for (uint32_t query = 0; query < queries_; ++query)
      LoadA<int8_t>(query * query_bytes_, at + query * heads_ * 32, rows_ * 32, heads_ / 16, kColumns);
    LoadA<half>(queries_ * query_bytes_, at + rows_ * CM384_INDEX_WIDTH, 512, 1, rows_ / 16);
    SetFlag<HardEvent::MTE1_MTE2>(event);
    SetFlag<HardEvent::MTE1_M>(kQueriesInL0);
    WaitFlag<HardEvent::MTE1_M>(kQueriesInL0);
  }

  // A page's keys with the heads of a query, to L1. `joins`: the sums of the next page go out with its own.
  CM384_INLINE void Products(const Page& page, uint32_t query, bool joins) {
    const uint32_t tokens = (page.tokens + 15) / 16 * 16;
    const auto k = static_cast<int>(pages_ & 1), slot = static_cast<int>(pages_ % kKeySlots);
    const uint32_t keys = static_cast<uint32_t>(k) * CM384_INDEX_KEY_BYTES;
    if (query == 0) {
      WaitFlag<HardEvent::MTE2_MTE1>(slot);
      WaitFlag<HardEvent::M_MTE1>(k);
      LoadB<int8_t>(keys, static_cast<uint32_t>(slot) * CM384_INDEX_KEY_BYTES, kPageTokens * 32, tokens / 16,
                    kColumns);
      SetFlag<HardEvent::MTE1_MTE2>(slot);
      SetFlag<HardEvent::MTE1_M>(k);
      WaitFlag<HardEvent::MTE1_M>(k);
    }
    const auto place = static_cast<int>(place_), p = static_cast<int>(items_ & 1);
    const uint32_t l0c = place_ * 2 * product_bytes_;
    if (++place_ == kProductPlaces) place_ = 0;
    WaitFlag<HardEvent::FIX_M>(place);
    Multiply<int8_t>(l0c, query * query_bytes_, keys,
                     MmadParams(static_cast<uint16_t>(heads_), static_cast<uint16_t>(tokens),
                                static_cast<uint16_t>(CM384_INDEX_WIDTH)),
                     0);
    SetFlag<HardEvent::M_FIX>(place);
    if (query + 1 == queries_) SetFlag<HardEvent::M_MTE1>(k);
    WaitFlag<HardEvent::M_FIX>(place);
    WaitFlag<HardEvent::MTE1_FIX>(p);
    ProductsToL1(ProductsAt(p), l0c, tokens);
    SetFlag<HardEvent::FIX_M>(place);
    SetFlag<HardEvent::FIX_MTE1>(p);
    Sums();
    waits_ = true;
    last_ = {page, query, within_, p, within_ == 0 && query == 0, !joins && query + 1 == queries_};
    ++items_;
  }

  CM384_INLINE void ProductsToL1(uint32_t l1, uint32_t l0c, uint32_t tokens) const {
    constexpr uint64_t kRelu = uint64_t{1} << 40, kNz = uint64_t{1} << 41;
    const uint64_t scale = __builtin_bit_cast(uint32_t, CM384_INDEX_PRODUCT_SCALE);
    cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(0, heads_ * 32);
    cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_FIX_TO_L1>(
        l1, l0c | scale << 32,
        heads_ | static_cast<uint64_t>(tokens) << 16 | uint64_t{CM384_FIX_S32_TO_F16} << 32 | kRelu | kNz);
  }

  // The last products, times the weights; those of a group of pages to memory together.
  CM384_INLINE void Sums() {
    if (!waits_) return;
    waits_ = false;
    const uint32_t tokens = (last_.page.tokens + 15) / 16 * 16;
    const int p = last_.buffer, group = kProductPlaces + static_cast<int>(groups_ & 1);
    const uint32_t l0b = kL0Products + static_cast<uint32_t>(p) * CM384_INDEX_KEY_BYTES;
    const uint32_t l0c = kProductPlaces * 2 * product_bytes_ + (groups_ & 1) * kGroup * kPageSums;
    WaitFlag<HardEvent::FIX_MTE1>(p);
    WaitFlag<HardEvent::M_MTE1>(2 + p);
    LoadBTransposed<half>(l0b, ProductsAt(p), heads_ * 32, tokens / 16, heads_ / 16);
    SetFlag<HardEvent::MTE1_FIX>(p);
    SetFlag<HardEvent::MTE1_M>(2 + p);
    WaitFlag<HardEvent::MTE1_M>(2 + p);
    if (last_.first) WaitFlag<HardEvent::FIX_M>(group);
    Multiply<half>(l0c + last_.within * kPageSums, queries_ * query_bytes_ + last_.query * weight_bytes_, l0b,
                   MmadParams(static_cast<uint16_t>(queries_), static_cast<uint16_t>(tokens),
                              static_cast<uint16_t>(heads_)),
                   last_.query == 0 ? 0 : 1);
    SetFlag<HardEvent::M_MTE1>(2 + p);
    if (!last_.last) return;
    ++groups_;
    SetFlag<HardEvent::M_FIX>(group);
    WaitFlag<HardEvent::M_FIX>(group);
    Fixpipe<CM384_FIX_KEEP>(a_.scores + static_cast<uint64_t>(last_.page.batch) * queries_ * pitch_ +
                                (last_.page.number - last_.within) * (kPageTokens * 4),
                            l0c, queries_, last_.within * kPageTokens + last_.page.tokens, pitch_);
    SetFlag<HardEvent::FIX_M>(group);
  }

  uint32_t ProductsAt(int buffer) const {
    return kKeySlots * CM384_INDEX_KEY_BYTES + static_cast<uint32_t>(buffer) * product_bytes_;
  }
  uint32_t Taken(uint32_t b) const { return taken_ + b * rows_ * (CM384_INDEX_WIDTH + 32); }

  struct Item {
    Page page;
    uint32_t query, within;  // within: the page in its group
    int buffer;              // of L1 and L0B that has its products
    bool first, last;        // of its group
  };

  const cm384_indexer& a_;
  const uint32_t heads_, queries_, rows_;
  const uint32_t product_bytes_, query_bytes_, weight_bytes_;  // of a page and query; of a query
  const uint32_t taken_;                                       // in L1: queries and their weights, twice
  const uint64_t pitch_;
  PageWalker load_, compute_;
  uint32_t loaded_batch_ = ~0u, loaded_queries_ = 0, loaded_pages_ = 0, taken_queries_ = 0, batch_ = ~0u;
  uint32_t pages_ = 0, items_ = 0, groups_ = 0, within_ = 0, place_ = 0;
  Item last_;
  bool waits_ = false;  // the sums of last_ are still to be made
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_indexer& a = *reinterpret_cast<const cm384_indexer*>(address);
  IndexCube(a, static_cast<uint32_t>(GetBlockIdx()), static_cast<uint32_t>(GetBlockNum())).Run();
}
