#include "traces/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text/error.h"
#include "traces/random.h"
#include "traces/traffic_file.h"

namespace cm384::traces {

std::uint64_t SamplePlan::replayed_records() const {
  std::uint64_t sum = 0;
  for (const Run& run : replayed) sum += run.end - run.begin;
  return sum;
}

SamplePlan plan_sample(std::uint64_t records, const SampleOptions& o) {
  const auto count = static_cast<std::uint64_t>(o.windows);
  const std::uint64_t each = o.window + 2 * o.warm_up;
  if (each > records / count)
    throw InputError(
        fmt::format("--sample: {} windows of {} records with {} before and behind each are more "
                    "than the trace's {}; allowed: fewer or smaller ones, or the whole trace",
                    count, o.window, o.warm_up, records));
  SamplePlan plan;
  plan.records = records;
  const std::uint64_t blocks = (records + o.window - 1) / o.window;
  for (std::uint64_t part = 0; part < count; ++part) {
    const std::uint64_t first = blocks * part / count, behind = blocks * (part + 1) / count;
    const std::uint64_t block = first + Random(o.seed, part).below(behind - first);
    const SamplePlan::Run window{block * o.window, std::min(records, (block + 1) * o.window)};
    plan.measured.push_back(window);
    const SamplePlan::Run run{window.begin - std::min(window.begin, o.warm_up),
                              std::min(records, window.end + o.warm_up)};
    if (plan.replayed.empty() || run.begin > plan.replayed.back().end) {
      plan.replayed.push_back(run);
    } else {
      plan.replayed.back().end = run.end;
    }
  }
  return plan;
}

std::uint64_t count_records(const std::string& path) {
  TrafficRecord r;
  const auto source = open_traffic(path);
  std::uint64_t records = 0;
  if (auto* file = dynamic_cast<TrafficFileReader*>(source.get())) records = file->seek(Time::never());
  for (; source->next(r); ++records) {
  }
  return records;
}

// Records of the runs, numbered from 0, with times from 0 on and an idle machine between two runs.
class SampledTrace::Runs final : public TrafficSource {
 public:
  Runs(const std::string& path, const SamplePlan& plan) : plan_(plan), source_(open_traffic(path)) {}

  const TrafficHeader& header() const override { return source_->header(); }
  std::uint64_t record() const { return number_ - 1; }
  std::size_t run() const { return run_; }
  bool cut() const { return cut_; }

  bool next(TrafficRecord& r) override {
    const std::vector<SamplePlan::Run>& runs = plan_.replayed;
    if (run_ == runs.size()) return false;
    if (number_ == runs[run_].end) {
      if (++run_ == runs.size()) return false;
      r = {};
      r.kind = TrafficRecord::Kind::idle;
      r.start = r.end = last_end_;
      ++given_;
      return true;
    }
    if (number_ < runs[run_].begin) begin_run(runs[run_].begin);
    if (!source_->next(r)) throw InputError("the trace was shortened while it was read");
    const std::uint64_t first = runs[run_].begin;
    const bool waited = !r.dependencies.empty();
    std::erase_if(r.dependencies, [&](TrafficDependency& d) {
      const bool left_out = d.on < first;
      d.on = d.on - first + base_;
      return left_out;
    });
    cut_ = waited && r.dependencies.empty();
    if (!origin_ && r.kind < TrafficRecord::Kind::idle) origin_ = r.start;
    const Time length = r.end - r.start;
    r.start = shift_ + std::max(Time{}, r.start - origin_.value_or(r.start));
    r.end = r.start + length;
    if (r.kind < TrafficRecord::Kind::idle) last_end_ = std::max(last_end_, r.end);
    ++number_;
    ++given_;
    return true;
  }

 private:
  void begin_run(std::uint64_t first) {
    if (auto* file = dynamic_cast<TrafficFileReader*>(source_.get())) number_ = file->seek_record(first);
    for (TrafficRecord skipped; number_ < first; ++number_) source_->next(skipped);
    base_ = given_;
    shift_ = last_end_;
    origin_.reset();
  }

  const SamplePlan& plan_;
  std::unique_ptr<TrafficSource> source_;
  std::size_t run_ = 0;
  std::uint64_t number_ = 0;  // of the trace, next
  std::uint64_t given_ = 0, base_ = 0;
  std::optional<Time> origin_;  // of the run, as recorded
  Time shift_{}, last_end_{};
  bool cut_ = false;
};

SampledTrace::SampledTrace(const std::string& path, const SamplePlan& plan) : plan_(plan) {
  std::map<int, int> rank_of;
  Runs all(path, plan);
  for (TrafficRecord r; all.next(r);) {
    if (r.kind >= TrafficRecord::Kind::idle) continue;
    rank_of.emplace(r.source.number, 0);
    if (r.moves() && !r.target.cpu) rank_of.emplace(r.target.number, 0);
  }
  if (rank_of.empty()) throw InputError(fmt::format("{}: no transfers in the windows of --sample", path));
  int rank = 0;
  for (auto& [die, its] : rank_of) its = rank++;
  const auto open = [this, &path] {
    auto runs = std::make_unique<Runs>(path, plan_);
    runs_ = runs.get();
    return runs;
  };
  ShapeOptions as_it_is;
  as_it_is.name = path;
  shaped_ = std::make_unique<ShapedTrace>(open, std::move(rank_of), as_it_is);
}

SampledTrace::~SampledTrace() = default;

bool SampledTrace::next(TrafficRecord& record) {
  if (!shaped_->next(record)) return false;
  Origin& origin = origins_.emplace_back();
  origin.run = static_cast<int>(runs_->run());
  if (!shaped_->from_source()) return true;
  origin.record = runs_->record();
  origin.cut = runs_->cut();
  while (window_ < plan_.measured.size() && plan_.measured[window_].end <= origin.record) ++window_;
  if (window_ < plan_.measured.size() && plan_.measured[window_].begin <= origin.record)
    origin.window = static_cast<int>(window_);
  return true;
}

}  // namespace cm384::traces
