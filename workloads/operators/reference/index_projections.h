// Inputs of what stands before an indexer (kernel `index_prolog`), and what must come out, in double
// precision (bounds: projections.h; an INT8 element may be off by half a step besides).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/operators/reference/mla_projections.h"

namespace cm384::reference {

struct IndexPrologInputs {
  ProjectionWeights query, key;            // heads x 128 rows of q_lora; 128 + heads rows of hidden
  std::vector<std::uint16_t> gamma, beta;  // BF16 bits, of the key's layer norm
};
IndexPrologInputs make_index_prolog_inputs(const ProjectionCase& layer, std::uint32_t heads);

// What the kernel delivered of a token.
struct IndexPrologOutput {
  std::vector<std::int8_t> q;          // heads x 128
  std::vector<std::uint16_t> weights;  // FP16 bits
  std::vector<std::int8_t> key;        // 128
  float scale = 0;                     // of the key
};
// `in`: of the prolog whose normed rows it reads.
std::string compare_index_prolog(const ProjectionCase& layer, const PrologInputs& in,
                                 const IndexPrologInputs& of, std::uint32_t token,
                                 const IndexPrologOutput& out);

}  // namespace cm384::reference
