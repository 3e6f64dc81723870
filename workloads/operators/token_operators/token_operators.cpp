#include "workloads/operators/token_operators/token_operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"

namespace cm384::operators {
namespace {

constexpr std::uint64_t kRope = CM384_ROPE_WIDTH, kLatent = 512, kAngles = 512;
// Heads of two tokens that the UBuffer holds: 1,536 B each, and angles.
constexpr std::uint32_t kMostHeads = 126;

}  // namespace

std::uint32_t tokens_of_tile(std::uint32_t tokens, std::uint32_t heads, std::size_t cores) {
  if (tokens <= cores) return 1;
  // Two buffers of angles, and of BF16 each way; four areas of floats. Behind them what masks leave out. Two
  // tokens that fit are no further apart than an instruction's stride.
  const std::uint64_t each = 2 * kAngles + heads * kRope * (2 * 2 * 2 + 4 * 4);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (CM384_UBUFFER_BYTES - 1024) / each));
}

std::vector<std::uint16_t> TokenOperator::cores() const {
  std::vector<std::uint16_t> cores = site().cores;
  cores.resize(std::min<std::size_t>(cores.size(), tokens()));
  return cores;
}

std::uint64_t TokenOperator::input(const Site& site, std::uint64_t bytes) {
  const std::uint64_t at = site.memory.allocate_lines(bytes);
  if (!site.full) runtime().mark_payload(at, bytes);
  return at;
}

namespace {

void check_gate(const reference::GateCase& gate) {
  const auto refuse = [](const std::string& what) { throw InputError("gate: " + what); };
  const std::uint32_t most = gate.of_eight() ? CM384_GATE_EXPERTS : CM384_GATE_ANY_EXPERTS;
  if (gate.experts < 2 || gate.experts > most)
    refuse(fmt::format("{} experts; allowed: 2 to {}", gate.experts, most));
  if (gate.chosen < 1 || gate.chosen > std::min(CM384_GATE_ANY_CHOSEN, gate.experts))
    refuse(fmt::format("{} chosen of {} experts; allowed: 1 to {}", gate.chosen, gate.experts,
                       std::min(CM384_GATE_ANY_CHOSEN, gate.experts)));
  if (gate.group == 0) return;
  if (gate.group % 8 != 0 || gate.group > CM384_GATE_ANY_GROUP || gate.experts % gate.group != 0 ||
      gate.experts / gate.group > CM384_GATE_ANY_GROUPS)
    refuse(fmt::format(
        "groups of {} of {} experts; allowed: none, or at most {} whole groups of a multiple of 8 "
        "up to {}",
        gate.group, gate.experts, CM384_GATE_ANY_GROUPS, CM384_GATE_ANY_GROUP));
  if (gate.top_groups < 1 || gate.top_groups * gate.group < gate.chosen)
    refuse(fmt::format("{} chosen out of {} groups of {} experts; allowed: at most as many as these have",
                       gate.chosen, gate.top_groups, gate.group));
}

}  // namespace

void Gate::lay_out(const Site& site) {
  check_gate(case_);
  const std::uint32_t width = (case_.experts + 63) / 64 * 64;  // of whole repeats
  cm384_gate& a = arguments_;
  a.tokens = case_.tokens;
  a.experts = width;
  if (case_.group > 0) a.groups = case_.experts / case_.group;
  a.top_groups = std::min(case_.top_groups, a.groups);
  a.scale = static_cast<float>(case_.scale);
  a.chosen = case_.chosen;
  a.group = case_.group;
  a.flags = (case_.softmax ? CM384_GATE_SOFTMAX : 0) | (case_.normalised ? 0 : CM384_GATE_AS_THEY_ARE);
  a.logits = input(site, std::uint64_t{case_.tokens} * width * 4);
  a.bias = input(site, width * 4ull);
  const std::uint64_t places = std::uint64_t{case_.tokens} * cm384_gate_places(case_.chosen);
  a.weights = site.memory.allocate_lines(places * 4);
  a.ids = site.memory.allocate_lines(places * 4);
  if (!site.full) return;
  inputs_ = reference::make_gate_inputs(case_, width);
  put(a.logits, inputs_->logits);
  put(a.bias, inputs_->bias);
}
Work Gate::work() const {
  return {0, false, case_.tokens * (case_.experts * 4.0 + 8 * cm384_gate_places(case_.chosen))};
}
std::string Gate::size() const {
  if (case_.of_eight()) return fmt::format("gate {} x {}", case_.tokens, case_.experts);
  return fmt::format("gate {} x {}, {} of {} of {}, {}{}", case_.tokens, case_.experts, case_.chosen,
                     case_.top_groups, case_.group, case_.softmax ? "softmax" : "sigmoid",
                     case_.normalised ? "" : " as they are");
}
std::string Gate::check() const {
  const std::size_t places = std::size_t{case_.tokens} * cm384_gate_places(case_.chosen);
  return reference::compare_gate(case_, *inputs_, runtime().get<float>(arguments_.weights, places),
                                 runtime().get<std::int32_t>(arguments_.ids, places));
}

void InterleaveRope::lay_out(const Site& site) {
  if (case_.heads % 2 != 0 || case_.heads > CM384_ROPE_HEADS)
    throw InputError(
        fmt::format("rope: {} heads; allowed: even numbers up to {}", case_.heads, CM384_ROPE_HEADS));
  const std::uint64_t bytes = std::uint64_t{case_.tokens} * case_.heads * kRope * 2;
  // More heads than a core holds are so many tokens with fewer of them, each with the token's angles.
  std::uint32_t parts = 1;
  while (case_.heads > kMostHeads * parts || case_.heads % (2 * parts) != 0) ++parts;
  cm384_interleave_rope& a = arguments_;
  a.tokens = case_.tokens * parts;
  a.heads = case_.heads / parts;
  a.tile = tokens_of_tile(a.tokens, a.heads, site.cores.size());
  a.x = input(site, bytes);
  a.angles = input(site, a.tokens * kAngles);
  a.out = site.memory.allocate_lines(bytes);
  if (!site.full) return;
  inputs_ = reference::make_rope_inputs(case_);
  put(a.x, inputs_->x);
  std::vector<float> angles;
  for (std::size_t token = 0; token < a.tokens; ++token) {
    const auto own = inputs_->angles.begin() + static_cast<std::ptrdiff_t>(token / parts * (kAngles / 4));
    angles.insert(angles.end(), own, own + static_cast<std::ptrdiff_t>(kAngles / 4));
  }
  put(a.angles, angles);
}
Work InterleaveRope::work() const {
  return {0, false, case_.tokens * (case_.heads * kRope * 4.0 + kAngles)};
}
std::string InterleaveRope::size() const {
  return fmt::format("rope {} x {}", case_.tokens, case_.heads);
}
std::string InterleaveRope::check() const {
  return reference::compare_rope(
      case_, *inputs_,
      runtime().get<std::uint16_t>(arguments_.out, std::size_t{case_.tokens} * case_.heads * kRope));
}

void KvNormRope::lay_out(const Site& site) {
  if (case_.tokens > case_.slots)
    throw InputError(fmt::format("kv-norm-rope: {} tokens; allowed: as many as the cache has slots, {}",
                                 case_.tokens, case_.slots));
  cm384_kv_norm_rope& a = arguments_;
  a.tokens = case_.tokens;
  a.epsilon = static_cast<float>(case_.epsilon);
  a.kv = input(site, case_.tokens * (kLatent + kRope) * 2);
  a.gamma = input(site, kLatent * 2);
  a.angles = input(site, case_.tokens * kAngles);
  a.slots = site.memory.allocate_lines(case_.tokens * 4ull);
  a.latents = site.memory.allocate_lines(case_.slots * kLatent * 2);
  a.keys = site.memory.allocate_lines(case_.slots * kRope * 2);
  const reference::KvInputs made = reference::make_kv_inputs(case_);
  put(a.slots, made.slots);
  if (!site.full) return;
  inputs_ = made;
  put(a.kv, made.kv);
  put(a.gamma, made.gamma);
  put(a.angles, made.angles);
}
Work KvNormRope::work() const {
  return {0, false, case_.tokens * ((kLatent + kRope) * 4.0 + kAngles)};
}
std::string KvNormRope::size() const {
  return fmt::format("kv-norm-rope {}", case_.tokens);
}
std::string KvNormRope::check() const {
  return reference::compare_kv(case_, *inputs_,
                               runtime().get<std::uint16_t>(arguments_.latents, case_.slots * kLatent),
                               runtime().get<std::uint16_t>(arguments_.keys, case_.slots * kRope));
}

}  // namespace cm384::operators
