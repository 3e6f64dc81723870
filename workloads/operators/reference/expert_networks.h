// The experts' feed-forward networks of a layer, computed on the host bit for bit as kernel `ffn` does.
//
// Rounding: a row is INT8 with a scale, as dispatch delivers it. Products are summed exactly in INT32; a sum
// is rounded to FP32 (nearest even), times the scale of its column, times the scale of its row, each product
// rounded to FP32, then once to BF16. In FP32, each step rounded: gate / (1 + exp(-gate)) * up, from the
// BF16; exp is the nearest FP32 of what double precision gives. The result is quantised as dispatch quantises
// a row, and goes through the second multiplication like the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "workloads/operators/reference/combine_reference.h"

namespace cm384::reference {

struct NetworkWeights {
  std::vector<std::byte> gate_up, down;  // 2 x width rows of hidden, gate first; hidden rows of width
  std::vector<float> gate_up_scales, down_scales;  // a row of them
};
// Weights of a logical expert; all of its copies have the same.
NetworkWeights make_network_weights(std::uint64_t seed, int expert, std::uint32_t hidden,
                                    std::uint32_t width);

// Real weights, normal, of variance 1 over the elements that a row is multiplied with.
struct DrawnNetwork {
  std::vector<float> gate_up, down;
};
DrawnNetwork draw_network(std::uint64_t seed, int expert, std::uint32_t hidden, std::uint32_t width);
// An expert's of a layer: those that are drawn, with a scale per row, where its tokens are.
NetworkWeights network_of(const DispatchCase& dispatch, int expert, std::uint32_t width);

// What a network makes of a row and its scale, [hidden].
std::vector<std::uint16_t> network_output(const NetworkWeights& weights, std::span<const std::int8_t> x,
                                          float scale);

// What all experts make of all rows of a dispatch.
class ExpertNetworkOutputs {
 public:
  // Computes them; keeps 2 B an element.
  ExpertNetworkOutputs(const DispatchCase& dispatch, std::uint32_t width);

  std::span<const std::uint16_t> row(const ArrivedRow& row) const;

 private:
  std::size_t place(const ArrivedRow& row) const;

  const int batch_, choices_;  // choices: experts of a token
  const std::size_t hidden_;
  std::vector<std::uint16_t> rows_;
};

}  // namespace cm384::reference
