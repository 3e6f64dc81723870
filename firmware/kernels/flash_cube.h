// The cube core's part of kernels `flash_attention`, `flash_grouped`, `flash_full`, `flash_ragged`: in turn i
// the scores of item i, then the products of item i - 2: the vector cores have a turn for the softmax of item
// i - 1. Keys and values come in blocks of CM384_FLASH_TILE, two blocks ahead of the work on them. Scores i
// take the place of scores i - 3 behind products i - 3, which had their probabilities: the vector cores have
// read these scores and the cube core the probabilities.
#pragma once

#include "flash_items.h"

// `Form` as in flash_softmax.h, and what a key is: kKey, its elements, kKeyStep, of these at a time, and
// KvHeads(a), of keys and values, of which KvHead(a, item) is an item's; FirstRow(a, item), of its sequence.
template <class Form>
class FlashCube {
  using Arguments = typename Form::Arguments;
  using Item = typename Form::Item;

 public:
  FlashCube(const Arguments& a, uint32_t block, uint32_t blocks)
      : a_(a), space_(a.workspace, block, a.block_tokens), walker_(a, block, blocks) {}

  void Run() {
    using namespace AscendC;
    for (uint32_t s = 0; s < kSlots; ++s) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(s));
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::M_MTE2>(b);
      SetFlag<HardEvent::M_MTE1>(b);
    }
    for (int place = 0; place < 3; ++place) SetFlag<HardEvent::FIX_M>(place);
    for (uint32_t ahead = 0; ahead < kAhead; ++ahead) {
      LoadKeys();
      LoadValues();
    }
    for (uint32_t i = 0; IsThere(i) || i < items_made_ + 2; ++i) {
      if (IsThere(i)) Scores(items_[i % kItems], i);
      if (i >= 2 && i - 2 < items_made_) Products(items_[(i - 2) % kItems], i - 2);
    }
    PipeBarrier<PIPE_ALL>();
  }

 private:
  // The next block of an item that something is done with.
  struct Cursor {
    uint32_t item = 0, block = 0;
  };
  static constexpr uint32_t kItems = 8;  // more than from the products to the keys that are loaded
  static constexpr uint32_t kAhead = 2;  // blocks
  // L1: two tiles of queries, then slots of keys, of values and of probabilities, taken in turn. A slot's
  // number is that of its events between MTE1 and MTE2.
  static constexpr uint32_t kKeySlots = 3, kValueSlots = 3, kWeightSlots = 2;
  static constexpr uint32_t kValue = kKeySlots, kWeight = kValue + kValueSlots,
                            kSlots = kWeight + kWeightSlots;
  static constexpr uint32_t kKeyBytes = CM384_FLASH_TILE * Form::kKey * 2;
  static constexpr uint32_t kValueBytes = CM384_FLASH_TILE * Form::kWidth * 2;
  static constexpr uint32_t kWeightBytes = CM384_FLASH_TILE * CM384_FLASH_TILE * 2;
  static constexpr uint32_t kQueries = 0, kKeys = kQueries + 2 * kKeyBytes,
                            kValues = kKeys + kKeySlots * kKeyBytes,
                            kWeights = kValues + kValueSlots * kValueBytes;
  static_assert(kWeights + kWeightSlots * kWeightBytes <= 512 * 1024);
  static constexpr uint32_t kHeight = CM384_FLASH_TILE * 32;  // of a column of NZ in L1
  static constexpr uint32_t kHalf = 32 * 1024;                // L0A and L0B have two buffers each
  // L0C: two places of the scores of half of the rows, one of products.
  static constexpr uint32_t kHalfRows = CM384_FLASH_TILE / 2, kProductPlace = 2, kPlaceBytes = 32 * 1024;
  static constexpr uint32_t kStep = Form::kKeyStep;

  // Whether there is an item of this number; it is in items_ then.
  bool IsThere(uint32_t item) {
    while (items_made_ <= item && !ended_) {
      if (walker_.Next(items_[items_made_ % kItems])) {
        ++items_made_;
      } else {
        ended_ = true;
      }
    }
    return item < items_made_;
  }
  static CM384_INLINE uint32_t Blocks(const Item& item) {
    return (item.count + CM384_FLASH_TILE - 1) / CM384_FLASH_TILE;
  }
  static CM384_INLINE uint32_t Columns(const Item& item, uint32_t block) {
    const uint32_t left = item.count - block * CM384_FLASH_TILE;
    return left < CM384_FLASH_TILE ? left : CM384_FLASH_TILE;
  }
  CM384_INLINE void Advance(Cursor& cursor) {
    if (++cursor.block < Blocks(items_[cursor.item % kItems])) return;
    cursor.block = 0;
    ++cursor.item;
  }

  CM384_INLINE uint64_t Rows(uint64_t of, const Item& item, uint32_t token, uint32_t width, uint32_t heads,
                             uint32_t head) const {
    const uint64_t row = Form::FirstRow(a_, item) + token;
    return of + (row * heads + head) * width * 2;
  }
  void LoadRows(uint32_t l1, uint64_t gm, uint32_t rows, uint32_t width, uint32_t heads) {
    AscendC::CopyNd2Nz(l1, gm, rows, width * 2, static_cast<uint64_t>(heads) * width * 2, kHeight);
  }

  // The next block of keys, behind its queries where it is a task's first.
  void LoadKeys() {
    using namespace AscendC;
    if (!IsThere(keys_.item)) return;
    const Item& item = items_[keys_.item % kItems];
    if (item.first && keys_.block == 0) {
      const uint32_t q = loaded_++ & 1;
      WaitFlag<HardEvent::M_MTE2>(static_cast<int>(q));
      LoadRows(kQueries + q * kKeyBytes,
               Rows(a_.q, item, item.tile * CM384_FLASH_TILE, Form::kKey, a_.heads, item.head),
               CM384_FLASH_TILE, Form::kKey, a_.heads);
    }
    const uint32_t slot = key_slot_;
    key_slot_ = slot + 1 == kKeySlots ? 0 : slot + 1;
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(slot));
    LoadRows(kKeys + slot * kKeyBytes,
             Rows(a_.k, item, item.token + keys_.block * CM384_FLASH_TILE, Form::kKey, Form::KvHeads(a_),
                  Form::KvHead(a_, item)),
             Columns(item, keys_.block), Form::kKey, Form::KvHeads(a_));
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(slot));
    Advance(keys_);
  }
  void LoadValues() {
    using namespace AscendC;
    if (!IsThere(values_.item)) return;
    const Item& item = items_[values_.item % kItems];
    const uint32_t slot = value_slot_;
    value_slot_ = slot + 1 == kValueSlots ? 0 : slot + 1;
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(kValue + slot));
    LoadRows(kValues + slot * kValueBytes,
             Rows(a_.v, item, item.token + values_.block * CM384_FLASH_TILE, Form::kWidth, Form::KvHeads(a_),
                  Form::KvHead(a_, item)),
             Columns(item, values_.block), Form::kWidth, Form::KvHeads(a_));
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(kValue + slot));
    Advance(values_);
  }
  void LoadWeights(const Item& item, uint32_t i, uint32_t block) {
    using namespace AscendC;
    const uint32_t slot = weight_slot_;
    weight_slot_ ^= 1;
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(kWeight + slot));
    CopyToL1(kWeights + slot * kWeightBytes, space_.Probabilities(i) + block * kWeightBytes,
             Columns(item, block) / 16 * kHeight);
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(kWeight + slot));
  }

  void Scores(const Item& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t blocks = Blocks(item), q = kQueries + (task_ & 1) * kKeyBytes;
    for (uint32_t block = 0; block < blocks; ++block) {
      LoadKeys();
      const uint32_t slot = score_slot_, l1 = kKeys + slot * kKeyBytes, columns = Columns(item, block);
      score_slot_ = slot + 1 == kKeySlots ? 0 : slot + 1;
      WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(slot));
      const uint64_t pitch = static_cast<uint64_t>(blocks) * CM384_FLASH_TILE * 4;
      for (uint32_t half = 0; half < 2; ++half) {
        WaitFlag<HardEvent::FIX_M>(static_cast<int>(half));
        for (uint32_t k = 0; k < Form::kKey; k += kStep) {
          Step(half, kHalfRows, columns, kStep, k == 0, [&](uint32_t l0) {
            LoadA<bfloat16_t>(l0, q + half * kHalfRows * 32 + k / 16 * kHeight, kHeight, kHalfRows / 16,
                              kStep / 16);
            LoadB<bfloat16_t>(l0, l1 + k / 16 * kHeight, kHeight, columns / 16, kStep / 16);
          });
        }
        if (half == 1) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(slot));
        Out(half, space_.Scores(i) + half * kHalfRows * pitch + block * CM384_FLASH_TILE * 4, kHalfRows,
            columns, pitch);
      }
    }
    if (item.last) SetFlag<HardEvent::M_MTE2>(static_cast<int>(task_++ & 1));
    CrossCoreSetFlag<2, PIPE_FIX>(kScoresReady);
  }

  void Products(const Item& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t blocks = Blocks(item);
    CrossCoreWaitFlag(kProbabilitiesReady);
    LoadWeights(item, i, 0);
    WaitFlag<HardEvent::FIX_M>(kProductPlace);
    for (uint32_t block = 0; block < blocks; ++block) {
      if (block + 1 < blocks) LoadWeights(item, i, block + 1);
      LoadValues();
      const uint32_t weight = product_weight_, value = product_value_, columns = Columns(item, block);
      product_weight_ ^= 1;
      product_value_ = value + 1 == kValueSlots ? 0 : value + 1;
      WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(kValue + value));
      WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(kWeight + weight));
      Step(kProductPlace, CM384_FLASH_TILE, Form::kWidth, columns, block == 0, [&](uint32_t l0) {
        LoadA<bfloat16_t>(l0, kWeights + weight * kWeightBytes, kHeight, CM384_FLASH_TILE / 16, columns / 16);
        LoadBTransposed<bfloat16_t>(l0, kValues + value * kValueBytes, kHeight, Form::kWidth / 16,
                                    columns / 16);
      });
      SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(kValue + value));
      SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(kWeight + weight));
    }
    Out(kProductPlace, space_.Products(i), CM384_FLASH_TILE, Form::kWidth, Form::kWidth * 4);
    CrossCoreSetFlag<2, PIPE_FIX>(kProductsReady);
  }

  void Out(uint32_t place, uint64_t gm, uint32_t rows, uint32_t columns, uint64_t pitch) {
    using namespace AscendC;
    SetFlag<HardEvent::M_FIX>(static_cast<int>(place));
    WaitFlag<HardEvent::M_FIX>(static_cast<int>(place));
    Fixpipe<CM384_FIX_KEEP>(gm, place * kPlaceBytes, rows, columns, pitch);
    SetFlag<HardEvent::FIX_M>(static_cast<int>(place));
  }

  // `load` fills the next half of L0A and L0B, then MMAD.
  template <class Load>
  CM384_INLINE void Step(uint32_t place, uint32_t m, uint32_t n, uint32_t k, bool first, Load&& load) {
    using namespace AscendC;
    const uint32_t b = steps_++ & 1;
    WaitFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    load(b * kHalf);
    SetFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    WaitFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    MmadParams p;
    p.m = static_cast<uint16_t>(m);
    p.n = static_cast<uint16_t>(n);
    p.k = static_cast<uint16_t>(k);
    p.cmatrixInitVal = first;
    Mmad<bfloat16_t>(place * kPlaceBytes, b * kHalf, b * kHalf, p);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }

  const Arguments& a_;
  const FlashWorkspace space_;
  typename Form::Walker walker_;
  Item items_[kItems];  // item n at n % kItems
  uint32_t items_made_ = 0;
  bool ended_ = false;  // there are no more
  Cursor keys_, values_;
  uint32_t key_slot_ = 0, value_slot_ = 0, weight_slot_ = 0;          // that are filled next
  uint32_t score_slot_ = 0, product_value_ = 0, product_weight_ = 0;  // that are used next
  uint32_t loaded_ = 0, task_ = 0, steps_ = 0;
};
