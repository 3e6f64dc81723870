// `cm384 run transfer`: contexts from prefill to decode over the simulated RDMA plane.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text/error.h"
#include "base/text/number.h"
#include "workloads/contexts/transfer_run.h"
#include "workloads/frame/confidence.h"
#include "workloads/service/context_links.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

// A number alone is a fixed length.
std::string length_of(std::string_view text) {
  return hw::number_of<int>(text) ? fmt::format("fixed:{}", text) : std::string(text);
}
void check_prompt(std::string_view text) {
  service::check_length_distribution(length_of(text));
}

struct TransferOptions {
  TransferSetting setting;
  Integers prefill{1}, requests{16};
  std::string prompt = "4096";
  std::string beside = "none";
  int beside_dies = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    auto& s = self.setting;
    visit("prefill", self.prefill, Range{1, 64},
          "prefill instances, whose batches end at the same moment; one row each");
    visit("prefill-ranks", s.prefill_ranks, Range{1, kMostRanks}, "dies of a prefill instance");
    visit("decode-ranks", s.decode_ranks, Range{2, kMostRanks, 2}, "dies of the decode instance");
    visit("requests", self.requests, Range{1, 100'000},
          "prompts that end with the batch of each prefill instance; one row each");
    visit("prompt", self.prompt, Form{"N|fixed:N|uniform:LOW:HIGH|lognormal:MEDIAN:SIGMA", check_prompt},
          "tokens of a prompt");
    visit("token", s.token, Range{1_B, 16_MiB}, "context of a token: 576 elements of BF16 in 61 layers");
    visit(
        "assign", s.spread, Either{"fewest", "spread"},
        "fewest: to the die of decode with the fewest requests, the first of several, as run serve; spread: "
        "contexts that follow each other leave by other links");
    visit(
        "mover", s.decode_moves, Either{"prefill", "decode"},
        "whose SDMA engines move the bytes, a context after another in a stream of each die: prefill writes, "
        "or decode reads");
    visit(
        "links", s.one_at_a_time, Either{"shared", "one"},
        "shared: the other side's link is shared by whoever sends; one: it takes one context at a time too, "
        "granted by a notify, as run serve has it");
    visit("copy", s.copy, Range{64_KiB, 4095_MiB, 64_KiB},
          "of one copy at most; a longer context is several");
    visit("placement", s.placement, Form{"linear|strided|random|DIE,DIE,..."},
          "dies of the prefill instances one after another, then of decode");
    visit("beside", self.beside, OneOf{{"none", "mla"}},
          "what some receiving dies run meanwhile: decode attention on 16 groups of cores, two queries per "
          "sequence");
    visit("beside-dies", self.beside_dies, Range{1, 320}, "that do", Needs{"beside", {"mla"}});
    visit("beside-runs", s.beside_runs, Range{1, 1000},
          "launches on each of them, alone and beside the transfers", Needs{"beside", {"mla"}});
    visit("sequences", s.sequences, Range{1, 4096}, "of the attention", Needs{"beside", {"mla"}});
    visit("kv-len", s.kv_len, Range{1, 1'000'000}, "tokens of each of them", Needs{"beside", {"mla"}});
  }
};

Row summary_row(std::vector<double> samples) {
  std::ranges::sort(samples);
  const Summary summary = summarise(samples);
  return {{"mean", summary.mean},
          {"p50", summary.p50},
          {"p90", samples[(samples.size() * 9 + 9) / 10 - 1]},
          {"p99", summary.p99},
          {"max", summary.max}};
}

// What a side's links carry until the last context is there, over what they could.
Row busy_row(const std::vector<PlannedContext>& plan, int PlannedContext::*die, int dies, double rate_GBps,
             double span_us) {
  std::map<int, double> carried;
  double all = 0, most = 0;
  for (const PlannedContext& context : plan) {
    most = std::max(most, carried[context.*die] += static_cast<double>(context.bytes));
    all += static_cast<double>(context.bytes);
  }
  const double could = rate_GBps * 1e3 * span_us;
  return {{"links", carried.size()}, {"mean", all / could / dies}, {"max", most / could}};
}

Row row_of(const StudyContext& context, const TransferSetting& setting,
           const std::vector<PlannedContext>& plan, const TransferReading& reading) {
  std::vector<double> latency, queue, transfer, closed;
  double bytes = 0;
  for (std::size_t n = 0; n < plan.size(); ++n) {
    const SentContext& sent = reading.contexts[n];
    latency.push_back(sent.there.us());
    queue.push_back(sent.begun.us());
    transfer.push_back((sent.there - sent.begun).us());
    closed.push_back(plan[n].closed.us());
    bytes += static_cast<double>(plan[n].bytes);
  }
  const Row simulated = summary_row(latency), formula = summary_row(closed);
  const double last = simulated["max"].number();
  const double rate =
      static_cast<double>(service::payload_rate(context.machine.rdma).bytes_per_second) * 1e-9;
  Row row{{"prefill", setting.prefill}, {"requests", plan.size()}};
  row.set("mover", setting.decode_moves ? "decode" : "prefill");
  row.set("links", setting.one_at_a_time ? "one" : "shared")
      .set("assign", setting.spread ? "spread" : "fewest");
  row.set("bytes", static_cast<std::int64_t>(bytes)).set("arrived", reading.arrived);
  row.set("latency_us", simulated)
      .set("queue_us", summary_row(queue))
      .set("transfer_us", summary_row(transfer));
  row.set("incast", most_at_a_time(plan, reading.contexts, &PlannedContext::receiver));
  row.set("fan_out", most_at_a_time(plan, reading.contexts, &PlannedContext::sender));
  row.set("closed_us", formula);
  const auto error = [&](const char* of) { return formula[of].number() / simulated[of].number() - 1; };
  row.set("closed_error", Row{{"mean", error("mean")}, {"max", error("max")}});
  row.set("sending",
          busy_row(plan, &PlannedContext::sender, setting.prefill * setting.prefill_ranks, rate, last));
  row.set("receiving", busy_row(plan, &PlannedContext::receiver, setting.decode_ranks, rate, last));
  row.set("bandwidth_GBps", bytes / (last * 1e3));
  if (!reading.beside) return row;
  const BesideReading& beside = *reading.beside;
  const bool seen = beside.launches > 0;
  row.set("beside", Row{{"dies", beside.dies},
                        {"launches", beside.launches},
                        {"alone_us", beside.alone_us},
                        {"beside_us", seen ? Value(beside.beside_us) : Value()},
                        {"disturbance", seen ? Value(beside.beside_us / beside.alone_us - 1) : Value()}});
  return row;
}

void add_notes(const TransferSetting& setting, StudyResult& result) {
  result.notes.emplace_back(
      "queue_us: until a context's first bytes may leave; closed_error: of the closed form of run serve");
  if (setting.beside_dies > 0)
    result.notes.push_back(
        fmt::format("attention runs on {} of the receiving dies; counted are launches within a transfer to "
                    "their die; the others run nothing",
                    result.rows.back()["beside"].row() == nullptr
                        ? 0
                        : *(*result.rows.back()["beside"].row())["dies"].integer()));
}

StudyResult run(const StudyContext& context, const TransferOptions& options) {
  if (options.beside == "mla" && beside_groups(context.machine.die) < 1)
    throw InputError("run transfer: --beside mla: needs AICs with two AIVs each, and a die has none");
  StudyResult result;
  std::vector<std::pair<TransferSetting, std::vector<PlannedContext>>> plans;
  for (const int prefill : options.prefill) {
    for (const int requests : options.requests) {
      TransferSetting setting = options.setting;
      setting.prefill = prefill;
      setting.requests = requests;
      setting.prompt = length_of(options.prompt);
      setting.beside_dies = options.beside == "mla" ? options.beside_dies : 0;
      plans.emplace_back(setting, plan_contexts(context.machine, setting, context.seed));
    }
  }
  double done = 0;
  for (const auto& [setting, plan] : plans) {
    const auto parts = static_cast<double>(plans.size());
    PartOfProgress progress(context.progress, done / parts, (done + 1) / parts, result.simulator);
    ++done;
    const auto reading = measure_transfer_of(context.with(progress), setting, plan, result.simulator);
    if (!reading) {
      result.complete = false;
      return result;
    }
    if (reading->arrived != plan.size()) result.passed = false;
    context.finish_row(result, row_of(context, setting, plan, *reading));
  }
  add_notes(plans.back().first, result);
  return result;
}

constexpr std::array kTransferTimes{
    Field{"mean", FieldType::number, "mean", true},
    Field{"p50", FieldType::number, "median"},
    Field{"p90", FieldType::number, "90th percentile, the nearest rank above"},
    Field{"p99", FieldType::number, "99th percentile, the nearest rank above", true},
    Field{"max", FieldType::number, "largest", true},
};
constexpr std::array kMean{
    Field{"mean", FieldType::number, "mean", true},
    Field{"p50", FieldType::number, "median"},
    Field{"p90", FieldType::number, "90th percentile, the nearest rank above"},
    Field{"p99", FieldType::number, "99th percentile, the nearest rank above"},
    Field{"max", FieldType::number, "largest"},
};
constexpr std::array kErrors{
    Field{"mean", FieldType::ratio, "of the mean latency", true},
    Field{"max", FieldType::ratio, "of the longest", true},
};
constexpr std::array kLinks{
    Field{"links", FieldType::integer, "that carry contexts"},
    Field{"mean", FieldType::ratio, "of all of that side's links"},
    Field{"max", FieldType::ratio, "of the busiest link", true},
};
constexpr std::array kBeside{
    Field{"dies", FieldType::integer, "that run it"},
    Field{"launches", FieldType::integer, "that lie within a transfer to their die"},
    Field{"alone_us", FieldType::number, "task duration before the transfers, mean"},
    Field{"beside_us", FieldType::number, "beside them, mean"},
    Field{"disturbance", FieldType::ratio, "how much longer that is", true},
};
constexpr std::array kTransferFields{
    Field{"prefill", FieldType::integer, "instances", true}.as_condition(),
    Field{"requests", FieldType::integer, "contexts of all instances", true}.as_condition(),
    Field{"mover", FieldType::text, "whose SDMA engines move the bytes: prefill, decode"}.as_condition(),
    Field{"links", FieldType::text, "at the other side: shared, or one context at a time", true}
        .as_condition(),
    Field{"assign", FieldType::text, "how contexts find their dies: fewest, spread"}.as_condition(),
    Field{"bytes", FieldType::bytes, "of all contexts", true},
    Field{"arrived", FieldType::integer,
          "contexts whose first and last bytes are there; the run fails where some are not"},
    Field{"latency_us", FieldType::object, "of a context, from the end of the batch until it is there", true,
          kTransferTimes},
    Field{"queue_us", FieldType::object, "of that, until its first bytes may leave", true, kMean},
    Field{"transfer_us", FieldType::object, "the rest: its own transfer", false, kMean},
    Field{"incast", FieldType::integer, "contexts under way to a die at a time, at most", true},
    Field{"fan_out", FieldType::integer, "contexts under way from a die at a time, at most"},
    Field{"closed_us", FieldType::object, "latency by the closed form of run serve", false, kTransferTimes},
    Field{"closed_error", FieldType::object, "of the closed form against what was simulated", true, kErrors},
    Field{"sending", FieldType::object,
          "payload that links of prefill carry until the last context is there, over what they could", false,
          kLinks},
    Field{"receiving", FieldType::object, "the same of links of decode", false, kLinks},
    Field{"bandwidth_GBps", FieldType::number, "of all contexts until the last one is there", true},
    Field{"beside", FieldType::object, "attention on receiving dies", true, kBeside},
};

}  // namespace

const Study kTransferStudy{"transfer", "contexts from prefill to decode over the RDMA plane", kTransferFields,
                           options_of<TransferOptions, run>, true};

}  // namespace cm384::studies
