// `cm384 trace info` and `check`: what a trace of traffic or of routing holds, and whether it is good.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "base/text/error.h"
#include "base/text/json.h"
#include "system/observe/messages/trace_reading.h"
#include "traces/importers/recognise.h"
#include "traces/routing/routing.h"
#include "traces/traffic.h"

namespace cm384::cli {
namespace {

using studies::Form;
using traces::TraceKind;
using traces::TrafficRecord;

// Which of our two kinds of traces the file holds. Throws InputError for one to be converted first.
bool is_routing(const std::string& path) {
  const TraceKind kind = traces::recognise(path);
  if (kind != TraceKind::routing) traces::refuse_foreign(path);
  return kind == TraceKind::routing;
}

struct InfoOptions {
  studies::Texts file;
  std::string format = "table";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the trace");
    visit("format", self.format, studies::OneOf{{"table", "json"}}, "of the answer");
  }
};

double rounded(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value * 1e4 + 0.5)) / 1e4;
}

Json info_of_routing(const std::string& path) {
  const traces::Routing routing = traces::read_routing(path);
  std::vector<std::uint64_t> load(static_cast<std::size_t>(routing.experts));
  for (const std::int32_t id : routing.ids) ++load[static_cast<std::size_t>(id)];
  std::int64_t repeats = 0;
  for (std::int64_t n = 1; n < routing.rows(); ++n)
    repeats += std::ranges::equal(routing.row(n), routing.row(n - 1)) ? 1 : 0;
  const auto hottest = std::ranges::max_element(load);
  const auto chosen = static_cast<double>(routing.ids.size());
  return {{"file", path},
          {"holds", "routing"},
          {"tokens", routing.rows()},
          {"top_k", routing.top_k},
          {"experts", routing.experts},
          {"experts_chosen", load.size() - static_cast<std::size_t>(std::ranges::count(load, 0u))},
          {"repeated_tokens", repeats},
          {"hottest_expert", hottest - load.begin()},
          {"hottest_share", rounded(static_cast<double>(*hottest) / chosen)},
          {"hottest_over_mean", rounded(static_cast<double>(*hottest) * routing.experts / chosen)}};
}

// Nothing if interrupted.
std::optional<Json> info_of_traffic(const std::string& path) {
  const auto source = traces::open_traffic(path);
  std::map<std::string, std::uint64_t> kinds;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> operations;
  std::uint64_t records = 0, dependencies = 0, remote = 0, at_recorded_time = 0;
  Time first = Time::never(), last;
  std::map<traces::Unit, std::uint64_t> sources;
  observe::TraceReading reading;
  TrafficRecord r;
  for (; source->next(r); ++records) {
    if (interrupted() != 0) return std::nullopt;
    reading.add(r);
    ++kinds[std::string(traces::name_of(r.kind))];
    dependencies += r.dependencies.size();
    at_recorded_time += r.at_recorded_time() ? 1 : 0;
    first = std::min(first, r.start);
    if (r.kind != TrafficRecord::Kind::idle) last = std::max(last, r.end);
    if (!r.moves()) continue;
    auto& [count, bytes] = operations[std::string(traces::name_of(r.operation))];
    ++count;
    bytes += r.total_bytes();
    if (r.target != r.source) remote += r.total_bytes();
    ++sources[r.source];
  }
  Json all{{"file", path},
           {"holds", "traffic"},
           {"machine", source->header().machine},
           {"study", source->header().study},
           {"shaped", fmt::format("{}", fmt::join(source->header().shaped, "; "))},
           {"records", records},
           {"dependencies", dependencies},
           {"at_recorded_time",
            records == 0 ? 0.0 : static_cast<double>(at_recorded_time) / static_cast<double>(records)},
           {"begin_us", records == 0 ? 0 : first.us()},
           {"end_us", last.us()},
           {"sources", sources.size()},
           {"bytes_to_other_memory", remote}};
  for (const auto& [kind, count] : kinds) all["kinds"][kind] = count;
  for (const auto& [operation, sum] : operations)
    all["operations"][operation] = {{"transactions", sum.first}, {"bytes", sum.second}};
  all.update(reading.to_json());
  return all;
}

int info(const Program&, const InfoOptions& options, const studies::Given&) {
  if (options.file.size() != 1)
    throw InputError(fmt::format("trace info: {} files given; allowed: 1", options.file.size()));
  const std::string& path = options.file.front();
  const std::optional<Json> all = is_routing(path) ? info_of_routing(path) : info_of_traffic(path);
  if (!all) return kInterrupted;
  if (options.format == "json") {
    fmt::print("{}\n", all->dump(2));
    return kDone;
  }
  for (const auto& [key, value] : all->items()) {
    if (value.is_array()) {
      for (const Json& line : value) fmt::print("{:<22}{}\n", key, line.get<std::string>());
      continue;
    }
    if (!value.is_object() || key.ends_with("_us")) {
      fmt::print("{:<22}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
      continue;
    }
    for (const auto& [name, inner] : value.items()) fmt::print("{:<22}{}\n", name, inner.dump());
  }
  return kDone;
}

struct TraceInfoCheckOptions {
  studies::Texts file;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the traces");
  }
};

int check(const Program&, const TraceInfoCheckOptions& options, const studies::Given&) {
  if (options.file.empty()) throw InputError("trace check: no file given");
  for (const std::string& path : options.file) {
    if (is_routing(path)) {
      const traces::Routing routing = traces::read_routing(path);
      fmt::print("{}: good, {} tokens, top {} of {} experts\n", path, routing.rows(), routing.top_k,
                 routing.experts);
      continue;
    }
    const auto source = traces::open_traffic(path);
    TrafficRecord r;
    std::uint64_t records = 0;
    for (; source->next(r); ++records) {
      if (interrupted() != 0) return kInterrupted;
    }
    fmt::print("{}: good, {} records\n", path, records);
  }
  return kDone;
}

}  // namespace

constinit const Command kTraceInfoCommand = make_command<InfoOptions, info>(
    "trace info", "FILE", "what a trace of traffic or of routing holds", "file", -1);
constinit const Command kTraceCheckCommand = make_command<TraceInfoCheckOptions, check>(
    "trace check", "FILE...",
    "whether traces of traffic or of routing are good; names file, line or offset, and field", "file", -1);

}  // namespace cm384::cli
