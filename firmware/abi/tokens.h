/* Arguments of the kernels that treat tokens one by one: `gate`, `gate_any`, `interleave_rope`, `rope_tiles`,
 * `kv_norm_rope`. Plain C.
 * Blocks are AIVs; each takes whole tokens.
 *
 *   gate             scores = sigmoid(logits); chosen by scores + bias: of groups of 32 experts the
 *                    top_groups with the largest sums of two, of their experts top_k. Each place further
 *                    on subtracts 2^-22, so that of equal ones the first is chosen. weights = scores of
 *                    the chosen, times scale over their sum
 *
 *   gate_any         the same with groups of any multiple of 8 experts, or without groups, and `chosen`
 *                    experts. CM384_GATE_SOFTMAX: scores = softmax(logits + bias), chosen by logits + bias,
 *                    from which each place further on subtracts 2^-19. CM384_GATE_AS_THEY_ARE: weights =
 *                    scores times scale
 *
 *   interleave_rope  rows of 64 (heads of a token) whose elements 2i and 2i + 1 are a plane, turned by
 *                    angle i of the token's position; out: first elements of all planes, then the second
 *                    ones
 *
 *   kv_norm_rope     rows of 512 and 64: the first normed (root mean square, gamma) and the others turned, to
 *                    the token's slot of the cache
 */
#ifndef CM384_ABI_TOKENS_H
#define CM384_ABI_TOKENS_H

#include <stdint.h>

#define CM384_GATE_GROUP 32u    /* experts */
#define CM384_GATE_EXPERTS 512u /* at most, in multiples of 64 */
#define CM384_GATE_TOP_K 8u
/* Of gate_any. */
#define CM384_GATE_ANY_EXPERTS 1024u /* at most, in multiples of 64 */
#define CM384_GATE_ANY_CHOSEN 16u    /* at most */
#define CM384_GATE_ANY_GROUP 64u     /* at most, in multiples of 8 */
#define CM384_GATE_ANY_GROUPS 64u    /* at most */
#define CM384_GATE_SOFTMAX 1u
#define CM384_GATE_AS_THEY_ARE 2u

/* Places of a token's chosen experts: whole blocks of 32 B, of which those behind the chosen are zero. */
static inline uint32_t cm384_gate_places(uint32_t chosen) {
  return (chosen + 7u) / 8u * 8u;
}

struct cm384_gate {
  uint64_t logits; /* GM: float, tokens x experts */
  uint64_t bias; /* GM: float per expert; so far below the others that an expert that is none is not chosen */
  uint64_t weights; /* GM: float, tokens x places, the largest score + bias first */
  uint64_t ids;     /* GM: int32_t, the same */
  uint32_t tokens, experts;
  uint32_t top_groups;
  float scale;
  /* Of gate_any. */
  uint32_t chosen;
  uint32_t group;  /* experts; 0: no groups */
  uint32_t groups; /* that the first experts form */
  uint32_t flags;
};

#define CM384_ROPE_WIDTH 64u
#define CM384_ROPE_HEADS 128u /* of a token, at most, in multiples of 2 */

struct cm384_interleave_rope {
  uint64_t x, out; /* GM: BF16, tokens x heads x 64 */
  uint64_t angles; /* GM: float, tokens x 128: cosines of angle 0 .. 31, twice; sines of them, twice */
  uint32_t tokens, heads;
  uint32_t tile; /* rope_tiles: tokens in the UBuffer at a time; they have up to 255 heads together */
};

struct cm384_kv_norm_rope {
  uint64_t kv;      /* GM: BF16, tokens x 576 */
  uint64_t gamma;   /* GM: BF16, 512 */
  uint64_t angles;  /* GM: as above */
  uint64_t slots;   /* GM: uint32_t per token */
  uint64_t latents; /* GM: BF16, slots x 512 */
  uint64_t keys;    /* GM: BF16, slots x 64 */
  uint32_t tokens;
  float epsilon;
};

#endif
