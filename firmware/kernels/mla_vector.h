// A vector core's part of kernel `mla`.
#pragma once

#include "mla_items.h"
#include "online_softmax.h"

struct MlaForm {
  using Arguments = cm384_mla;
  using Item = MlaItem;
  using Walker = MlaWalker;
  using Workspace = MlaWorkspace;
  using Pair = MlaPair;
  static constexpr uint32_t kWidth = CM384_MLA_LATENT, kWholeRows = 32, kPieceRows = 16, kTurns = 2;

  static CM384_INLINE uint32_t Rows(const cm384_mla& a) { return a.heads; }
  static CM384_INLINE uint64_t Scores(const cm384_mla& a) { return CM384_MLA_SCORES(a); }
  static CM384_INLINE uint64_t Probabilities(const cm384_mla& a) { return CM384_MLA_PROBABILITIES(a); }
  static CM384_INLINE uint64_t Products(const cm384_mla& a) { return CM384_MLA_PRODUCTS(a); }
  static CM384_INLINE uint64_t Result(const cm384_mla& a, const MlaItem& item, uint64_t row,
                                      uint32_t column) {
    const uint64_t to = static_cast<uint64_t>(item.pair) * a.heads + row;
    return a.out + (to * CM384_MLA_LATENT + column) * 2;
  }
  static CM384_INLINE uint64_t Pitch(const cm384_mla&) { return CM384_MLA_LATENT * 2; }
  static CM384_INLINE uint32_t ResultRows(const cm384_mla&, const MlaItem&, uint64_t) { return ~0u; }
  static CM384_INLINE uint64_t Part(const cm384_mla& a, const MlaItem& item) {
    return (static_cast<uint64_t>(item.pair) * a.splits + item.split) * a.heads;
  }
  static CM384_INLINE uint64_t Out(const cm384_mla& a, uint32_t pair, uint32_t head) {
    return a.out + (static_cast<uint64_t>(pair) * a.heads + head) * CM384_MLA_LATENT * 2;
  }
  static CM384_INLINE uint32_t OutRows(const cm384_mla&, uint32_t) { return 8; }
};

using MlaVector = OnlineSoftmax<MlaForm>;
