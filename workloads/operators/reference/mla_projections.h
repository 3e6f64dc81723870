// Inputs of what stands before and behind a layer's decode attention (kernels `mla_prolog`, `mla_output`),
// and what must come out, in double precision (bounds: projections.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/operators/reference/projections.h"

namespace cm384::reference {

struct ProjectionCase {
  std::uint64_t seed = 1;
  std::uint32_t tokens = 1, hidden = 7168, q_lora = 1536, heads = 128;
  bool int8 = false;                      // down, up, and the output projection
  std::uint32_t nope = 128, value = 128;  // elements of a head: without rope, of its value

  std::uint32_t head() const { return nope + 64; }
};

// BF16 bits but for the angles. Weights are n rows of k per group.
struct PrologInputs {
  std::vector<std::uint16_t> x, gamma_x, gamma_q, gamma_kv;
  ProjectionWeights down, up, absorb;
  std::vector<float> rope;  // as cm384_mla_prolog has it
};
// `positions`: of each token in its sequence.
PrologInputs make_prolog_inputs(const ProjectionCase& layer, std::span<const std::uint32_t> positions);
// What the kernel delivered of a token: [heads][576] and what it put into the cache, [576].
struct PrologOutput {
  std::span<const std::uint16_t> queries, cached;
};
// Compares one token; empty when all its elements are within their bounds.
std::string compare_prolog(const ProjectionCase& layer, const PrologInputs& in, std::uint32_t token,
                           const PrologOutput& out);

struct OutputWeights {
  ProjectionWeights value, out;  // heads x value rows of 512; hidden rows of heads x value
};
OutputWeights make_output_weights(const ProjectionCase& layer);
// One token from its `latents` [heads][512] to its row of hidden.
std::string compare_output(const ProjectionCase& layer, const OutputWeights& weights,
                           std::span<const std::uint16_t> latents, std::span<const std::uint16_t> out);

}  // namespace cm384::reference
