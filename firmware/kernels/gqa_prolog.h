// Norm, projection and rotation before attention over grouped keys and values; with norms of heads, too.
// Arguments: firmware/abi/gqa_projections.h.
#pragma once

#include "dequantise.h"
#include "firmware/abi/gqa_projections.h"
#include "head_norm.h"
#include "kernel_operator.h"
#include "project.h"
#include "rope.h"
#include "steps.h"

inline constexpr uint32_t kColumnBytes =
    CM384_GQA_PAGE_TOKENS * 32;  // of a page: one 32 B block of every token

// What kernel `gqa_prolog_normed` takes (cm384_gqa_prolog_normed).
struct NormedProlog : cm384_gqa_prolog {
  uint64_t gamma_q, gamma_k;
};
static_assert(sizeof(NormedProlog) == sizeof(cm384_gqa_prolog_normed));

static void NormInput(const cm384_gqa_prolog& a, Range tokens) {
  RmsNorm norm(a.hidden, 0, 0, a.epsilon);
  norm.Open(a.gamma_x);
  for (uint32_t t = tokens.first; t < tokens.last; ++t)
    NormTo(norm, a.x + static_cast<uint64_t>(t) * a.hidden * 2, a.qkv, t);
  norm.Close();
}

// Norms of heads behind what else a core has in the UBuffer; without them nothing.
template <uint32_t kWidth, class Arguments>
struct HeadNorms {
  HeadNorms(const Arguments&, uint32_t) {}
  static AsTheyAre Queries(const Arguments&) { return {}; }
  static AsTheyAre Keys(const Arguments&) { return {}; }
};
template <uint32_t kWidth>
struct HeadNorms<kWidth, NormedProlog> {
  HeadNorms(const NormedProlog& a, uint32_t base)
      : queries_(a.heads_at_once, base, a.epsilon),
        keys_(a.kv_heads, base + kHeadNormBytes(a.heads_at_once, kWidth), a.epsilon) {
    queries_.Open(a.gamma_q, 4);
    keys_.Open(a.gamma_k, 4);
  }
  CM384_INLINE auto Queries(const NormedProlog& a) const { return Of(queries_, a.heads_at_once); }
  CM384_INLINE auto Keys(const NormedProlog& a) const { return Of(keys_, a.kv_heads); }

 private:
  static CM384_INLINE auto Of(const HeadNorm<kWidth>& norm, uint32_t rows) {
    return [&norm, rows](const AscendC::LocalTensor<float>& heads, const AscendC::LocalTensor<float>& work) {
      norm.Rows(heads, work, rows);
    };
  }
  const HeadNorm<kWidth> queries_, keys_;
};

// What a token's heads are made into, dealt out to `cores` vector cores by token and some heads: queries are
// rotated, keys rotated into the cache, values copied there.
template <uint32_t kWidth, class Arguments>
[[gnu::noinline]] static void Heads(const Arguments& a, uint32_t core, uint32_t cores) {
  using namespace AscendC;
  const uint32_t keys = kRopeBytes(a.heads_at_once, kWidth), values = keys + kRopeBytes(a.kv_heads, kWidth);
  const uint32_t row = kWidth * 2, part = a.kv_heads * row;
  RopeOf<kWidth> query(a.heads_at_once, 0, 0), key(a.kv_heads, keys, 2);
  query.Open();
  key.Open();
  const HeadNorms<kWidth, Arguments> norms(a, values + part);
  SetFlag<HardEvent::MTE3_MTE2>(0);
  const uint32_t parts = a.heads / a.heads_at_once + 1;
  for (uint32_t unit = core; unit < a.tokens * parts; unit += cores) {
    const uint32_t token = unit / parts, head = (unit - token * parts) * a.heads_at_once;
    const uint64_t from = a.qkv.c + token * a.qkv.c_pitch, angles = a.rope + token * (kWidth * 8ull);
    if (head < a.heads) {
      query.Rows(
          from + head * row, row, angles,
          [&](uint32_t out) {
            CopyBursts<CM384_MTE_UB_TO_GM>(a.q + (static_cast<uint64_t>(token) * a.heads + head) * row, out,
                                           row, a.heads_at_once, row, row);
          },
          norms.Queries(a));
      continue;
    }
    const uint32_t slot = reinterpret_cast<const uint32_t*>(a.slots)[token];
    const uint32_t page = slot / CM384_GQA_PAGE_TOKENS, place = slot % CM384_GQA_PAGE_TOKENS;
    const uint64_t cached =
        static_cast<uint64_t>(page) * CM384_GQA_PAGE_BYTES(a.kv_heads, kWidth) + place * 32;
    const auto cache = [&](uint64_t to, uint32_t at) {
      CopyBursts<CM384_MTE_UB_TO_GM>(to + cached, at, 32, part / 32, 32, kColumnBytes);
    };
    WaitFlag<HardEvent::MTE3_MTE2>(0);
    CopyBursts<CM384_MTE_GM_TO_UB>(values, from + a.heads * row + part, part, 1, part, part);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    key.Rows(
        from + a.heads * row, row, angles, [&](uint32_t out) { cache(a.k, out); }, norms.Keys(a));
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    cache(a.v, values);
    SetFlag<HardEvent::MTE3_MTE2>(0);
  }
  WaitFlag<HardEvent::MTE3_MTE2>(0);
  query.Close();
  key.Close();
}

template <class Arguments>
CM384_INLINE void GqaPrologMain(GM_ADDR address) {
  using namespace AscendC;
  const auto& a = *reinterpret_cast<const Arguments*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  const bool int8 = IsInt8(a.qkv);
  if (ASCEND_IS_AIC) {
    WaitForVectors();
    if (int8) return RunCubeGemm<int8_t>(a.qkv, block, blocks);
    RunCubeGemm<bfloat16_t>(a.qkv, block, blocks);
    return CubesDone();
  }
  NormInput(a, Share(a.tokens, 2 * blocks, block));
  VectorsDone();
  if (int8) {
    Dequantiser(a.qkv, block / 2, static_cast<uint32_t>(GetSubBlockIdx()))
        .Run(TileWalker(a.qkv, block / 2, blocks));
    SyncAll();
  } else {
    WaitForCubes();
  }
  if (a.width == 64) {
    Heads<64>(a, block, 2 * blocks);
  } else {
    Heads<128>(a, block, 2 * blocks);
  }
}
