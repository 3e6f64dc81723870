// `cm384 run train`: one step of training by a parallel plan, from operators and collectives that are
// measured on the machine. Fitting of the parts together is workloads/training/train_step.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "hw/models/model_sizes.h"
#include "workloads/frame/lane_timeline.h"
#include "workloads/layer/layer.h"
#include "workloads/studies.h"
#include "workloads/training/train_parts.h"
#include "workloads/training/train_step.h"

namespace cm384::studies {
namespace {

using training::PartPasses;
using training::PassTime;
using training::Plan;

struct TrainOptions {
  std::string model = "qwen3-32b";
  Plan plan;
  std::string schedule = "1f1b", recompute = "none";
  bool bf16_gradients = false, no_overlap = false;
  int against = 0, search = 0;
  TrainMeasures measures;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    auto& p = self.plan;
    visit(
        "model", self.model, Form{"NAME|FILE"},
        "language model: one of `cm384 model list`, a config.json or a TOML; layers that draft are left out");
    visit("data", p.data, Range{1, kMostRanks}, "replicas, each with sequences of its own");
    visit(
        "tensor", p.tensor, Range{1, 256},
        "dies that share heads and columns of a layer; between its operators each has a part of the tokens");
    visit("pipeline", p.pipeline, Range{1, 1024}, "stages that share the layers");
    visit("expert", p.expert, Range{1, 4096}, "dies of a stage that share the experts of a layer");
    visit("context", p.context, Range{1, 1024}, "dies that share the tokens of a sequence");
    visit("schedule", self.schedule, OneOf{{"gpipe", "1f1b", "interleaved", "zero-bubble", "dualpipe"}},
          "the order of micro-batches in the stages");
    visit("chunks", p.chunks, Range{1, 64},
          "parts of the layers that a stage has, with --schedule interleaved");
    visit("micro-batch", p.micro_batch, Range{1, 4096}, "sequences that pass the stages together");
    visit("global-batch", p.global_batch, Range{1, 1'000'000}, "sequences of a step, of all replicas");
    visit("sequence", p.sequence, Range{16, 1'048'576}, "tokens of each");
    visit("recompute", self.recompute, OneOf{{"none", "selective", "full"}},
          "what backward passes compute again instead of keeping it; selective: norms, activation functions, "
          "and what is made from latents");
    visit("zero", p.zero, Range{0, 3},
          "what replicas share: 1: the state of the optimiser; 2: gradients too; 3: weights too");
    visit("gradients", self.bf16_gradients, Either{"fp32", "bf16"}, "what they are added up in");
    visit("replica-overlap", self.no_overlap, Either{"on", "off"},
          "on: gradients of a layer are sent while others' are computed, weights are gathered while others "
          "compute");
    visit("against", self.against, Range{0, kMostRanks},
          "replicas of a smaller run with the same work of each die, for linearity; 0: none");
    visit(
        "search", self.search, Range{0, 1000},
        "rows of the fastest plans that fit: any pipeline, schedule, recompute and zero on as many dies, the "
        "rest as given; 0: the plan that is given");
    visit("imbalance", self.measures.imbalance, Range{1.0, 16.0},
          "rows of the die whose experts get most, over the mean");
    visit("rows", self.measures.rows, Range{16, 65'536, 16},
          "tokens that an operator is measured with at most; more take longer in proportion");
    visit("products", self.measures.fp8, Either{"bf16", "fp8"},
          "what products of layers are of, but for the gate's; fp8 of accelerators that have it");
  }
  std::vector<std::string> inputs() const { return model_files(model); }
  Plan settled() const {
    Plan made = plan;
    made.schedule = training::schedule_of(schedule);
    made.recompute = training::recompute_of(recompute);
    made.gradient_bytes = bf16_gradients ? 2 : 4;
    return made;
  }
};

// Schedules that a search tries, with chunks of a stage.
constexpr std::array<std::pair<training::Schedule, int>, 5> kSearched{
    {{training::Schedule::one_forward_one_backward, 1},
     {training::Schedule::interleaved, 2},
     {training::Schedule::interleaved, 4},
     {training::Schedule::zero_bubble, 1},
     {training::Schedule::dualpipe, 1}}};

// A kind of layer, or the head, with the times of its operators.
struct Timed {
  std::string name;
  models::Layer layer;
  int count = 0;
  WorkTime time;
};

PassTime messages_of(const WorkTime& time) {
  PassTime sum;
  for (const MessageTime& of : time.messages) {
    switch (of.message.among) {
      case training::Message::Among::tensor:
        sum.tensor += of.us;
        break;
      case training::Message::Among::context:
        sum.context += of.us;
        break;
      case training::Message::Among::expert:
        sum.expert += of.us;
        break;
    }
  }
  return sum;
}

PartPasses passes_of_work(const WorkTime& time, training::Recompute recompute) {
  PartPasses made;
  made.layers = 1;
  double core = 0;
  for (const OperatorTime& of : time.operators) {
    made.forward.compute += of.forward;
    made.inputs.compute += of.inputs;
    made.weights.compute += of.weights;
    if (recompute == training::Recompute::selective && of.operation.again) made.again.compute += of.forward;
    if (of.operation.kind == training::Operation::Kind::attention) core += of.forward;
  }
  PassTime sent = messages_of(time);
  // Keys and values of other tokens come while those that are there are looked at.
  sent.context = std::max(0.0, sent.context - core);
  made.forward += sent;
  made.inputs += sent;
  if (recompute == training::Recompute::full) made.again = made.forward;
  made.inputs += made.again;
  return made;
}

// A plan and what it comes to.
struct PlannedStep {
  Plan plan;
  training::Step step;
  training::DieMemory memory;  // of the die that holds most
  double saved = 0;            // bytes of a checkpoint, of the die that has most
  Rows stages;
};

class TrainingStep {
 public:
  // Plans of a step have the same tensor, context and expert parallelism and micro-batch as this one.
  TrainingStep(const StudyContext& context, const TrainOptions& options, const models::Model& model,
               const Plan& plan, StudyResult& result)
      : context_(context),
        options_(options),
        model_(model),
        plan_(plan),
        dies_(context.machine.topology.one_supernode().dies()),
        parts_(make_train_parts(context, plan_, options.measures, result)) {}

  // False: interrupted.
  bool measure() {
    for (const models::Layer& layer : model_.layers) {
      const auto known = std::ranges::find(kinds_, layer, &Timed::layer);
      if (known != kinds_.end()) {
        ++known->count;
        continue;
      }
      Timed timed{name_of_kind(layer), layer, 1, {}};
      timed.time =
          parts_->measure(model_, training::work_of_layer(model_, layer, plan_, options_.measures.imbalance));
      if (layer.has_experts()) {
        WorkTime order = parts_->measure_order(model_);
        std::ranges::move(order.operators, std::back_inserter(timed.time.operators));
      }
      kinds_.push_back(std::move(timed));
    }
    head_ = {"head", {}, 1, parts_->measure(model_, training::work_of_head(model_, plan_))};
    return !parts_->interrupted();
  }

  // Empty: interrupted.
  std::optional<PlannedStep> step(const Plan& plan, bool keep_passes = false) {
    const std::vector<training::Part> spread = spread_of(plan);
    training::StepCase made;
    made.keep_passes = keep_passes;
    made.overlap = !options_.no_overlap;
    training::PipelineCase& pipeline = made.pipeline;
    pipeline.schedule = plan.schedule;
    pipeline.stages = plan.pipeline;
    pipeline.chunks = plan.chunks;
    pipeline.micro_batches = plan.micro_batches();
    for (std::size_t n = 0; n < spread.size(); ++n) {
      made.passes.push_back(passes_of_part(spread[n], plan));
      pipeline.kept.push_back(training::kept_bytes(model_, spread[n], plan));
      if (n + 1 < spread.size()) pipeline.messages.push_back(message_us(static_cast<int>(n), plan));
    }
    for (int rank = 0; rank < plan.pipeline; ++rank) made.replicas.push_back(replicas_of_rank(rank, plan));
    if (parts_->interrupted()) return {};
    PlannedStep planned{plan, training::compose_step(std::move(made)), {}, 0, {}};
    for (int rank = 0; rank < plan.pipeline; ++rank) add_stage(planned, spread, rank);
    return planned;
  }

  Rows shown_parts() const {
    Rows rows;
    std::vector<Timed> all = kinds_;
    all.push_back(head_);
    for (const Timed& timed : all) {
      const std::string of_kind = all.size() == 2 || timed.name == head_.name ? "" : " of " + timed.name;
      for (const OperatorTime& of : timed.time.operators)
        rows.push_back({{"name", of.operation.name + of_kind},
                        {"layers", timed.count},
                        {"forward_us", of.forward},
                        {"inputs_us", of.inputs},
                        {"weights_us", of.weights},
                        {"measured", std::min(1.0, of.share)},
                        {"how", of.how}});
      for (const MessageTime& of : timed.time.messages)
        rows.push_back({{"name", of.message.name + of_kind},
                        {"layers", timed.count},
                        {"forward_us", of.us},
                        {"inputs_us", of.us},
                        {"bytes", of.message.bytes},
                        {"how", of.how}});
    }
    return rows;
  }

 private:
  static std::string name_of_kind(const models::Layer& layer) {
    std::string name = layer.has_experts() ? "layers with experts" : "dense layers";
    if (layer.attention.kind == models::AttentionKind::sliding) name += " with a window";
    return name;
  }

  std::vector<training::Part> spread_of(const Plan& plan) const {
    return training::spread_layers(plan, static_cast<int>(model_.layers.size()));
  }
  static std::vector<std::size_t> parts_of(const Plan& plan, int rank) {
    std::vector<std::size_t> made;
    for (int chunk = 0; chunk < plan.chunks; ++chunk)
      made.push_back(static_cast<std::size_t>(chunk * plan.pipeline + rank));
    if (plan.copies() == 2) made.push_back(static_cast<std::size_t>(plan.pipeline - 1 - rank));
    return made;
  }
  training::HeldParameters held_of_rank(const Plan& plan, int rank) const {
    const std::vector<training::Part> spread = spread_of(plan);
    training::HeldParameters held;
    for (const std::size_t part : parts_of(plan, rank))
      held += training::held_parameters(model_, plan, spread[part]);
    return held;
  }
  void add_stage(PlannedStep& planned, const std::vector<training::Part>& spread, int rank) const {
    const Plan& plan = planned.plan;
    const auto at = static_cast<std::size_t>(rank);
    const training::HeldParameters held = held_of_rank(plan, rank);
    training::DieMemory of = training::state_of(held, plan);
    planned.saved = std::max(planned.saved, training::saved_bytes(held, plan));
    double working = 0;
    int layers = 0;
    for (const std::size_t part : parts_of(plan, rank)) {
      working = std::max(working, training::working_bytes(model_, spread[part], plan));
      layers += spread[part].layers;
    }
    const training::PipelineRun& run = planned.step.run;
    planned.stages.push_back({{"name", std::to_string(rank)},
                              {"layers", layers},
                              {"busy_ms", run.busy[at] / 1000},
                              {"state_GB", of.all() / 1e9},
                              {"kept_GB", run.most_kept[at] / 1e9}});
    of.activations = run.most_kept[at] + working;
    if (of.all() > planned.memory.all()) planned.memory = of;
  }

  PartPasses passes_of_part(const training::Part& part, const Plan& plan) {
    PartPasses made;
    const auto add = [&](const PartPasses& of) {
      made.forward += of.forward;
      made.inputs += of.inputs;
      made.weights += of.weights;
      made.again += of.again;
    };
    for (int layer = part.from; layer < part.from + part.layers; ++layer)
      add(passes_of_work(
          std::ranges::find(kinds_, model_.layers[static_cast<std::size_t>(layer)], &Timed::layer)->time,
          plan.recompute));
    if (part.head) add(passes_of_work(head_.time, training::Recompute::none));
    made.layers = part.layers;
    if (plan.zero < 2) return made;
    // With each micro-batch: gradients to those that share them, and weights from them, one layer ahead.
    const training::HeldParameters held = training::held_parameters(model_, plan, part);
    const double gather = plan.zero == 3 ? scattered_us(held, 2, plan) : 0;
    const double scatter = scattered_us(held, plan.gradient_bytes, plan);
    const bool overlap = !options_.no_overlap;
    made.forward.data = training::exposed(gather, made.forward.all(), part.layers, overlap);
    made.inputs.data =
        training::exposed(gather + scatter, made.inputs.all() + made.weights.all(), part.layers, overlap);
    return made;
  }

  // Of so many bytes per parameter, among those that hold the same.
  double scattered_us(const training::HeldParameters& held, double bytes, const Plan& plan) {
    const training::Replicas replicas = training::replicas_of(plan);
    return parts_->scatter_us(replicas.sliced, plan.tensor, held.sliced * bytes) +
           parts_->scatter_us(replicas.copied, 1, held.copied * bytes) +
           parts_->scatter_us(replicas.experts, plan.expert, held.experts * bytes);
  }

  training::ReplicaTimes replicas_of_rank(int rank, const Plan& plan) {
    const training::HeldParameters held = held_of_rank(plan, rank);
    const training::Replicas replicas = training::replicas_of(plan);
    training::ReplicaTimes made;
    if (plan.zero < 2) made.gradients = scattered_us(held, plan.gradient_bytes, plan);
    // Without sharing the sums of gradients are gathered, with it the new weights.
    if (plan.zero < 3) made.weights = scattered_us(held, plan.zero == 0 ? plan.gradient_bytes : 2, plan);
    const double own = plan.zero == 0 ? held.all()
                                      : held.sliced / replicas.sliced + held.copied / replicas.copied +
                                            held.experts / replicas.experts;
    // Gradient, master weight and two moments are read, and all but the gradient written, with a new weight.
    made.optimiser = parts_->stream_us(own * (plan.gradient_bytes + 12 + 12 + 2));
    return made;
  }

  double message_us(int part, const Plan& plan) {
    const int from = part % plan.pipeline, to = (part + 1) % plan.pipeline;
    if (from == to) return 0;
    const bool leaves = from * plan.stage_ranks() / dies_ != to * plan.stage_ranks() / dies_;
    return parts_->send_us(static_cast<double>(training::boundary_bytes(model_, plan)), leaves);
  }

  const StudyContext& context_;
  const TrainOptions& options_;
  const models::Model& model_;
  const Plan plan_;
  const int dies_;  // of a supernode
  std::unique_ptr<TrainParts> parts_;
  std::vector<Timed> kinds_;
  Timed head_;
};

Row memory_row(const training::DieMemory& memory, double checkpoint) {
  return {{"weights_GB", memory.weights / 1e9},     {"gradients_GB", memory.gradients / 1e9},
          {"optimiser_GB", memory.optimiser / 1e9}, {"activations_GB", memory.activations / 1e9},
          {"all_GB", memory.all() / 1e9},           {"checkpoint_GB", checkpoint / 1e9}};
}

Row shares_row(const training::StepShares& shares) {
  return {{"compute", shares.compute}, {"again", shares.again},         {"tensor", shares.tensor},
          {"context", shares.context}, {"expert", shares.expert},       {"data", shares.data},
          {"stages", shares.stages},   {"optimiser", shares.optimiser}, {"bubble", shares.bubble}};
}

Row conditions_row(const StudyContext& context, const TrainOptions& options, const Plan& plan) {
  const double dies_of_npu = context.machine.topology.dies_per_package;
  Row row{{"model", options.model}, {"npus", plan.ranks() / dies_of_npu}};
  row.set("data", plan.data).set("tensor", plan.tensor).set("pipeline", plan.pipeline);
  row.set("expert", plan.expert).set("context", plan.context);
  row.set("schedule", training::name_of(plan.schedule)).set("chunks", plan.chunks);
  row.set("micro_batch", plan.micro_batch)
      .set("global_batch", plan.global_batch)
      .set("sequence", plan.sequence);
  row.set("recompute", training::name_of(plan.recompute)).set("zero", plan.zero);
  return row;
}

double room_of(const StudyContext& context) {
  const hw::Machine& machine = context.machine;
  const Bytes room =
      machine.accelerator.has_cores() ? machine.memory.hbm.capacity : machine.transfer_engine.memory;
  return static_cast<double>(room.count);
}

Row row_of(const StudyContext& context, const TrainOptions& options, const models::Model& model,
           const PlannedStep& planned) {
  const Plan& plan = planned.plan;
  const double seconds = planned.step.time / 1e6;
  const double tokens_s = static_cast<double>(plan.global_batch) * plan.sequence / seconds;
  const training::TokenFlops flops = training::token_flops(model, plan.sequence);
  const double peak = plan.ranks() * hw::peaks_of(context.machine).bf16_tflops * 1e12;
  const double mfu = tokens_s * (flops.linear + flops.causal) / peak;
  Row row = conditions_row(context, options, plan);
  row.set("step_s", seconds).set("tokens_s", tokens_s);
  row.set("tokens_s_npu", tokens_s / plan.ranks() * context.machine.topology.dies_per_package);
  row.set("mfu", mfu).set("mfu_full", tokens_s * (flops.linear + flops.full) / peak);
  row.set("hfu", mfu + tokens_s * training::recomputed_flops(model, plan) / peak);
  row.set("shares", shares_row(planned.step.shares))
      .set("memory", memory_row(planned.memory, planned.saved * context.machine.topology.dies_per_package));
  row.set("fits", planned.memory.all() <= room_of(context));
  return row;
}

// The same work of each die with fewer replicas.
std::optional<Plan> smaller_plan(const TrainOptions& options, const Plan& plan) {
  if (options.against == 0) return {};
  if (options.search > 0)
    throw InputError("run train: --against: has no effect with --search; allowed: one of the two");
  // Experts lie on dies of several replicas.
  const int fewest = plan.expert / std::gcd(plan.expert, plan.context * plan.tensor);
  if (options.against >= plan.data || plan.data % options.against != 0 || options.against % fewest != 0)
    throw InputError(
        fmt::format("run train: --against {}: allowed: less than --data {}, a divisor of it, and a multiple "
                    "of the {} replicas "
                    "that share experts",
                    options.against, plan.data, fewest));
  Plan made = plan;
  made.data = options.against;
  made.global_batch = plan.global_batch / plan.data * made.data;
  return made;
}

// All pipelines, schedules, recomputations and levels of sharing of as many dies.
std::vector<Plan> plans_of(const Plan& plan, const models::Model& model, int dies, int dies_of_supernode) {
  std::vector<Plan> made;
  const int groups = plan.data * plan.pipeline;  // of tensor and context parallelism
  const auto add = [&](const Plan& one) {
    try {
      training::check_plan(one, model, dies, dies_of_supernode);
    } catch (const InputError&) {
      return;  // does not divide
    }
    made.push_back(one);
  };
  for (int stages = 1; stages <= groups; ++stages) {
    if (groups % stages != 0) continue;
    for (const auto& [schedule, chunks] : kSearched) {
      for (const training::Recompute recompute :
           {training::Recompute::none, training::Recompute::selective, training::Recompute::full}) {
        for (const int zero : {1, 2, 3}) {
          Plan one = plan;
          one.pipeline = stages;
          one.data = groups / stages;
          one.schedule = schedule;
          one.chunks = chunks;
          one.recompute = recompute;
          one.zero = zero;
          // Of one stage all schedules are the same, and without replicas all levels of sharing.
          const bool same_schedule = stages == 1 && schedule != training::Schedule::one_forward_one_backward;
          const bool same_level = one.data * one.context == 1 && zero > 1;
          if (!same_schedule && !same_level) add(one);
        }
      }
    }
  }
  return made;
}

const char* name_of(training::Pass::Kind kind) {
  using Kind = training::Pass::Kind;
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::backward:
      break;
    case Kind::inputs:
      return "inputs";
    case Kind::weights:
      return "weights";
  }
  return "backward";
}

// A process of the timeline, with a lane for each stage.
void write_lanes(LaneTimeline& timeline, int process, const PlannedStep& planned) {
  const auto time = [](double us) { return time_of_seconds(us * 1e-6); };
  const training::Step& step = planned.step;
  timeline.process(process, fmt::format("row {}: {}, {} stages", process,
                                        training::name_of(planned.plan.schedule), planned.plan.pipeline));
  const std::vector<training::PassRun>& passes = step.run.passes;
  for (std::size_t n = 0; n < passes.size(); ++n) {
    const training::PassRun& one = passes[n];
    if (n == 0 || one.rank != passes[n - 1].rank)
      timeline.lane(process, one.rank, fmt::format("stage {}", one.rank));
    std::string name = fmt::format("{} {}", name_of(one.pass.kind), one.pass.micro_batch);
    std::string arguments = fmt::format(R"("micro_batch":{},"part":{})", one.pass.micro_batch, one.pass.part);
    if (one.pass.pair) {
      const training::Pass& other = passes[++n].pass;
      name += fmt::format(" beside {} {}", name_of(other.kind), other.micro_batch);
      arguments += fmt::format(R"(,"other_micro_batch":{},"other_part":{})", other.micro_batch, other.part);
    }
    timeline.slice(process, one.rank, name, time(one.begin), time(one.end), arguments);
  }
  for (int rank = 0; rank < planned.plan.pipeline; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const double exchanged = step.run.ends[at] + step.behind[at];
    timeline.slice(process, rank, "gradients and weights of replicas", time(step.run.ends[at]),
                   time(exchanged));
    timeline.slice(process, rank, "optimiser", time(exchanged), time(exchanged + step.optimiser[at]));
  }
}

StudyResult run(const StudyContext& watched, const TrainOptions& options) {
  StudyContext context = watched;
  std::optional<LaneTimeline> timeline = open_own_timeline(context, "train", "a step");
  const models::Model model = models::load_model(options.model);
  const int dies = context.machine.topology.dies(),
            dies_of_supernode = context.machine.topology.one_supernode().dies();
  const Plan plan = options.settled();
  training::check_plan(plan, model, dies, dies_of_supernode);
  LayerOptions::of_model(model);  // refuses what no kernel is here for
  const std::optional<Plan> smaller = smaller_plan(options, plan);
  StudyResult result;
  result.input_files = options.inputs();
  TrainingStep measured(context, options, model, plan, result);
  std::vector<PlannedStep> found;
  bool complete = measured.measure();
  const auto add = [&](const Plan& one) {
    std::optional<PlannedStep> step;
    if (complete) step = measured.step(one);
    complete = complete && step;
    if (step) found.push_back(std::move(*step));
  };
  if (options.search > 0) {
    for (const Plan& one : plans_of(plan, model, dies, dies_of_supernode)) add(one);
    std::erase_if(found, [&](const PlannedStep& one) { return one.memory.all() > room_of(context); });
    std::ranges::stable_sort(found, {}, [](const PlannedStep& one) { return one.step.time; });
    if (found.size() > static_cast<std::size_t>(options.search))
      found.resize(static_cast<std::size_t>(options.search));
  } else {
    add(plan);
  }
  std::optional<PlannedStep> base;
  if (smaller && complete) base = measured.step(*smaller);
  result.complete = complete && (!smaller || base);
  if (!result.complete) return result;
  if (found.empty())
    throw InputError(
        fmt::format("run train: --search: no plan of {} dies fits the {:.1f} GB of each; allowed: more "
                    "dies, or more of them for tensor or expert parallelism",
                    plan.ranks(), room_of(context) / 1e9));
  for (const PlannedStep& one : found) {
    Row row = row_of(context, options, model, one);
    if (base) {
      row.set("against_npus",
              base->plan.ranks() / static_cast<double>(context.machine.topology.dies_per_package));
      row.set("linearity", base->step.time / one.step.time);
    }
    row.set("stages", one.stages).set("parts", measured.shown_parts());
    context.finish_row(result, std::move(row));
    if (timeline) {
      const std::optional<PlannedStep> kept = measured.step(one.plan, true);
      if (kept) write_lanes(*timeline, static_cast<int>(result.rows.size()), *kept);
    }
    if (one.memory.all() > room_of(context))
      result.notes.push_back(fmt::format("{:.1f} GB do not fit the {:.1f} GB of a die",
                                         one.memory.all() / 1e9, room_of(context) / 1e9));
  }
  if (timeline) timeline->finish();
  if (model.draft_layers > 0) result.notes.emplace_back("layers that draft are left out, of MFU as well");
  return result;
}

constexpr std::array kShareParts{
    Field{"compute", FieldType::ratio, "operators, what is computed again apart", true},
    Field{"again", FieldType::ratio, "operators of forward passes in backward passes"},
    Field{"tensor", FieldType::ratio, "gathers and scatters of tokens in a tensor-parallel group", true},
    Field{"context", FieldType::ratio, "gathers of keys and values, as far as attention does not hide them"},
    Field{"expert", FieldType::ratio, "dispatch and combine, as far as pairs of passes do not hide them",
          true},
    Field{"data", FieldType::ratio, "gradients and weights among replicas, as far as passes do not hide them",
          true},
    Field{"stages", FieldType::ratio, "waiting for messages between stages"},
    Field{"optimiser", FieldType::ratio, "the optimiser's own work"},
    Field{"bubble", FieldType::ratio, "waiting for passes of other stages", true},
};
constexpr std::array kMemoryParts{
    Field{"weights_GB", FieldType::number, "in BF16"},
    Field{"gradients_GB", FieldType::number, "of the weights"},
    Field{"optimiser_GB", FieldType::number, "master weights and two moments in FP32"},
    Field{"activations_GB", FieldType::number,
          "kept for backward passes, and the largest that are needed for a moment"},
    Field{"all_GB", FieldType::number, "together", true},
    Field{
        "checkpoint_GB", FieldType::number,
        "that an NPU saves of weights and of the optimiser's state, each replica its share: --state of `run "
        "reliability`"},
};
constexpr std::array kStageParts{
    Field{"name", FieldType::text, "number of the stage, from 0"},
    Field{"layers", FieldType::integer, "that its dies hold"},
    Field{"busy_ms", FieldType::number, "of a step in passes"},
    Field{"state_GB", FieldType::number, "of a die: weights, gradients and the optimiser's state"},
    Field{"kept_GB", FieldType::number, "of a die: activations of all micro-batches in flight, at most"},
};
constexpr std::array kTrainParts{
    Field{"name", FieldType::text, "of the operator or message"},
    Field{"layers", FieldType::integer, "that have it"},
    Field{"forward_us", FieldType::number, "of a micro-batch"},
    Field{"inputs_us", FieldType::number, "backward, for gradients of inputs"},
    Field{"weights_us", FieldType::number, "backward, for gradients of weights"},
    Field{"measured", FieldType::ratio, "of its work, the rest taken in proportion"},
    Field{"bytes", FieldType::bytes, "of a rank's part, or for another rank"},
    Field{"how", FieldType::text, "its time is known"},
};
constexpr std::array kTrainFields{
    Field{"model", FieldType::text, "language model", true}.as_condition(),
    Field{"npus", FieldType::number, "of the run", true}.as_condition(),
    Field{"data", FieldType::integer, "replicas", true}.as_condition(),
    Field{"tensor", FieldType::integer, "dies of a tensor-parallel group", true}.as_condition(),
    Field{"pipeline", FieldType::integer, "stages", true}.as_condition(),
    Field{"expert", FieldType::integer, "dies that share the experts of a layer", true}.as_condition(),
    Field{"context", FieldType::integer, "dies that share a sequence"}.as_condition(),
    Field{"schedule", FieldType::text, "of the stages", true}.as_condition(),
    Field{"chunks", FieldType::integer, "parts of a stage"}.as_condition(),
    Field{"micro_batch", FieldType::integer, "sequences"}.as_condition(),
    Field{"global_batch", FieldType::integer, "sequences of a step", true}.as_condition(),
    Field{"sequence", FieldType::integer, "tokens of each"}.as_condition(),
    Field{"recompute", FieldType::text, "none, selective, full", true}.as_condition(),
    Field{"zero", FieldType::integer, "what replicas share, as --zero"}.as_condition(),
    Field{"step_s", FieldType::number, "from the first pass to new weights", true},
    Field{"tokens_s", FieldType::number, "of all replicas"},
    Field{"tokens_s_npu", FieldType::number, "tokens per second per NPU", true},
    Field{
        "mfu", FieldType::ratio,
        "FLOPs of the model over the BF16 peak: 6 per parameter and token, and attention by its causal mask; "
        "with the head, without embedding, drafting layers, and what is computed again",
        true},
    Field{"mfu_full", FieldType::ratio, "the same with attention as if there were no mask"},
    Field{"hfu", FieldType::ratio, "the same as mfu with what is computed again"},
    Field{"shares", FieldType::object, "of the step, at the stage that has most to do", true, kShareParts},
    Field{"memory", FieldType::object, "of the die that holds most", true, kMemoryParts},
    Field{"fits", FieldType::boolean, "the memory of a die holds it", true},
    Field{"against_npus", FieldType::number, "of the smaller run that linearity is against"}.as_condition(),
    Field{"linearity", FieldType::ratio,
          "tokens per second per NPU over those of the smaller run, with the same work of each die"},
    Field{"stages", FieldType::list, "by stage", false, kStageParts},
    Field{"parts", FieldType::list, "of a layer and of the head, on a die", false, kTrainParts},
};

}  // namespace

const Study kTrainStudy{.name = "train",
                        .summary = "a step of training by a parallel plan",
                        .fields = kTrainFields,
                        .options = options_of<TrainOptions, run>,
                        .coreless = true,
                        .supernodes = true,
                        .own_timeline = true};

}  // namespace cm384::studies
