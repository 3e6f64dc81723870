// Norm, projection and rotation before attention over grouped keys and values. Arguments:
// firmware/abi/gqa_projections.h.
#include "dequantise.h"
#include "firmware/abi/gqa_projections.h"
#include "kernel_operator.h"
#include "project.h"
#include "rope.h"
#include "steps.h"

using namespace AscendC;

namespace {

constexpr uint32_t kColumnBytes = CM384_GQA_PAGE_TOKENS * 32;  // of a page: one 32 B block of every token

void NormInput(const cm384_gqa_prolog& a, Range tokens) {
  RmsNorm norm(a.hidden, 0, 0, a.epsilon);
  norm.Open(a.gamma_x);
  for (uint32_t t = tokens.first; t < tokens.last; ++t)
    NormTo(norm, a.x + static_cast<uint64_t>(t) * a.hidden * 2, a.qkv, t);
  norm.Close();
}

// What a token's heads are made into, dealt out to `cores` vector cores by token and some heads: queries are
// rotated, keys rotated into the cache, values copied there.
template <uint32_t kWidth>
[[gnu::noinline]] void Heads(const cm384_gqa_prolog& a, uint32_t core, uint32_t cores) {
  const uint32_t keys = kRopeBytes(a.heads_at_once, kWidth), values = keys + kRopeBytes(a.kv_heads, kWidth);
  const uint32_t row = kWidth * 2, part = a.kv_heads * row;
  RopeOf<kWidth> query(a.heads_at_once, 0, 0), key(a.kv_heads, keys, 2);
  query.Open();
  key.Open();
  SetFlag<HardEvent::MTE3_MTE2>(0);
  const uint32_t parts = a.heads / a.heads_at_once + 1;
  for (uint32_t unit = core; unit < a.tokens * parts; unit += cores) {
    const uint32_t token = unit / parts, head = (unit - token * parts) * a.heads_at_once;
    const uint64_t from = a.qkv.c + token * a.qkv.c_pitch, angles = a.rope + token * (kWidth * 8ull);
    if (head < a.heads) {
      query.Rows(from + head * row, row, angles, [&](uint32_t out) {
        CopyBursts<CM384_MTE_UB_TO_GM>(a.q + (static_cast<uint64_t>(token) * a.heads + head) * row, out, row,
                                       a.heads_at_once, row, row);
      });
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
    key.Rows(from + a.heads * row, row, angles, [&](uint32_t out) { cache(a.k, out); });
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    cache(a.v, values);
    SetFlag<HardEvent::MTE3_MTE2>(0);
  }
  WaitFlag<HardEvent::MTE3_MTE2>(0);
  query.Close();
  key.Close();
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_gqa_prolog& a = *reinterpret_cast<const cm384_gqa_prolog*>(address);
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
