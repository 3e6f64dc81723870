#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"
#include "traces/import.h"
#include "traces/importers/imported_ranks.h"
#include "traces/importers/node_placement.h"
#include "traces/importers/ns3ub_topology.h"
#include "traces/record_graph.h"

namespace cm384::traces {
namespace {

enum Ns3ubColumn : std::size_t {
  kNs3ubTask,
  kNs3ubSource,
  kNs3ubTarget,
  kNs3ubBytes,
  kNs3ubOperation,
  kNs3ubPriority,
  kNs3ubDelay,
  kNs3ubPhase,
  kNs3ubPhases,
  kNs3ubColumns
};
const std::vector<std::string> kNames{"taskId",   "sourceNode", "destNode", "dataSize(Byte)", "opType",
                                      "priority", "delay",      "phaseId",  "dependOnPhases"};
constexpr std::int64_t kMostNumber = std::int64_t{1} << 40;

bool is_header(const std::vector<std::string_view>& fields) {
  if (fields.size() != kNs3ubColumns) return false;
  for (std::size_t k = 0; k < kNs3ubColumns; ++k) {
    const bool node = k == kNs3ubSource || k == kNs3ubTarget;
    if (fields[k] != kNames[k] && !(node && fields[k] == kNames[k] + "Id")) return false;
  }
  return true;
}

struct Phase {
  std::vector<std::uint64_t> tasks;
  std::uint64_t finished = 0;  // record that joins them
};

struct Wait {
  std::uint64_t record = 0;
  std::int64_t phase = 0;
  Time delay;
  std::string where;
};

class Ns3UbImport {
 public:
  Ns3UbImport(const std::string& path, const ImportOptions& options)
      : path_(path), lines_(path), options_(options) {}

  void read() {
    std::string line;
    if (!lines_.next(line) || !is_header(split_fields(line)))
      lines_.fail(fmt::format("header: '{}'; allowed: {}", line.substr(0, 80), fmt::join(kNames, ",")));
    while (lines_.next(line)) {
      if (line.find_first_not_of(" \t\r") != std::string::npos) task(line);
    }
  }

  ImportResult write(TrafficSink& sink) {
    ImportResult result;
    place(result);
    for (auto& [id, phase] : phases_)
      phase.finished = graph_.join(phase.tasks, TrafficDependency::Kind::completion,
                                   graph_.record(phase.tasks.front()).source, path_);
    for (const Wait& w : waits_) {
      const auto phase = phases_.find(w.phase);
      if (phase == phases_.end())
        throw InputError(fmt::format("{}: dependOnPhases: no task is of phase {}", w.where, w.phase));
      graph_.wait(w.record, {phase->second.finished, TrafficDependency::Kind::completion, w.delay});
    }
    graph_.forget_order();
    const Written written = graph_.write(sink);
    result.records = written.records;
    note_locality(written, result);
    if (!options_.priorities.empty())
      result.notes.push_back(fmt::format("priorities {} are service levels 0 to {}",
                                         fmt::join(options_.priorities, ", "),
                                         options_.priorities.size() - 1));
    if (notified_ != 0)
      result.notes.push_back(
          fmt::format("URMA_WRITE_NOTIFY: {}, taken as writes whose arrival is the notification", notified_));
    return result;
  }

 private:
  // Until all nodes are known, records name them in the order met.
  void place(ImportResult& result) {
    std::vector<std::int64_t> met(nodes_.size());
    for (const auto& [node, index] : nodes_) met[static_cast<std::size_t>(index)] = node;
    std::map<std::int64_t, int> die;
    if (!options_.nodes.empty()) {
      const std::vector<std::int64_t>& ids = options_.nodes;
      for (const std::int64_t node : met)
        die[node] = static_cast<int>(std::ranges::lower_bound(ids, node) - ids.begin());
      result.placement = "as the nodes of the machine";
      result.mapping.assign(die.begin(), die.end());
    } else if (options_.onto.empty()) {
      const Ns3UbCase beside = read_ns3ub_case(path_);
      NodePlacement placed = place_nodes(met, beside.leaves, options_.dies, options_.dies_per_node);
      result.placement = std::move(placed.rule);
      result.mapping = std::move(placed.dies);
      die = {result.mapping.begin(), result.mapping.end()};
      if (!beside.unread.empty())
        result.notes.push_back(fmt::format("not imported: {}", fmt::join(beside.unread, ", ")));
    } else {
      for (std::size_t k = 0; k < met.size(); ++k) die[met[k]] = options_.onto[k];
      result.placement = "as --onto says, in the order of the nodes' first appearance";
      result.mapping.assign(die.begin(), die.end());
    }
    const auto placed = [&](Unit index) {
      return Unit{false, static_cast<std::uint16_t>(die.at(met[index.number]))};
    };
    for (std::uint64_t n = 0; n < graph_.size(); ++n) {
      TrafficRecord& r = graph_.record(n);
      r.source = placed(r.source);
      r.target = placed(r.target);
      r.by_ub = !options_.nodes.empty() && r.moves();
    }
  }

  void task(const std::string& line) {
    auto parts = split_fields(line);
    if (parts.size() != kNs3ubColumns)
      lines_.fail(
          fmt::format("line: {} fields; allowed: {}", parts.size(), static_cast<std::size_t>(kNs3ubColumns)));
    const FieldReader fields(lines_, std::move(parts), kNames);
    fields.integer(kNs3ubTask, 0, kMostNumber);
    TrafficRecord r;
    r.source = unit_of(fields.integer(kNs3ubSource, 0, kMostNumber));
    r.target = unit_of(fields.integer(kNs3ubTarget, 0, kMostNumber));
    r.bytes = static_cast<std::uint64_t>(fields.integer(kNs3ubBytes, 1, kMostImportedBytes));
    r.operation = operation_of(fields);
    r.lane = level_of(fields.integer(kNs3ubPriority, 0, 15));
    r.core = TrafficRecord::kAnyCore;
    r.offset = placing_.allocate(r.target.number, r.bytes);
    const Time delay = delay_of(fields);
    const std::string where = fmt::format("{}:{}", path_, lines_.number());
    const bool waits = !fields.text(kNs3ubPhases).empty();
    if (!waits) r.start = r.end = delay;
    const std::uint64_t number = graph_.add(r, where);
    phases_[fields.integer(kNs3ubPhase, 0, kMostNumber)].tasks.push_back(number);
    if (!waits) return;
    for (const std::string_view phase : split_fields(fields.text(kNs3ubPhases), ' ')) {
      if (phase.empty()) continue;
      const FieldReader one(lines_, {phase}, phase_name_);
      waits_.push_back({number, one.integer(0, 0, kMostNumber), delay, where});
    }
  }

  std::uint8_t level_of(std::int64_t priority) const {
    const auto known = std::ranges::find(options_.priorities, priority);
    return static_cast<std::uint8_t>(
        known == options_.priorities.end() ? priority : known - options_.priorities.begin());
  }

  sim::Operation operation_of(const FieldReader& fields) {
    const std::string_view text = fields.text(kNs3ubOperation);
    if (text == "URMA_WRITE" || text == "MEM_STORE") return sim::Operation::write;
    if (text == "URMA_READ" || text == "MEM_LOAD") return sim::Operation::read;
    if (text == "URMA_WRITE_NOTIFY") {
      ++notified_;
      return sim::Operation::write;
    }
    fields.fail(kNs3ubOperation, "URMA_WRITE, URMA_WRITE_NOTIFY, URMA_READ, MEM_STORE, MEM_LOAD");
  }

  static Time delay_of(const FieldReader& fields) {
    try {
      return hw::parse_time(fields.text(kNs3ubDelay));
    } catch (const InputError& error) {
      fields.fail(kNs3ubDelay, fmt::format("a time with unit, such as 10ns ({})", error.what()));
    }
  }

  Unit unit_of(std::int64_t node) {
    if (!options_.nodes.empty() && !std::ranges::binary_search(options_.nodes, node))
      lines_.fail(fmt::format("node {}: is not a DEVICE of {}", node, options_.machine));
    const auto [found, fresh] = nodes_.emplace(node, static_cast<int>(nodes_.size()));
    const auto count = static_cast<int>(nodes_.size());
    const int room = options_.onto.empty() ? options_.dies : static_cast<int>(options_.onto.size());
    if (fresh && count > room)
      lines_.fail(fmt::format("node {}: number {} of the different ones, but {} has {} dies to put them on",
                              node, count, options_.machine.empty() ? "the machine" : options_.machine,
                              room));
    return {false, static_cast<std::uint16_t>(found->second)};
  }

  std::string path_;
  LineReader lines_;
  const ImportOptions& options_;
  RecordGraph graph_;
  Placing placing_;
  std::map<std::int64_t, int> nodes_;
  std::map<std::int64_t, Phase> phases_;
  std::vector<Wait> waits_;
  std::uint64_t notified_ = 0;
  const std::vector<std::string> phase_name_{kNames[kNs3ubPhases]};
};

}  // namespace

ImportResult import_ns3ub(const std::string& path, const ImportOptions& options, TrafficSink& sink) {
  Ns3UbImport import(path, options);
  import.read();
  return import.write(sink);
}

bool is_ns3ub(const std::string& path) {
  LineReader lines(path);
  std::string line;
  return lines.next(line) && is_header(split_fields(line));
}

}  // namespace cm384::traces
