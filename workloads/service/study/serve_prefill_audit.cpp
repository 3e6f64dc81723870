#include "workloads/service/study/serve_prefill_audit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "traces/random.h"
#include "workloads/frame/result_json.h"
#include "workloads/prefill/prefill_batch.h"
#include "workloads/service/study/audit_sum.h"
#include "workloads/service/study/recorded_command.h"

namespace cm384::studies {

PrefillAudit::PrefillAudit(const StudyContext& context, const service::Library& library,
                           const service::Deployment& deployment)
    : times_(deployment, library) {
  const int dies = deployment.prefill_dies();
  if (!times_.measured())
    throw InputError(fmt::format(
        "--audit-prefill: the library has no curves of batches of prompts on {} dies: their time is a "
        "parameter of the deployment",
        dies));
  for (const service::PrefillPoint& point : library.prefill()) {
    if (point.ranks != dies) continue;
    options_ = options_of_command<PrefillOptions>(point.command, "prefill", "audit-prefill", "batch");
    options_.settle(context.machine);
    if (options_.window > 0)
      throw InputError("--audit-prefill: allowed: models without layers that see a window");
    service::PrefillWork work;
    work.add(point.prompt - point.cached, point.cached);
    const double prompts = static_cast<double>(point.tokens) * deployment.prefill.npus / point.prompt;
    recorded_.push_back({prompts * work.tokens, prompts * work.pairs, point.microbatches, point.seconds});
  }
}

service::PrefillWork PrefillAudit::work_of(const service::BatchSample& sample) {
  service::PrefillWork work;
  for (const service::BatchSample::Prompt& prompt : sample.prompts) work.add(prompt.fresh, prompt.before);
  return work;
}

int PrefillAudit::microbatches_of(const service::BatchSample& sample) const {
  return times_.takes_two(work_of(sample), static_cast<int>(sample.prompts.size())) ? 2 : 1;
}

// As long as the nearest recorded one of at least as many tokens and pairs, of as many microbatches.
std::string PrefillAudit::cost(std::span<const service::BatchSample> samples) const {
  double seconds = 0;
  bool known = true;
  for (const service::BatchSample& sample : samples) {
    const service::PrefillWork work = work_of(sample);
    const int microbatches = microbatches_of(sample);
    double least = 0;
    for (const Recorded& batch : recorded_) {
      const bool holds = batch.microbatches == microbatches && batch.tokens >= work.tokens &&
                         batch.pairs >= work.pairs && batch.seconds > 0;
      if (holds && (least == 0 || batch.seconds < least)) least = batch.seconds;
    }
    known = known && least > 0;
    seconds += least;
  }
  return known ? fmt::format("{} batches of prompts are audited, about {:.0f} s of one core", samples.size(),
                             seconds)
               : fmt::format("{} batches of prompts are audited; how long one takes is not in the library",
                             samples.size());
}

std::optional<Rows> PrefillAudit::run(const StudyContext& context,
                                      std::span<const service::BatchSample> samples,
                                      StudyResult& result) const {
  Rows rows;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const service::BatchSample& sample = samples[k];
    const auto part = [&](std::size_t done) {
      return static_cast<double>(done) / static_cast<double>(samples.size());
    };
    PartOfProgress progress(context.progress, part(k), part(k + 1), result.simulator);
    StudyContext own = context.with(progress);
    own.seed = traces::mix(context.seed + static_cast<std::uint64_t>(sample.number));
    std::vector<BatchPrompt> prompts;
    int before = 0, longest = 0;
    for (const service::BatchSample::Prompt& prompt : sample.prompts) {
      prompts.push_back({prompt.fresh, prompt.before});
      before += prompt.before;
      longest = std::max(longest, prompt.fresh + prompt.before);
    }
    const int microbatches = microbatches_of(sample);
    const auto machine_ms = measure_prompts(own, options_, prompts, microbatches, result);
    if (!machine_ms) return {};
    const service::PrefillWork work = work_of(sample);
    const service::StepTime used = times_.of(work, static_cast<int>(prompts.size()));
    rows.push_back({{"name", fmt::format("batch {}", sample.number)},
                    {"at_s", sample.at.us() * 1e-6},
                    {"prompts", prompts.size()},
                    {"tokens", static_cast<std::int64_t>(work.tokens)},
                    {"before", before},
                    {"longest", longest},
                    {"microbatches", microbatches},
                    {"used_ms", used.ms},
                    {"machine_ms", *machine_ms},
                    {"difference", used.ms / *machine_ms - 1},
                    {"evidence", service::to_string(used.evidence)}});
  }
  return rows;
}

bool PrefillAudit::add_to(Row& row, const StudyContext& context,
                          std::span<const service::BatchSample> samples, StudyResult& result) const {
  print_error(
      "cm384: {}; the machine: attention and networks as firmware on one of {} dies, exchanges on all\n",
      cost(samples), options_.ranks);
  auto batches = run(context, samples, result);
  if (!batches) return false;
  AuditSum sum;
  for (const Row& batch : *batches) {
    sum.add(batch["difference"].number());
    result.notes.push_back(fmt::format(
        "{}: {} prompts, {} new tokens behind {}: took {:.1f} ms of the service ({}), {:.1f} ms of the "
        "machine: {:+.1f} %",
        *batch["name"].text(), batch["prompts"].number(), batch["tokens"].number(), batch["before"].number(),
        batch["used_ms"].number(), *batch["evidence"].text(), batch["machine_ms"].number(),
        batch["difference"].number() * 100));
  }
  result.notes.push_back(
      fmt::format("audit of {} batches of prompts: {:.1f} % at worst, {:.1f} % on the average",
                  batches->size(), sum.worst() * 100, sum.mean() * 100));
  sum.set(row, "audit_prefill");
  row.set("audit_prefill", std::move(*batches));
  return true;
}

}  // namespace cm384::studies
