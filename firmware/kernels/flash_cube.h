// The cube core's part of kernels `flash_attention`, `flash_grouped`, `flash_full`, `flash_ragged`: in turn i
// the scores of item i, then the products of item i - 2: the vector cores have a turn for the softmax of item
// i - 1. Keys and values of item i + 1 arrive meanwhile. Scores i take the place of scores i - 3 behind
// products i - 3, which had their probabilities: the vector cores have read these scores and the cube core
// the probabilities.
#pragma once

#include "flash_items.h"

// `Form` as in online_softmax.h, and what a key is: kKey, its elements, kKeyStep, of these at a time, and
// KvHeads(a), of keys and values, of which KvHead(a, item) is an item's; FirstRow(a, item), of its sequence.
template <class Form>
class FlashCube {
  using Arguments = typename Form::Arguments;
  using Item = typename Form::Item;

 public:
  FlashCube(const Arguments& a, uint32_t block, uint32_t blocks)
      : a_(a), space_(a, block), walker_(a, block, blocks) {}

  void Run() {
    using namespace AscendC;
    for (uint32_t s = 0; s < kKeySlots; ++s) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(s));
    for (uint32_t s = 0; s < kValueSlots; ++s) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(kKeySlots + s));
    SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::M_MTE2>(b);
      SetFlag<HardEvent::M_MTE1>(b);
      SetFlag<HardEvent::FIX_M>(b);
    }
    Item items[4];  // i - 2 .. i + 1, item n at n % 4
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
  // L1: two tiles of queries, keys and probabilities by turns, values that wait for their probabilities.
  static constexpr uint32_t kKeyBytes = CM384_FLASH_TILE * Form::kKey * 2;
  static constexpr uint32_t kValueBytes = CM384_FLASH_TILE * Form::kWidth * 2;
  static constexpr uint32_t kKeySlots = 2, kValueSlots = 4;
  static constexpr uint32_t kQueries = 0, kKeys = kQueries + 2 * kKeyBytes,
                            kValues = kKeys + kKeySlots * kKeyBytes,
                            kWeights = kValues + kValueSlots * kValueBytes;
  static_assert(kWeights + CM384_FLASH_PROBABILITIES <= 512 * 1024);
  static constexpr int kProbabilities = kKeySlots + kValueSlots;  // event between MTE2 and MTE1
  static constexpr uint32_t kHeight = CM384_FLASH_TILE * 32;      // of a column of NZ in L1
  static constexpr uint32_t kHalf = 32 * 1024;                    // L0A and L0B have two buffers each
  static constexpr uint32_t kScorePlace = 0, kProductPlace = 1;   // in L0C, 64 KiB each
  static constexpr uint32_t kPlaceBytes = 64 * 1024;
  static constexpr uint32_t kStep = Form::kKeyStep;

  CM384_INLINE uint64_t Rows(uint64_t of, const Item& item, uint32_t token, uint32_t width, uint32_t heads,
                             uint32_t head) const {
    const uint64_t row = Form::FirstRow(a_, item) + token;
    return of + (row * heads + head) * width * 2;
  }
  void LoadRows(uint32_t l1, uint64_t gm, uint32_t rows, uint32_t width, uint32_t heads) {
    AscendC::CopyNd2Nz(l1, gm, rows, width * 2, static_cast<uint64_t>(heads) * width * 2, kHeight);
  }

  void Load(const Item& item, uint32_t i) {
    using namespace AscendC;
    if (item.first) {
      const uint32_t q = loaded_++ & 1;
      WaitFlag<HardEvent::M_MTE2>(static_cast<int>(q));
      LoadRows(kQueries + q * kKeyBytes,
               Rows(a_.q, item, item.tile * CM384_FLASH_TILE, Form::kKey, a_.heads, item.head),
               CM384_FLASH_TILE, Form::kKey, a_.heads);
    }
    const uint32_t key = i % kKeySlots, value = i % kValueSlots;
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(key));
    LoadRows(kKeys + key * kKeyBytes,
             Rows(a_.k, item, item.token, Form::kKey, Form::KvHeads(a_), Form::KvHead(a_, item)), item.count,
             Form::kKey, Form::KvHeads(a_));
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(key));  // the queries' too, which came before
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(kKeySlots + value));
    LoadRows(kValues + value * kValueBytes,
             Rows(a_.v, item, item.token, Form::kWidth, Form::KvHeads(a_), Form::KvHead(a_, item)),
             item.count, Form::kWidth, Form::KvHeads(a_));
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(kKeySlots + value));
  }

  void Scores(const Item& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t key = i % kKeySlots, l1 = kKeys + key * kKeyBytes;
    const uint32_t q = kQueries + (task_ & 1) * kKeyBytes;
    WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(key));
    WaitFlag<HardEvent::FIX_M>(kScorePlace);
    for (uint32_t k = 0; k < Form::kKey; k += kStep) {
      Step(kScorePlace, item.count, kStep, k == 0, [&](uint32_t l0) {
        LoadA<bfloat16_t>(l0, q + k / 16 * kHeight, kHeight, CM384_FLASH_TILE / 16, kStep / 16);
        LoadB<bfloat16_t>(l0, l1 + k / 16 * kHeight, kHeight, item.count / 16, kStep / 16);
      });
    }
    SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(key));
    if (item.last) SetFlag<HardEvent::M_MTE2>(static_cast<int>(task_++ & 1));
    Out(kScorePlace, space_.scores + i % CM384_FLASH_TURNS * CM384_FLASH_SCORES, item.count,
        CM384_FLASH_TILE * 4);
    CrossCoreSetFlag<2, PIPE_FIX>(kScoresReady);
  }

  void Products(const Item& item, uint32_t i) {
    using namespace AscendC;
    const uint32_t value = i % kValueSlots, l1 = kValues + value * kValueBytes;
    CrossCoreWaitFlag(kProbabilitiesReady);
    WaitFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    CopyNd2Nz(kWeights, space_.probabilities + i % CM384_FLASH_TURNS * CM384_FLASH_PROBABILITIES,
              CM384_FLASH_TILE, item.count * 2, CM384_FLASH_TILE * 2, kHeight);
    SetFlag<HardEvent::MTE2_MTE1>(kProbabilities);
    WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(kKeySlots + value));
    WaitFlag<HardEvent::MTE2_MTE1>(kProbabilities);
    WaitFlag<HardEvent::FIX_M>(kProductPlace);
    Step(kProductPlace, Form::kWidth, item.count, true, [&](uint32_t l0) {
      LoadA<bfloat16_t>(l0, kWeights, kHeight, CM384_FLASH_TILE / 16, item.count / 16);
      LoadBTransposed<bfloat16_t>(l0, l1, kHeight, Form::kWidth / 16, item.count / 16);
    });
    SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(kKeySlots + value));
    SetFlag<HardEvent::MTE1_MTE2>(kProbabilities);
    Out(kProductPlace, space_.products + i % CM384_FLASH_TURNS * Form::kProducts, Form::kWidth,
        Form::kWidth * 4);
    CrossCoreSetFlag<2, PIPE_FIX>(kProductsReady);
  }

  void Out(uint32_t place, uint64_t gm, uint32_t columns, uint64_t pitch) {
    using namespace AscendC;
    SetFlag<HardEvent::M_FIX>(static_cast<int>(place));
    WaitFlag<HardEvent::M_FIX>(static_cast<int>(place));
    Fixpipe<CM384_FIX_KEEP>(gm, place * kPlaceBytes, CM384_FLASH_TILE, columns, pitch);
    SetFlag<HardEvent::FIX_M>(static_cast<int>(place));
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
    p.m = static_cast<uint16_t>(CM384_FLASH_TILE);
    p.n = static_cast<uint16_t>(n);
    p.k = static_cast<uint16_t>(k);
    p.cmatrixInitVal = first;
    Mmad<bfloat16_t>(place * kPlaceBytes, b * kHalf, b * kHalf, p);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }

  const Arguments& a_;
  const typename Form::Workspace space_;
  typename Form::Walker walker_;
  uint32_t loaded_ = 0, task_ = 0, steps_ = 0;
};
