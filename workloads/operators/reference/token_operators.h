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
};
struct GateInputs {
  std::vector<float> logits, bias;
};
GateInputs make_gate_inputs(const GateCase& gate);
// The first difference; empty: none. An expert that was left out may be better than a chosen one by 2^-13, as
// the kernel counts places.
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
