#include "workloads/operators/mla/projections.h"

#include "workloads/operators/gemm/projection.h"
#include "workloads/operators/reference/layouts.h"

namespace cm384::operators {
namespace {

reference::ProjectionCase projections_of(std::uint64_t seed, const MlaSetting& setting) {
  return {seed,          setting.tokens(), setting.hidden, setting.q_lora,
          setting.heads, setting.int8,     setting.nope,   setting.value};
}

}  // namespace

MlaProlog::MlaProlog(const MlaSetting& setting, std::uint64_t seed, const LatentAttention& attention)
    : setting_(setting), attention_(attention), case_(projections_of(seed, setting)) {}

void MlaProlog::lay_out(const Site& site) {
  const cm384_mla& attention = attention_.arguments();
  std::vector<std::uint32_t> positions;
  for (std::uint32_t sequence = 0; sequence < setting_.kv_lens.size(); ++sequence) {
    for (std::uint32_t query = 0; query < setting_.queries; ++query) {
      const std::uint32_t position = setting_.kv_lens[sequence] - 1 + query;
      const std::uint32_t page =
          attention_.page_table()[sequence * attention.table_width + position / CM384_MLA_PAGE_TOKENS];
      positions.push_back(position);
      slots_.push_back(page * CM384_MLA_PAGE_TOKENS + position % CM384_MLA_PAGE_TOKENS);
    }
  }
  arguments_.kv = attention.kv;
  allocate(site);
  runtime().put(arguments_.slots, std::span<const std::uint32_t>(slots_));
  const std::vector<float> rope = reference::make_rope(positions);
  runtime().put(arguments_.rope, std::span<const float>(rope));
  if (!site.full) return;
  if (!inputs_) inputs_ = reference::make_prolog_inputs(case_, positions);
  const auto put = [&](std::uint64_t to, const std::vector<std::uint16_t>& from) {
    runtime().put(to, std::span<const std::uint16_t>(from));
  };
  put(arguments_.x, inputs_->x);
  put(arguments_.gamma_x, inputs_->gamma_x);
  put(arguments_.gamma_q, inputs_->gamma_q);
  put(arguments_.gamma_kv, inputs_->gamma_kv);
  write_weights(runtime(), arguments_.down, inputs_->down);
  write_weights(runtime(), arguments_.up, inputs_->up);
  write_weights(runtime(), arguments_.absorb, inputs_->absorb);
}

void MlaProlog::allocate(const Site& site) {
  const auto lines = [&](std::uint64_t bytes) { return site.memory.allocate_lines(bytes); };
  const auto tensor = [&](std::uint64_t bytes) {
    const std::uint64_t address = lines(bytes);
    if (!site.full) runtime().mark_payload(address, bytes);
    return address;
  };
  const auto projection = [&](std::uint32_t groups, std::uint32_t n, std::uint32_t k, bool int8) {
    return place_projection(site, setting_.tokens(), groups, n, k, int8);
  };
  cm384_mla_prolog& a = arguments_;
  a.tokens = setting_.tokens();
  a.hidden = setting_.hidden;
  a.q_lora = setting_.q_lora;
  a.heads = setting_.heads;
  a.epsilon = reference::kNormEpsilon;
  a.x = tensor(a.tokens * a.hidden * 2ull);
  a.gamma_x = tensor(a.hidden * 2ull);
  a.gamma_q = tensor(a.q_lora * 2ull);
  a.gamma_kv = tensor(CM384_MLA_LATENT * 2);
  a.rope = lines(a.tokens * 512ull);
  a.slots = lines(a.tokens * 4ull);
  a.down = projection(1, CM384_MLA_LATENTS(a.q_lora), a.hidden, setting_.int8);
  a.up = projection(1, a.heads * case_.head(), a.q_lora, setting_.int8);
  a.absorb = projection(a.heads, CM384_MLA_LATENT, setting_.nope, false);
  a.down.a = lines(a.tokens * a.down.a_pitch);
  a.down.c = lines(a.tokens * a.down.c_pitch);
  a.up.a = lines(a.tokens * a.up.a_pitch);
  a.up.c = a.absorb.a = lines(a.tokens * a.up.c_pitch);
  a.absorb.a_pitch = a.up.c_pitch;
  a.absorb.a_group = case_.head() * 2;
  a.absorb.c = attention_.arguments().q;
  a.absorb.c_group = CM384_MLA_WIDTH * 2;
  a.absorb.c_pitch = a.heads * a.absorb.c_group;
}

Work MlaProlog::work() const {
  const cm384_mla_prolog& a = arguments_;
  return work_of({&a.down, &a.up, &a.absorb}, a.tokens,
                 2.0 * a.tokens * (a.hidden + a.heads * CM384_MLA_WIDTH));
}

std::vector<std::uint16_t> MlaProlog::cached(std::uint32_t token) const {
  const std::uint64_t page = slots_[token] / CM384_MLA_PAGE_TOKENS,
                      place = slots_[token] % CM384_MLA_PAGE_TOKENS;
  if (attention_.caches_rows()) {
    const auto in = runtime().get<std::uint16_t>(
        arguments_.kv + slots_[token] * std::uint64_t{CM384_MLA_WIDTH} * 2, CM384_MLA_WIDTH);
    std::vector<std::uint16_t> row(CM384_MLA_WIDTH);
    for (std::size_t n = 0; n < row.size(); ++n) row[n] = in[reference::SparseRow::element(n)];
    return row;
  }
  std::vector<std::uint16_t> row;
  for (std::uint32_t column = 0; column < CM384_MLA_WIDTH / 16; ++column) {
    const auto block = runtime().get<std::uint16_t>(
        arguments_.kv + page * CM384_MLA_PAGE_BYTES + (column * CM384_MLA_PAGE_TOKENS + place) * 32, 16);
    row.insert(row.end(), block.begin(), block.end());
  }
  return row;
}

std::string MlaProlog::check() const {
  return compare_tokens(case_.tokens, [&](std::uint32_t token) {
    const auto queries = runtime().get<std::uint16_t>(arguments_.absorb.c + token * arguments_.absorb.c_pitch,
                                                      std::size_t{case_.heads} * CM384_MLA_WIDTH);
    const auto row = cached(token);
    return compare_prolog(case_, *inputs_, token, {queries, row});
  });
}

MlaOutput::MlaOutput(const MlaSetting& setting, std::uint64_t seed, const LatentAttention& attention)
    : setting_(setting), attention_(attention), case_(projections_of(seed, setting)) {}

void MlaOutput::lay_out(const Site& site) {
  const std::uint32_t tokens = setting_.tokens(), values = setting_.heads * setting_.value;
  cm384_gemm& value = arguments_.value;
  cm384_gemm& out = arguments_.out;
  value = place_projection(site, tokens, setting_.heads, setting_.value, CM384_MLA_LATENT, false);
  out = place_projection(site, tokens, 1, setting_.hidden, values, setting_.int8);
  value.a = attention_.arguments().out;
  value.a_group = CM384_MLA_LATENT * 2;
  value.a_pitch = setting_.heads * value.a_group;
  value.c_group = setting_.value * 2;
  value.c_pitch = values * 2ull;
  value.c = out.a = site.memory.allocate_lines(tokens * value.c_pitch);
  if (setting_.int8) out.a = site.memory.allocate_lines(tokens * out.a_pitch);
  out.c = site.memory.allocate_lines(tokens * out.c_pitch);
  if (!site.full) return;
  if (!weights_) weights_ = reference::make_output_weights(case_);
  write_weights(runtime(), value, weights_->value);
  write_weights(runtime(), out, weights_->out);
}

Work MlaOutput::work() const {
  return work_of({&arguments_.value, &arguments_.out}, case_.tokens,
                 2.0 * case_.tokens * (double{CM384_MLA_LATENT} * case_.heads + case_.hidden));
}

std::string MlaOutput::check() const {
  const std::size_t latents = std::size_t{case_.heads} * CM384_MLA_LATENT;
  return compare_tokens(case_.tokens, [&](std::uint32_t token) {
    return compare_output(
        case_, *weights_, runtime().get<std::uint16_t>(arguments_.value.a + token * latents * 2, latents),
        runtime().get<std::uint16_t>(arguments_.out.c + token * arguments_.out.c_pitch, case_.hidden));
  });
}

}  // namespace cm384::operators
