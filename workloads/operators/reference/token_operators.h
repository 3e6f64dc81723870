// Operators that treat tokens one by one (firmware/abi/tokens.h): inputs from a seed, and what must come out,
// in double precision.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cm384::reference {

struct GateCase {
  std::uint32_t tokens = 1, experts = 256, top_groups = 4;
  double scale = 2.5;
  std::uint64_t seed = 1;
  std::uint32_t chosen = 8, group = 32;  // experts; group 0: no groups
  // Of all logits, and chosen by them; else of each a sigmoid.
  bool softmax = false;
  bool normalised =
      true;  // weights of a token's experts add up to `scale`; else they are its scores times it

  // As experts are grouped and chosen in DeepSeek-V3, whose kernel is one of its own.
  bool of_eight() const { return chosen == 8 && group == 32 && !softmax && normalised; }
};
struct GateInputs {
  std::vector<float> logits, bias;
  std::uint32_t width = 0;  // of a row: experts, and what makes it whole
};
GateInputs make_gate_inputs(const GateCase& gate, std::uint32_t width);
// Of a token as many places as there are weights, the chosen first. The first difference; empty: none. An
// expert that was left out may be better than a chosen one by 2^-13, of logits 2^-9, as the kernel counts
// places.
std::string compare_gate(const GateCase& gate, const GateInputs& inputs, std::span<const float> weights,
                         std::span<const std::int32_t> ids);

struct RopeCase {
  std::uint32_t tokens = 1, heads = 2;
  std::uint64_t seed = 1;
};
struct RopeInputs {
  std::vector<std::uint16_t> x;  // BF16, tokens x heads x 64
  std::vector<float> angles;     // tokens x 128, as firmware/abi/tokens.h has them
};
RopeInputs make_rope_inputs(const RopeCase& rope);
std::string compare_rope(const RopeCase& rope, const RopeInputs& inputs, std::span<const std::uint16_t> out);

struct KvCase {
  std::uint32_t tokens = 1, slots = 128;
  double epsilon = 1e-6;
  std::uint64_t seed = 1;
};
struct KvInputs {
  std::vector<std::uint16_t> kv, gamma;
  std::vector<float> angles;
  std::vector<std::uint32_t> slots;  // of each token, none twice
};
KvInputs make_kv_inputs(const KvCase& kv);
std::string compare_kv(const KvCase& kv, const KvInputs& inputs, std::span<const std::uint16_t> latents,
                       std::span<const std::uint16_t> keys);

}  // namespace cm384::reference
