#include "workloads/layer/layer_half.h"

#include "workloads/operators/gemm/gemm.h"
#include "workloads/operators/rows/rows.h"
#include "workloads/operators/token_operators/token_operators.h"

namespace cm384::studies {

Stages AttentionHalf::stages_of(const operators::MlaSetting& setting, std::uint64_t seed) {
  Stages stages;
  auto attention = std::make_unique<operators::MlaAttention>(setting, seed);
  attention->follows_prolog();
  auto prolog = std::make_unique<operators::MlaProlog>(setting, seed, *attention);
  auto output = std::make_unique<operators::MlaOutput>(setting, seed, *attention);
  stages.run = {prolog.get(), attention.get(), output.get()};
  for (operators::KernelOperator* stage : stages.run) stage->launch_in_graph(true);
  stages.placed.push_back(std::move(attention));
  stages.placed.push_back(std::move(prolog));
  stages.placed.push_back(std::move(output));
  return stages;
}

AttentionHalf::AttentionHalf(host::Runtime& runtime, int die, const operators::MlaSetting& setting,
                             std::uint64_t seed, const LoadKernel& load, const CoreShare& cores,
                             const AttentionHalf* lender)
    : memory_(runtime, die), stages_(stages_of(setting, seed)) {
  if (lender != nullptr) memory_.borrow_weights_of(lender->memory_);
  for (const auto& stage : stages_.placed) stage->place({memory_, load, cores.groups(), false});
}

void AttentionHalf::play(const host::Recordings& recordings) {
  for (std::size_t n = 0; n < kStages; ++n)
    stages_.run[n]->run_at(operators::Grade::replay, recordings.at(n));
}

void AttentionHalf::enqueue(host::Stream stream) {
  for (operators::KernelOperator* stage : stages_.run) stage->enqueue(stream);
}

ExpertHalf::ExpertHalf(host::Runtime& runtime, int die, const Setting& setting,
                       const cm384_dispatch& dispatch, const cm384_combine& combine, const LoadKernel& load,
                       const CoreShare& cores, const ExpertHalf* lender)
    : memory_(runtime, die), expert_memory_(runtime, die) {
  if (lender != nullptr) {
    memory_.borrow_weights_of(lender->memory_);
    expert_memory_.borrow_weights_of(lender->expert_memory_);
  }
  reference::RowCase norm;
  norm.operation = reference::RowOperation::rms_norm;
  norm.rows = setting.tokens;
  norm.width = setting.hidden;
  stages_.push_back(std::make_unique<operators::Rows>(norm, 1));
  operators::GemmSetting product;
  product.group_rows = {setting.tokens};
  product.n = setting.experts;
  product.k = setting.hidden;
  product.type = CM384_GEMM_BF16;
  product.b_nz = false;
  stages_.push_back(std::make_unique<operators::Gemm>(product, setting.seed));
  reference::GateCase gate;
  gate.tokens = setting.tokens;
  gate.experts = setting.experts;
  stages_.push_back(std::make_unique<operators::Gate>(gate));
  auto experts = std::make_unique<operators::ExpertFfn>(experts_of(setting));
  experts->stand_between(dispatch, combine);
  stages_.push_back(std::move(experts));
  for (const auto& stage : stages_) {
    const bool vectors = stage->type() == npu::KernelType::aiv;
    host::DeviceMemory& memory = stage == stages_.back() ? expert_memory_ : memory_;
    stage->place({memory, load, vectors ? cores.aivs() : cores.groups(), false});
    stage->launch_in_graph(true);
  }
}

void ExpertHalf::play(std::shared_ptr<const npu::Recording> experts) {
  stages_.back()->run_at(operators::Grade::replay, std::move(experts));
}

void ExpertHalf::enqueue_before_dispatch(host::Stream stream) {
  for (std::size_t n = 0; n < kBefore; ++n) stages_[n]->enqueue(stream);
}

void ExpertHalf::enqueue_experts(host::Stream stream) {
  stages_.back()->enqueue(stream);
}

}  // namespace cm384::studies
