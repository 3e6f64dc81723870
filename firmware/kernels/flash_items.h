// The order of work of kernel `flash_attention`, which the cube core and its vector cores walk alike.
#pragma once

#include "firmware/abi/flash_attention.h"
#include "online_softmax.h"

struct FlashItem {
  uint32_t sequence, head;
  uint32_t tile;          // of queries
  uint32_t token, count;  // keys, of the sequence
  bool first, last;       // of its task; the last one is the tile's own tokens
};

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
    item.token = block_ * CM384_FLASH_TILE;
    const uint32_t left = a_.length - item.token;
    item.count = left < CM384_FLASH_TILE ? left : CM384_FLASH_TILE;
    item.first = block_ == 0;
    item.last = block_ == item.tile;
    ++block_;
    if (item.last) {
      block_ = 0;
      task_ += step_;
    }
    return true;
  }

 private:
  const cm384_flash_attention& a_;
  const uint32_t tiles_, ranks_, heads_;  // of a sequence; of these, with output; of all sequences
  uint32_t task_, step_, block_ = 0;
};

// Where a block keeps what its cores hand each other, three of each, taken in turn.
struct FlashWorkspace {
  CM384_INLINE FlashWorkspace(const cm384_flash_attention& a, uint32_t block)
      : scores(a.workspace + block * CM384_FLASH_WORKSPACE),
        probabilities(scores + CM384_FLASH_TURNS * CM384_FLASH_SCORES),
        products(probabilities + CM384_FLASH_TURNS * CM384_FLASH_PROBABILITIES) {}
  uint64_t scores, probabilities, products;
};

struct FlashForm {
  using Arguments = cm384_flash_attention;
  using Item = FlashItem;
  using Walker = FlashWalker;
  using Workspace = FlashWorkspace;
  static constexpr uint32_t kKey = CM384_FLASH_KEY, kKeyStep = 96, kProducts = CM384_FLASH_PRODUCTS;
  static constexpr uint32_t kWidth = CM384_FLASH_VALUE, kWholeRows = 32, kPieceRows = 32,
                            kTurns = CM384_FLASH_TURNS;
  static constexpr bool kCausal = true, kSplits = false;

  static CM384_INLINE uint64_t FirstRow(const Arguments& a, const FlashItem& item) {
    return static_cast<uint64_t>(item.sequence) * a.length;
  }
  static CM384_INLINE uint32_t KvHeads(const Arguments& a) { return a.heads; }
  static CM384_INLINE uint32_t KvHead(const Arguments&, const FlashItem& item) { return item.head; }
  static CM384_INLINE uint32_t Rows(const Arguments&) { return CM384_FLASH_TILE; }
  static CM384_INLINE uint64_t Scores(const Arguments&) { return CM384_FLASH_SCORES; }
  static CM384_INLINE uint64_t Probabilities(const Arguments&) { return CM384_FLASH_PROBABILITIES; }
  static CM384_INLINE uint64_t Products(const Arguments&) { return CM384_FLASH_PRODUCTS; }
  static CM384_INLINE uint64_t Result(const Arguments& a, const FlashItem& item, uint64_t row,
                                      uint32_t column) {
    const uint64_t token = static_cast<uint64_t>(item.sequence) * a.length + item.token + row;
    return a.out + ((token * a.heads + item.head) * CM384_FLASH_VALUE + column) * 2;
  }
  static CM384_INLINE uint64_t Pitch(const Arguments& a) { return a.heads * CM384_FLASH_VALUE * 2; }
  // The tile's own tokens are those of its last item.
  static CM384_INLINE uint32_t ResultRows(const Arguments&, const FlashItem& item, uint64_t row) {
    return row < item.count ? item.count - static_cast<uint32_t>(row) : 0;
  }
};
