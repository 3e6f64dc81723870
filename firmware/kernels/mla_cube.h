// The cube core's part of kernel `mla`. In turn i the scores of item i between the products of item i - 2:
// the fixpipe needs longer for products than the matrix unit, which has time for scores meanwhile, and the
// vector cores have a turn for the softmax of item i - 1. KV blocks arrive beside that, chunk by chunk, where
// products have freed one.
#pragma once

#include "mla_items.h"

class MlaCube {
 public:
  MlaCube(const cm384_mla& a, uint32_t block, uint32_t blocks)
      : a_(a),
        space_(a, block),
        walker_(a, block, blocks),
        height_(a.block_tokens * 32),
        slot_bytes_(CM384_MLA_COLUMNS / a.chunks * height_),
        probabilities_(a.slots * slot_bytes_),
        queries_(probabilities_ + a.heads * a.block_tokens * 2) {
    const uint32_t left = kL0cBytes - a.heads * a.block_tokens * 4;
    columns_ = kMostColumns;
    while (columns_ > 32 && left / (a.heads * columns_ * 4) < kWantedPlaces) columns_ /= 2;
    place_bytes_ = a.heads * columns_ * 4;
    places_ = left / place_bytes_;
    if (places_ > kMostPlaces) places_ = kMostPlaces;
  }

  void Run() {
    using namespace AscendC;
    for (uint32_t s = 0; s < a_.slots; ++s) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(s));
    SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    SetFlag<HardEvent::M_MTE2>(0);
    for (int b = 0; b < 2; ++b) SetFlag<HardEvent::M_MTE1>(b);
    for (uint32_t c = 0; c <= places_; ++c) SetFlag<HardEvent::FIX_M>(static_cast<int>(c));
    MlaItem items[4];  // i - 2 .. i + 1, item n at n % 4
    uint32_t count = 0;
    bool more = walker_.Next(items[0]);
    if (more) LoadChunks(items[0], 0, 0, 1);
    for (uint32_t i = 0; more || i < count + 2; ++i) {
      if (more) count = i + 1;
      const bool scores = more, products = i >= 2 && i - 2 < count;
      if (more) more = walker_.Next(items[(i + 1) % 4]);
      // MTE2 works in order: behind the probabilities stands what takes the slots of the block they meet.
      if (products) LoadProbabilities(items[(i - 2) % 4], i - 2);
      if (scores) LoadChunks(items[i % 4], i, 1, a_.chunks);
      if (more) LoadChunks(items[(i + 1) % 4], i + 1, 0, 1);
      Turn(products ? &items[(i - 2) % 4] : nullptr, scores ? &items[i % 4] : nullptr, i);
    }
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr int kProbabilities = 7;      // event between MTE2 and MTE1; slots have 0 .. 6
  static constexpr uint32_t kHalf = 32 * 1024;  // L0A and L0B have two buffers each
  static constexpr uint32_t kL0cBytes = 128 * 1024;
  // Columns of the latent, a product at a time: many, but so few that L0C holds some products beside scores.
  static constexpr uint32_t kMostColumns = 64, kWantedPlaces = 4, kMostPlaces = 6;
  static constexpr uint32_t kStep = 8;        // blocks of 16 elements of k per step, at most
  static constexpr uint32_t kScoreSteps = 6;  // what the columns of 2 or 3 chunks make of it
  static constexpr uint32_t kLatentColumns = CM384_MLA_LATENT / 16, kRopeColumns = CM384_MLA_ROPE / 16;

  // A chunk's NZ columns of a KV block: latents, behind them in L1 what it has of the rope.
  struct Chunk {
    uint32_t latent, latents, rope, ropes;
  };
  Chunk ChunkOf(uint32_t number) const {
    if (a_.chunks == 2) return {number * 16, 16, number * 2, 2};
    if (number == 0) return {0, 8, 0, kRopeColumns};
    return {number * 12 - 4, 12, 0, 0};
  }
  // Of a chunk of item i.
  uint32_t Slot(uint32_t i, uint32_t chunk) const { return (i * a_.chunks + chunk) % a_.slots; }

  void LoadChunks(const MlaItem& item, uint32_t i, uint32_t from, uint32_t to) {
    using namespace AscendC;
    if (from == 0 && item.first) {
      WaitFlag<HardEvent::M_MTE2>(0);
      CopyNd2Nz(queries_, a_.q + static_cast<uint64_t>(item.pair) * a_.heads * CM384_MLA_WIDTH * 2, a_.heads,
                CM384_MLA_WIDTH * 2, CM384_MLA_WIDTH * 2, a_.heads * 32);
    }
    for (uint32_t number = from; number < to; ++number) {
      const Chunk chunk = ChunkOf(number);
      const uint32_t slot = Slot(i, number);
      WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(slot));
      LoadColumns(item, slot * slot_bytes_, chunk.latent, chunk.latents);
      if (chunk.ropes != 0)
        LoadColumns(item, slot * slot_bytes_ + chunk.latents * height_, kLatentColumns + chunk.rope,
                    chunk.ropes);
      SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(slot));  // the queries' too, which came before
    }
  }

  // Some columns of all tokens of the item, page by page.
  void LoadColumns(const MlaItem& item, uint32_t l1, uint32_t column, uint32_t columns) {
    using namespace AscendC;
    const auto* pages = reinterpret_cast<const uint32_t*>(a_.page_table) + item.batch * a_.table_width;
    for (uint32_t done = 0; done < item.count;) {
      const uint32_t token = item.token + done, within = token % CM384_MLA_PAGE_TOKENS;
      const uint32_t rest = CM384_MLA_PAGE_TOKENS - within, left = item.count - done;
      const uint32_t count = left < rest ? left : rest;
      CopyToL1(l1 + done * 32,
               a_.kv + static_cast<uint64_t>(pages[token / CM384_MLA_PAGE_TOKENS]) * CM384_MLA_PAGE_BYTES +
                   column * (CM384_MLA_PAGE_TOKENS * 32) + within * 32,
               count * 32, columns, CM384_MLA_PAGE_TOKENS * 32, height_);
      done += count;
    }
  }

  void LoadProbabilities(const MlaItem& item, uint32_t i) {
    using namespace AscendC;
    CrossCoreWaitFlag(kProbabilitiesReady);
    WaitFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    CopyNd2Nz(probabilities_, space_.probabilities + (i & 1) * CM384_MLA_PROBABILITIES(a_), a_.heads,
              item.count * 2, a_.block_tokens * 2, a_.heads * 32);
    SetFlag<HardEvent::MTE2_MTE1>(kProbabilities);
  }

  // L0C: the products' places, taken in turn, behind them the scores.
  void Out(uint32_t place, uint64_t gm, uint32_t columns, uint64_t pitch) {
    using namespace AscendC;
    SetFlag<HardEvent::M_FIX>(static_cast<int>(place));
    WaitFlag<HardEvent::M_FIX>(static_cast<int>(place));
    Fixpipe<CM384_FIX_KEEP>(gm, place * place_bytes_, a_.heads, columns, pitch);
    SetFlag<HardEvent::FIX_M>(static_cast<int>(place));
  }

  // Products of item i - 2, if any, and scores of item i, if any.
  void Turn(const MlaItem* products, const MlaItem* scores, uint32_t i) {
    using namespace AscendC;
    const uint32_t all = CM384_MLA_LATENT / columns_;
    if (products != nullptr) {
      product_ = 0;
      product_chunk_ = 0;
      WaitFlag<HardEvent::MTE2_MTE1>(kProbabilities);
    }
    score_ = score_chunk_ = 0;
    // The first quarter of the products frees a chunk for what the scores need.
    for (uint32_t product = 0, score = 0; product < all || score < kScoreSteps;) {
      if (product < all && product * 16 <= all * (4 + 3 * score)) {
        if (products != nullptr) NextProduct(*products, i - 2);
        ++product;
      } else {
        if (scores != nullptr && score < kScoreSteps) NextScore(*scores, i);
        ++score;
      }
    }
    if (products != nullptr) CrossCoreSetFlag<2, PIPE_FIX>(kProductsReady);
    if (scores == nullptr) return;
    if (scores->last) SetFlag<HardEvent::M_MTE2>(0);
    Out(places_, space_.scores + (i & 1) * CM384_MLA_SCORES(a_), scores->count, a_.block_tokens * 4);
    CrossCoreSetFlag<2, PIPE_FIX>(kScoresReady);
  }

  // The next columns of the queries and of item i; kScoreSteps times.
  void NextScore(const MlaItem& item, uint32_t i) {
    using namespace AscendC;
    const Chunk chunk = ChunkOf(score_chunk_);
    const uint32_t slot = Slot(i, score_chunk_);
    if (score_ == 0) WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(slot));
    const uint32_t whole = chunk.latents <= kStep ? chunk.latents : chunk.latents / 2;
    const bool latent = score_ < chunk.latents;
    const uint32_t column = latent ? chunk.latent + score_ : kLatentColumns + chunk.rope;
    const uint32_t blocks = latent ? whole : chunk.ropes, l1 = slot * slot_bytes_ + score_ * height_;
    const bool first = score_chunk_ == 0 && score_ == 0;
    if (first) WaitFlag<HardEvent::FIX_M>(static_cast<int>(places_));
    Step(places_, item.count, blocks * 16, first, [&](uint32_t l0) {
      LoadA<bfloat16_t>(l0, queries_ + column * a_.heads * 32, a_.heads * 32, a_.heads / 16, blocks);
      LoadB<bfloat16_t>(l0, l1, height_, (item.count + 15) / 16, blocks);
    });
    score_ += blocks;
    if (score_ < chunk.latents + chunk.ropes) return;
    score_ = 0;
    ++score_chunk_;
  }

  // The next columns of the latent of item i.
  void NextProduct(const MlaItem& item, uint32_t i) {
    using namespace AscendC;
    const Chunk chunk = ChunkOf(product_chunk_);
    const uint32_t slot = Slot(i, product_chunk_), column = (chunk.latent + product_) * 16;
    const bool last = product_ + columns_ / 16 == chunk.latents;
    Product(item, slot * slot_bytes_ + product_ * height_,
            space_.products + i % 3 * CM384_MLA_PRODUCTS(a_) + column * 4, [&] {
              if (!last) return;
              SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(slot));
              if (product_chunk_ + 1 == a_.chunks) SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
            });
    product_ = last ? 0 : product_ + columns_ / 16;
    product_chunk_ += last ? 1 : 0;
  }

  // Some columns of the latent; `loaded` follows what MTE1 reads for them.
  template <class Loaded>
  CM384_INLINE void Product(const MlaItem& item, uint32_t l1, uint64_t to, Loaded&& loaded) {
    using namespace AscendC;
    const uint32_t place = used_, blocks = (item.count + 15) / 16;
    if (++used_ == places_) used_ = 0;
    WaitFlag<HardEvent::FIX_M>(static_cast<int>(place));
    Step(place, columns_, item.count, true, [&](uint32_t l0) {
      LoadA<bfloat16_t>(l0, probabilities_, a_.heads * 32, a_.heads / 16, blocks);
      LoadBTransposed<bfloat16_t>(l0, l1, height_, columns_ / 16, blocks);
      loaded();
    });
    Out(place, to, columns_, CM384_MLA_LATENT * 4);
  }

  // `load` fills the next half of L0A and L0B, then MMAD.
  template <class Load>
  CM384_INLINE void Step(uint32_t place, uint32_t n, uint32_t k, bool first, Load&& load) {
    using namespace AscendC;
    const uint32_t b = steps_++ & 1;
    WaitFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    load(b * kHalf);
    SetFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    WaitFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    MmadParams p;
    p.m = static_cast<uint16_t>(a_.heads);
    p.n = static_cast<uint16_t>(n);
    p.k = static_cast<uint16_t>(k);
    p.cmatrixInitVal = first;
    Mmad<bfloat16_t>(place * place_bytes_, b * kHalf, b * kHalf, p);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }

  const cm384_mla& a_;
  const MlaWorkspace space_;
  MlaWalker walker_;
  const uint32_t height_;                   // bytes of a column of a KV block in L1
  const uint32_t slot_bytes_;               // of a chunk
  const uint32_t probabilities_, queries_;  // in L1
  uint32_t columns_;                        // of a product
  uint32_t place_bytes_, places_;           // in L0C
  uint32_t used_ = 0, steps_ = 0;
  uint32_t score_ = 0, score_chunk_ = 0, product_ = 0,
           product_chunk_ = 0;  // of the turn: columns done in a chunk
};
