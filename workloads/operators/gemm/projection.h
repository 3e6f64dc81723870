// A projection of all tokens of a rank, as a part of a kernel: weights, tiling and the number of rows.
#pragma once

#include <initializer_list>

#include "workloads/operators/gemm/memory.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/projections.h"

namespace cm384::operators {

// `groups` times with weights of their own; A and C are filled in by the caller.
cm384_gemm place_projection(const Site& site, std::uint32_t tokens, std::uint32_t groups, std::uint32_t n,
                            std::uint32_t k, bool int8);
void write_weights(host::Runtime& runtime, const cm384_gemm& gemm, const reference::ProjectionWeights& b);
// Of some projections one after another: weights from HBM, `others` bytes beside.
Work work_of(std::initializer_list<const cm384_gemm*> gemms, std::uint32_t tokens, double others);

// Compares the first and the last token and some between: the first difference; empty: none.
template <class Compare>
std::string compare_tokens(std::uint32_t tokens, Compare&& compare) {
  constexpr std::uint32_t kCompared = 5;  // tokens of a large case, about
  const std::uint32_t step = tokens < kCompared ? 1 : tokens / kCompared;
  for (std::uint32_t token = 0; token < tokens; ++token) {
    if (token % step != 0 && token + 1 != tokens) continue;
    const std::string difference = compare(token);
    if (!difference.empty()) return "token " + std::to_string(token) + " " + difference;
  }
  return {};
}

}  // namespace cm384::operators
