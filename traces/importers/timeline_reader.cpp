#include "traces/importers/timeline_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "base/text/unpacked_input.h"
#include "traces/importers/collective_parts.h"

namespace cm384::traces {
namespace {

using ForeignJson = nlohmann::json;

constexpr TimelineUs kMostTimestampUs = 1e16, kNotEnded = -3e16;
constexpr std::size_t kMostLanes = 1u << 16;
constexpr std::size_t kMostText = 1u << 16;  // of a list that stands as one field

// Fields of an event as text: its own by their names, those of `args` with "args." before them.
class EventFields {
 public:
  void clear() { all_.clear(); }
  void set(const std::string& name, std::string text, bool is_text) {
    all_[name] = {std::move(text), is_text};
  }
  void append(const std::string& name, const std::string& text) {
    std::string& all = all_[name].first;
    if (all.size() < kMostText) all += (all.empty() ? "" : ",") + text;
  }
  bool has(const std::string& name) const { return all_.contains(name); }
  std::string text(const std::string& name) const {
    const auto found = all_.find(name);
    return found == all_.end() ? "" : found->second.first;
  }
  bool is_text(const std::string& name) const {
    const auto found = all_.find(name);
    return found != all_.end() && found->second.second;
  }

 private:
  std::map<std::string, std::pair<std::string, bool>> all_;
};

std::string lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return all;
}

bool is_device_category(const std::string& category) {
  const std::string plain = lower(category);
  return plain == "kernel" || plain == "gpu_memcpy" || plain == "gpu_memset" || plain == "memcpy" ||
         plain == "memset";
}

// Of "[0, 1, 2]"; empty where anything else stands there, such as a list cut short.
std::vector<std::int64_t> numbers_of(std::string_view text) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return {};
    text = text.substr(1, text.size() - 2);
  }
  std::vector<std::int64_t> ranks;
  for (const std::string_view part : split_fields(text)) {
    const auto rank = hw::number_of<std::int64_t>(part);
    if (!rank || *rank < 0) return {};
    ranks.push_back(*rank);
  }
  return ranks;
}

std::vector<std::int64_t> ranks_of(std::string_view text) {
  std::vector<std::int64_t> ranks = numbers_of(text);
  std::ranges::sort(ranks);
  return ranks;
}

template <class Told>
std::shared_ptr<const Told> kept(std::optional<Told> told) {
  return told ? std::make_shared<const Told>(std::move(*told)) : nullptr;
}

bool names_communication(std::string_view name) {
  const std::string plain = lower(name);
  return plain.starts_with("nccl") || plain.starts_with("hcom_") || plain.starts_with("hccl");
}

// "hcom_allReduce__474_5_1": the group is 474, behind it stand two more numbers.
std::string group_of_hcom(const std::string& name) {
  const std::size_t begin = name.find("__");
  if (!lower(name).starts_with("hcom_") || begin == std::string::npos) return "";
  const auto parts = split_fields(std::string_view(name).substr(begin + 2), '_');
  return parts.size() >= 3 ? std::string(parts[0]) : "";
}

// Ranks may have groups of their own under one name: those that are told belong to it.
std::string group_of(const EventFields& fields) {
  const std::string name = fields.text("args.Process Group Name");
  const auto ranks = ranks_of(fields.text("args.Process Group Ranks"));
  return ranks.empty() ? name : fmt::format("{} [{}]", name, fmt::join(ranks, ", "));
}

std::optional<std::int64_t> bytes_of(const EventFields& fields, const char* count, const char* type) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const auto elements = hw::number_of<std::int64_t>(fields.text(std::string("args.") + count));
  const std::int64_t size = bytes_of_element(fields.text(std::string("args.") + type));
  if (!elements || *elements < 0 || *elements > kMost || size == 0) return std::nullopt;
  return *elements * size;
}

std::optional<TimelineCollective> collective_of(const std::string& name, const EventFields& fields) {
  const std::string told = fields.text("args.Collective name");
  const auto kind = collective_named(told.empty() ? name : told);
  if (!kind || (told.empty() && !names_communication(name))) return std::nullopt;
  TimelineCollective collective;
  collective.kind = *kind;
  const auto integer = [&](const char* field) {
    return hw::number_of<std::int64_t>(fields.text(std::string("args.") + field));
  };
  collective.ranks = ranks_of(fields.text("args.Process Group Ranks"));
  collective.group = group_of(fields);
  if (collective.group.empty()) collective.group = group_of_hcom(name);
  collective.group_size = integer("Group size").value_or(static_cast<std::int64_t>(collective.ranks.size()));
  collective.input = bytes_of(fields, "In msg nelems", "dtype");
  collective.counted = bytes_of(fields, "count", "data_type");
  // Counts of an alltoallv stand in memory, and 0 in their place.
  if (collective.kind == CollectiveKind::all_to_all && collective.counted == 0) collective.counted.reset();
  const std::string splits = fields.text("args.In split size");
  collective.uneven = !splits.empty() && splits != "[]";
  if (collective.kind == CollectiveKind::all_to_all) collective.splits = numbers_of(splits);
  return collective;
}

std::optional<TimelineSend> message_of(const EventFields& fields) {
  const std::string told = lower(fields.text("args.Collective name"));
  if (told != "send" && told != "recv") return std::nullopt;
  TimelineSend message;
  message.receives = told == "recv";
  const auto other =
      hw::number_of<std::int64_t>(fields.text(message.receives ? "args.Src Rank" : "args.Dst Rank"));
  const auto bytes = bytes_of(fields, message.receives ? "Out msg nelems" : "In msg nelems", "dtype");
  if (!other || *other < 0 || !bytes) return std::nullopt;
  message.other = *other;
  message.bytes = *bytes;
  message.group = group_of(fields);
  return message;
}

// Hardware tasks of Ascend's profiler that do not compute: waits and the parts of a collective.
bool is_plumbing(const EventFields& fields) {
  const std::string type = lower(fields.text("args.Task Type"));
  for (const char* word : {"notify", "event", "sdma", "communication", "hccl", "place_holder", "wait"}) {
    if (type.find(word) != std::string::npos) return true;
  }
  return false;
}

// Takes a Chrome trace event by event.
class EventWalk final : public nlohmann::json_sax<ForeignJson> {
 public:
  using Take = std::function<void(const EventFields& event, std::uint64_t number)>;
  EventWalk(const std::string& path, Take take) : path_(path), take_(std::move(take)) {
    const auto stream = open_unpacked(path);
    ForeignJson::sax_parse(*stream, this);
    if (!found_list_)
      throw InputError(fmt::format("{}: not a list of events; allowed: a Chrome trace", path));
  }
  std::optional<std::int64_t> rank() const { return rank_; }  // of distributedInfo
  TimelineUs base_us() const { return base_us_; }             // that times of events count from

  bool null() override { return scalar("null", false); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false", false); }
  bool number_integer(number_integer_t value) override { return scalar(std::to_string(value), false); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(std::to_string(value), false); }
  bool number_float(number_float_t, const string_t& text) override { return scalar(text, false); }
  bool string(string_t& value) override { return scalar(value, true); }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& value) override {
    if (!root_is_list_ && depth_ == 1) section_ = value;
    if (level() == 1 || (!root_is_list_ && depth_ == 2)) field_ = value;
    if (level() == 2) argument_ = value;
    return true;
  }
  bool start_object(std::size_t) override {
    if (level() == 0) fields_.clear();
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (level() == 0) take_(fields_, number_++);
    return true;
  }
  bool start_array(std::size_t) override {
    if (level() == 0) not_an_object();
    if (depth_ == 0) root_is_list_ = found_list_ = true;
    if (depth_ == 1 && !root_is_list_ && section_ == "traceEvents") found_list_ = true;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const ForeignJson::exception& error) override {
    // Of a list the format lets the last bracket be missing, as it is where a program ended early.
    const bool ends =
        std::string_view(error.what()).find("unexpected end of input") != std::string_view::npos;
    if (root_is_list_ && depth_ == 1 && ends) return false;
    throw InputError(
        fmt::format("{}: offset {}: no JSON; allowed: a Chrome trace, a list of events or an "
                    "object with traceEvents",
                    path_, position == 0 ? 0 : position - 1));
  }

 private:
  // 0: in the list of events; 1: in an event; 2: in its arguments or another of its fields. -1: elsewhere.
  int level() const {
    if (root_is_list_) return depth_ - 1;
    return found_list_ && section_ == "traceEvents" && depth_ >= 2 ? depth_ - 2 : -1;
  }
  [[noreturn]] void not_an_object() const {
    throw InputError(fmt::format("{}: event {}: allowed: an object", path_, number_));
  }
  bool scalar(const std::string& text, bool is_text) {
    if (level() == 0) not_an_object();
    if (level() == 1) fields_.set(field_, text, is_text);
    if (level() == 2 && field_ == "args") fields_.set("args." + argument_, text, is_text);
    if (level() == 3 && field_ == "args") fields_.append("args." + argument_, text);
    if (level() < 0 && depth_ == 2 && section_ == "distributedInfo" && field_ == "rank")
      rank_ = hw::number_of<std::int64_t>(text);
    if (!root_is_list_ && depth_ == 1 && section_ == "baseTimeNanoseconds")
      base_us_ = static_cast<TimelineUs>(hw::number_of<std::int64_t>(text).value_or(0)) / 1000;
    return true;
  }

  std::string path_;
  Take take_;
  int depth_ = 0;
  bool root_is_list_ = false, found_list_ = false;
  std::string section_, field_, argument_;  // keys under way
  EventFields fields_;
  std::uint64_t number_ = 0;
  std::optional<std::int64_t> rank_;
  TimelineUs base_us_ = 0;
};

// Which events are of the device, which takes all of the file to tell.
class Choice {
 public:
  explicit Choice(const std::string& path) {
    const EventWalk walk(path, [this](const EventFields& event, std::uint64_t) { look_at(event); });
    rank_ = walk.rank();
    for (const auto& [process, name] : processes_) {
      const std::string plain = lower(name);
      if (plain.find("ascend hardware") != std::string::npos) hardware_.insert(process);
      if (plain.starts_with("hccl") || plain.starts_with("communication")) communication_.insert(process);
    }
  }

  bool selects(const EventFields& event) const {
    if (kernels_ != 0) return is_device_category(event.text("cat"));
    if (hardware_.empty() && communication_.empty()) return true;
    const std::string process = event.text("pid");
    // Operators alone: planes and tasks are their parts.
    if (communication_.contains(process)) return names_communication(event.text("name"));
    return hardware_.contains(process) && !is_plumbing(event) &&
           (communication_.empty() || !names_communication(event.text("name")));
  }
  std::string text() const {
    if (kernels_ != 0) return "kernels and copies, by their category";
    if (hardware_.empty() && communication_.empty()) return "all, since none says that it ran on a device";
    return "of the processes for hardware and communication";
  }
  std::string lane(const EventFields& event) const {
    const std::string key = event.text("pid") + "/" + event.text("tid");
    const auto name = threads_.find(key);
    return name == threads_.end() ? key : fmt::format("{} ({})", key, name->second);
  }
  std::optional<std::int64_t> rank() const { return rank_; }
  // How many are taken, where that is known before.
  std::uint64_t count() const { return kernels_; }

 private:
  void look_at(const EventFields& event) {
    const std::string phase = event.text("ph");
    if (phase == "M") {
      if (processes_.size() + threads_.size() > kMostLanes) return;
      if (event.text("name") == "process_name") processes_[event.text("pid")] = event.text("args.name");
      if (event.text("name") == "thread_name")
        threads_[event.text("pid") + "/" + event.text("tid")] = event.text("args.name");
    } else if (phase == "X" || phase == "B") {
      kernels_ += is_device_category(event.text("cat")) ? 1 : 0;
    }
  }

  std::uint64_t kernels_ = 0;
  std::map<std::string, std::string> processes_, threads_;
  std::set<std::string> hardware_, communication_;
  std::optional<std::int64_t> rank_;
};

class Collection {
 public:
  Collection(const std::string& path, const Choice& choice) : path_(path), choice_(choice) {
    timeline_.events.reserve(choice.count());
    const EventWalk walk(
        path, [this](const EventFields& event, std::uint64_t number) { add_event(event, number); });
    base_us_ = walk.base_us();
  }

  Timeline finish() {
    if (timeline_.events.empty() && timeline_.left_out == 0)
      throw InputError(fmt::format("{}: no events with \"ph\": \"X\"", path_));
    for (auto& [lane, marks] : marks_) end_begun(marks);
    timeline_.unfinished =
        std::erase_if(timeline_.events, [](const TimelineEvent& event) { return event.end_us == kNotEnded; });
    for (TimelineEvent& event : timeline_.events) {
      event.begin_us += base_us_;
      event.end_us += base_us_;
    }
    drop_enclosing_events();
    std::ranges::stable_sort(timeline_.events, {}, &TimelineEvent::begin_us);
    timeline_.rank = choice_.rank();
    timeline_.chosen = choice_.text();
    return std::move(timeline_);
  }

 private:
  // The vendor's profiler writes times as text, so that no digit is lost.
  TimelineUs microseconds(const EventFields& event, const char* name, std::uint64_t number) const {
    const std::string text = event.text(name);
    const auto found = hw::number_of<TimelineUs>(text);
    const TimelineUs least = std::string_view(name) == "ts" ? -kMostTimestampUs : 0;
    if (!found || !(*found >= least && *found <= kMostTimestampUs))
      throw InputError(fmt::format("{}: event {}: {}: {}; allowed: microseconds from {:g} to {:g}", path_,
                                   number, name,
                                   !event.has(name)      ? "null"
                                   : event.is_text(name) ? fmt::format("\"{}\"", text.substr(0, 40))
                                                         : text.substr(0, 40),
                                   least, kMostTimestampUs));
    return *found;
  }

  void add_event(const EventFields& fields, std::uint64_t number) {
    const std::string phase = fields.text("ph");
    if (phase == "b" || phase == "S") {
      ++(choice_.selects(fields) ? timeline_.asynchronous : timeline_.left_out);
      return;
    }
    if (phase != "X" && phase != "B" && phase != "E") return;
    const std::string lane = choice_.lane(fields);
    if (phase == "E") {
      marks_[lane].push_back({microseconds(fields, "ts", number), kEnds});
      return;
    }
    const bool taken = choice_.selects(fields);
    if (phase == "B")
      marks_[lane].push_back(
          {microseconds(fields, "ts", number), taken ? timeline_.events.size() : kLeftOut});
    if (!taken) {
      ++timeline_.left_out;
      return;
    }
    if (!fields.is_text("name"))
      throw InputError(fmt::format("{}: event {}: name: allowed: a text", path_, number));
    TimelineEvent event;
    event.name = *timeline_.names->insert(fields.text("name")).first;
    event.number = number;
    event.begin_us = microseconds(fields, "ts", number);
    event.end_us = phase == "B" ? kNotEnded : event.begin_us + microseconds(fields, "dur", number);
    const auto [at, fresh] = lanes_.emplace(lane, static_cast<std::uint32_t>(lanes_.size()));
    if (fresh) timeline_.lanes.push_back(lane);
    if (lanes_.size() > kMostLanes)
      throw InputError(fmt::format("{}: event {}: more than {} threads", path_, number, kMostLanes));
    event.lane = at->second;
    event.collective = kept(collective_of(fields.text("name"), fields));
    event.message = kept(message_of(fields));
    event.communicates =
        event.collective != nullptr || event.message != nullptr || names_communication(event.name);
    timeline_.events.push_back(std::move(event));
  }

  // A "B" or an "E".
  struct Mark {
    TimelineUs at_us = 0;
    std::size_t event = 0;  // or one of these
  };
  static constexpr std::size_t kLeftOut = ~std::size_t{0}, kEnds = kLeftOut - 1;

  // An "E" ends what began last in its lane. The format lets events stand in any order; those of one time
  // are in that of the file.
  void end_begun(std::vector<Mark>& marks) {
    std::ranges::stable_sort(marks, {}, &Mark::at_us);
    std::vector<std::size_t> begun;
    for (const Mark& mark : marks) {
      if (mark.event != kEnds) {
        begun.push_back(mark.event);
      } else if (!begun.empty()) {
        if (begun.back() != kLeftOut) timeline_.events[begun.back()].end_us = mark.at_us;
        begun.pop_back();
      }
    }
  }

  // Of a lane: what holds others, such as a profiler's step, is no work beside them.
  void drop_enclosing_events() {
    std::vector<TimelineEvent>& events = timeline_.events;
    std::vector<std::size_t> order(events.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // The outer one first.
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::tuple(events[a].lane, events[a].begin_us, -events[a].end_us) <
             std::tuple(events[b].lane, events[b].begin_us, -events[b].end_us);
    });
    std::vector<bool> around(events.size());
    std::vector<std::size_t> open;
    for (const std::size_t n : order) {
      const TimelineEvent& event = events[n];
      while (!open.empty() &&
             (events[open.back()].lane != event.lane || events[open.back()].end_us <= event.begin_us))
        open.pop_back();
      const bool lasts = event.end_us > event.begin_us;
      for (const std::size_t outer : open) {
        if (lasts && events[outer].end_us >= event.end_us) around[outer] = true;
      }
      // What is known to hold others is of no more interest than what it holds.
      std::erase_if(open, [&](std::size_t outer) { return around[outer]; });
      open.push_back(n);
    }
    std::size_t kept = 0;
    for (std::size_t n = 0; n < events.size(); ++n) {
      if (around[n]) {
        ++timeline_.around_others;
      } else {
        if (kept != n) events[kept] = std::move(events[n]);
        ++kept;
      }
    }
    events.resize(kept);
  }

  std::string path_;
  const Choice& choice_;
  Timeline timeline_;
  TimelineUs base_us_ = 0;
  std::map<std::string, std::uint32_t> lanes_;
  std::map<std::string, std::vector<Mark>> marks_;  // by lane
};

// Fields of a line, of which some stand in quotes and hold commas.
std::vector<std::string> quoted_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t n = 0; n < line.size(); ++n) {
    const char c = line[n];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back().push_back(c);
    }
  }
  return fields;
}

Timeline read_kernel_details(const std::string& path) {
  LineReader lines(path);
  std::string line;
  if (!lines.next(line)) lines.fail("header: the file is empty");
  const std::vector<std::string> names = quoted_fields(line);
  // As kernel_details.csv has them, or op_summary.csv.
  const auto column = [&](std::string_view detailed, std::string_view summed) {
    const auto found = std::ranges::find(names, detailed);
    return static_cast<std::size_t>((found != names.end() ? found : std::ranges::find(names, summed)) -
                                    names.begin());
  };
  const std::size_t name = column("Name", "Op Name"), begin = column("Start Time(us)", "Task Start Time(us)"),
                    duration = column("Duration(us)", "Task Duration(us)"),
                    stream = column("Stream ID", "Stream Id"), core = column("Accelerator Core", "Task Type");
  if (name == names.size() || begin == names.size() || duration == names.size())
    lines.fail(
        "header: allowed: that of a kernel_details.csv, with Name, Start Time(us), Duration(us), or of an "
        "op_summary.csv");
  Timeline timeline;
  timeline.chosen = "all kernels of a table";
  std::map<std::string, std::uint32_t> lanes;
  while (lines.next(line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::vector<std::string> fields = quoted_fields(line);
    if (fields.size() != names.size())
      lines.fail(fmt::format("line: {} fields; allowed: {}", fields.size(), names.size()));
    const auto us = [&](std::size_t at) {
      std::string_view text = fields[at];
      while (text.ends_with('\t') || text.ends_with(' ')) text.remove_suffix(1);
      const auto value = hw::number_of<TimelineUs>(text);
      if (!value || !(*value >= 0 && *value <= kMostTimestampUs))
        lines.fail(fmt::format("{}: '{}'; allowed: microseconds", names[at], text.substr(0, 40)));
      return *value;
    };
    TimelineEvent event;
    event.name = *timeline.names->insert(fields[name]).first;
    event.begin_us = us(begin);
    event.end_us = event.begin_us + us(duration);
    event.number = lines.number();
    // Without streams: communication beside the rest.
    const std::string unit = core == names.size() ? "" : lower(fields[core]);
    event.communicates = names_communication(event.name) || unit == "hccl" || unit == "communication";
    const std::string lane =
        stream == names.size() ? (event.communicates ? "communication" : "kernels") : fields[stream];
    const auto [at, fresh] = lanes.emplace(lane, static_cast<std::uint32_t>(lanes.size()));
    if (fresh) timeline.lanes.push_back(lane);
    if (lanes.size() > kMostLanes) lines.fail(fmt::format("line: more than {} streams", kMostLanes));
    event.lane = at->second;
    event.collective = kept(collective_of(fields[name], {}));
    timeline.events.push_back(std::move(event));
  }
  if (timeline.events.empty()) lines.fail("line: no kernel");
  std::ranges::stable_sort(timeline.events, {}, &TimelineEvent::begin_us);
  return timeline;
}

// {"step3": {"collective": {"hcom_allReduce__474_0_1@GROUP": {"Communication Time Info": {..}, "Communication
// Bandwidth Info": {"SDMA": {"Transit Size(MB)": ..}, ..}}}, "p2p": {..}}}
class CommunicationTable {
 public:
  explicit CommunicationTable(const std::string& path) : path_(path) {
    const auto keep = [](int, ForeignJson::parse_event_t event, ForeignJson& parsed) {
      return event != ForeignJson::parse_event_t::key || parsed != "Size Distribution";
    };
    const auto stream = open_unpacked(path);
    const ForeignJson document = ForeignJson::parse(*stream, keep, false);
    if (!document.is_object())
      throw InputError(fmt::format("{}: no JSON; allowed: a communication.json", path));
    timeline_.chosen = "all of a table of communication, a stream per group";
    for (const auto& [step, kinds] : document.items()) {
      if (!kinds.is_object()) continue;
      for (const auto& [kind, operations] : kinds.items()) {
        if (!operations.is_object()) continue;
        for (const auto& [name, operation] : operations.items()) {
          if (name != "Total Op Info") add(step, name, operation);
        }
      }
    }
    if (timeline_.events.empty()) throw InputError(fmt::format("{}: no communication", path));
    std::ranges::stable_sort(timeline_.events, {}, &TimelineEvent::begin_us);
  }
  Timeline release() { return std::move(timeline_); }

 private:
  double number(const std::string& place, const ForeignJson& of, const char* field) const {
    const auto found = of.is_object() ? of.find(field) : of.end();
    const bool good = of.is_object() && found != of.end() && found->is_number() &&
                      found->get<double>() >= 0 &&
                      found->get<double>() <= static_cast<double>(kMostTimestampUs);
    if (!good) throw InputError(fmt::format("{}: {}: {}: allowed: a number from 0", path_, place, field));
    return found->get<double>();
  }

  void add(const std::string& step, const std::string& full_name, const ForeignJson& operation) {
    const std::string place = fmt::format("{}: {}", step, full_name.substr(0, 80));
    const auto part = [&](const char* name) -> const ForeignJson& {
      static const ForeignJson kNone;
      const auto found = operation.is_object() ? operation.find(name) : operation.end();
      return operation.is_object() && found != operation.end() ? *found : kNone;
    };
    const ForeignJson& times = part("Communication Time Info");
    TimelineEvent event;
    const std::size_t at = full_name.find('@');
    event.name = *timeline_.names->insert(full_name.substr(0, at)).first;
    event.number = ++number_;
    event.begin_us = number(place, times, "Start Timestamp(us)");
    event.end_us = event.begin_us + 1000 * static_cast<TimelineUs>(number(place, times, "Elapse Time(ms)"));
    event.communicates = true;
    const std::string group = at == std::string::npos ? group_of_hcom(full_name) : full_name.substr(at + 1);
    const auto [lane, fresh] = lanes_.emplace(group, static_cast<std::uint32_t>(lanes_.size()));
    if (fresh) timeline_.lanes.push_back(group);
    if (lanes_.size() > kMostLanes)
      throw InputError(fmt::format("{}: more than {} groups", path_, kMostLanes));
    event.lane = lane->second;
    if (const auto kind = collective_named(event.name)) {
      TimelineCollective told;
      told.kind = *kind;
      told.group = group;
      const double bytes = 1e6 * transit_mb(place, part("Communication Bandwidth Info"));
      if (bytes > 0 && bytes < 1e15) told.sent = std::llround(bytes);
      event.collective = std::make_shared<const TimelineCollective>(std::move(told));
    }
    timeline_.events.push_back(std::move(event));
  }

  // SDMA is HCCS, PCIE and SIO together.
  double transit_mb(const std::string& place, const ForeignJson& media) const {
    if (!media.is_object()) return 0;
    double sum = 0;
    for (const char* medium : {"RDMA", "SDMA", "HCCS", "PCIE", "SIO"}) {
      const bool part = std::string_view(medium) != "RDMA" && std::string_view(medium) != "SDMA";
      if (!media.contains(medium) || (part && media.contains("SDMA"))) continue;
      sum += number(place, media[medium], "Transit Size(MB)");
    }
    return sum;
  }

  std::string path_;
  Timeline timeline_;
  std::map<std::string, std::uint32_t> lanes_;
  std::uint64_t number_ = 0;
};

bool is_communication_table(const std::string& path) {
  const auto stream = open_unpacked(path);
  std::string head(4096, '\0');
  stream->read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find("\"Communication Time Info\"") != std::string::npos ||
         head.find("\"Communication Bandwidth Info\"") != std::string::npos;
}

}  // namespace

Timeline read_timeline(const std::string& path) {
  if (without_gz(path).ends_with(".csv")) return read_kernel_details(path);
  if (is_communication_table(path)) return CommunicationTable(path).release();
  const Choice choice(path);
  return Collection(path, choice).finish();
}

}  // namespace cm384::traces
