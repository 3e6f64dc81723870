// The cube core's part of kernel `mla`. In turn i the scores of item i, then the products of item i - 1,
// whose softmax the vector cores have done meanwhile; KV block i + 1 arrives beside that.
#pragma once

#include "mla_items.h"

class MlaCube {
 public:
  MlaCube(const cm384_mla& a, uint32_t block, uint32_t blocks)
      : a_(a),
        space_(a, block),
        walker_(a, block, blocks),
        height_(a.block_tokens * 32),
        slot_bytes_(a.block_tokens * CM384_MLA_WIDTH * 2),
        probabilities_(CM384_MLA_SLOTS * slot_bytes_),
        queries_(probabilities_ + a.heads * a.block_tokens * 2) {
    const uint32_t wide = a.block_tokens > kColumns ? a.block_tokens : kColumns;
    place_bytes_ = a.heads * wide * 4;
    places_ = 128 * 1024 / place_bytes_;
    if (places_ > kMostPlaces) places_ = kMostPlaces;
  }

  void Run() {
    using namespace AscendC;
    for (uint32_t s = 0; s < CM384_MLA_SLOTS; ++s) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(s));
    SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    SetFlag<HardEvent::MTE1_MTE2>(kQueries);
    for (int b = 0; b < 2; ++b) SetFlag<HardEvent::M_MTE1>(b);
    for (uint32_t c = 0; c < places_; ++c) SetFlag<HardEvent::FIX_M>(static_cast<int>(c));
    MlaItem before, now, next;
    bool more = walker_.Next(now), has_before = false;
    if (more) {
      LoadFirstHalf(now, 0);
      LoadSecondHalf(now, 0);
    }
    uint32_t i = 0;
    for (; more; ++i) {
      const bool has_next = walker_.Next(next);
      Scores(now, i);
      // The probabilities arrive in the middle of the KV block: its first half gives the vector cores time,
      // its second half is time for the products to free the slot of the block after it.
      if (has_next) LoadFirstHalf(next, i + 1);
      if (has_before) LoadProbabilities(before, i - 1);
      if (has_next) LoadSecondHalf(next, i + 1);
      if (has_before) Products(before, i - 1);
      before = now;
      now = next;
      has_before = true;
      more = has_next;
    }
    if (has_before) {
      LoadProbabilities(before, i - 1);
      Products(before, i - 1);
    }
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr int kProbabilities = 4, kQueries = 5;  // events between MTE2 and MTE1; slots have 0..2
  static constexpr uint32_t kHalf = 32 * 1024;            // L0A and L0B have two buffers each
  static constexpr uint32_t kColumns = 128;               // of the latent, a product at a time
  static constexpr uint32_t kMostPlaces = 4;
  static constexpr uint32_t kStep = 8;  // blocks of 16 elements of k, a step

  uint32_t Slot(uint32_t i) const { return i % CM384_MLA_SLOTS; }

  static uint32_t Half(const MlaItem& item) { return (item.count / 2 + 15) / 16 * 16; }

  void LoadFirstHalf(const MlaItem& item, uint32_t i) {
    using namespace AscendC;
    if (item.first) {
      WaitFlag<HardEvent::MTE1_MTE2>(kQueries);
      CopyNd2Nz(queries_, a_.q + static_cast<uint64_t>(item.pair) * a_.heads * CM384_MLA_WIDTH * 2, a_.heads,
                CM384_MLA_WIDTH * 2, CM384_MLA_WIDTH * 2, a_.heads * 32);
      SetFlag<HardEvent::MTE2_MTE1>(kQueries);
    }
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(Slot(i)));
    LoadTokens(item, i, 0, Half(item) < item.count ? Half(item) : item.count);
  }
  void LoadSecondHalf(const MlaItem& item, uint32_t i) {
    LoadTokens(item, i, Half(item), item.count);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE1>(static_cast<int>(Slot(i)));
  }

  // Tokens [done, end) of the item, page by page.
  void LoadTokens(const MlaItem& item, uint32_t i, uint32_t done, uint32_t end) {
    using namespace AscendC;
    const auto* pages = reinterpret_cast<const uint32_t*>(a_.page_table) + item.batch * a_.table_width;
    while (done < end) {
      const uint32_t token = item.token + done, within = token % CM384_MLA_PAGE_TOKENS;
      const uint32_t rest = CM384_MLA_PAGE_TOKENS - within, left = end - done;
      const uint32_t count = left < rest ? left : rest;
      CopyToL1(Slot(i) * slot_bytes_ + done * 32,
               a_.kv + static_cast<uint64_t>(pages[token / CM384_MLA_PAGE_TOKENS]) * CM384_MLA_PAGE_BYTES +
                   within * 32,
               count * 32, CM384_MLA_WIDTH / 16, CM384_MLA_PAGE_TOKENS * 32, height_);
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

  int TakePlace() {
    const auto place = static_cast<int>(used_++ % places_);
    AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(place);
    return place;
  }
  void Out(int place, uint64_t gm, uint32_t columns, uint64_t pitch) {
    using namespace AscendC;
    SetFlag<HardEvent::M_FIX>(place);
    WaitFlag<HardEvent::M_FIX>(place);
    Fixpipe<CM384_FIX_KEEP>(gm, static_cast<uint32_t>(place) * place_bytes_, a_.heads, columns, pitch);
    SetFlag<HardEvent::FIX_M>(place);
  }

  void Scores(const MlaItem& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t slot = Slot(i) * slot_bytes_;
    if (item.first) WaitFlag<HardEvent::MTE2_MTE1>(kQueries);
    WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(Slot(i)));
    const int place = TakePlace();
    for (uint32_t k = 0; k < CM384_MLA_WIDTH / 16; k += kStep) {
      const uint32_t blocks = CM384_MLA_WIDTH / 16 - k < kStep ? CM384_MLA_WIDTH / 16 - k : kStep;
      Step(place, item.count, blocks * 16, k == 0, [&](uint32_t l0) {
        LoadA<bfloat16_t>(l0, queries_ + k * a_.heads * 32, a_.heads * 32, a_.heads / 16, blocks);
        LoadB<bfloat16_t>(l0, slot + k * height_, height_, (item.count + 15) / 16, blocks);
      });
    }
    if (item.last) SetFlag<HardEvent::MTE1_MTE2>(kQueries);
    Out(place, space_.scores + (i & 1) * CM384_MLA_SCORES(a_), item.count, a_.block_tokens * 4);
    CrossCoreSetFlag<2, PIPE_FIX>(kScoresReady);
  }

  void Products(const MlaItem& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t slot = Slot(i) * slot_bytes_, blocks = (item.count + 15) / 16;
    WaitFlag<HardEvent::MTE2_MTE1>(kProbabilities);
    for (uint32_t column = 0; column < CM384_MLA_LATENT; column += kColumns) {
      const int place = TakePlace();
      Step(place, kColumns, item.count, true, [&](uint32_t l0) {
        LoadA<bfloat16_t>(l0, probabilities_, a_.heads * 32, a_.heads / 16, blocks);
        LoadBTransposed<bfloat16_t>(l0, slot + column / 16 * height_, height_, kColumns / 16, blocks);
      });
      if (column + kColumns == CM384_MLA_LATENT) {
        SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(Slot(i)));
        SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
      }
      Out(place, space_.products + i % 3 * CM384_MLA_PRODUCTS(a_) + column * 4, kColumns,
          CM384_MLA_LATENT * 4);
    }
    CrossCoreSetFlag<2, PIPE_FIX>(kProductsReady);
  }

  // `load` fills the next half of L0A and L0B, then MMAD.
  template <class Load>
  CM384_INLINE void Step(int place, uint32_t n, uint32_t k, bool first, Load&& load) {
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
    Mmad<bfloat16_t>(static_cast<uint32_t>(place) * place_bytes_, b * kHalf, b * kHalf, p);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }

  const cm384_mla& a_;
  const MlaWorkspace space_;
  MlaWalker walker_;
  const uint32_t height_;  // bytes of a column of blocks of a KV block in L1
  const uint32_t slot_bytes_;
  const uint32_t probabilities_, queries_;  // in L1
  uint32_t place_bytes_, places_;           // in L0C
  uint32_t used_ = 0, steps_ = 0;
};
