// Where operators put what they exchange, as it is published, by arithmetic of the reference's own: the
// headers of firmware/abi, which kernels and the host place by, are not asked. Offsets and sizes are in
// bytes.
//
// testbenches/workloads/operators/reference/layouts_test.cpp works one case of each out by hand and holds
// firmware/abi to all.
#pragma once

#include <cstdint>

namespace cm384::reference {

constexpr std::uint64_t up_to(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// A slot for a row that dispatch sends: the int8 row, a block of 32 B that begins with the float scale, the
// triple (12 B); whole blocks of 512 B. Source: ascend-facts B1.
struct DispatchSlot {
  std::uint64_t hidden = 0;

  constexpr std::uint64_t scale() const { return up_to(hidden, 32); }
  constexpr std::uint64_t triple() const { return scale() + 32; }
  constexpr std::uint64_t bytes() const { return up_to(triple() + 12, 512); }
};

// The same for dispatch_full_mesh: blocks of 512 B, each 480 B of payload and 32 B of flag; row and scale,
// then a block that begins with the triple. Source: ascend-facts B3, 16 blocks at a hidden size of 7168.
struct FullMeshPacket {
  std::uint64_t hidden = 0;

  constexpr std::uint64_t blocks() const { return (up_to(hidden, 32) + 32 + 479) / 480 + 1; }
  constexpr std::uint64_t bytes() const { return blocks() * 512; }
};

// A half of a rank's data window: rows that combine brings back, by token and place, BF16 in whole blocks of
// 512 B; behind them rows that dispatch sends, by source rank, local expert and position. Source:
// ascend-facts B1.
struct DataWindow {
  std::uint64_t hidden = 0, tokens = 0, places = 0;  // places: experts of a token, shared ones inside
  std::uint64_t ranks = 0, local_experts = 0;
  std::uint64_t slot_bytes = 0;

  constexpr std::uint64_t combine_slot_bytes() const { return up_to(2 * hidden, 512); }
  constexpr std::uint64_t combine(std::uint64_t token, std::uint64_t place) const {
    return (token * places + place) * combine_slot_bytes();
  }
  constexpr std::uint64_t dispatch(std::uint64_t source, std::uint64_t local, std::uint64_t position) const {
    return combine(tokens, 0) + ((source * local_experts + local) * tokens + position) * slot_bytes;
  }
  constexpr std::uint64_t bytes() const { return dispatch(ranks, 0, 0); }
};

// A rank's status window: two halves, entries of 32 B. Source: ascend-facts B1.
struct StatusWindow {
  static constexpr std::uint64_t kEntryBytes = 32, kHalfBytes = 500 * 1024, kCombine = 64 * 1024;
  static constexpr std::uint64_t kDispatchEntries = kCombine / kEntryBytes;  // at most
  std::uint64_t ranks = 0, places = 0;

  constexpr std::uint64_t dispatch(std::uint64_t local, std::uint64_t source) const {
    return (local * ranks + source) * kEntryBytes;
  }
  constexpr std::uint64_t combine(std::uint64_t token, std::uint64_t place) const {
    return kCombine + (token * places + place) * kEntryBytes;
  }
};

// Multi-head latent attention, in elements of BF16: what is cached of a token is a latent of 512 and a rope
// of 64; a page holds 128 tokens in columns of 16 elements (NZ). Heads have 128 elements without rope, and
// values of 128. Source: DeepSeek-V2 (arXiv:2405.04434), section 2.1; ascend-facts A.
struct MlaLayout {
  static constexpr std::uint32_t kLatent = 512, kRope = 64, kWidth = 576;
  static constexpr std::uint32_t kNope = 128, kHead = 192, kValue = 128;
  static constexpr std::uint32_t kPageTokens = 128, kPageElements = 73'728;

  // Offset of an element of a token in its page.
  static constexpr std::uint64_t in_page(std::uint64_t token, std::uint64_t element) {
    return (element / 16 * kPageTokens + token) * 16 + element % 16;
  }
};

// Of sparse attention: a page of index keys has 128 INT8 keys of 128 in columns of 32 (NZ), then their float
// scales; a token of the latents' cache is one row: half of the latent, the rope, the other half. Source:
// DeepSeek-V3.2 (arXiv:2512.02556), section 2.1, and the kernels' own headers.
struct IndexLayout {
  static constexpr std::uint32_t kWidth = 128;
  static constexpr std::uint64_t kPageBytes = 16'896;

  // In bytes, of an element of a key, and of a scale, in its page.
  static constexpr std::uint64_t key(std::uint64_t token, std::uint64_t element) {
    return (element / 32 * MlaLayout::kPageTokens + token) * 32 + element % 32;
  }
  static constexpr std::uint64_t scale(std::uint64_t token) { return 16'384 + token * 4; }
};
struct SparseRow {
  // Where an element of a token stands in its row: latents 0 .. 511, rope 512 .. 575.
  static constexpr std::uint64_t element(std::uint64_t number) {
    return number < 256 ? number : number < MlaLayout::kLatent ? number + 64 : number - 256;
  }
};

}  // namespace cm384::reference
