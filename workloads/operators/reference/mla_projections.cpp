#include "workloads/operators/reference/mla_projections.h"

#include <fmt/format.h>

#include <utility>

#include "traces/random.h"
#include "workloads/operators/reference/layouts.h"

namespace cm384::reference {
PrologInputs make_prolog_inputs(const ProjectionCase& layer, std::span<const std::uint32_t> positions) {
  const auto random = [&](std::uint64_t stream) { return traces::Random(layer.seed, stream); };
  const std::uint32_t latents = layer.q_lora + MlaLayout::kWidth, heads = layer.heads;
  return {draw_elements(random(20), std::uint64_t{layer.tokens} * layer.hidden),
          draw_elements(random(21), layer.hidden),
          draw_elements(random(22), layer.q_lora),
          draw_elements(random(23), MlaLayout::kLatent),
          draw_weights(random(24), latents, layer.hidden, layer.int8),
          draw_weights(random(25), std::uint64_t{heads} * layer.head(), layer.q_lora, layer.int8),
          draw_weights(random(26), std::uint64_t{heads} * MlaLayout::kLatent, layer.nope, false),
          make_rope(positions)};
}

std::string compare_prolog(const ProjectionCase& layer, const PrologInputs& in, std::uint32_t token,
                           const PrologOutput& out) {
  const std::size_t hidden = layer.hidden, q_lora = layer.q_lora;
  const auto angles = std::span(in.rope).subspan(token * 128ull, 128);
  const Estimates x = exact(std::span(in.x).subspan(token * hidden, hidden));
  const Estimates latents = round_all(
      multiply(to_project(norm(x, in.gamma_x), layer.int8), in.down, 0, layer.q_lora + MlaLayout::kWidth));
  const auto all = std::span(latents);
  std::string difference =
      compare_estimates("cached latent", norm(all.subspan(q_lora, MlaLayout::kLatent), in.gamma_kv),
                        out.cached.first(MlaLayout::kLatent));
  if (difference.empty())
    difference = compare_estimates("cached rope", rotate(all.subspan(q_lora + MlaLayout::kLatent), angles),
                                   out.cached.subspan(MlaLayout::kLatent));
  if (!difference.empty()) return difference;
  const Estimates queries = round_all(multiply(to_project(norm(all.first(q_lora), in.gamma_q), layer.int8),
                                               in.up, 0, std::size_t{layer.heads} * layer.head()));
  for (std::uint32_t head = 0; head < layer.heads; ++head) {
    const auto own = std::span(queries).subspan(head * layer.head(), layer.head());
    const auto got = out.queries.subspan(head * MlaLayout::kWidth, MlaLayout::kWidth);
    difference = compare_estimates("query latent",
                                   multiply(own.first(layer.nope), in.absorb,
                                            std::size_t{head} * MlaLayout::kLatent, MlaLayout::kLatent),
                                   got.first(MlaLayout::kLatent));
    if (difference.empty())
      difference = compare_estimates("query rope", rotate(own.subspan(layer.nope), angles),
                                     got.subspan(MlaLayout::kLatent));
    if (!difference.empty()) return fmt::format("head {} {}", head, difference);
  }
  return {};
}

OutputWeights make_output_weights(const ProjectionCase& layer) {
  const std::uint32_t values = layer.heads * layer.value;
  return {draw_weights(traces::Random(layer.seed, 27), values, MlaLayout::kLatent, false),
          draw_weights(traces::Random(layer.seed, 28), layer.hidden, values, layer.int8)};
}

std::string compare_output(const ProjectionCase& layer, const OutputWeights& weights,
                           std::span<const std::uint16_t> latents, std::span<const std::uint16_t> out) {
  Estimates values;
  for (std::uint32_t head = 0; head < layer.heads; ++head) {
    const Estimates own =
        round_all(multiply(exact(latents.subspan(std::size_t{head} * MlaLayout::kLatent, MlaLayout::kLatent)),
                           weights.value, std::size_t{head} * layer.value, layer.value));
    values.insert(values.end(), own.begin(), own.end());
  }
  if (layer.int8) values = to_project(std::move(values), true);
  return compare_estimates("output", multiply(values, weights.out, 0, layer.hidden), out);
}

}  // namespace cm384::reference
