// The order of work of kernel `flash_attention`, which the cube core and its vector cores walk alike.
#pragma once

#include "firmware/abi/flash_attention.h"
#include "flash_softmax.h"

// Keys and values of a tile of queries, `block_tokens` of them at most.
struct FlashItem {
  uint32_t sequence, head;
  uint32_t tile, rows;    // of queries, of which the sequence has so many
  uint32_t token, count;  // keys, of the sequence
  bool first, last;       // of its task
};

// Tokens of a sequence that tile `tile` of its queries has.
CM384_INLINE uint32_t FlashRows(uint32_t length, uint32_t tile) {
  const uint32_t left = length - tile * CM384_FLASH_TILE;
  return left < CM384_FLASH_TILE ? left : CM384_FLASH_TILE;
}
// The next item's keys, from `token` on, of a task that ends before `end`: how many.
CM384_INLINE uint32_t FlashKeys(uint32_t token, uint32_t end, uint32_t block_tokens) {
  const uint32_t left = end - token;
  return left < block_tokens ? left : block_tokens;
}

class FlashWalker {
 public:
  FlashWalker(const cm384_flash_attention& a, uint32_t block, uint32_t blocks)
      : a_(a),
        tiles_((a.length + CM384_FLASH_TILE - 1) / CM384_FLASH_TILE),
        ranks_(tiles_ - a.cached / CM384_FLASH_TILE),
        heads_(a.sequences * a.heads),
        task_(block),
        step_(blocks) {}

  bool Next(FlashItem& item) {
    if (task_ >= heads_ * ranks_) return false;
    const uint32_t rank = task_ / heads_, pair = task_ - rank * heads_;
    item.sequence = pair / a_.heads;
    item.head = pair - item.sequence * a_.heads;
    item.tile = tiles_ - 1 - rank;
    item.rows = FlashRows(a_.length, item.tile);
    const uint32_t end = item.tile * CM384_FLASH_TILE + item.rows;
    item.token = token_;
    item.count = FlashKeys(token_, end, a_.block_tokens);
    item.first = token_ == 0;
    token_ += item.count;
    item.last = token_ == end;
    if (item.last) {
      token_ = 0;
      task_ += step_;
    }
    return true;
  }

 private:
  const cm384_flash_attention& a_;
  const uint32_t tiles_, ranks_, heads_;  // of a sequence; of these, with output; of all sequences
  uint32_t task_, step_, token_ = 0;
};

struct FlashForm {
  using Arguments = cm384_flash_attention;
  using Item = FlashItem;
  using Walker = FlashWalker;
  static constexpr uint32_t kKey = CM384_FLASH_KEY, kKeyStep = 96, kWidth = CM384_FLASH_VALUE;
  static constexpr bool kCausal = true;

  static CM384_INLINE uint64_t FirstRow(const Arguments& a, const FlashItem& item) {
    return static_cast<uint64_t>(item.sequence) * a.length;
  }
  static CM384_INLINE uint32_t KvHeads(const Arguments& a) { return a.heads; }
  static CM384_INLINE uint32_t KvHead(const Arguments&, const FlashItem& item) { return item.head; }
};
