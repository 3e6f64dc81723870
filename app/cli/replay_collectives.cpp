#include "app/cli/replay_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "traces/importers/imported_collectives.h"

namespace cm384::cli {
namespace {

constexpr std::size_t kShownCollectives = 20;

}  // namespace

ReplayCollectives::ReplayCollectives(const std::string& path)
    : parts_(traces::read_collectives(path)), times_(parts_.size()), dies_(parts_.size()) {
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    const bool same = parts_[n].begin_record == parts_[n].end_record;
    moments_[parts_[n].begin_record].push_back({n, true, same});
    if (!same) moments_[parts_[n].end_record].push_back({n, false, true});
  }
}

void ReplayCollectives::finished(std::uint64_t number, const traces::TrafficRecord& record, Time start,
                                 Time end) {
  const auto found = moments_.find(number);
  if (found == moments_.end()) {
    if (record.kind == traces::TrafficRecord::Kind::compute && end > start)
      work_[record.source.number].push_back({start, end});
    return;
  }
  for (const Moment& moment : found->second) {
    Span& span = times_[moment.part];
    // A point has one time; what takes its recorded time begins and ends.
    if (moment.begins) span.begin = moment.ends ? start : end;
    if (moment.ends) span.end = end;
    dies_[moment.part] = record.source.number;
  }
}

Json ReplayCollectives::result() const {
  struct Sum {
    const traces::ImportedCollective* first = nullptr;
    int ranks = 0;
    double begin_us = -1e300, end_us = -1e300;
    Time begin, end;
  };
  std::map<std::size_t, Sum> sums;
  std::map<std::uint16_t, std::vector<Span>> communication;
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    Sum& sum = sums[parts_[n].collective];
    if (sum.first == nullptr) sum.first = &parts_[n];
    ++sum.ranks;
    sum.begin_us = std::max(sum.begin_us, parts_[n].begin_us);
    sum.end_us = std::max(sum.end_us, parts_[n].end_us);
    sum.begin = std::max(sum.begin, times_[n].begin);
    sum.end = std::max(sum.end, times_[n].end);
    communication[dies_[n]].push_back(times_[n]);
  }
  Json rows = Json::array();
  for (const auto& [number, sum] : sums) {
    const double recorded = sum.end_us - sum.begin_us, replayed = (sum.end - sum.begin).us();
    rows.push_back({{"collective", number},
                    {"name", sum.first->name},
                    {"ranks", sum.ranks},
                    {"bytes", sum.first->bytes},
                    {"recorded_us", recorded},
                    {"replayed_us", replayed},
                    {"ratio", recorded > 0 ? Json(replayed / recorded) : Json()}});
  }
  Time in_all, beside;
  for (auto& [die, spans] : communication) {
    const auto work = work_.find(die);
    std::vector<std::tuple<Time, int, int>> steps;  // when, which of the two, one more or less
    for (const Span& s : spans) steps.insert(steps.end(), {{s.begin, 1, 1}, {s.end, 1, -1}});
    if (work != work_.end()) {
      for (const Span& s : work->second) steps.insert(steps.end(), {{s.begin, 0, 1}, {s.end, 0, -1}});
    }
    std::ranges::sort(steps);
    int open[2]{};
    Time last;
    for (const auto& [at, which, step] : steps) {
      if (open[1] > 0) in_all += at - last;
      if (open[0] > 0 && open[1] > 0) beside += at - last;
      open[which] += step;
      last = at;
    }
  }
  return {{"rows", rows}, {"communication_us", in_all.us()}, {"beside_other_work_us", beside.us()}};
}

std::string text_of_collectives(const Json& result) {
  std::string text = fmt::format("{:>10}  {:<32}  {:>5}  {:>12}  {:>12}  {:>12}  {:>7}\n", "collective",
                                 "name", "ranks", "bytes", "recorded_us", "replayed_us", "ratio");
  const Json& rows = result["rows"];
  for (std::size_t n = 0; n < std::min(rows.size(), kShownCollectives); ++n) {
    const Json& row = rows[n];
    text += fmt::format("{:>10}  {:<32.32}  {:>5}  {:>12}  {:>12.2f}  {:>12.2f}  {:>7}\n",
                        row["collective"].get<std::size_t>(), row["name"].get<std::string>(),
                        row["ranks"].get<int>(), row["bytes"].get<std::int64_t>(),
                        row["recorded_us"].get<double>(), row["replayed_us"].get<double>(),
                        row["ratio"].is_null() ? "-" : fmt::format("{:.3f}", row["ratio"].get<double>()));
  }
  if (rows.size() > kShownCollectives)
    text += fmt::format("... {} more in result.json\n", rows.size() - kShownCollectives);
  return text + fmt::format("communication of all ranks: {:.1f} us, {:.1f} us of it beside other work\n",
                            result["communication_us"].get<double>(),
                            result["beside_other_work_us"].get<double>());
}

}  // namespace cm384::cli
