#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>

#include "base/text/error.h"
#include "traces/import.h"
#include "traces/importers/imported_ranks.h"
#include "traces/importers/words.h"

namespace cm384::traces {
namespace {

constexpr std::int64_t kMostHtsimNodes = 65'535, kMostHtsimId = INT64_MAX / 2;

struct Trigger {
  std::string kind;  // oneshot, multishot, barrier; empty: not declared
  std::int64_t count = 0;
  std::vector<RecordGraph::Edge> fired_by;
  std::vector<std::uint64_t> starts;
  std::string where;
};

class HtsimImport {
 public:
  HtsimImport(const std::string& path, const ImportOptions& options) : options_(options), lines_(path) {
    if (!lines_.next() || lines_.words()[0] != "Nodes") lines_.fail("header: allowed: Nodes N");
    const std::int64_t nodes = lines_.integer(1, "Nodes", 1, kMostHtsimNodes);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(nodes));
    std::iota(numbers.begin(), numbers.end(), 0);
    ranks_.emplace(std::move(numbers), path, options);
    while (lines_.next()) line();
    if (graph_.size() == 0) lines_.fail("line: no connection");
    if (announced_ >= 0 && announced_ != connections_)
      lines_.fail(fmt::format("Connections: {} announced, {} there", announced_, connections_));
  }

  ImportResult write(TrafficSink& sink) {
    for (const auto& [id, trigger] : triggers_) pull(id, trigger);
    graph_.forget_order();
    ImportResult result = ranks_->write(graph_, sink);
    if (priorities_ != 0)
      result.not_taken.push_back(fmt::format("prio of connections, which are all alike: {}", priorities_));
    return result;
  }

 private:
  void line() {
    const std::string_view first = lines_.words()[0];
    if (first.starts_with('#')) return;
    if (first == "Connections") {
      announced_ = lines_.integer(1, "Connections", 0, kMostHtsimId);
    } else if (first == "Triggers") {
      lines_.integer(1, "Triggers", 0, kMostHtsimId);
    } else if (first == "trigger") {
      declare();
    } else if (first.find("->") != std::string_view::npos) {
      connect(first);
    } else {
      lines_.fail(fmt::format("line: '{}'; allowed: SOURCE->TARGET, trigger, Connections, Triggers",
                              first.substr(0, 60)));
    }
  }

  // trigger id 3 oneshot | multishot | barrier count 8
  void declare() {
    if (lines_.word(1, "id") != "id") lines_.fail("trigger: allowed: trigger id N KIND");
    Trigger& trigger = triggers_[lines_.integer(2, "id", 0, kMostHtsimId)];
    trigger.kind = lines_.word(3, "trigger");
    trigger.where = lines_.where();
    if (trigger.kind == "barrier") {
      const std::size_t at = lines_.words().size() > 4 && lines_.words()[4] == "count" ? 5 : 4;
      trigger.count = lines_.integer(at, "count", 1, kMostHtsimId);
    } else if (trigger.kind != "oneshot" && trigger.kind != "multishot") {
      lines_.fail(
          fmt::format("trigger: '{}'; allowed: oneshot, multishot, barrier", trigger.kind.substr(0, 60)));
    }
  }

  void connect(std::string_view ends) {
    const std::size_t arrow = ends.find("->");
    const auto last = static_cast<std::int64_t>(ranks_->count()) - 1;
    const auto from = static_cast<int>(lines_.integer_of(ends.substr(0, arrow), "source", 0, last)),
               to = static_cast<int>(lines_.integer_of(ends.substr(arrow + 2), "target", 0, last));
    std::optional<std::int64_t> start, size, by, sent, received;
    for (std::size_t n = 1; n < lines_.words().size(); n += 2) {
      const std::string_view name = lines_.words()[n];
      std::optional<std::int64_t>* value = name == "start"               ? &start
                                           : name == "size"              ? &size
                                           : name == "trigger"           ? &by
                                           : name == "send_done_trigger" ? &sent
                                           : name == "recv_done_trigger" ? &received
                                                                         : nullptr;
      if (value == nullptr && name != "id" && name != "prio")
        lines_.fail(
            fmt::format("'{}'; allowed: id, start, size, trigger, send_done_trigger, recv_done_trigger, "
                        "prio",
                        name.substr(0, 60)));
      const std::int64_t number = lines_.integer(n + 1, name, 0, kMostHtsimId);
      if (value != nullptr) *value = number;
      if (name == "prio" && number != 0) ++priorities_;
    }
    if (!size || *size < 1 || *size > kMostImportedBytes)
      lines_.fail(fmt::format("size: allowed: 1 to {} B", kMostImportedBytes));
    if (from == to) lines_.fail("target: allowed: another node than the source");
    TrafficRecord record = ranks_->transfer(from, to, *size);
    if (start && *start != 0) record.start = record.end = time_of(*start);
    const std::uint64_t number = graph_.add(record, lines_.where());
    ++connections_;
    if (by) starts(*by, number);
    if (sent) triggers_[*sent].fired_by.push_back({number, TrafficDependency::Kind::completion, {}});
    if (received) triggers_[*received].fired_by.push_back({number, TrafficDependency::Kind::arrival, {}});
  }

  void starts(std::int64_t id, std::uint64_t number) {
    Trigger& trigger = triggers_[id];
    trigger.starts.push_back(number);
    if (trigger.where.empty()) trigger.where = lines_.where();
  }

  Time time_of(std::int64_t start) const {
    if (options_.time_unit == Time{})
      lines_.fail(
          fmt::format("start: {}: of which unit is not told; allowed: --time-unit ps, ns or us", start));
    constexpr std::int64_t kLatestPs = 100'000'000'000'000'000;
    if (start > kLatestPs / options_.time_unit.ps)
      lines_.fail(fmt::format("start: {}; allowed: up to {} s", start, kLatestPs / 1'000'000'000'000));
    return Time{start * options_.time_unit.ps};
  }

  void pull(std::int64_t id, const Trigger& trigger) {
    if (trigger.starts.empty()) return;
    const auto fail = [&](const std::string& what) {
      throw InputError(fmt::format("{}: trigger {}: {}", trigger.where, id, what));
    };
    const auto fired = static_cast<std::int64_t>(trigger.fired_by.size());
    if (trigger.kind.empty()) fail("is not declared");
    if (trigger.kind == "barrier" && trigger.count != fired)
      fail(fmt::format("counts to {}; {} connections fire it", trigger.count, fired));
    if (trigger.kind != "barrier" && fired != 1)
      fail(fmt::format("{} connections fire it; allowed of {}: 1", fired, trigger.kind));
    for (const std::uint64_t number : trigger.starts) {
      for (const RecordGraph::Edge& edge : trigger.fired_by) graph_.wait(number, edge);
    }
  }

  const ImportOptions& options_;
  WordLines lines_;
  std::optional<ImportedRanks> ranks_;
  RecordGraph graph_;
  std::map<std::int64_t, Trigger> triggers_;
  std::int64_t announced_ = -1, connections_ = 0, priorities_ = 0;
};

}  // namespace

ImportResult import_htsim(const std::string& path, const ImportOptions& options, TrafficSink& sink) {
  return HtsimImport(path, options).write(sink);
}

}  // namespace cm384::traces
