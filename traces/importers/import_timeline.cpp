#include "traces/importers/import_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "traces/importers/imported_ranks.h"

namespace cm384::traces {
namespace {

using nlohmann::json;

using Us = long double;  // profilers count from 1970: 51 bits before the point

struct Event {
  std::string name;
  Us begin_us = 0, end_us = 0;
  const TimelineMessage* message = nullptr;
  std::size_t number = 0;  // in the file
};

constexpr Us kMostTimestampUs = 1e16, kLongestUs = 1e12;

// The vendor's profiler writes times as text, so that no digit is lost.
Us microseconds(const json& event, const char* name, const std::string& where) {
  const json value = event.value(name, json());
  Us found = -1;
  if (value.is_string()) {
    found = hw::number_of<Us>(value.get_ref<const std::string&>()).value_or(-1);
  } else if (value.is_number()) {
    found = static_cast<Us>(value.get<double>());
  }
  if (!(found >= 0 && found <= kMostTimestampUs))
    throw InputError(fmt::format("{}: {}: {}; allowed: microseconds from 0 to {:g}", where, name,
                                 value.is_primitive() ? value.dump().substr(0, 40) : "no number",
                                 kMostTimestampUs));
  return found;
}

std::vector<Event> read_events(const std::string& path, const std::vector<TimelineMessage>& messages) {
  std::ifstream stream = open_input(path);
  json document;
  try {
    document = json::parse(stream);
  } catch (const json::parse_error& error) {
    throw InputError(
        fmt::format("{}: offset {}: no JSON; allowed: a Chrome trace, a list of events or an object "
                    "with traceEvents",
                    path, error.byte - 1));
  }
  const json* list = &document;
  if (document.is_object() && document.contains("traceEvents")) list = &document["traceEvents"];
  if (!list->is_array())
    throw InputError(fmt::format("{}: no list of events; allowed: a Chrome trace", path));
  std::vector<Event> events;
  for (std::size_t n = 0; n < list->size(); ++n) {
    const json& e = (*list)[n];
    const std::string where = fmt::format("{}: event {}", path, n);
    if (!e.is_object()) throw InputError(fmt::format("{}: allowed: an object", where));
    if (e.value("ph", json()) != "X") continue;
    const json name = e.value("name", json());
    if (!name.is_string()) throw InputError(fmt::format("{}: name: allowed: a text", where));
    Event event{name.get<std::string>(), microseconds(e, "ts", where), 0, nullptr, n};
    event.end_us = event.begin_us + microseconds(e, "dur", where);
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
      : paths_(paths), ranks_(paths.size(), paths.front(), options) {
    for (const std::string& path : paths) events_.push_back(read_events(path, messages));
    origin_us_ = events_.front().front().begin_us;
    for (const auto& of_rank : events_) origin_us_ = std::min(origin_us_, of_rank.front().begin_us);
    for (std::size_t rank = 0; rank < paths.size(); ++rank) {
      for (const Event& event : events_[rank]) {
        if (event.end_us - origin_us_ > kLongestUs)
          throw InputError(
              fmt::format("{}: event {}: ends {:g} us after the first event of all; allowed: {:g}",
                          paths[rank], event.number, event.end_us - origin_us_, kLongestUs));
      }
    }
  }

  ImportResult write(TrafficSink& sink) {
    std::vector<std::vector<Meeting>> meetings;
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank)
      meetings.push_back(line_up(static_cast<int>(rank)));
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
      if (meetings[rank].size() != meetings[0].size())
        throw InputError(fmt::format("{}: {} collectives, {} in {}; allowed: the same on all ranks",
                                     paths_[rank], meetings[rank].size(), meetings[0].size(), paths_[0]));
    }
    for (std::size_t k = 0; k < meetings[0].size(); ++k) meet(meetings, k);
    ImportResult result = ranks_.write(graph_, sink);
    if (meetings[0].empty())
      result.notes = {"warning: no operator moves anything: --messages names none that is there"};
    return result;
  }

 private:
  struct Meeting {
    const Event* event = nullptr;
    std::uint64_t begin = 0, end = 0;
  };

  // A rank's time from one collective to the next, computing.
  std::vector<Meeting> line_up(int rank) {
    std::vector<Meeting> meetings;
    const std::string& path = paths_[static_cast<std::size_t>(rank)];
    std::optional<std::uint64_t> last;
    Us now = origin_us_;
    const auto compute_until = [&](Us at) {
      if (at <= now && last) return;
      TrafficRecord r = ranks_.point(rank);
      r.kind = TrafficRecord::Kind::compute;
      r.end = Time{std::llround(std::max<Us>(0, at - now) * 1e6L)};
      const std::uint64_t record = graph_.add(r, path);
      if (last) graph_.wait(record, {*last, TrafficDependency::Kind::completion, {}});
      last = record;
      now = std::max(now, at);
    };
    for (const Event& event : events_[static_cast<std::size_t>(rank)]) {
      if (event.message == nullptr) {
        compute_until(event.end_us);
        continue;
      }
      compute_until(event.begin_us);
      const std::string where = fmt::format("{}: event {}", path, event.number);
      const Meeting meeting{&event, graph_.add(ranks_.point(rank), where),
                            graph_.add(ranks_.point(rank), where)};
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
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
      const Meeting& m = meetings[rank][k];
      if (m.event->message != &message)
        throw InputError(
            fmt::format("{}: event {}: {}, but {} on rank 0; allowed: collectives in the same order",
                        paths_[rank], m.event->number, m.event->name, meetings[0][k].event->name));
      ready.push_back(m.begin);
      end.push_back(m.end);
    }
    ranks_.add(graph_, message.kind, message.bytes, ready, end, paths_[0]);
  }

  const std::vector<std::string>& paths_;
  ImportedRanks ranks_;
  std::vector<std::vector<Event>> events_;  // by rank
  Us origin_us_ = 0;
  RecordGraph graph_;
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
