// The smallest CSV that makes a trace: a line a message.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "traces/import.h"
#include "traces/importers/imported_ranks.h"
#include "traces/record_graph.h"

namespace cm384::traces {
namespace {

const std::vector<std::string> kAll{"source",    "target", "bytes",   "start_us",
                                    "operation", "after",  "delay_us"};
constexpr std::size_t kRequired = 3;
constexpr std::int64_t kMostRank = 65535;
constexpr double kMostUs = 1e9;

// Which field holds each of kAll.
class Columns {
 public:
  explicit Columns(const LineReader& lines, const std::string& header) {
    for (const std::string_view name : split_fields(header)) names_.emplace_back(name);
    place_.assign(kAll.size(), names_.size());
    for (std::size_t n = 0; n < names_.size(); ++n) {
      const auto known = std::ranges::find(kAll, names_[n]);
      if (known == kAll.end() || place_[static_cast<std::size_t>(known - kAll.begin())] != names_.size())
        lines.fail(fmt::format("header: '{}'; allowed, once each: {}", names_[n], fmt::join(kAll, ", ")));
      place_[static_cast<std::size_t>(known - kAll.begin())] = n;
    }
    for (std::size_t n = 0; n < kRequired; ++n) {
      if (!has(n)) lines.fail(fmt::format("header: {} is missing", kAll[n]));
    }
  }
  bool has(std::size_t column) const { return place_[column] != names_.size(); }
  std::size_t operator[](std::size_t column) const { return place_[column]; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::size_t> place_;
};

Time microseconds(const FieldReader& fields, std::size_t column) {
  const auto value = hw::number_of<double>(fields.text(column));
  if (!value || !(*value >= 0 && *value <= kMostUs))
    fields.fail(column, fmt::format("microseconds from 0 to {:g}", kMostUs));
  return Time{static_cast<std::int64_t>(*value * 1e6 + 0.5)};
}

sim::Operation operation(const FieldReader& fields, std::size_t column) {
  const std::string_view text = fields.text(column);
  if (text == "read") return sim::Operation::read;
  if (!text.empty() && text != "write") fields.fail(column, "write, read");
  return sim::Operation::write;
}

}  // namespace

bool is_message_list(const std::string& path) {
  LineReader lines(path);
  std::string line;
  if (!lines.next(line)) return false;
  const auto fields = split_fields(line);
  const auto named = [&](std::string_view name) { return std::ranges::find(fields, name) != fields.end(); };
  return named("source") && named("target") && !named("id");
}

ImportResult import_messages(const std::string& path, const ImportOptions& options, TrafficSink& sink) {
  LineReader lines(path);
  std::string line;
  if (!lines.next(line)) lines.fail("header: the file is empty");
  const Columns columns(lines, line);
  RecordGraph graph;
  Placing placing;
  ImportResult result;
  result.placement =
      options.onto.empty() ? "by number" : "as --onto says, in the order of their first appearance";
  std::map<std::int64_t, int> dies;
  const auto die_of = [&](const FieldReader& fields, std::size_t column) {
    const std::int64_t rank = fields.integer(columns[column], 0, kMostRank);
    const auto known = dies.find(rank);
    if (known != dies.end()) return known->second;
    const std::size_t next = dies.size();
    if (options.onto.empty() ? rank >= options.dies : next >= options.onto.size())
      fields.fail(columns[column],
                  options.onto.empty()
                      ? fmt::format("numbers below {}, the dies of {}", options.dies, options.machine)
                      : fmt::format("as many ranks as --onto has dies, {}", options.onto.size()));
    return dies[rank] = options.onto.empty() ? static_cast<int>(rank) : options.onto[next];
  };
  while (lines.next(line)) {
    if (line.empty() || line == "\r") continue;
    auto parts = split_fields(line);
    if (parts.size() != columns.names().size())
      lines.fail(fmt::format("line: {} fields; allowed: {}", parts.size(), columns.names().size()));
    const FieldReader fields(lines, std::move(parts), columns.names());
    TrafficRecord r;
    r.source.number = static_cast<std::uint16_t>(die_of(fields, 0));
    r.target.number = static_cast<std::uint16_t>(die_of(fields, 1));
    r.core = TrafficRecord::kAnyCore;
    r.bytes = static_cast<std::uint64_t>(fields.integer(columns[2], 1, kMostImportedBytes));
    r.operation = columns.has(4) ? operation(fields, columns[4]) : sim::Operation::write;
    r.offset = placing.allocate(r.target.number, r.bytes);
    if (columns.has(3) && !fields.text(columns[3]).empty())
      r.start = r.end = microseconds(fields, columns[3]);
    const Time delay =
        columns.has(6) && !fields.text(columns[6]).empty() ? microseconds(fields, columns[6]) : Time{};
    const std::uint64_t number = graph.size();
    graph.add(r, fmt::format("{}:{}", path, lines.number()));
    if (!columns.has(5) || fields.text(columns[5]).empty()) {
      if (delay != Time{}) fields.fail(columns[6], "a delay after messages, which this line does not name");
      continue;
    }
    for (const std::string_view text : split_fields(fields.text(columns[5]), ' ')) {
      const auto on = hw::number_of<std::uint64_t>(text);
      if (!on || *on >= number)
        fields.fail(columns[5], fmt::format("numbers of earlier messages, 0 to {}, separated by blanks",
                                            number == 0 ? 0 : number - 1));
      graph.wait(number, {*on, TrafficDependency::Kind::arrival, delay});
    }
  }
  if (graph.size() == 0) lines.fail("line: no message");
  for (const auto& [rank, die] : dies) result.mapping.emplace_back(rank, die);
  graph.forget_order();
  const Written written = graph.write(sink);
  result.records = written.records;
  note_locality(written, result);
  return result;
}

}  // namespace cm384::traces
