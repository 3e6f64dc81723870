#include "traces/importers/import_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "traces/importers/clock_offsets.h"
#include "traces/importers/collective_parts.h"
#include "traces/importers/imported_ranks.h"
#include "traces/importers/timeline_reader.h"

namespace cm384::traces {
namespace {

using Us = TimelineUs;
constexpr Us kLongestUs = 1e12, kRoundedUs = 1e-3;  // profilers round begin and end apart

Time time_of(Us us) {
  return Time{std::llround(us * 1e6L)};
}

// The events of one rank, in the graph.
struct RankEvents {
  std::string path;
  Timeline timeline;
  struct Ends {
    std::uint64_t begin = 0, end = 0;
    bool meets = false;  // is a part of a collective
  };
  std::vector<Ends> ends;
};

// Time in which both of two sets of spans go on, and in the second.
struct Overlap {
  Us both = 0, second = 0;
};

Overlap overlap_of(const std::vector<TimelineEvent>& events) {
  std::vector<std::tuple<Us, int, int>> all;  // when, which set, one more or less
  for (const TimelineEvent& event : events) {
    all.emplace_back(event.begin_us, event.communicates ? 1 : 0, 1);
    all.emplace_back(event.end_us, event.communicates ? 1 : 0, -1);
  }
  std::ranges::sort(all);
  Overlap overlap;
  int open[2]{};
  Us last = 0;
  for (const auto& [at, set, step] : all) {
    if (open[1] > 0) overlap.second += at - last;
    if (open[0] > 0 && open[1] > 0) overlap.both += at - last;
    open[set] += step;
    last = at;
  }
  return overlap;
}

// Of events that are added by their begin: which of them ended last before a moment. Holds those that go on.
class LastEnded {
 public:
  explicit LastEnded(const std::vector<TimelineEvent>& events) : events_(&events) {}
  void add(std::size_t n) { open_.emplace((*events_)[n].end_us, n); }
  // Moments rise. Of those that ended at the same time the one added last.
  std::optional<std::size_t> before(Us moment) {
    while (!open_.empty() && open_.top().first <= moment + kRoundedUs) {
      last_ = std::max(last_, std::optional(open_.top()));
      open_.pop();
    }
    return last_ ? std::optional(last_->second) : std::nullopt;
  }

 private:
  using End = std::pair<Us, std::size_t>;
  const std::vector<TimelineEvent>* events_;
  std::priority_queue<End, std::vector<End>, std::greater<>> open_;
  std::optional<End> last_;
};

class TimelineImport {
 public:
  TimelineImport(std::vector<RankEvents> events, std::vector<std::int64_t> numbers,
                 const std::vector<TimelineMessage>& messages, const ImportOptions& options)
      : options_(options),
        messages_(messages),
        events_(std::move(events)),
        ranks_(std::move(numbers), events_.front().path, options),
        parts_(events_.size()) {
    // What communicates has a begin and an end, and moves something between.
    std::uint64_t records = 0;
    for (const RankEvents& own : events_) {
      for (const TimelineEvent& event : own.timeline.events) records += event.communicates ? 3 : 1;
    }
    graph_.reserve(records);
    count_messages();
    for (std::size_t rank = 0; rank < events_.size(); ++rank) add_rank(static_cast<int>(rank));
    for (const Message& message : messages_met_) {
      if (message.receives)
        graph_.wait(message.ends.end, {sent_.at(message.pair), TrafficDependency::Kind::arrival, {}});
    }
  }

  ImportResult write(TrafficSink& sink) {
    const std::vector<CollectiveParts::Met> met = parts_.match(ranks_, {});
    std::vector<std::string> notes = parts_.notes();
    set_clocks(met, notes);
    place_in_time();
    CollectiveParts::write(met, graph_, ranks_);
    if (options_.strict && !not_taken().empty())
      throw InputError(fmt::format("--strict: not imported exactly: {}", not_taken().front()));
    std::vector<std::uint64_t> numbers;
    ImportResult result = ranks_.write(graph_, sink, &numbers);
    notes.push_back(fmt::format("events: {}; {} others are left out", events_.front().timeline.chosen,
                                total(&Timeline::left_out)));
    note_overlap(notes);
    if (by_sent_ != 0)
      notes.push_back(fmt::format(
          "sizes of parts of collectives from what ranks sent, MB taken as 10^6 B: {}", by_sent_));
    if (parts_.empty() && messages_met_.empty())
      notes.emplace_back(
          "warning: no collective moves anything: neither its arguments nor --messages say how "
          "much");
    result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
    result.not_taken = not_taken();
    note_collectives(met, numbers, result);
    return result;
  }

 private:
  using Channel = std::tuple<std::int64_t, std::int64_t, std::string>;  // from, to, group
  using Pair = std::pair<Channel, std::uint64_t>;                       // the n-th message of a channel
  struct Message {
    int rank = 0;
    std::size_t event = 0;
    bool receives = false;
    RankEvents::Ends ends;
    Pair pair;
  };

  // How many sends and receives of each channel there are: the n-th of both are one message.
  void count_messages() {
    for (std::size_t rank = 0; rank < events_.size(); ++rank) {
      for (const TimelineEvent& event : events_[rank].timeline.events) {
        if (event.message && event.message->bytes <= kMostImportedBytes)
          ++(event.message->receives ? receives_
                                     : sends_)[channel_of(*event.message, static_cast<int>(rank))];
      }
    }
  }
  Channel channel_of(const TimelineSend& message, int rank) const {
    const std::int64_t own = ranks_.number(rank);
    return message.receives ? Channel{message.other, own, message.group}
                            : Channel{own, message.other, message.group};
  }

  // False where its other half is in no file, or it is not told how much it moves.
  bool add_message(RankEvents& own, int rank, std::size_t n, const std::string& where) {
    const TimelineSend& message = *own.timeline.events[n].message;
    const Channel channel = channel_of(message, rank);
    const Pair pair{channel, (message.receives ? received_ : begun_)[channel]++};
    const auto other = ranks_.rank_of(message.other);
    if (!other || pair.second >= std::min(sends_[channel], receives_[channel])) return false;
    RankEvents::Ends ends{graph_.add(ranks_.point(rank), where), graph_.add(ranks_.point(rank), where), true};
    graph_.wait(ends.end, {ends.begin, TrafficDependency::Kind::completion, {}});
    if (!message.receives) {
      const bool moves = message.bytes > 0 && *other != rank;
      const std::uint64_t sent =
          graph_.add(moves ? ranks_.transfer(rank, *other, message.bytes) : ranks_.point(rank), where);
      graph_.wait(sent, {ends.begin, TrafficDependency::Kind::completion, {}});
      graph_.wait(ends.end, {sent, TrafficDependency::Kind::completion, {}});
      sent_[pair] = sent;
    }
    own.ends.push_back(ends);
    messages_met_.push_back({rank, n, message.receives, ends, pair});
    return true;
  }

  const TimelineEvent& event_of(int rank, std::size_t n) const {
    return events_[static_cast<std::size_t>(rank)].timeline.events[n];
  }

  void add_rank(int rank) {
    RankEvents& own = events_[static_cast<std::size_t>(rank)];
    const std::vector<TimelineEvent>& events = own.timeline.events;
    own.ends.reserve(events.size());
    std::vector<LastEnded> of_lane(own.timeline.lanes.size(), LastEnded(events));
    LastEnded of_all(events);
    for (std::size_t n = 0; n < events.size(); ++n) {
      const TimelineEvent& event = events[n];
      add_event(own, rank, n);
      const auto wait = [&](std::size_t on, Us delay) {
        graph_.wait(own.ends[n].begin,
                    {own.ends[on].end, TrafficDependency::Kind::completion, time_of(std::max<Us>(0, delay))});
      };
      LastEnded& lane = of_lane[event.lane];
      const auto in_lane = lane.before(event.begin_us), last = of_all.before(event.begin_us);
      const bool other = last && (!in_lane || events[*last].end_us > events[*in_lane].end_us + kRoundedUs);
      if (in_lane) wait(*in_lane, other ? 0 : event.begin_us - events[*in_lane].end_us);
      if (other) wait(*last, event.begin_us - events[*last].end_us);
      lane.add(n);
      of_all.add(n);
    }
  }

  void add_event(RankEvents& own, int rank, std::size_t n) {
    const TimelineEvent& event = own.timeline.events[n];
    const std::string where = fmt::format("{}: event {}", own.path, event.number);
    if (event.message && event.message->bytes <= kMostImportedBytes && add_message(own, rank, n, where))
      return;
    RankEvents::Ends ends;
    if (std::optional<CollectivePart> part = part_of(event)) {
      ends.begin = graph_.add(ranks_.point(rank), where);
      ends.end = graph_.add(ranks_.point(rank), where);
      ends.meets = true;
      part->begin = ends.begin;
      part->end = ends.end;
      part->where = where;
      part->tag = n;
      parts_.add(rank, std::move(*part));
    } else {
      if (event.communicates) ++unsized_;
      if (event.end_us - event.begin_us > kLongestUs)
        throw InputError(fmt::format("{}: takes {:g} us; allowed: {:g}", where, event.end_us - event.begin_us,
                                     kLongestUs));
      ends.begin = ends.end = graph_.add(ranks_.compute(rank, time_of(event.end_us - event.begin_us)), where);
    }
    own.ends.push_back(ends);
  }

  // What the event moves; nothing where it is no collective, or it is not told how much.
  std::optional<CollectivePart> part_of(const TimelineEvent& event) {
    CollectivePart part;
    part.name = event.name;
    if (event.collective) part.group = event.collective->group;
    for (const TimelineMessage& m : messages_) {
      if (!event.name.starts_with(m.prefix)) continue;
      part.kind = m.kind;
      part.input = m.bytes;
      part.power = m.kind == CollectiveKind::all_gather || m.kind == CollectiveKind::gather ? -1 : 0;
    }
    if (part.input == 0) {
      if (!event.collective) return std::nullopt;
      const TimelineCollective& told = *event.collective;
      part.kind = told.kind;
      if (told.input) {
        part.input = *told.input;
      } else if (told.counted) {
        part.input = *told.counted;
        part.power =
            told.kind == CollectiveKind::reduce_scatter || told.kind == CollectiveKind::all_to_all ? 1 : 0;
      } else if (told.sent && told.kind <= CollectiveKind::reduce_scatter) {
        part.input = *told.sent;
        part.sent = true;
        ++by_sent_;
      } else if (told.kind != CollectiveKind::barrier) {
        return std::nullopt;
      }
      if (part.input > kMostImportedBytes) return std::nullopt;
      if (told.uneven && !add_splits(told, part)) ++uneven_;
    }
    if (event.collective && !all_have_files(*event.collective)) {
      ++without_files_;
      return std::nullopt;
    }
    return part;
  }

  // Splits may count elements or rows of a tensor: what they are of the whole is what counts.
  bool add_splits(const TimelineCollective& told, CollectivePart& part) const {
    const auto members = told.group_size > 0 ? static_cast<std::size_t>(told.group_size) : ranks_.count();
    const auto sum = std::accumulate(told.splits.begin(), told.splits.end(), 0.0L);
    if (!told.input || told.splits.size() != members || (sum == 0) != (part.input == 0)) return false;
    for (const std::int64_t split : told.splits)
      part.parts.push_back(sum == 0 ? 0
                                    : std::llround(static_cast<long double>(part.input) *
                                                   static_cast<long double>(split) / sum));
    return true;
  }

  bool all_have_files(const TimelineCollective& told) const {
    return told.group_size <= static_cast<std::int64_t>(ranks_.count()) &&
           std::ranges::all_of(told.ranks,
                               [this](std::int64_t number) { return ranks_.rank_of(number).has_value(); });
  }

  void set_clocks(const std::vector<CollectiveParts::Met>& met, std::vector<std::string>& notes) {
    std::vector<std::vector<CollectiveEnd>> ends;
    for (const CollectiveParts::Met& one : met) {
      if (is_rooted(one.parts.front()->kind)) continue;
      std::vector<CollectiveEnd>& members = ends.emplace_back();
      for (std::size_t m = 0; m < one.members.size(); ++m) {
        const TimelineEvent& event = event_of(one.members[m], one.parts[m]->tag);
        // Of the difference to the first one's clock, whose digits a double holds.
        const Us first = event_of(one.members[0], one.parts[0]->tag).end_us;
        members.push_back({static_cast<std::size_t>(one.members[m]),
                           static_cast<double>(event.end_us - first),
                           static_cast<double>(event.end_us - event.begin_us)});
      }
    }
    clocks_ = clock_offsets(events_.size(), ends);
    for (std::size_t rank = 0; rank < events_.size(); ++rank) {
      if (std::abs(clocks_.ahead_us[rank]) >= 1)
        notes.push_back(fmt::format("the clock of rank {} is {:.1f} us ahead, by the ends of collectives",
                                    ranks_.number(static_cast<int>(rank)), clocks_.ahead_us[rank]));
    }
    if (clocks_.disagreeing != 0)
      notes.push_back(fmt::format(
          "{} pairs of ranks disagree on how far apart their collectives end: their clocks are not corrected",
          clocks_.disagreeing));
  }

  Us begin_of(std::size_t rank, std::size_t n) const {
    return events_[rank].timeline.events[n].begin_us - clocks_.ahead_us[rank];
  }

  void place_in_time() {
    std::optional<Us> origin;
    for (std::size_t rank = 0; rank < events_.size(); ++rank) {
      if (!events_[rank].timeline.events.empty())
        origin = std::min(origin.value_or(begin_of(rank, 0)), begin_of(rank, 0));
    }
    origin_us_ = origin.value_or(0);
    for (std::size_t rank = 0; rank < events_.size(); ++rank) {
      const RankEvents& own = events_[rank];
      for (std::size_t n = 0; n < own.ends.size(); ++n) {
        const TimelineEvent& event = own.timeline.events[n];
        const Us at = begin_of(rank, n) - origin_us_;
        if (at > kLongestUs)
          throw InputError(
              fmt::format("{}: event {}: begins {:g} us after the first event of all; allowed: "
                          "{:g}",
                          own.path, event.number, at, kLongestUs));
        const auto place = [this](std::uint64_t number, Us begin) {
          TrafficRecord& record = graph_.record(number);
          const Time duration = record.end - record.start;
          record.start = time_of(begin);
          record.end = record.start + duration;
        };
        place(own.ends[n].begin, at);
        if (own.ends[n].meets) place(own.ends[n].end, at + event.end_us - event.begin_us);
      }
    }
  }

  std::uint64_t total(std::uint64_t Timeline::*of) const {
    std::uint64_t sum = 0;
    for (const RankEvents& own : events_) sum += own.timeline.*of;
    return sum;
  }

  void note_overlap(std::vector<std::string>& notes) const {
    Overlap sum;
    for (const RankEvents& own : events_) {
      const Overlap overlap = overlap_of(own.timeline.events);
      sum.both += overlap.both;
      sum.second += overlap.second;
    }
    if (sum.second > 0)
      notes.push_back(
          fmt::format("recorded: {:.1f} us of communication, {:.1f} us of it beside other work "
                      "(all ranks)",
                      sum.second, sum.both));
  }

  std::vector<std::string> not_taken() const {
    std::vector<std::string> lines;
    if (const auto around = total(&Timeline::around_others); around != 0)
      lines.push_back(
          fmt::format("events that hold others of their stream, which count for them: {}", around));
    if (const auto open = total(&Timeline::unfinished); open != 0)
      lines.push_back(fmt::format("events that begin and do not end: {}", open));
    if (const auto open = total(&Timeline::asynchronous); open != 0)
      lines.push_back(fmt::format("asynchronous events, which are of no stream: {}", open));
    if (unsized_ != 0)
      lines.push_back(
          fmt::format("communication of unknown size or ranks, which takes its recorded time: {}", unsized_));
    if (uneven_ != 0)
      lines.push_back(
          fmt::format("parts of unequal size of a collective, which are taken as equal: {}", uneven_));
    if (without_files_ != 0)
      lines.push_back(
          fmt::format("collectives of ranks that have no file, counted above as well: {}", without_files_));
    return lines;
  }

  void note_collectives(const std::vector<CollectiveParts::Met>& met,
                        const std::vector<std::uint64_t>& numbers, ImportResult& result) const {
    for (std::size_t k = 0; k < met.size(); ++k) {
      for (std::size_t m = 0; m < met[k].members.size(); ++m) {
        const CollectivePart& part = *met[k].parts[m];
        const int rank = met[k].members[m];
        const TimelineEvent& event = event_of(rank, part.tag);
        const Us ahead = clocks_.ahead_us[static_cast<std::size_t>(rank)] + origin_us_;
        result.collectives.push_back({k, std::string(event.name), part.input, ranks_.number(rank),
                                      numbers[part.begin], numbers[part.end],
                                      static_cast<double>(event.begin_us - ahead),
                                      static_cast<double>(event.end_us - ahead)});
      }
    }
    std::size_t next = met.size();
    std::map<Pair, std::size_t> numbers_of;
    for (const Message& message : messages_met_) {
      const TimelineEvent& event = event_of(message.rank, message.event);
      const auto [number, fresh] = numbers_of.emplace(message.pair, next);
      if (fresh) ++next;
      const Us ahead = clocks_.ahead_us[static_cast<std::size_t>(message.rank)] + origin_us_;
      result.collectives.push_back({number->second, std::string(event.name), event.message->bytes,
                                    ranks_.number(message.rank), numbers[message.ends.begin],
                                    numbers[message.ends.end], static_cast<double>(event.begin_us - ahead),
                                    static_cast<double>(event.end_us - ahead)});
    }
    // What communicates and takes its recorded time, each for itself.
    for (std::size_t rank = 0; rank < events_.size(); ++rank) {
      const Us ahead = clocks_.ahead_us[rank] + origin_us_;
      for (std::size_t n = 0; n < events_[rank].ends.size(); ++n) {
        const TimelineEvent& event = events_[rank].timeline.events[n];
        const std::uint64_t record = numbers[events_[rank].ends[n].begin];
        if (!event.communicates || events_[rank].ends[n].meets) continue;
        result.collectives.push_back(
            {next++, std::string(event.name), 0, ranks_.number(static_cast<int>(rank)), record, record,
             static_cast<double>(event.begin_us - ahead), static_cast<double>(event.end_us - ahead)});
      }
    }
  }

  const ImportOptions& options_;
  const std::vector<TimelineMessage>& messages_;
  std::vector<RankEvents> events_;  // by rank
  ImportedRanks ranks_;
  CollectiveParts parts_;
  RecordGraph graph_;
  ClockOffsets clocks_;
  Us origin_us_ = 0;
  std::map<Channel, std::uint64_t> sends_, receives_, begun_, received_;
  std::map<Pair, std::uint64_t> sent_;  // their transfers
  std::vector<Message> messages_met_;
  std::uint64_t unsized_ = 0, without_files_ = 0, uneven_ = 0, by_sent_ = 0;
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
  RankFiles files = in_order_of_ranks(paths);
  std::map<std::int64_t, RankEvents> by_rank;
  std::vector<RankEvents> in_order;
  for (const std::string& path : files.paths) {
    RankEvents events{path, read_timeline(path), {}};
    in_order.push_back(std::move(events));
  }
  // Ranks that all files tell, each another one.
  std::string twice;
  for (std::size_t n = 0; n < in_order.size(); ++n) {
    const auto rank = in_order[n].timeline.rank;
    if (rank && *rank >= 0 && !by_rank.try_emplace(*rank).second && twice.empty())
      twice = fmt::format(
          "warning: {} and another file say that they are of rank {}: ranks are counted in the order of "
          "names",
          in_order[n].path, *rank);
  }
  if (by_rank.size() == in_order.size()) {
    for (RankEvents& events : in_order) by_rank[*events.timeline.rank] = std::move(events);
    in_order.clear();
    files.numbers.clear();
    for (auto& [rank, events] : by_rank) {
      files.numbers.push_back(rank);
      in_order.push_back(std::move(events));
    }
  }
  ImportResult result =
      TimelineImport(std::move(in_order), std::move(files.numbers), messages, options).write(sink);
  if (!twice.empty()) result.notes.insert(result.notes.begin(), twice);
  return result;
}

}  // namespace cm384::traces
