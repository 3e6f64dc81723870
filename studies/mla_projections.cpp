#include "studies/mla_projections.h"

#include <fmt/format.h>

#include <algorithm>

#include "studies/gemm_memory.h"

namespace cm384::studies {
namespace {

constexpr std::uint32_t kCompared = 5;  // tokens of a large case, about

std::uint64_t allocate(host::Runtime& runtime, std::uint64_t bytes) {
  return runtime.allocate(0, std::max<std::uint64_t>(bytes, 512), 512);
}

// A projection of all tokens, `groups` times with weights of their own; A and C are filled in by the caller.
cm384_gemm place_projection(host::Runtime& runtime, const MlaSetting& setting, std::uint32_t groups,
                            std::uint32_t n, std::uint32_t k) {
  const std::vector<std::uint32_t> rows(groups, setting.tokens());
  const GemmShape shape{rows, n, k, CM384_GEMM_BF16, static_cast<std::uint32_t>(setting.blocks)};
  cm384_gemm gemm = place_gemm(runtime, 0, shape, checked_tiling(shape), true, setting.full);
  gemm.group_rows = allocate(runtime, 4);
  gemm.group_row_words = 0;  // all groups have all tokens
  runtime.put(gemm.group_rows, setting.tokens());
  return gemm;
}

void put_weights(host::Runtime& runtime, const cm384_gemm& gemm, const std::vector<std::uint16_t>& b) {
  put_b(runtime, gemm, std::as_bytes(std::span(b)));
}

double operations_of(const cm384_gemm& gemm, std::uint32_t tokens) {
  return 2.0 * tokens * gemm.groups * gemm.n * gemm.k;
}

template <class Compare>
std::string compare_tokens(std::uint32_t tokens, Compare&& compare) {
  const std::uint32_t step = std::max(1u, tokens / kCompared);
  for (std::uint32_t token = 0; token < tokens; ++token) {
    if (token % step != 0 && token + 1 != tokens) continue;
    const std::string difference = compare(token);
    if (!difference.empty()) return fmt::format("token {} {}", token, difference);
  }
  return {};
}

}  // namespace

reference::ProjectionCase projections_of(std::uint64_t seed, const MlaSetting& setting) {
  return {seed, setting.tokens(), setting.hidden, setting.q_lora, setting.heads};
}

MlaProlog::MlaProlog(host::Runtime& runtime, const MlaSetting& setting, std::uint64_t seed,
                     const cm384_mla& attention, std::span<const std::uint32_t> page_table)
    : runtime_(runtime), case_(projections_of(seed, setting)) {
  std::vector<std::uint32_t> positions;
  for (std::uint32_t sequence = 0; sequence < setting.kv_lens.size(); ++sequence) {
    for (std::uint32_t query = 0; query < setting.queries; ++query) {
      const std::uint32_t position = setting.kv_lens[sequence] - 1 + query;
      const std::uint32_t page =
          page_table[sequence * attention.table_width + position / CM384_MLA_PAGE_TOKENS];
      positions.push_back(position);
      slots_.push_back(page * CM384_MLA_PAGE_TOKENS + position % CM384_MLA_PAGE_TOKENS);
    }
  }
  arguments_.kv = attention.kv;
  place(setting, attention.q);
  runtime.put(arguments_.slots, std::span<const std::uint32_t>(slots_));
  const std::vector<float> rope = reference::make_rope(positions);
  runtime.put(arguments_.rope, std::span<const float>(rope));
  if (!setting.full) return;
  inputs_ = reference::make_prolog_inputs(case_, positions);
  const auto put = [&](std::uint64_t to, const std::vector<std::uint16_t>& from) {
    runtime.put(to, std::span<const std::uint16_t>(from));
  };
  put(arguments_.x, inputs_->x);
  put(arguments_.gamma_x, inputs_->gamma_x);
  put(arguments_.gamma_q, inputs_->gamma_q);
  put(arguments_.gamma_kv, inputs_->gamma_kv);
  put_weights(runtime, arguments_.down, inputs_->down);
  put_weights(runtime, arguments_.up, inputs_->up);
  put_weights(runtime, arguments_.absorb, inputs_->absorb);
}

void MlaProlog::place(const MlaSetting& setting, std::uint64_t queries) {
  const auto tensor = [&](std::uint64_t bytes) {
    const std::uint64_t address = allocate(runtime_, bytes);
    if (!setting.full) runtime_.mark_payload(address, bytes);
    return address;
  };
  cm384_mla_prolog& a = arguments_;
  a.tokens = setting.tokens();
  a.hidden = setting.hidden;
  a.q_lora = setting.q_lora;
  a.heads = setting.heads;
  a.epsilon = reference::kNormEpsilon;
  a.x = tensor(a.tokens * a.hidden * 2ull);
  a.gamma_x = tensor(a.hidden * 2ull);
  a.gamma_q = tensor(a.q_lora * 2ull);
  a.gamma_kv = tensor(CM384_MLA_LATENT * 2);
  a.rope = allocate(runtime_, a.tokens * 512ull);
  a.slots = allocate(runtime_, a.tokens * 4ull);
  a.down = place_projection(runtime_, setting, 1, CM384_MLA_LATENTS(a.q_lora), a.hidden);
  a.up = place_projection(runtime_, setting, 1, a.heads * CM384_MLA_HEAD, a.q_lora);
  a.absorb = place_projection(runtime_, setting, a.heads, CM384_MLA_LATENT, CM384_MLA_NOPE);
  a.down.a = allocate(runtime_, a.tokens * a.down.a_pitch);
  a.down.c = allocate(runtime_, a.tokens * a.down.c_pitch);
  a.up.a = allocate(runtime_, a.tokens * a.up.a_pitch);
  a.up.c = a.absorb.a = allocate(runtime_, a.tokens * a.up.c_pitch);
  a.absorb.a_pitch = a.up.c_pitch;
  a.absorb.a_group = CM384_MLA_HEAD * 2;
  a.absorb.c = queries;
  a.absorb.c_group = CM384_MLA_WIDTH * 2;
  a.absorb.c_pitch = a.heads * a.absorb.c_group;
}

double MlaProlog::operations() const {
  const cm384_mla_prolog& a = arguments_;
  return operations_of(a.down, a.tokens) + operations_of(a.up, a.tokens) + operations_of(a.absorb, a.tokens);
}

std::vector<std::uint16_t> MlaProlog::cached(std::uint32_t token) const {
  const std::uint64_t page = slots_[token] / CM384_MLA_PAGE_TOKENS,
                      place = slots_[token] % CM384_MLA_PAGE_TOKENS;
  std::vector<std::uint16_t> row;
  for (std::uint32_t column = 0; column < CM384_MLA_WIDTH / 16; ++column) {
    const auto block = runtime_.get<std::uint16_t>(
        arguments_.kv + page * CM384_MLA_PAGE_BYTES + (column * CM384_MLA_PAGE_TOKENS + place) * 32, 16);
    row.insert(row.end(), block.begin(), block.end());
  }
  return row;
}

std::string MlaProlog::compare() const {
  return compare_tokens(case_.tokens, [&](std::uint32_t token) {
    const auto queries = runtime_.get<std::uint16_t>(arguments_.absorb.c + token * arguments_.absorb.c_pitch,
                                                     std::size_t{case_.heads} * CM384_MLA_WIDTH);
    const auto row = cached(token);
    return compare_prolog(case_, *inputs_, token, {queries, row});
  });
}

MlaOutput::MlaOutput(host::Runtime& runtime, const MlaSetting& setting, std::uint64_t seed,
                     const cm384_mla& attention)
    : runtime_(runtime), case_(projections_of(seed, setting)) {
  const std::uint32_t values = setting.heads * CM384_MLA_VALUE;
  cm384_gemm& value = arguments_.value;
  cm384_gemm& out = arguments_.out;
  value = place_projection(runtime, setting, setting.heads, CM384_MLA_VALUE, CM384_MLA_LATENT);
  out = place_projection(runtime, setting, 1, setting.hidden, values);
  value.a = attention.out;
  value.a_group = CM384_MLA_LATENT * 2;
  value.a_pitch = setting.heads * value.a_group;
  value.c = out.a = allocate(runtime, setting.tokens() * out.a_pitch);
  value.c_group = CM384_MLA_VALUE * 2;
  value.c_pitch = out.a_pitch;
  out.c = allocate(runtime, setting.tokens() * out.c_pitch);
  if (!setting.full) return;
  weights_ = reference::make_output_weights(case_);
  put_weights(runtime, value, weights_->value);
  put_weights(runtime, out, weights_->out);
}

double MlaOutput::operations() const {
  return operations_of(arguments_.value, case_.tokens) + operations_of(arguments_.out, case_.tokens);
}

std::string MlaOutput::compare() const {
  const std::size_t latents = std::size_t{case_.heads} * CM384_MLA_LATENT;
  return compare_tokens(case_.tokens, [&](std::uint32_t token) {
    return compare_output(
        case_, *weights_, runtime_.get<std::uint16_t>(arguments_.value.a + token * latents * 2, latents),
        runtime_.get<std::uint16_t>(arguments_.out.c + token * arguments_.out.c_pitch, case_.hidden));
  });
}

}  // namespace cm384::studies
