// What FusedCombine must deliver, rank by rank, computed without the machine.
//
// Rounding: an expert's output is BF16; a product with its weight, and the sum after each product, are
// rounded to FP32 (nearest even, nothing fused), in the order k = 0, 1, ...; then the shared expert's rows
// are added with weight 1; the sum is rounded once to BF16, nearest even.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "firmware/abi/combine.h"
#include "testbenches/reference/dispatch_reference.h"

namespace cm384::reference {

// The bf16 of a float, nearest even. NaN stays NaN.
std::uint16_t to_bf16(float value);

// The kernel's argument block of a rank with everything but addresses, which stay 0.
cm384_combine combine_arguments(const DispatchCase& dispatch, int rank);

class CombineReference {
 public:
  // `dispatch` must outlive the reference. `shared_output`: every rank adds a shared expert's output that it
  // made itself.
  CombineReference(const DispatchCase& dispatch, bool shared_output)
      : case_(dispatch), shared_output_(shared_output) {}

  // Weights of the experts, [batch][top_k], positive, about 1 a token.
  std::vector<float> scales(int rank) const;
  // What the stand-in for an expert makes of a row that arrived, [hidden]: the row as dispatch quantised it,
  // times a factor that no other of 64 neighbouring experts has.
  void expert_row(const ArrivedRow& row, std::span<std::uint16_t> out) const;
  // The shared expert's output made on the rank itself.
  void shared_row(int rank, int token, std::span<std::uint16_t> out) const;

  void combined_row(int rank, int token, std::span<std::uint16_t> out) const;
  // Compares a rank's output [batch][hidden], bit for bit. Empty when equal, else what differs first.
  std::string compare(int rank, std::span<const std::uint16_t> x) const;

 private:
  int expert_of(const ArrivedRow& row) const;

  const DispatchCase& case_;
  bool shared_output_;
};

}  // namespace cm384::reference
