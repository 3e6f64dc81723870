#include "workloads/moe/moe_options.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/engine/peers.h"
#include "base/text/error.h"
#include "traces/routing/routing.h"
#include "workloads/frame/kernel_phases.h"
#include "workloads/frame/published.h"
#include "workloads/moe/moe.h"

namespace cm384::studies {
namespace {

constexpr std::array kDispatchFields{
    Field{"ranks", FieldType::integer, "dies that take part, one rank each", true}.as_condition(),
    Field{"path", FieldType::text, "what carries the rows"}.as_condition(),
    Field{"expert_ranks", FieldType::integer, "that hold all experts and have no tokens, where given"}
        .as_condition(),
    Field{"completion", FieldType::text, "how a row of combine says that it has arrived"}.as_condition(),
    Field{"batch", FieldType::integer, "tokens per rank; none where they are unlike", true}.as_condition(),
    Field{"latency_us", FieldType::object, "over ranks and counted iterations, as --measure chooses", true,
          kSummaryParts},
    Field{"published_us", FieldType::number, "published for these conditions", true},
    Field{"error", FieldType::ratio, "mean over published_us, or rows_GBps over published_GBps, less 1",
          true},
    Field{"token_ranks_us", FieldType::number,
          "mean of latency_us over ranks with tokens, with --expert-ranks"},
    Field{"expert_ranks_us", FieldType::number, "mean of latency_us over the ranks with experts"},
    Field{"task_us", FieldType::number, "mean task duration, launch and teardown of the blocks inside"},
    Field{"kernel_us", FieldType::number,
          "mean from the first instruction of the first block to the last of the last"},
    Field{"bandwidth_GBps", FieldType::number,
          "top-k x batch (unlike ones: their mean) x hidden x element size over the mean", true},
    Field{"rdma_MB", FieldType::number,
          "that a rank writes over the RDMA plane, mean over ranks of the last iteration, with several "
          "supernodes"},
    Field{"rows_GBps", FieldType::number,
          "as DeepEP counts in mode normal, over the mean: in one server rows that a rank gets, in several "
          "rows "
          "that it sends to servers, those of its own inside"},
    Field{"published_GBps", FieldType::number, "rows_GBps published for these conditions"},
    Field{"beside", FieldType::integer, "dies that copy meanwhile, with --beside"}.as_condition(),
    Field{"beside_GBps", FieldType::number, "that each of them copied to another one while the operator ran"},
    Field{"correct", FieldType::boolean, "bytes equal those of the reference; payload mode full only"},
    Field{"code_bytes", FieldType::integer, "of the kernel's image"},
    Field{"fetch_stall_us", FieldType::number, "mean time that a core waited for instructions"},
    Field{"free_fetch_us", FieldType::number, "mean of latency_us with instruction fetch free of charge"},
    Field{"phases", FieldType::list, "mean time of a core in each phase of the kernel", false, kPhaseParts},
};

const Summary& chosen_time(const OperatorRows& rows, const DispatchReading& reading) {
  return rows.kernel_time ? reading.kernel_us : reading.task_us;
}

// Means over ranks that have tokens, and over those behind them, which have the experts.
void add_kinds(Row& row, const DispatchCase& setting, const OperatorRows& rows, int ranks,
               const DispatchReading& reading) {
  const auto with_tokens = static_cast<std::size_t>(ranks - setting.expert_ranks);
  std::array<double, 2> sums{}, counts{};
  for (std::size_t n = 0; n < reading.tasks.size(); ++n) {
    const npu::LaunchRecord& task = reading.tasks[n];
    const Time time =
        rows.kernel_time ? task.last_retired - task.first_instruction : task.task_end - task.task_start;
    const std::size_t kind = n % static_cast<std::size_t>(ranks) < with_tokens ? 0 : 1;
    sums[kind] += time.us();
    ++counts[kind];
  }
  if (reading.tasks.empty()) return;
  row.set("token_ranks_us", sums[0] / counts[0]).set("expert_ranks_us", sums[1] / counts[1]);
}

std::string path_of(const StudyContext& context, const DispatchCase& setting) {
  if (!context.machine.accelerator.has_cores()) return setting.normal ? "rows" : "messages";
  return setting.relay ? "aiv-relay" : "aiv-direct";
}

Row to_row(const StudyContext& context, const DispatchCase& setting, const OperatorRows& rows, int ranks,
           const DispatchReading& reading, std::optional<double> free_fetch_us) {
  const Summary& chosen = chosen_time(rows, reading);
  Row row;
  row.set("ranks", ranks).set("path", path_of(context, setting));
  row.append(rows.more);
  if (setting.expert_ranks > 0) row.set("expert_ranks", setting.expert_ranks);
  row.set("batch", batch_of(reading)).set("latency_us", to_row(chosen));
  const bool comparable = context.published != nullptr && setting.beside.dies == 0;
  Row known = row;
  const double rows_GBps = reading.counted_MB / chosen.mean * 1e3;
  if (reading.counted_MB > 0) known.set("rows_GBps", rows_GBps);
  const auto predictions = comparable ? context.published->of(known) : std::vector<Prediction>();
  const Prediction* published = predictions.empty() ? nullptr : &predictions.front();
  const bool rate = published != nullptr && published->field == "rows_GBps";
  row.set("published_us", published == nullptr || rate ? Value() : Value(published->figure->value));
  row.set("error", published == nullptr ? Value() : Value(published->value / published->figure->value - 1));
  if (setting.expert_ranks > 0) add_kinds(row, setting, rows, ranks, reading);
  row.set("task_us", reading.task_us.mean).set("kernel_us", reading.kernel_us.mean);
  row.set("bandwidth_GBps", static_cast<double>(reading.top_k) * reading.mean_batch * setting.hidden *
                                rows.element_bytes / (chosen.mean * 1e3));
  if (reading.counted_MB > 0) row.set("rows_GBps", rows_GBps);
  if (rate) row.set("published_GBps", published->figure->value);
  if (reading.rdma_MB) row.set("rdma_MB", *reading.rdma_MB);
  if (setting.beside.dies > 0) row.set("beside", setting.beside.dies).set("beside_GBps", reading.beside_GBps);
  row.set("correct", reading.correct);
  Rows phases;
  const auto names = phases_of_kernel(rows.kernel);
  for (std::size_t p = 0; p < reading.phase_us.size(); ++p)
    phases.push_back({{"name", names[p]}, {"mean_us", reading.phase_us[p]}});
  const bool cores = context.machine.accelerator.has_cores();
  row.set("code_bytes", cores ? Value(static_cast<std::int64_t>(reading.code_bytes)) : Value());
  row.set("fetch_stall_us", cores ? Value(reading.fetch_stall_us) : Value());
  row.set("free_fetch_us", free_fetch_us ? Value(*free_fetch_us) : Value());
  row.set("phases", phases);
  return row;
}

bool is_trace(const DispatchCase& setting) {
  return traces::parse_routing_source(setting.routing).kind == traces::RoutingSource::Kind::kTrace;
}

// The mean with instruction fetch free of charge; nobody observes that run.
double mean_with_free_fetch(const StudyContext& context, const OperatorRows& rows,
                            const std::function<DispatchReading(const StudyContext&)>& measure) {
  hw::Machine machine = context.machine;
  machine.scalar_core.instruction_fetch = "free";
  StudyContext other{machine, context.seed, context.progress, context.interrupted};
  other.threads = context.threads;
  other.threads_why = context.threads_why;
  other.what_if_threads = context.what_if_threads;
  other.fabric = context.fabric;
  other.given = context.given;
  return chosen_time(rows, measure(other)).mean;
}

}  // namespace

constinit const std::span<const Field> kOperatorFields = kDispatchFields;

void check_moe_options(const StudyContext& context, const DispatchCase& setting) {
  const bool trace = is_trace(setting);
  if (setting.drop_repeats && !trace)
    throw InputError("--drop-repeats: has an effect only with --routing trace:FILE");
  if (setting.beside.dies > 0 && !context.machine.accelerator.has_cores())
    throw InputError("--beside: copies by SDMA; allowed on machines with cores");
  if (setting.normal && context.machine.accelerator.has_cores())
    throw InputError(
        "--mode normal: an exchange of GPUs; allowed on machines without cores, such as --machine dgx-h800");
  if (setting.normal && context.given.contains("batch"))
    throw InputError("--batch: --tokens says how many tokens a rank has in mode normal");
  if (setting.normal && !setting.batches.empty())
    throw InputError("--batches: all ranks have --tokens in mode normal");
  if (setting.beside.dies > 0 && sim::peers().several()) throw InputError("--beside: allowed in one process");
  if (!setting.batches.empty() && context.given.contains("batch"))
    throw InputError("--batch: --batches says how many tokens each rank has; allowed: one of the two");
  for (const char* name : {"experts-per-token", "experts"}) {
    if (trace && context.given.contains(name))
      throw InputError(fmt::format("--{}: the trace of --routing sets it; allowed: one of the two", name));
  }
}

std::vector<std::string> routing_files(const std::string& routing) {
  const auto source = traces::parse_routing_source(routing);
  if (source.kind != traces::RoutingSource::Kind::kTrace) return {};
  return {source.path};
}

std::vector<std::string> files_of(const DispatchCase& setting) {
  std::vector<std::string> files = routing_files(setting.routing);
  if (!setting.batches.empty()) {
    const Batches batches = parse_batches(setting.batches);
    if (batches.kind == Batches::Kind::file) files.push_back(batches.path);
  }
  for (std::string& file : model_files(setting.model)) files.push_back(std::move(file));
  return files;
}

OptionValues DispatchCase::of_model(const models::Model& model) {
  const models::Experts experts = model.experts();
  OptionValues values{{"experts", std::to_string(experts.routed)},
                      {"experts-per-token", std::to_string(experts.chosen)},
                      {"hidden", std::to_string(model.hidden)}};
  if (experts.shared == 0) values.emplace_back("shared-copies", "0");
  return values;
}

OptionValues CombineCase::of_model(const models::Model& model) {
  OptionValues values = DispatchCase::of_model(model);
  if (model.experts().shared == 0) values.emplace_back("no-shared-output", "true");
  return values;
}

OptionValues MoeCase::of_model(const models::Model& model) {
  OptionValues values = CombineCase::of_model(model);
  values.emplace_back("expert-width", std::to_string(model.experts().width));
  return values;
}

void note_routing(StudyResult& result, const DispatchCase& setting, const RoutedSetting& reading) {
  if (reading.batch == 0) {
    result.notes.push_back(
        fmt::format("{} ranks: {:.1f} tokens each on average", reading.token_ranks, reading.mean_batch));
    std::string numbers =
        setting.batches.empty() ? "" : note_of(parse_batches(setting.batches), reading.token_ranks);
    if (!numbers.empty()) result.notes.push_back(std::move(numbers));
  }
  if (reading.trace_rows == 0 || reading.trace_rows >= reading.routing_rows) return;
  result.notes.push_back(
      fmt::format("{} ranks take {} rows of routing, but the trace has {}: its rows repeat",
                  reading.token_ranks, reading.routing_rows, reading.trace_rows));
}

void for_each_ranks(const StudyContext& context, const Integers& counts, StudyResult& result,
                    const std::function<void(int ranks, double from, double to)>& run) {
  double work = 0, done = 0;
  for (const int ranks : counts) work += ranks;
  for (const int ranks : counts) {
    run(ranks, done / work, (done + ranks) / work);
    done += ranks;
    if (context.interrupted == 0) continue;
    result.complete = false;
    return;
  }
}

StudyResult run_operator(const StudyContext& context, const Integers& ranks_asked,
                         const DispatchCase& setting, const OperatorRows& rows,
                         const MeasureOperator& measure) {
  check_moe_options(context, setting);
  StudyResult result;
  result.input_files = files_of(setting);
  for_each_ranks(context, ranks_asked, result, [&](int ranks, double from, double to) {
    const double half = rows.free_fetch ? (from + to) / 2 : to;
    const DispatchReading reading = measure(context, ranks, result.simulator, from, half);
    note_routing(result, setting, reading);
    if (!reading.beside_covered)
      result.notes.push_back(fmt::format(
          "{} ranks: copies beside did not last as long as the operator; a larger --beside-volume does",
          ranks));
    std::optional<double> free_fetch_us;
    if (rows.free_fetch && context.interrupted == 0)
      free_fetch_us = mean_with_free_fetch(context, rows, [&](const StudyContext& other) {
        return measure(other, ranks, result.simulator, half, to);
      });
    if (reading.task_us.count != 0)
      context.finish_row(result, to_row(context, setting, rows, ranks, reading, free_fetch_us));
    if (!reading.correct || *reading.correct) return;
    result.passed = false;
    result.notes.push_back(fmt::format("{} ranks: {}", ranks, reading.first_difference));
  });
  return result;
}

}  // namespace cm384::studies
