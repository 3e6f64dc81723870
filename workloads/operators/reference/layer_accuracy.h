// How exact a decode layer with latent attention (MLA) and experts is on drawn tokens, where each operator
// works on what the one before left: the tensors, and what double precision and BF16 arithmetic make of them.
//
// Tokens are drawn as asked, cached latents normal, of variance 1. Weights are normal: of variance 1 over the
// elements that a row is multiplied with, and those that bring queries to latents of 1 / 512, so that scores
// of normal tokens have variance 1. Norms multiply by 1. Projections and networks are quantised to INT8, by
// tokens and columns; the rest is BF16.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/operators/reference/accuracy.h"
#include "workloads/operators/reference/mla_projections.h"
#include "workloads/operators/reference/mla_reference.h"
#include "workloads/operators/reference/token_operators.h"

namespace cm384::reference {

struct LayerCase {
  std::uint64_t seed = 1;
  Draw draw{};                // of tokens
  ProjectionCase attention;   // of the tokens of a rank; `nope` and `value` are 128
  GateCase gate;              // of the same tokens
  std::uint32_t width = 256;  // of an expert
  bool shared = true;         // every token has a shared expert, behind the routed ones
  std::uint32_t queries = 1;
  std::vector<std::vector<std::uint32_t>> kv_lens;  // by rank, a sequence

  int ranks() const { return static_cast<int>(kv_lens.size()); }
  // Where a token of a rank stands in its sequence.
  std::uint32_t position(std::size_t rank, std::uint32_t token) const {
    return kv_lens[rank][token / queries] - 1 + token % queries;
  }
  float score_scale() const;
};

// What a rank's kernels read, rounded as they read it. All ranks have the same weights.
PrologInputs rounded_prolog(const LayerCase& layer, std::size_t rank);
OutputWeights rounded_output(const LayerCase& layer);
std::vector<std::uint16_t> rounded_gate(const LayerCase& layer);  // rows of hidden for each expert
// Pages of the cache by such a table, as MlaInputs has them; the newest tokens are those of the prolog.
std::vector<std::uint16_t> rounded_cache(const LayerCase& layer, std::size_t rank,
                                         const std::vector<std::uint32_t>& page_table);

// What a rank holds behind the layer. BF16 bits where nothing else is said.
struct LayerValues {
  std::vector<std::uint16_t> x;                 // the tokens, [tokens][hidden]
  std::vector<std::uint16_t> queries;           // [tokens][heads][576]
  std::vector<std::uint16_t> cache;             // of each sequence all tokens, 576 each
  std::vector<std::uint16_t> latents;           // from attention, [tokens][heads][512]
  std::vector<std::uint16_t> output;            // of its projection, [tokens][hidden]
  std::vector<std::uint16_t> sums, normed;      // with the tokens, and normed
  std::vector<float> logits, weights;           // of the gate: [tokens][experts], [tokens][chosen]
  std::vector<std::int32_t> ids;                // [tokens][chosen]
  std::vector<std::int8_t> rows;                // from dispatch, in the order of their arrival
  std::vector<float> scales;                    // of these
  std::vector<std::int32_t> triples;            // rank, token, number among the chosen
  std::vector<std::uint16_t> expert_rows, out;  // from experts; the layer's, [tokens][hidden]
};

struct LayerAccuracy {
  // Operators with the noise of those before them; with the experts that the firmware chose. Then the
  // `layer`, where each arithmetic chooses by itself, and its `update`, without the tokens.
  std::vector<StageAccuracy> stages;
  // Share of tokens for which the firmware, or BF16 arithmetic, chose other experts than double precision.
  double rerouted = 0, bf16_rerouted = 0;
};
LayerAccuracy layer_accuracy(const LayerCase& layer, const std::vector<LayerValues>& got);

// Experts in the order of their scores, of which a token's groups limit the choice: GateCase, without a bias.
std::vector<std::int32_t> choose_experts(const GateCase& gate, const std::vector<double>& logits);

}  // namespace cm384::reference
