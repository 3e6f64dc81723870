#include "workloads/layer/attention_stages.h"

#include <memory>

#include "workloads/operators/gqa/gqa.h"
#include "workloads/operators/mla/projections.h"

namespace cm384::studies {
namespace {

template <class Attention, class Prolog, class Output, class Setting>
Stages stages_of(const Setting& setting, std::uint64_t seed) {
  Stages stages;
  auto attention = std::make_unique<Attention>(setting, seed);
  attention->follows_prolog();
  auto prolog = std::make_unique<Prolog>(setting, seed, *attention);
  auto output = std::make_unique<Output>(setting, seed, *attention);
  stages.run = {prolog.get(), attention.get(), output.get()};
  for (operators::KernelOperator* stage : stages.run) stage->launch_in_graph(true);
  stages.placed.push_back(std::move(attention));
  stages.placed.push_back(std::move(prolog));
  stages.placed.push_back(std::move(output));
  return stages;
}

}  // namespace

Stages attention_stages(const AttentionSetting& s, std::uint64_t seed) {
  if (s.kv_heads == 0)
    return stages_of<operators::MlaAttention, operators::MlaProlog, operators::MlaOutput>(
        operators::MlaSetting{s.kv_lens, s.queries, s.heads, s.hidden, s.q_lora, s.int8}, seed);
  return stages_of<operators::GqaAttention, operators::GqaProlog, operators::GqaOutput>(
      operators::GqaSetting{s.kv_lens, s.queries, s.heads, s.kv_heads, s.head_width, s.window, s.hidden,
                            s.int8},
      seed);
}

}  // namespace cm384::studies
