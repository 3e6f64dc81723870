// Causal attention of a prefill over prompts of any lengths: the order of work, and where results go.
#pragma once

#include "firmware/abi/flash_ragged.h"
#include "flash_cube.h"

struct RaggedItem {
  uint32_t row;  // of the first token of its prompt
  uint32_t head;
  uint32_t tile;          // of queries
  uint32_t token, count;  // keys, of the prompt
  bool first, last;       // of its task; the last one is the tile's own tokens
};

class RaggedWalker {
 public:
  RaggedWalker(const cm384_flash_ragged& a, uint32_t block, uint32_t blocks)
      : a_(a), tasks_(a.tile_count * a.heads), task_(block), step_(blocks) {
    Fetch();
  }

  bool Next(RaggedItem& item) {
    if (task_ >= tasks_) return false;
    item.row = tile_.row;
    item.head = head_;
    item.tile = tile_.tile;
    item.token = block_ * CM384_FLASH_TILE;
    const uint32_t left = tile_.length - item.token;
    item.count = left < CM384_FLASH_TILE ? left : CM384_FLASH_TILE;
    item.first = block_ == 0;
    item.last = block_ == item.tile;
    ++block_;
    if (item.last) {
      block_ = 0;
      task_ += step_;
      Fetch();
    }
    return true;
  }

 private:
  void Fetch() {
    if (task_ >= tasks_) return;
    const uint32_t place = task_ / a_.heads;
    head_ = task_ - place * a_.heads;
    tile_ = reinterpret_cast<const cm384_flash_tile*>(a_.tiles)[place];
  }

  const cm384_flash_ragged& a_;
  const uint32_t tasks_;
  uint32_t task_, step_, block_ = 0, head_ = 0;
  cm384_flash_tile tile_{};
};

struct RaggedWorkspace {
  CM384_INLINE RaggedWorkspace(const cm384_flash_ragged& a, uint32_t block)
      : scores(a.workspace + block * CM384_FLASH_WORKSPACE),
        probabilities(scores + CM384_FLASH_TURNS * CM384_FLASH_SCORES),
        products(probabilities + CM384_FLASH_TURNS * CM384_FLASH_PROBABILITIES) {}
  uint64_t scores, probabilities, products;
};

template <uint32_t kOfKey, uint32_t kOfValue>
struct RaggedForm {
  using Arguments = cm384_flash_ragged;
  using Item = RaggedItem;
  using Walker = RaggedWalker;
  using Workspace = RaggedWorkspace;
  static constexpr uint32_t kKey = kOfKey, kKeyStep = kOfKey > 128 ? kOfKey / 2 : kOfKey,
                            kProducts = CM384_FLASH_TILE * kOfValue * 4;
  static constexpr uint32_t kWidth = kOfValue, kWholeRows = 32, kPieceRows = 32, kTurns = CM384_FLASH_TURNS;
  static constexpr bool kCausal = true, kSplits = false;

  static CM384_INLINE uint64_t FirstRow(const Arguments&, const Item& item) { return item.row; }
  static CM384_INLINE uint32_t KvHeads(const Arguments& a) { return a.kv_heads; }
  static CM384_INLINE uint32_t KvHead(const Arguments& a, const Item& item) {
    return item.head / (a.heads / a.kv_heads);
  }
  static CM384_INLINE uint32_t Rows(const Arguments&) { return CM384_FLASH_TILE; }
  static CM384_INLINE uint64_t Scores(const Arguments&) { return CM384_FLASH_SCORES; }
  static CM384_INLINE uint64_t Probabilities(const Arguments&) { return CM384_FLASH_PROBABILITIES; }
  static CM384_INLINE uint64_t Products(const Arguments&) { return kProducts; }
  static CM384_INLINE uint64_t Result(const Arguments& a, const Item& item, uint64_t row, uint32_t column) {
    const uint64_t token = item.row + item.token + row;
    return a.out + ((token * a.heads + item.head) * kOfValue + column) * 2;
  }
  static CM384_INLINE uint64_t Pitch(const Arguments& a) { return a.heads * kOfValue * 2; }
  // The tile's own tokens are those of its last item.
  static CM384_INLINE uint32_t ResultRows(const Arguments&, const Item& item, uint64_t row) {
    return row < item.count ? item.count - static_cast<uint32_t>(row) : 0;
  }
};

// What kernel `flash_ragged_sinks` takes (cm384_flash_ragged_sinks).
struct RaggedWithSinks : cm384_flash_ragged {
  uint64_t sinks;
};
static_assert(sizeof(RaggedWithSinks) == sizeof(cm384_flash_ragged_sinks));

template <uint32_t kOfKey>
struct RaggedSinksForm : RaggedForm<kOfKey, kOfKey> {
  using Arguments = RaggedWithSinks;

  static CM384_INLINE uint64_t Sinks(const Arguments& a, const RaggedItem& item) {
    return a.sinks + item.head * (CM384_FLASH_TILE * 4ull);
  }
};

// A core's part.
template <class Form>
[[gnu::noinline]] static void RunRagged(const typename Form::Arguments& a, uint32_t block, uint32_t blocks) {
  if (ASCEND_IS_AIC) return FlashCube<Form>(a, block, blocks).Run();
  OnlineSoftmax<Form>(a, block / 2, blocks, static_cast<uint32_t>(AscendC::GetSubBlockIdx())).Run();
}
