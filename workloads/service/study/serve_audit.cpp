#include "workloads/service/study/serve_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text/standard_error.h"
#include "traces/random.h"
#include "workloads/frame/result_json.h"
#include "workloads/layer/decode.h"
#include "workloads/service/study/audit_sum.h"
#include "workloads/service/study/recorded_command.h"

namespace cm384::studies {
namespace {

LayerOptions layer_of(const std::string& command) {
  return options_of_command<DecodeOptions>(command, "decode", "audit", "step").layer;
}

// The requests of a die dealt out over microbatches, the longest first, each to the one with fewest tokens
// that has room; slots that are empty have one token.
RankLengths dealt_out(std::vector<std::int32_t> requests, int microbatches, int slots) {
  std::ranges::sort(requests, std::greater());
  RankLengths made(static_cast<std::size_t>(microbatches));
  for (const std::int32_t length : requests) {
    std::vector<std::uint32_t>* fewest = nullptr;
    for (std::vector<std::uint32_t>& part : made) {
      const auto tokens = [](const std::vector<std::uint32_t>& of) {
        return std::accumulate(of.begin(), of.end(), std::uint64_t{0});
      };
      if (part.size() < static_cast<std::size_t>(slots) &&
          (fewest == nullptr || tokens(part) < tokens(*fewest)))
        fewest = &part;
    }
    fewest->push_back(static_cast<std::uint32_t>(std::max(1, length)));
  }
  for (std::vector<std::uint32_t>& part : made) part.resize(static_cast<std::size_t>(slots), 1);
  return made;
}

std::vector<LayerSetting> settings_of(const StudyContext& context, LayerOptions options,
                                      const service::StepSample& sample) {
  options.batch = sample.load.batch;
  options.kv = sample.load.kv;
  std::vector<LayerSetting> settings = layer_settings(context, options);
  for (LayerSetting& setting : settings) {
    std::vector<RankLengths> lengths;
    for (const auto& requests : sample.lengths)
      lengths.push_back(dealt_out(requests, setting.microbatches,
                                  options.batch / options.dies_of_npu / setting.microbatches));
    share_lengths(setting, lengths, setting.detail == options.ranks ? options.ranks : options.kv_sets);
  }
  return settings;
}

}  // namespace

ServeAudit::ServeAudit(const StudyContext& context, const service::Library& library,
                       const service::Deployment& deployment)
    : steps_(library, deployment.decode_dies(), deployment.decode.mtp, deployment.decode.dies_of_npu) {
  steps_.layer_us(steps_.least_batch(), steps_.least_kv());
  for (const service::DecodePoint& point : library.decode()) {
    if (point.ranks != deployment.decode_dies() || point.mtp != deployment.decode.mtp) continue;
    recorded_.push_back({point.batch, point.seconds, layer_of(point.command)});
    LayerOptions& layer = recorded_.back().layer;
    layer.batch = point.batch;
    layer.settle(context.machine);
    layer_settings(context, layer);  // refuses what is not of this machine
  }
}

const ServeAudit::Recorded& ServeAudit::nearest(int batch) const {
  return *std::ranges::min_element(recorded_, {},
                                   [&](const Recorded& step) { return std::abs(step.batch - batch); });
}

std::string ServeAudit::cost(std::span<const service::StepSample> samples) const {
  double seconds = 0;
  bool known = true;
  for (const service::StepSample& sample : samples) {
    const double one = nearest(sample.load.batch).seconds;
    known = known && one > 0;
    seconds += one;
  }
  return known ? fmt::format("{} steps are audited, at most {:.0f} s of one core", samples.size(), seconds)
               : fmt::format("{} steps are audited; how long a layer takes is not in the library",
                             samples.size());
}

std::string ServeAudit::grade() const {
  const LayerOptions& o = recorded_.front().layer;
  const int detail = o.detail == 0 ? (o.ranks <= 16 ? o.ranks : 1) : std::min(o.detail, o.ranks);
  return detail == o.ranks
             ? fmt::format("firmware on all {} dies", o.ranks)
             : fmt::format(
                   "attention and experts as firmware on {} of {} dies, replayed on the others with {} "
                   "sets of lengths",
                   detail, o.ranks, o.kv_sets);
}

std::optional<Rows> ServeAudit::run(const StudyContext& context, std::span<const service::StepSample> samples,
                                    StudyResult& result) const {
  Rows rows;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const service::StepSample& sample = samples[k];
    const auto part = [&](std::size_t done) {
      return static_cast<double>(done) / static_cast<double>(samples.size());
    };
    PartOfProgress progress(context.progress, part(k), part(k + 1), result.simulator);
    StudyContext own = context.with(progress);
    own.seed = traces::mix(context.seed + static_cast<std::uint64_t>(sample.number));
    const ChosenLayer chosen =
        measure_fastest(own, settings_of(own, nearest(sample.load.batch).layer, sample), result.simulator);
    if (chosen.reading.stages.empty()) return {};
    const int batch = sample.load.batch, kv = sample.load.kv;
    const double used = steps_.layer_us(batch, kv), machine = chosen.reading.layer_us.mean;
    std::size_t requests = 0;
    for (const auto& of_die : sample.lengths) requests += of_die.size();
    rows.push_back({{"name", fmt::format("step {}", sample.number)},
                    {"at_s", sample.at.us() * 1e-6},
                    {"requests", requests},
                    {"batch", batch},
                    {"kv", kv},
                    {"used_us", used},
                    {"machine_us", machine},
                    {"difference", used / machine - 1},
                    {"evidence", service::to_string(steps_.at(batch, kv).evidence)}});
  }
  return rows;
}

bool ServeAudit::add_to(Row& row, const StudyContext& context, std::span<const service::StepSample> samples,
                        StudyResult& result) const {
  print_error("cm384: {}; the machine: {}\n", cost(samples), grade());
  auto steps = run(context, samples, result);
  if (!steps) return false;
  AuditSum sum;
  for (const Row& step : *steps) {
    sum.add(step["difference"].number());
    result.notes.push_back(fmt::format(
        "{}: batch {}, {} tokens: a layer took {:.1f} us of the service ({}), {:.1f} us of the machine: "
        "{:+.1f} %",
        *step["name"].text(), step["batch"].number(), step["kv"].number(), step["used_us"].number(),
        *step["evidence"].text(), step["machine_us"].number(), step["difference"].number() * 100));
  }
  result.notes.push_back(fmt::format("audit of {} steps: {:.1f} % at worst, {:.1f} % on the average; {}",
                                     steps->size(), sum.worst() * 100, sum.mean() * 100, grade()));
  sum.set(row, "audit");
  row.set("audit", std::move(*steps));
  return true;
}

}  // namespace cm384::studies
