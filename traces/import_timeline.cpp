#include "traces/import_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "hw/error.h"
#include "hw/lines.h"
#include "traces/record_graph.h"

namespace cm384::traces {
namespace {

using nlohmann::json;

struct Event {
  std::string name;
  double begin_us = 0, end_us = 0;
  const TimelineMessage* message = nullptr;
  std::size_t number = 0;  // in the file
};

std::vector<Event> read_events(const std::string& path, const std::vector<TimelineMessage>& messages) {
  std::ifstream stream(path);
  if (!stream) throw InputError(fmt::format("{}: cannot be opened", path));
  json document;
  try {
    document = json::parse(stream);
  } catch (const json::exception&) {
    throw InputError(fmt::format(
        "{}: no JSON; allowed: a Chrome trace, a list of events or an object with traceEvents", path));
  }
  const json* list = &document;
  if (document.is_object() && document.contains("traceEvents")) list = &document["traceEvents"];
  if (!list->is_array())
    throw InputError(fmt::format("{}: no list of events; allowed: a Chrome trace", path));
  std::vector<Event> events;
  for (std::size_t n = 0; n < list->size(); ++n) {
    const json& e = (*list)[n];
    if (!e.is_object()) throw InputError(fmt::format("{}: event {}: allowed: an object", path, n));
    if (e.value("ph", json()) != "X") continue;
    const auto number = [&](const char* name) {
      const json value = e.value(name, json());
      double found = 0;
      // The vendor's profiler writes times as text, so that no digit is lost.
      try {
        found = value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
      } catch (const std::exception&) {
        throw InputError(fmt::format("{}: event {}: {}: allowed: a number of microseconds", path, n, name));
      }
      if (!std::isfinite(found) || found < 0)
        throw InputError(fmt::format("{}: event {}: {}: {}; allowed: 0 or more", path, n, name, found));
      return found;
    };
    const json name = e.value("name", json());
    if (!name.is_string()) throw InputError(fmt::format("{}: event {}: name: allowed: a text", path, n));
    Event event{name.get<std::string>(), number("ts"), 0, nullptr, n};
    event.end_us = event.begin_us + number("dur");
    for (const TimelineMessage& m : messages) {
      if (event.name.starts_with(m.prefix)) event.message = &m;
    }
    events.push_back(std::move(event));
  }
  if (events.empty()) throw InputError(fmt::format("{}: no events with \"ph\": \"X\"", path));
  std::ranges::stable_sort(events, {}, &Event::begin_us);
  return events;
}

class TimelineImport {
 public:
  TimelineImport(const std::vector<std::string>& paths, const std::vector<TimelineMessage>& messages,
                 const ImportOptions& options)
      : paths_(paths), options_(options) {
    const std::size_t room =
        options.onto.empty() ? static_cast<std::size_t>(options.dies) : options.onto.size();
    if (paths.size() > room)
      throw InputError(fmt::format("{}: {} ranks, but {} has {} dies to put them on", paths.front(),
                                   paths.size(), options.machine, room));
    double first = 1e300;
    for (const std::string& path : paths) {
      ranks_.push_back(read_events(path, messages));
      first = std::min(first, ranks_.back().front().begin_us);
    }
    origin_us_ = first;
  }

  ImportResult write(TrafficSink& sink) {
    std::vector<std::vector<Meeting>> meetings;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      meetings.push_back(line_up(static_cast<int>(rank)));
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (meetings[rank].size() != meetings[0].size())
        throw InputError(fmt::format("{}: {} collectives, {} in {}; allowed: the same on all ranks",
                                     paths_[rank], meetings[rank].size(), meetings[0].size(), paths_[0]));
    }
    for (std::size_t k = 0; k < meetings[0].size(); ++k) meet(meetings, k);
    ImportResult result;
    result.placement = options_.onto.empty() ? "by rank" : "as --onto says, in the order of the files";
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      result.mapping.emplace_back(static_cast<std::int64_t>(rank), unit(static_cast<int>(rank)).number);
    if (meetings[0].empty())
      result.notes.emplace_back("warning: no operator moves anything: --messages names none that is there");
    const Written written = graph_.write(sink);
    result.records = written.records;
    note_locality(written, result);
    return result;
  }

 private:
  struct Meeting {
    const Event* event = nullptr;
    std::uint64_t begin = 0, end = 0;
  };

  Unit unit(int rank) const {
    return {false, static_cast<std::uint16_t>(
                       options_.onto.empty() ? rank : options_.onto[static_cast<std::size_t>(rank)])};
  }
  TrafficRecord point(int rank) const {
    TrafficRecord r;
    r.kind = TrafficRecord::Kind::barrier;
    r.source = r.target = unit(rank);
    return r;
  }

  // A rank's time from one collective to the next, computing.
  std::vector<Meeting> line_up(int rank) {
    std::vector<Meeting> meetings;
    const std::string& path = paths_[static_cast<std::size_t>(rank)];
    std::optional<std::uint64_t> last;
    double now = origin_us_;
    const auto compute_until = [&](double at) {
      if (at <= now && last) return;
      TrafficRecord r = point(rank);
      r.kind = TrafficRecord::Kind::compute;
      r.end = Time{std::llround(std::max(0.0, at - now) * 1e6)};
      const std::uint64_t record = graph_.add(r, path);
      if (last) graph_.wait(record, {*last, TrafficDependency::Kind::completion, {}});
      last = record;
      now = std::max(now, at);
    };
    for (const Event& event : ranks_[static_cast<std::size_t>(rank)]) {
      if (event.message == nullptr) {
        compute_until(event.end_us);
        continue;
      }
      compute_until(event.begin_us);
      const std::string where = fmt::format("{}: event {}", path, event.number);
      const Meeting meeting{&event, graph_.add(point(rank), where), graph_.add(point(rank), where)};
      graph_.wait(meeting.begin, {*last, TrafficDependency::Kind::completion, {}});
      meetings.push_back(meeting);
      last = meeting.end;
      now = std::max(now, event.end_us);
    }
    return meetings;
  }

  void meet(const std::vector<std::vector<Meeting>>& meetings, std::size_t k) {
    const TimelineMessage& message = *meetings[0][k].event->message;
    std::vector<std::uint64_t> ready, end;
    std::vector<int> node;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Meeting& m = meetings[rank][k];
      if (m.event->message != &message)
        throw InputError(
            fmt::format("{}: event {}: {}, but {} on rank 0; allowed: collectives in the same order",
                        paths_[rank], m.event->number, m.event->name, meetings[0][k].event->name));
      ready.push_back(m.begin);
      end.push_back(m.end);
      node.push_back(unit(static_cast<int>(rank)).number / options_.dies_per_node);
    }
    const auto transfer = [this](const CollectiveSend& send) {
      TrafficRecord r;
      r.operation = sim::Operation::write;
      r.source = unit(send.from);
      r.target = unit(send.to);
      r.core = TrafficRecord::kAnyCore;
      r.bytes = static_cast<std::uint64_t>(send.bytes);
      r.offset = placing_.take(r.target.number, r.bytes);
      return r;
    };
    add_collective(graph_,
                   collective_rounds(message.kind, options_.collectives[message.kind], message.bytes, node),
                   ready, end, {transfer, [this](int rank) { return point(rank); }, paths_[0]});
  }

  const std::vector<std::string>& paths_;
  const ImportOptions& options_;
  std::vector<std::vector<Event>> ranks_;
  double origin_us_ = 0;
  RecordGraph graph_;
  Placing placing_;
};

}  // namespace

std::vector<TimelineMessage> timeline_messages(const std::string& path) {
  LineReader lines(path);
  std::string line;
  if (!lines.next(line) || !line.starts_with("name,collective,bytes"))
    lines.fail("header: allowed: name,collective,bytes");
  const std::vector<std::string> columns{"name", "collective", "bytes"};
  std::vector<TimelineMessage> messages;
  while (lines.next(line)) {
    if (line.empty() || line == "\r") continue;
    auto parts = split_fields(line);
    if (parts.size() != 3) lines.fail(fmt::format("line: {} fields; allowed: 3", parts.size()));
    const FieldReader fields(lines, std::move(parts), columns);
    TimelineMessage message{std::string(fields.text(0)), {}, fields.integer(2, 1, std::int64_t{16} << 30)};
    if (message.prefix.empty()) fields.fail(0, "the beginning of an operator's name");
    bool known = false;
    std::string allowed;
    for (int k = 0; k < kCollectiveKinds; ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      allowed += fmt::format("{}{}", k == 0 ? "" : ", ", name_of(kind));
      if (fields.text(1) != name_of(kind)) continue;
      message.kind = kind;
      known = true;
    }
    if (!known) fields.fail(1, allowed);
    messages.push_back(std::move(message));
  }
  return messages;
}

ImportResult import_timelines(const std::vector<std::string>& paths,
                              const std::vector<TimelineMessage>& messages, const ImportOptions& options,
                              TrafficSink& sink) {
  if (paths.empty()) throw InputError("timeline: no file named; allowed: one per rank");
  return TimelineImport(paths, messages, options).write(sink);
}

}  // namespace cm384::traces
