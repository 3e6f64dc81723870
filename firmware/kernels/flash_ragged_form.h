// Causal attention of a prefill over prompts of any lengths: the order of work, and where results go.
#pragma once

#include "firmware/abi/flash_ragged.h"
#include "flash_cube.h"

struct RaggedItem {
  uint32_t row;  // of the first token of its prompt
  uint32_t head;
  uint32_t tile, rows;    // of queries, of which the prompt has so many
  uint32_t token, count;  // keys, of the prompt
  bool first, last;       // of its task
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
    item.rows = FlashRows(tile_.length, item.tile);
    const uint32_t end = item.tile * CM384_FLASH_TILE + item.rows;
    item.token = token_;
    item.count = FlashKeys(token_, end, a_.block_tokens);
    item.first = token_ == 0;
    token_ += item.count;
    item.last = token_ == end;
    if (item.last) {
      token_ = 0;
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
  uint32_t task_, step_, token_ = 0, head_ = 0;
  cm384_flash_tile tile_{};
};

template <uint32_t kOfKey, uint32_t kOfValue>
struct RaggedForm {
  using Arguments = cm384_flash_ragged;
  using Item = RaggedItem;
  using Walker = RaggedWalker;
  static constexpr uint32_t kKey = kOfKey, kKeyStep = kOfKey > 128 ? kOfKey / 2 : kOfKey, kWidth = kOfValue;
  static constexpr bool kCausal = true;

  static CM384_INLINE uint64_t FirstRow(const Arguments&, const Item& item) { return item.row; }
  static CM384_INLINE uint32_t KvHeads(const Arguments& a) { return a.kv_heads; }
  static CM384_INLINE uint32_t KvHead(const Arguments& a, const Item& item) {
    return item.head / (a.heads / a.kv_heads);
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
  FlashSoftmax<Form>(a, block / 2, blocks, static_cast<uint32_t>(AscendC::GetSubBlockIdx())).Run();
}
