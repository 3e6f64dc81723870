// Norms, projections and rotation before a layer's decode attention. Arguments: firmware/abi/mla_prolog.h.
#include "firmware/abi/mla_prolog.h"

#include "cube_gemm.h"
#include "dequantise.h"
#include "kernel_operator.h"
#include "project.h"
#include "rope.h"
#include "steps.h"

using namespace AscendC;

namespace {

constexpr uint32_t kHeadsAtOnce = 16;
#ifndef CM384_SPARSE_PROLOG                                    // which includes this file
constexpr uint64_t kColumnBytes = CM384_MLA_PAGE_TOKENS * 32;  // of a page: one 32 B block of every token
CM384_INLINE uint32_t Nope(const cm384_mla_prolog&) {
  return CM384_MLA_NOPE;
}
#endif

void NormInput(const cm384_mla_prolog& a, Range tokens) {
  RmsNorm norm(a.hidden, 0, 0, a.epsilon);
  norm.Open(a.gamma_x);
  for (uint32_t t = tokens.first; t < tokens.last; ++t)
    NormTo(norm, a.x + static_cast<uint64_t>(t) * a.hidden * 2, a.down, t);
  norm.Close();
}

// Of each token: the queries' latents to where `up` reads, the keys' to the cache.
void NormLatents(const cm384_mla_prolog& a, Range tokens) {
  RmsNorm query(a.q_lora, 0, 0, a.epsilon);
  RmsNorm key(CM384_MLA_LATENT, kRmsNormBytes(a.q_lora), 2, a.epsilon);
  Rope rope(1, kRmsNormBytes(a.q_lora) + kRmsNormBytes(CM384_MLA_LATENT), 4);
  query.Open(a.gamma_q);
  key.Open(a.gamma_kv);
  rope.Open();
  const auto* slots = reinterpret_cast<const uint32_t*>(a.slots);
  for (uint32_t t = tokens.first; t < tokens.last; ++t) {
    const uint64_t latents = a.down.c + t * a.down.c_pitch;
#ifdef CM384_SPARSE_PROLOG
    const RowOfCache cache(a, slots[t]);
#else
    const uint32_t page = slots[t] / CM384_MLA_PAGE_TOKENS, place = slots[t] % CM384_MLA_PAGE_TOKENS;
    const uint64_t cached = a.kv + static_cast<uint64_t>(page) * CM384_MLA_PAGE_BYTES + place * 32;
    const auto cache = [&](uint32_t from, uint32_t element, uint32_t elements) {
      CopyBursts<CM384_MTE_UB_TO_GM>(cached + element / 16 * kColumnBytes, from, 32, elements / 16, 32,
                                     kColumnBytes);
    };
#endif
    NormTo(query, latents, a.up, t);
    key.Row(latents + a.q_lora * 2, [&](uint32_t from) { cache(from, 0, CM384_MLA_LATENT); });
    rope.Rows(latents + (a.q_lora + CM384_MLA_LATENT) * 2, CM384_MLA_ROPE * 2, a.rope + t * 512ull,
              [&](uint32_t from) { cache(from, CM384_MLA_LATENT, CM384_MLA_ROPE); });
  }
  query.Close();
  key.Close();
  rope.Close();
}

// The queries' part that is rotated, dealt out to `cores` vector cores by token and some heads.
void RotateQueries(const cm384_mla_prolog& a, uint32_t core, uint32_t cores) {
  Rope rope(kHeadsAtOnce, 0, 0);
  rope.Open();
  const uint32_t parts = a.heads / kHeadsAtOnce;
  for (uint32_t unit = core; unit < a.tokens * parts; unit += cores) {
    const uint32_t token = unit / parts, head = (unit - token * parts) * kHeadsAtOnce;
    const uint64_t from = a.up.c + token * a.up.c_pitch + (head * (Nope(a) + CM384_MLA_ROPE) + Nope(a)) * 2;
    const uint64_t to =
        a.absorb.c + token * a.absorb.c_pitch + head * a.absorb.c_group + CM384_MLA_LATENT * 2;
    rope.Rows(from, (Nope(a) + CM384_MLA_ROPE) * 2, a.rope + token * 512ull, [&](uint32_t out) {
      CopyBursts<CM384_MTE_UB_TO_GM>(to, out, CM384_MLA_ROPE * 2, kHeadsAtOnce, CM384_MLA_ROPE * 2,
                                     a.absorb.c_group);
    });
  }
  rope.Close();
}

void RunCube(const cm384_mla_prolog& a, uint32_t block, uint32_t blocks) {
  WaitForVectors();
  if (IsInt8(a.down)) {
    RunCubeGemm<int8_t>(a.down, block, blocks);
    WaitForVectors();
    RunCubeGemm<int8_t>(a.up, block, blocks);
    WaitForVectors();
  } else {
    RunCubeGemm<bfloat16_t>(a.down, block, blocks);
    CubesDone();
    WaitForVectors();
    RunCubeGemm<bfloat16_t>(a.up, block, blocks);
    MeetCubes();
  }
  RunCubeGemm<bfloat16_t>(a.absorb, block, blocks);
}

[[gnu::noinline]] void Dequantise(const cm384_gemm& a, uint32_t group, uint32_t groups) {
  Dequantiser(a, group, static_cast<uint32_t>(GetSubBlockIdx())).Run(TileWalker(a, group, groups));
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_mla_prolog& a = *reinterpret_cast<const cm384_mla_prolog*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) return RunCube(a, block, blocks);
  const Range tokens = Share(a.tokens, 2 * blocks, block);
  NormInput(a, tokens);
  VectorsDone();
  if (IsInt8(a.down)) {
    Dequantise(a.down, block / 2, blocks);
    SyncAll();
  } else {
    WaitForCubes();
  }
  NormLatents(a, tokens);
  VectorsDone();
  if (IsInt8(a.up)) {
    Dequantise(a.up, block / 2, blocks);
    VectorsDone();
  } else {
    PassCubes();
  }
  RotateQueries(a, block, 2 * blocks);
}
