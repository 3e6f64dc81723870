// The order of work of kernels `flash_grouped` and `flash_full`, and where their results go.
#pragma once

#include "firmware/abi/flash_grouped.h"
#include "flash_cube.h"
#include "flash_items.h"

// Tiles of queries as FlashWalker has them; with a window a tile begins at the block that holds the first key
// of its first query. kCausal: a tile ends with its own tokens; otherwise with the last of the sequence.
template <bool kCausal>
class GroupedWalker {
 public:
  GroupedWalker(const cm384_flash_grouped& a, uint32_t block, uint32_t blocks)
      : a_(a),
        tiles_((a.length + CM384_FLASH_TILE - 1) / CM384_FLASH_TILE),
        ranks_(tiles_ - a.cached / CM384_FLASH_TILE),
        heads_(a.sequences * a.heads),
        window_(a.window / CM384_FLASH_TILE),
        task_(block),
        step_(blocks) {
    token_ = First();
  }

  bool Next(FlashItem& item) {
    if (task_ >= heads_ * ranks_) return false;
    const uint32_t rank = task_ / heads_, pair = task_ - rank * heads_;
    item.sequence = pair / a_.heads;
    item.head = pair - item.sequence * a_.heads;
    item.tile = tiles_ - 1 - rank;
    item.rows = FlashRows(a_.length, item.tile);
    const uint32_t end = kCausal ? item.tile * CM384_FLASH_TILE + item.rows : a_.length;
    item.token = token_;
    item.count = FlashKeys(token_, end, a_.block_tokens);
    item.first = token_ == First();
    token_ += item.count;
    item.last = token_ == end;
    if (item.last) {
      task_ += step_;
      token_ = First();
    }
    return true;
  }

 private:
  // Key that the task begins with.
  uint32_t First() const {
    const uint32_t tile = tiles_ - 1 - task_ / heads_;
    return window_ != 0 && tile > window_ ? (tile - window_) * CM384_FLASH_TILE : 0;
  }

  const cm384_flash_grouped& a_;
  const uint32_t tiles_, ranks_, heads_, window_;  // of a sequence; of these, with output; of all sequences
  uint32_t task_, step_, token_;
};

template <uint32_t kHead>
struct GroupedForm {
  using Arguments = cm384_flash_grouped;
  using Item = FlashItem;
  using Walker = GroupedWalker<true>;
  static constexpr uint32_t kKey = kHead, kKeyStep = kHead, kWidth = kHead;
  static constexpr bool kCausal = true;

  static CM384_INLINE uint64_t FirstRow(const Arguments& a, const FlashItem& item) {
    return static_cast<uint64_t>(item.sequence) * a.length;
  }
  static CM384_INLINE uint32_t KvHeads(const Arguments& a) { return a.kv_heads; }
  static CM384_INLINE uint32_t KvHead(const Arguments& a, const FlashItem& item) {
    return item.head / (a.heads / a.kv_heads);
  }
  // Row r of the tile sees keys behind r of the first block of its window.
  static CM384_INLINE bool Enters(const Arguments& a, const FlashItem& item) {
    return a.window != 0 && item.first && item.tile * CM384_FLASH_TILE >= item.token + a.window;
  }
};

// What kernel `flash_sinks` takes (cm384_flash_sinks).
struct GroupedWithSinks : cm384_flash_grouped {
  uint64_t sinks;
};
static_assert(sizeof(GroupedWithSinks) == sizeof(cm384_flash_sinks));

template <uint32_t kHead>
struct SinksForm : GroupedForm<kHead> {
  using Arguments = GroupedWithSinks;

  static CM384_INLINE uint64_t Sinks(const Arguments& a, const FlashItem& item) {
    return a.sinks + item.head * (CM384_FLASH_TILE * 4ull);
  }
};

// Without a causal mask: each query sees all keys of its sequence.
template <uint32_t kHead>
struct FullForm : GroupedForm<kHead> {
  using Walker = GroupedWalker<false>;
  static constexpr bool kCausal = false;
};

// A core's part.
template <class Form>
[[gnu::noinline]] static void RunGrouped(const typename Form::Arguments& a, uint32_t block, uint32_t blocks) {
  if (ASCEND_IS_AIC) return FlashCube<Form>(a, block, blocks).Run();
  FlashSoftmax<Form>(a, block / 2, blocks, static_cast<uint32_t>(AscendC::GetSubBlockIdx())).Run();
}

template <template <uint32_t> class Form>
CM384_INLINE void GroupedMain(GM_ADDR address) {
  const auto& a = *reinterpret_cast<const typename Form<64>::Arguments*>(address);
  const auto block = static_cast<uint32_t>(AscendC::GetBlockIdx());
  const auto blocks = static_cast<uint32_t>(AscendC::GetBlockNum());
  if (a.width == 64) {
    RunGrouped<Form<64>>(a, block, blocks);
  } else {
    RunGrouped<Form<128>>(a, block, blocks);
  }
}
