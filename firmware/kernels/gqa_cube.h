// The cube core's part of kernel `gqa`: in turn i the scores of item i, then the products of item i - 2, so
// that the vector cores have a turn for the softmax of item i - 1. Keys and values of item i + 1 arrive
// meanwhile. Each KV head of a tile is a product of its own.
#pragma once

#include "gqa_items.h"

class GqaCube {
 public:
  GqaCube(const cm384_gqa& a, uint32_t block, uint32_t blocks)
      : a_(a),
        space_(a, block),
        walker_(a, block, blocks),
        group_(a.heads / a.kv_heads),
        rows_(CM384_GQA_ROWS(a)),
        tile_(CM384_GQA_TILE_ROWS(a)),
        query_bytes_(tile_ * a.width * 2),
        block_bytes_(CM384_GQA_BLOCK_BYTES(a)),
        keys_(2 * query_bytes_),
        values_(keys_ + CM384_GQA_KEY_SLOTS * block_bytes_),
        weights_(values_ + CM384_GQA_VALUE_SLOTS * block_bytes_) {}

  void Run() {
    using namespace AscendC;
    for (uint32_t s = 0; s < CM384_GQA_KEY_SLOTS + CM384_GQA_VALUE_SLOTS; ++s)
      SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(s));
    SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::M_MTE2>(b);
      SetFlag<HardEvent::M_MTE1>(b);
      SetFlag<HardEvent::FIX_M>(b);
    }
    GqaItem items[4];  // i - 2 .. i + 1, item n at n % 4
    uint32_t count = 0;
    bool more = walker_.Next(items[0]);
    if (more) Load(items[0], 0);
    for (uint32_t i = 0; more || i < count + 2; ++i) {
      if (more) {
        count = i + 1;
        more = walker_.Next(items[(i + 1) % 4]);
        if (more) Load(items[(i + 1) % 4], i + 1);
        Scores(items[i % 4], i);
      }
      if (i >= 2 && i - 2 < count) Products(items[(i - 2) % 4], i - 2);
    }
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr int kProbabilities = CM384_GQA_KEY_SLOTS + CM384_GQA_VALUE_SLOTS;  // of MTE2 and MTE1
  static constexpr uint32_t kHeight = CM384_GQA_PAGE_TOKENS * 32;  // of a column of NZ in a page and in L1
  static constexpr uint32_t kHalf = 32 * 1024;                     // L0A and L0B have two buffers each
  static constexpr uint32_t kScorePlace = 0, kProductPlace = 1;    // in L0C, 64 KiB each
  static constexpr uint32_t kPlaceBytes = 64 * 1024;

  void Load(const GqaItem& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t sets = a_.kv_heads / a_.together, query = item.pair / sets;
    const uint32_t first = (item.pair - query * sets) * a_.together;  // KV head
    if (item.first) {
      const uint32_t q = loaded_++ & 1;
      WaitFlag<HardEvent::M_MTE2>(static_cast<int>(q));
      for (uint32_t h = 0; h < a_.together; ++h) {
        const uint64_t row = static_cast<uint64_t>(query) * a_.heads + (first + h) * group_;
        CopyNd2Nz(q * query_bytes_ + h * rows_ * 32, a_.q + row * a_.width * 2, group_, a_.width * 2,
                  a_.width * 2, tile_ * 32);
      }
    }
    const uint32_t key = i % CM384_GQA_KEY_SLOTS, value = i % CM384_GQA_VALUE_SLOTS;
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(key));
    LoadPages(keys_ + key * block_bytes_, a_.k, item, first);
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(key));  // the queries' too, which came before
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(CM384_GQA_KEY_SLOTS + value));
    LoadPages(values_ + value * block_bytes_, a_.v, item, first);
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(CM384_GQA_KEY_SLOTS + value));
  }

  // What KV heads `first` .. have of all tokens of the item, page by page.
  void LoadPages(uint32_t l1, uint64_t cache, const GqaItem& item, uint32_t first) {
    using namespace AscendC;
    const auto* pages = reinterpret_cast<const uint32_t*>(a_.page_table) + item.batch * a_.table_width;
    const uint32_t columns = a_.width / 16;  // of a KV head
    for (uint32_t done = 0; done < item.count;) {
      const uint32_t token = item.token + done, within = token % CM384_GQA_PAGE_TOKENS;
      const uint32_t rest = CM384_GQA_PAGE_TOKENS - within, left = item.count - done;
      const uint32_t count = left < rest ? left : rest;
      const uint64_t page = static_cast<uint64_t>(pages[token / CM384_GQA_PAGE_TOKENS]) *
                            CM384_GQA_PAGE_BYTES(a_.kv_heads, a_.width);
      CopyToL1(l1 + done * 32, cache + page + first * columns * kHeight + within * 32, count * 32,
               a_.together * columns, kHeight, kHeight);
      done += count;
    }
  }

  void Scores(const GqaItem& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t key = i % CM384_GQA_KEY_SLOTS, columns = a_.width / 16;
    const uint32_t q = (task_ & 1) * query_bytes_;
    WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(key));
    WaitFlag<HardEvent::FIX_M>(kScorePlace);
    for (uint32_t h = 0; h < a_.together; ++h) {
      Step(kScorePlace * kPlaceBytes + h * rows_ * CM384_GQA_PAGE_TOKENS * 4, item.count, a_.width,
           [&](uint32_t l0) {
             LoadA<bfloat16_t>(l0, q + h * rows_ * 32, tile_ * 32, rows_ / 16, columns);
             LoadB<bfloat16_t>(l0, keys_ + key * block_bytes_ + h * columns * kHeight, kHeight,
                               (item.count + 15) / 16, columns);
           });
    }
    SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(key));
    if (item.last) SetFlag<HardEvent::M_MTE2>(static_cast<int>(task_++ & 1));
    Out(kScorePlace, space_.scores + i % CM384_GQA_TURNS * CM384_GQA_SCORES(a_), item.count,
        CM384_GQA_PAGE_TOKENS * 4, CM384_GQA_PAGE_TOKENS);
    CrossCoreSetFlag<2, PIPE_FIX>(kScoresReady);
  }

  void Products(const GqaItem& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t value = i % CM384_GQA_VALUE_SLOTS, columns = a_.width / 16;
    CrossCoreWaitFlag(kProbabilitiesReady);
    WaitFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    CopyNd2Nz(weights_, space_.probabilities + i % CM384_GQA_TURNS * CM384_GQA_PROBABILITIES(a_), tile_,
              item.count * 2, CM384_GQA_PAGE_TOKENS * 2, tile_ * 32);
    SetFlag<HardEvent::MTE2_MTE1>(kProbabilities);
    WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(CM384_GQA_KEY_SLOTS + value));
    WaitFlag<HardEvent::MTE2_MTE1>(kProbabilities);
    WaitFlag<HardEvent::FIX_M>(kProductPlace);
    const uint32_t blocks = (item.count + 15) / 16;
    for (uint32_t h = 0; h < a_.together; ++h) {
      Step(kProductPlace * kPlaceBytes + h * rows_ * a_.width * 4, a_.width, item.count, [&](uint32_t l0) {
        LoadA<bfloat16_t>(l0, weights_ + h * rows_ * 32, tile_ * 32, rows_ / 16, blocks);
        LoadBTransposed<bfloat16_t>(l0, values_ + value * block_bytes_ + h * columns * kHeight, kHeight,
                                    columns, blocks);
      });
    }
    SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(CM384_GQA_KEY_SLOTS + value));
    SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    Out(kProductPlace, space_.products + i % CM384_GQA_TURNS * CM384_GQA_PRODUCTS(a_), a_.width, a_.width * 4,
        a_.width);
    CrossCoreSetFlag<2, PIPE_FIX>(kProductsReady);
  }

  // The results of all KV heads of a place, each `columns` wide; in L0C `width` apart.
  void Out(uint32_t place, uint64_t gm, uint32_t columns, uint64_t pitch, uint32_t width) {
    using namespace AscendC;
    SetFlag<HardEvent::M_FIX>(static_cast<int>(place));
    WaitFlag<HardEvent::M_FIX>(static_cast<int>(place));
    for (uint32_t h = 0; h < a_.together; ++h)
      Fixpipe<CM384_FIX_KEEP>(gm + h * rows_ * pitch, place * kPlaceBytes + h * rows_ * width * 4, rows_,
                              columns, pitch);
    SetFlag<HardEvent::FIX_M>(static_cast<int>(place));
  }

  // `load` fills the next half of L0A and L0B, then MMAD.
  template <class Load>
  CM384_INLINE void Step(uint32_t l0c, uint32_t n, uint32_t k, Load&& load) {
    using namespace AscendC;
    const uint32_t b = steps_++ & 1;
    WaitFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    load(b * kHalf);
    SetFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    WaitFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    MmadParams p;
    p.m = static_cast<uint16_t>(rows_);
    p.n = static_cast<uint16_t>(n);
    p.k = static_cast<uint16_t>(k);
    p.cmatrixInitVal = true;
    Mmad<bfloat16_t>(l0c, b * kHalf, b * kHalf, p);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }

  const cm384_gqa& a_;
  const GqaWorkspace space_;
  GqaWalker walker_;
  const uint32_t group_, rows_, tile_;  // query heads of a KV head, padded, of a tile
  const uint32_t query_bytes_, block_bytes_;
  const uint32_t keys_, values_, weights_;  // in L1, behind two tiles of queries
  uint32_t loaded_ = 0, task_ = 0, steps_ = 0;
};
