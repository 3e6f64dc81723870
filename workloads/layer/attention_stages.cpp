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

Stages sparse_stages(const AttentionSetting& s, std::uint64_t seed) {
  const operators::MlaSetting setting{s.kv_lens, s.queries, s.heads, s.hidden,
                                      s.q_lora,  s.int8,    s.nope,  s.value};
  const operators::IndexSetting index{s.kv_lens, s.queries, s.has_indexer() ? s.index_heads : 64, s.chosen};
  Stages stages;
  const auto place = [&](auto made) -> auto& {
    auto& placed = *made;
    placed.launch_in_graph(true);
    stages.placed.push_back(std::move(made));
    return placed;
  };
  auto& attention = place(std::make_unique<operators::SparseAttention>(setting, index, seed));
  attention.follows_prolog();
  auto& prolog = place(std::make_unique<operators::MlaProlog>(setting, seed, attention));
  auto& output = place(std::make_unique<operators::MlaOutput>(setting, seed, attention));
  stages.run = {&prolog};
  if (s.has_indexer()) {
    auto& scores = place(std::make_unique<operators::Indexer>(index, seed));
    scores.follows_prolog();
    stages.run.push_back(&place(std::make_unique<operators::IndexProlog>(seed, prolog, scores)));
    stages.run.push_back(&scores);
    stages.run.push_back(&place(std::make_unique<operators::TopK>(scores)));
  }
  stages.run.push_back(&attention);
  stages.run.push_back(&output);
  return stages;
}

}  // namespace

std::vector<std::string> attention_names(const AttentionSetting& s) {
  if (s.has_indexer()) return {"prolog", "index_prolog", "scores", "choice", "attention", "output"};
  return {"prolog", "attention", "output"};
}

Stages attention_stages(const AttentionSetting& s, std::uint64_t seed) {
  if (s.chosen != 0) return sparse_stages(s, seed);
  if (s.kv_heads == 0)
    return stages_of<operators::MlaAttention, operators::MlaProlog, operators::MlaOutput>(
        operators::MlaSetting{s.kv_lens, s.queries, s.heads, s.hidden, s.q_lora, s.int8}, seed);
  return stages_of<operators::GqaAttention, operators::GqaProlog, operators::GqaOutput>(
      operators::GqaSetting{s.kv_lens, s.queries, s.heads, s.kv_heads, s.head_width, s.window, s.hidden,
                            s.int8, s.head_norms, s.sinks},
      seed);
}

}  // namespace cm384::studies
