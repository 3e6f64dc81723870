#include "studies/moe_options.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "observe/observers.h"
#include "studies/session.h"
#include "studies/validation.h"
#include "traces/routing.h"

namespace cm384::studies {
namespace {

// The published figure of these conditions, if there is one.
std::optional<double> published(const std::string& study, const DispatchCase& setting, int ranks,
                                const DispatchReading& reading) {
  if (setting.full_mesh || setting.batch != 128 || reading.top_k != 8 || reading.experts != 256 ||
      setting.hidden != 7168)
    return {};
  for (const Figure& figure : published_figures()) {
    if (figure.id == fmt::format("t7-{}-{}", study, ranks)) return figure.value;
  }
  return {};
}

Json to_row(const DispatchCase& setting, const OperatorRows& rows, int ranks, const DispatchReading& reading,
            bool task) {
  const Summary& chosen = task ? reading.task_us : reading.kernel_us;
  Json row;
  row["ranks"] = ranks;
  row["path"] = "aiv-direct";
  row.update(rows.more);
  row["batch"] = reading.batch;
  row["latency_us"] = to_json(chosen);
  const auto figure = published(rows.study, setting, ranks, reading);
  row["published_us"] = figure ? Json(*figure) : Json();
  row["error"] = figure && task ? Json(chosen.mean / *figure - 1) : Json();
  row["task_us"] = reading.task_us.mean;
  row["kernel_us"] = reading.kernel_us.mean;
  row["bandwidth_GBps"] = static_cast<double>(reading.top_k) * reading.batch * setting.hidden *
                          rows.element_bytes / (chosen.mean * 1e3);
  row["correct"] = reading.correct ? Json(*reading.correct) : Json();
  Json phases = Json::array();
  for (std::size_t p = 0; p < rows.phases.size(); ++p)
    phases.push_back({{"name", rows.phases[p]}, {"mean_us", reading.phase_us[p]}});
  row["phases"] = phases;
  return row;
}

}  // namespace

void add_moe_options(boost::program_options::options_description& options) {
  using boost::program_options::bool_switch;
  options.add_options()("ranks", integers_option("8", 1, 768), "ranks, one a die; one row each")(
      "batch", integer_option(128, 1, 256), "tokens a rank")(
      "top-k", integer_option(8, 1, 16), "routed experts a token")("experts", integer_option(256, 1, 1024),
                                                                   "logical routed experts")(
      "hidden", integer_option(7168, 32, 16384), "elements of a token")(
      "shared-copies", integer_option(-1, -1, 256),
      "ranks that hold the shared expert, the ninth message of every token; -1: 32 at 320 ranks, else none")(
      "cores", integer_option(48, 1, 64), "AIVs a rank")("iterations", integer_option(1, 1, 1000),
                                                         "iterations that count")(
      "warmup", integer_option(1, 0, 1000), "iterations before them that do not")(
      "payload", choice_option("control", {"full", "control"}),
      "full moves every byte and compares it with the host's reference; control moves flags, counts, ids")(
      "routing",
      checked_text_option("uniform", "uniform|zipf:S|trace:FILE",
                          [](std::string_view text) { traces::parse_routing_source(text); }),
      "which experts tokens choose; a trace also sets top-k and experts")(
      "drop-repeats", bool_switch(), "of a routing trace: leave out rows equal to the row before")(
      "placement", text_option("linear", "POLICY"),
      "ranks on dies: linear, strided, random, or a list of dies")(
      "variant", choice_option("status", {"status", "full-mesh"}),
      "dispatch with flags and counts after a barrier, or with flags inside the rows' 512 B blocks")(
      "start-skew", time_option(0_ns), "ranks start at random times up to this apart")(
      "measure", choice_option("task", {"task", "kernel"}),
      "latency_us of the whole task as the vendor's profiler reads it, or from first to last instruction")(
      "real-polling", bool_switch(),
      "run every turn of polling loops instead of skipping those that find nothing")(
      "check-hazards", bool_switch(), "report pipes that touch the UBuffer without a flag that orders them");
  add_fault_option(options);
  add_rtl_option(options);
}

void read_moe_options(const StudyContext& context, DispatchCase& setting) {
  setting.batch = context.option<int>("batch");
  setting.top_k = context.option<int>("top-k");
  setting.experts = context.option<int>("experts");
  setting.hidden = context.option<int>("hidden");
  setting.shared_copies = context.option<int>("shared-copies");
  setting.cores = context.option<int>("cores");
  setting.iterations = context.option<int>("iterations");
  setting.warmup = context.option<int>("warmup");
  setting.full = context.option<std::string>("payload") == "full";
  setting.routing = context.option<std::string>("routing");
  setting.full_mesh = context.option<std::string>("variant") == "full-mesh";
  setting.drop_repeats = context.option<bool>("drop-repeats");
  setting.placement = context.option<std::string>("placement");
  setting.start_skew = context.option<Time>("start-skew");
  setting.elide_polls = !context.option<bool>("real-polling");
  setting.check_hazards = context.option<bool>("check-hazards");
  if (setting.hidden % 32 != 0)
    throw InputError(fmt::format("--hidden {}: allowed: multiples of 32", setting.hidden));
}

void add_combine_options(boost::program_options::options_description& options) {
  using boost::program_options::bool_switch;
  options.add_options()(
      "completion", choice_option("flag", {"flag", "atomic"}),
      "how a row says that it has arrived: a 32 B flag of its own, or an atomic add on its token's")(
      "no-shared-output", bool_switch(),
      "leave out the output of a shared expert, made on the token's own rank, that is added with weight 1");
}

void read_combine_options(const StudyContext& context, CombineCase& setting) {
  setting.completion = context.option<std::string>("completion");
  setting.shared_output = !context.option<bool>("no-shared-output");
}

std::vector<std::string> routing_files(const StudyContext& context) {
  const auto source = traces::parse_routing_source(context.option<std::string>("routing"));
  if (source.kind != traces::RoutingSource::Kind::kTrace) return {};
  return {source.path};
}

void for_each_ranks(const StudyContext& context, StudyResult& result,
                    const std::function<void(int ranks, double from, double to)>& run) {
  const auto& counts = context.option<Integers>("ranks").values;
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

StudyResult run_operator(const StudyContext& context, const DispatchCase& setting, const OperatorRows& rows,
                         const MeasureOperator& measure) {
  if (context.observers != nullptr) context.observers->name_phases({rows.phases.begin(), rows.phases.end()});
  StudyResult result;
  const bool task = context.option<std::string>("measure") == "task";
  result.input_files = routing_files(context);
  for_each_ranks(context, result, [&](int ranks, double from, double to) {
    const DispatchReading reading = measure(ranks, result.simulator, from, to);
    if (reading.task_us.count != 0) result.rows.push_back(to_row(setting, rows, ranks, reading, task));
    if (!reading.correct || *reading.correct) return;
    result.passed = false;
    result.notes.push_back(fmt::format("{} ranks: {}", ranks, reading.first_difference));
  });
  return result;
}

}  // namespace cm384::studies
