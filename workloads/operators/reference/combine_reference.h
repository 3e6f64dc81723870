// What FusedCombine must deliver, rank by rank, computed without the machine.
//
// Rounding: an expert's output is BF16; a product with its weight, and the sum after each product, are
// rounded to FP32 (nearest even, nothing fused), in the order k = 0, 1, ...; then the shared expert's rows
// are added with weight 1; the sum is rounded once to BF16, nearest even. With relays the rows of each other
// supernode are added up like this first, and that sum, rounded to BF16, stands in place of the first of
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "firmware/abi/combine.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::reference {

// The bf16 of a float, nearest even. NaN stays NaN.
std::uint16_t to_bf16(float value);

// The kernel's argument block of a rank with everything but addresses, which stay 0.
cm384_combine combine_arguments(const DispatchCase& dispatch, int rank);

// What an expert makes of a row that arrived, [hidden].
using ExpertOutput = std::function<void(const ArrivedRow& row, std::span<std::uint16_t> out)>;

// The logical expert that a row goes to; shared experts follow the routed ones.
int expert_of(const DispatchCase& dispatch, const ArrivedRow& row);

class CombineReference {
 public:
  // `dispatch` must outlive the reference. `shared_output`: every rank adds a shared expert's output that it
  // made itself.
  CombineReference(const DispatchCase& dispatch, bool shared_output)
      : case_(dispatch), shared_output_(shared_output) {}

  // The experts are these instead of a stand-in.
  void set_experts(ExpertOutput experts) { experts_ = std::move(experts); }
  // Weights of the experts, [batch][top_k], positive, about 1 per token.
  std::vector<float> scales(int rank) const;
  // What an expert makes of a row that arrived, [hidden]. The stand-in: the row as dispatch quantised it,
  // times a factor that no other of 64 neighbouring experts has.
  void expert_row(const ArrivedRow& row, std::span<std::uint16_t> out) const;
  // The shared expert's output made on the rank itself.
  void shared_row(int rank, int token, std::span<std::uint16_t> out) const;

  void combined_row(int rank, int token, std::span<std::uint16_t> out) const;
  // Compares a rank's output [batch][hidden], bit for bit. Empty when equal, else what differs first.
  std::string compare(int rank, std::span<const std::uint16_t> x) const;

 private:
  void add_product(const ArrivedRow& row, float weight, std::span<float> sum) const;

  const DispatchCase& case_;
  bool shared_output_;
  ExpertOutput experts_;  // empty: the stand-in
};

}  // namespace cm384::reference
