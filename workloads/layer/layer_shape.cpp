#include "workloads/layer/layer_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"

namespace cm384::studies {

void LayerShape::check_effect(const Given& given, std::string_view before) const {
  if (kv_heads == 0)
    refuse_given(given, before, {"head-width", "window", "qk-norm", "sinks"},
                 "without --kv-heads: the cache has latents");
  else
    refuse_given(given, before, {"q-lora", "sparse"}, "with --kv-heads: there is no latent");
  if (chosen == 0)
    refuse_given(given, before, {"index-heads", "key-width", "value-width"}, "without --sparse");
  if (experts == 0)
    refuse_given(given, before,
                 {"routing", "experts-per-token", "gate", "expert-group", "token-groups", "shared-experts",
                  "redundant", "balance", "width"},
                 "without experts");
  if (expert_group == 0) refuse_given(given, before, {"token-groups"}, "without groups of experts");
}

void LayerShape::check_groups() const {
  if (experts_per_token > experts)
    throw InputError(
        fmt::format("--experts-per-token {}: allowed: at most the {} experts", experts_per_token, experts));
  if (expert_group == 0) return;
  if (experts % expert_group != 0 || experts / expert_group > 64)
    throw InputError(
        fmt::format("--expert-group {}: allowed: 0, or what makes at most 64 whole groups of {} experts",
                    expert_group, experts));
  if (std::min(token_groups, experts / expert_group) * expert_group < experts_per_token)
    throw InputError(
        fmt::format("--token-groups {}: of {} experts each; allowed: as many as have the {} of a token",
                    token_groups, expert_group, experts_per_token));
}

}  // namespace cm384::studies
