// The cube core's part of kernel `sparse_mla`: turns as in mla_cube.h, scores of item i between the products
// of item i - 2. The tokens of item i + 1 are copied one by one meanwhile, a few after each step: what a turn
// needs has been asked for in the turn before, and no copy waits for a slot that a step behind it frees.
#pragma once

#include "firmware/abi/sparse_mla.h"
#include "mla_items.h"

class SparseCube {
 public:
  SparseCube(const cm384_sparse_mla& of, uint32_t block, uint32_t blocks)
      : of_(of),
        a_(of.attention),
        heads_(a_.heads),
        space_(a_, block),
        walker_(a_, block, blocks),
        height_(a_.block_tokens * 32),
        seconds_(CM384_SPARSE_FIRST_SLOTS * kFirstColumns * height_),
        probabilities_(seconds_ + CM384_SPARSE_SECOND_SLOTS * kSecondColumns * height_),
        queries_(probabilities_ + heads_ * a_.block_tokens * 2) {
    const uint32_t left = kL0cBytes - heads_ * a_.block_tokens * 4;
    columns_ = kMostColumns;
    while (columns_ > 32 && left / (heads_ * columns_ * 4) < kWantedPlaces) columns_ /= 2;
    place_bytes_ = heads_ * columns_ * 4;
    places_ = left / place_bytes_;
    if (places_ > kMostPlaces) places_ = kMostPlaces;
    half_ = CM384_MLA_LATENT / 2 / columns_;
  }

  void Run() {
    using namespace AscendC;
    for (int s = 0; s <= kProbabilities; ++s) SetFlag<HardEvent::MTE1_MTE2>(s);
    SetFlag<HardEvent::M_MTE2>(0);
    for (int b = 0; b < 2; ++b) SetFlag<HardEvent::M_MTE1>(b);
    for (uint32_t c = 0; c <= places_; ++c) SetFlag<HardEvent::FIX_M>(static_cast<int>(c));
    Item items[4];  // i - 2 .. i + 1, item n at n % 4
    uint32_t count = 0;
    bool more = Next(items[0]);
    if (more) {
      Begin(items[0]);
      Complete(items[0]);
    }
    for (uint32_t i = 0; more || i < count + 2; ++i) {
      if (more) count = i + 1;
      const bool scores = more, products = i >= 2 && i - 2 < count;
      Item& next = items[(i + 1) % 4];
      if (more) more = Next(next);
      // MTE2 works in order: behind the probabilities stands what takes the slots of the block they meet.
      if (products) LoadProbabilities(items[(i - 2) % 4], i - 2);
      if (more) Begin(next);
      Turn(products ? &items[(i - 2) % 4] : nullptr, scores ? &items[i % 4] : nullptr, i);
      if (more) Complete(next);
    }
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr int kProbabilities = 7;      // event between MTE2 and MTE1; slots have 0 .. 6
  static constexpr uint32_t kHalf = 32 * 1024;  // L0A and L0B have two buffers each
  static constexpr uint32_t kL0cBytes = 128 * 1024;
  // As in mla_cube.h.
  static constexpr uint32_t kMostColumns = 64, kWantedPlaces = 4, kMostPlaces = 6;
  static constexpr uint32_t kStep = 8;  // blocks of 16 elements of k per step
  static constexpr uint32_t kFirstColumns = CM384_SPARSE_FIRST_BYTES / 32,
                            kSecondColumns = CM384_SPARSE_SECOND_BYTES / 32;
  static constexpr uint32_t kRopes = kFirstColumns - kSecondColumns;
  static constexpr uint32_t kScoreSteps = 5;     // two of latents and one of the rope, two of latents
  static constexpr uint32_t kCopiesAtOnce = 24;  // at least; what the queue of MTE2 holds with what it has

  // Slots of a KV block: event, and place in L1.
  struct Item : MlaItem {
    int slot[2];
    uint32_t l1[2];
  };
  bool Next(Item& item) {
    if (!walker_.Next(item)) return false;
    item.slot[0] = static_cast<int>(first_slot_);
    item.slot[1] = static_cast<int>(CM384_SPARSE_FIRST_SLOTS + second_slot_);
    item.l1[0] = first_slot_ * kFirstColumns * height_;
    item.l1[1] = seconds_ + second_slot_ * kSecondColumns * height_;
    if (++first_slot_ == CM384_SPARSE_FIRST_SLOTS) first_slot_ = 0;
    if (++second_slot_ == CM384_SPARSE_SECOND_SLOTS) second_slot_ = 0;
    return true;
  }

  // What Copy() copies from now on: the tokens of an item.
  void Begin(const Item& item) {
    at_.item = &item;
    at_.rows = reinterpret_cast<const uint32_t*>(of_.chosen) +
               static_cast<uint64_t>(item.pair) * of_.chosen_pitch + item.token;
    at_.chunk = at_.token = 0;
  }
  // The rest of an item; behind it the queries of a new task, whose place the scores of the last one have
  // left. The flag of the first chunk stands for these too.
  void Complete(const Item& item) {
    using namespace AscendC;
    Copy(~0u, 2);
    if (!item.first) return;
    WaitFlag<HardEvent::M_MTE2>(0);
    CopyNd2Nz(queries_, a_.q + static_cast<uint64_t>(item.pair) * heads_ * CM384_MLA_WIDTH * 2, heads_,
              CM384_MLA_WIDTH * 2, CM384_MLA_WIDTH * 2, heads_ * 32);
    SetFlag<HardEvent::MTE2_MTE1>(item.slot[0]);
  }
  // The next `count` tokens, chunk after chunk, of the first `chunks`.
  [[gnu::noinline]] void Copy(uint32_t count, uint32_t chunks) {
    using namespace AscendC;
    const Item& item = *at_.item;
    while (count != 0 && at_.chunk < chunks) {
      const uint32_t chunk = at_.chunk, left = item.count - at_.token, now = count < left ? count : left;
      if (at_.token == 0) WaitFlag<HardEvent::MTE1_MTE2>(item.slot[chunk]);
      cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(0, height_);
      if (chunk == 0) {
        CopyRows<CM384_SPARSE_FIRST_BYTES>(item.l1[0] + at_.token * 32, a_.kv, at_.rows + at_.token, now);
      } else {
        CopyRows<CM384_SPARSE_SECOND_BYTES>(item.l1[1] + at_.token * 32, a_.kv + CM384_SPARSE_FIRST_BYTES,
                                            at_.rows + at_.token, now);
      }
      count -= now;
      at_.token += now;
      if (at_.token != item.count) return;
      if (chunk != 0 || !item.first) SetFlag<HardEvent::MTE2_MTE1>(item.slot[chunk]);
      at_.token = 0;
      at_.chunk = chunk + 1;
    }
  }
  // A chunk of so many rows. The scalar unit has some cycles for each: four numbers are read at once.
  template <uint64_t kBytes>
  static CM384_INLINE void CopyRows(uint64_t to, uint64_t from, const uint32_t* rows, uint32_t count) {
    const auto copy = [&](uint64_t row) {
      cm384::pipe_instruction<CM384_CLASS_MTE, CM384_MTE_GM_TO_L1_ND2NZ>(
          to, from + row * CM384_SPARSE_ROW_BYTES, kBytes | uint64_t{1} << 32);
      to += 32;
    };
    const uint32_t* const end = rows + count;
    for (; rows + 4 <= end; rows += 4) {
      const uint64_t a = rows[0], b = rows[1], c = rows[2], d = rows[3];
      copy(a);
      copy(b);
      copy(c);
      copy(d);
    }
    for (; rows < end; ++rows) copy(*rows);
  }

  void LoadProbabilities(const Item& item, uint32_t i) {
    using namespace AscendC;
    CrossCoreWaitFlag(kProbabilitiesReady);
    WaitFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    CopyNd2Nz(probabilities_, space_.probabilities + (i & 1) * CM384_MLA_PROBABILITIES(a_), heads_,
              item.count * 2, a_.block_tokens * 2, heads_ * 32);
    SetFlag<HardEvent::MTE2_MTE1>(kProbabilities);
  }

  // L0C: the products' places, taken in turn, behind them the scores.
  CM384_INLINE void Out(uint32_t place, uint32_t l0c, uint64_t gm, uint32_t columns, uint64_t pitch) {
    using namespace AscendC;
    SetFlag<HardEvent::M_FIX>(static_cast<int>(place));
    WaitFlag<HardEvent::M_FIX>(static_cast<int>(place));
    Fixpipe<CM384_FIX_KEEP>(gm, l0c, heads_, columns, pitch);
    SetFlag<HardEvent::FIX_M>(static_cast<int>(place));
  }

  // Products of item i - 2, if any, and scores of item i, if any, and the copies of item i + 1. The second
  // chunk meets the probabilities first: few slots are for it.
  void Turn(const Item* products, const Item* scores, uint32_t i) {
    using namespace AscendC;
    const uint32_t all = 2 * half_;
    const bool copies = at_.item != nullptr && at_.chunk < 2;
    uint64_t to = space_.products + i % 3 * CM384_MLA_PRODUCTS(a_);
    if (i >= 2) to = space_.products + (i - 2) % 3 * CM384_MLA_PRODUCTS(a_);
    if (products != nullptr) WaitFlag<HardEvent::MTE2_MTE1>(kProbabilities);
    for (uint32_t product = 0, score = 0; product < all || score < kScoreSteps;) {
      if (product < all && product * 16 <= all * (4 + 3 * score)) {
        if (products != nullptr) Product(*products, to, product);
        ++product;
      } else {
        if (scores != nullptr) Score(*scores, score);
        ++score;
      }
      // The second chunk's slot is free after the first half of the products.
      if (copies && ((product + score) & 1) != 0) Copy(kCopiesAtOnce, product < half_ ? 1 : 2);
    }
    if (products != nullptr) CrossCoreSetFlag<2, PIPE_FIX>(kProductsReady);
    if (scores == nullptr) return;
    if (scores->last) SetFlag<HardEvent::M_MTE2>(0);
    Out(places_, places_ * place_bytes_, space_.scores + (i & 1) * CM384_MLA_SCORES(a_), scores->count,
        a_.block_tokens * 4);
    CrossCoreSetFlag<2, PIPE_FIX>(kScoresReady);
  }

  // Step `step` of kScoreSteps: columns of the queries and of an item.
  CM384_INLINE void Score(const Item& item, uint32_t step) {
    using namespace AscendC;
    const bool second = step >= 3, rope = step == 2;
    const uint32_t within = second ? step - 3 : step, blocks = rope ? kRopes : kStep;
    const uint32_t column = rope ? 2 * kSecondColumns : (second ? step - 1 : step) * kStep;
    const uint32_t l1 = item.l1[second] + within * kStep * height_, tokens = (item.count + 15) / 16;
    if (within == 0) WaitFlag<HardEvent::MTE2_MTE1>(item.slot[second]);
    if (step == 0) WaitFlag<HardEvent::FIX_M>(static_cast<int>(places_));
    Step(places_ * place_bytes_, item.count, blocks * 16, step == 0, [&](uint32_t l0) {
      LoadA<bfloat16_t>(l0, queries_ + column * heads_ * 32, heads_ * 32, heads_ / 16, blocks);
      LoadB<bfloat16_t>(l0, l1, height_, tokens, blocks);
    });
  }

  // Some columns of the latent of an item.
  CM384_INLINE void Product(const Item& item, uint64_t to, uint32_t number) {
    using namespace AscendC;
    const bool second = number < half_;
    const uint32_t within = second ? number : number - half_, place = used_;
    const uint32_t blocks = (item.count + 15) / 16, l0c = place * place_bytes_;
    if (++used_ == places_) used_ = 0;
    WaitFlag<HardEvent::FIX_M>(static_cast<int>(place));
    Step(l0c, columns_, item.count, true, [&](uint32_t l0) {
      LoadA<bfloat16_t>(l0, probabilities_, heads_ * 32, heads_ / 16, blocks);
      LoadBTransposed<bfloat16_t>(l0, item.l1[second] + within * columns_ / 16 * height_, height_,
                                  columns_ / 16, blocks);
      if (within + 1 != half_) return;
      SetFlag<HardEvent::MTE1_MTE2>(item.slot[second]);
      if (!second) SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    });
    const uint32_t column = (second ? CM384_MLA_LATENT / 2 : 0) + within * columns_;
    Out(place, l0c, to + column * 4, columns_, CM384_MLA_LATENT * 4);
  }

  // `load` fills the next half of L0A and L0B, then MMAD.
  template <class Load>
  CM384_INLINE void Step(uint32_t l0c, uint32_t n, uint32_t k, bool first, Load&& load) {
    using namespace AscendC;
    const uint32_t b = steps_++ & 1;
    WaitFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    load(b * kHalf);
    SetFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    WaitFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    Multiply<bfloat16_t>(
        l0c, b * kHalf, b * kHalf,
        MmadParams(static_cast<uint16_t>(heads_), static_cast<uint16_t>(n), static_cast<uint16_t>(k)),
        first ? 0 : 1);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }

  const cm384_sparse_mla& of_;
  const cm384_mla& a_;
  const uint32_t heads_;
  const MlaWorkspace space_;
  MlaWalker walker_;
  const uint32_t height_;                             // bytes of a column of a KV block in L1
  const uint32_t seconds_, probabilities_, queries_;  // in L1; seconds: slots of second chunks
  uint32_t columns_, half_;                           // of a product; products of half of the latents
  uint32_t place_bytes_, places_;                     // in L0C
  uint32_t used_ = 0, steps_ = 0, first_slot_ = 0, second_slot_ = 0;
  // Where Copy() is: the next token of a chunk of an item, whose chosen rows begin there.
  struct Copies {
    const Item* item = nullptr;
    const uint32_t* rows = nullptr;
    uint32_t chunk = 0, token = 0;
  } at_;
};
