#include <fmt/format.h>

#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/text/error.h"
#include "traces/import.h"
#include "traces/importers/imported_ranks.h"
#include "traces/importers/words.h"

namespace cm384::traces {
namespace {

constexpr std::int64_t kMostGoalRanks = 65'535, kMostGoalNs = std::int64_t{1} << 50;
constexpr int kGoalTurns = 15;

class GoalImport {
 public:
  GoalImport(const std::string& path, const ImportOptions& options) : lines_(path, true) {
    if (!lines_.next() || lines_.words()[0] != "num_ranks") lines_.fail("header: allowed: num_ranks N");
    std::vector<std::int64_t> numbers(
        static_cast<std::size_t>(lines_.integer(1, "num_ranks", 1, kMostGoalRanks)));
    std::iota(numbers.begin(), numbers.end(), 0);
    ranks_.emplace(std::move(numbers), path, options);
    while (lines_.next()) line();
    if (rank_ >= 0) lines_.fail("line: the file ends within a rank");
    if (graph_.size() == 0) lines_.fail("line: no operation");
  }

  ImportResult write(TrafficSink& sink) {
    std::uint64_t lonely = 0;
    for (auto& [channel, receives] : receives_) {
      auto& sends = sends_[channel];
      for (const Message& receive : receives) {
        if (sends.empty())
          throw InputError(fmt::format("{}: recv: rank {} sends rank {} no such message with tag {}",
                                       receive.where, std::get<0>(channel), std::get<1>(channel),
                                       std::get<2>(channel)));
        if (sends.front().bytes != receive.bytes)
          throw InputError(fmt::format("{}: recv: {} B, but {} B are sent ({})", receive.where, receive.bytes,
                                       sends.front().bytes, sends.front().where));
        graph_.wait(receive.record, {sends.front().record, TrafficDependency::Kind::arrival, {}});
        sends.pop_front();
      }
    }
    for (const auto& [channel, sends] : sends_) lonely += sends.size();
    ImportResult result = ranks_->write(graph_, sink);
    if (still_ != 0)
      result.notes.push_back(
          fmt::format("sends of 0 B or to the sender itself, which move nothing: {}", still_));
    if (beyond_ != 0)
      result.notes.push_back(fmt::format("calculations of a cpu from {} on, which share the turns of one: {}",
                                         kGoalTurns - 1, beyond_));
    if (lonely != 0)
      result.not_taken.push_back(
          fmt::format("sends that no rank receives, which nobody waits for: {}", lonely));
    return result;
  }

 private:
  using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // source, destination, tag
  struct Message {
    std::uint64_t record = 0;
    std::int64_t bytes = 0;
    std::string where;
  };
  struct Operation {
    std::uint64_t begin = 0, end = 0;
  };
  struct Requirement {
    std::string later, earlier;
    bool begin = false;  // of the earlier one is what counts
    std::string where;
  };

  void line() {
    const auto& words = lines_.words();
    if (words[0].starts_with('#')) return;
    if (words[0] == "rank") {
      if (rank_ >= 0) lines_.fail("rank: within another one");
      rank_ = static_cast<int>(lines_.integer(1, "rank", 0, static_cast<std::int64_t>(ranks_->count()) - 1));
      open_ = words.size() > 2;
      if (open_ && words[2] != "{") lines_.fail("rank: allowed: rank N {");
    } else if (rank_ >= 0 && !open_) {
      if (words[0] != "{") lines_.fail("rank: allowed: rank N {");
      open_ = true;
    } else if (rank_ < 0) {
      lines_.fail(fmt::format("line: '{}'; allowed: rank N {{", words[0].substr(0, 60)));
    } else if (words[0] == "}") {
      for (const Requirement& one : requirements_) require(one);
      requirements_.clear();
      labels_.clear();
      rank_ = -1;
    } else if (words.size() >= 3 && (words[1] == "requires" || words[1] == "irequires")) {
      requirements_.push_back(
          {std::string(words[0]), std::string(words[2]), words[1] == "irequires", lines_.where()});
    } else {
      operation();
    }
  }

  // At the end of a rank: its lines may stand in any order.
  void require(const Requirement& one) {
    const auto labelled = [&](const std::string& label) {
      const auto found = labels_.find(label);
      if (found == labels_.end())
        throw InputError(fmt::format("{}: '{}': no such label; allowed: labels of the rank", one.where,
                                     label.substr(0, 60)));
      return found->second;
    };
    const Operation later = labelled(one.later), earlier = labelled(one.earlier);
    graph_.wait(later.begin,
                {one.begin ? earlier.begin : earlier.end, TrafficDependency::Kind::completion, {}});
  }

  // l1: calc 100 cpu 0 | l2: send 10b to 1 tag 7 | l3: recv 10b from 1 tag 7
  void operation() {
    const auto& words = lines_.words();
    std::size_t at = words[0].ends_with(':') ? 1 : 0;
    const std::string_view kind = lines_.word(at, "operation");
    const bool sends = kind == "send", receives = kind == "recv";
    if (kind != "calc" && !sends && !receives)
      lines_.fail(fmt::format("'{}'; allowed: calc, send, recv", kind.substr(0, 60)));
    std::string_view amount = lines_.word(at + 1, kind);
    if (kind != "calc" && amount.ends_with('b')) amount.remove_suffix(1);
    const std::int64_t size =
        lines_.integer_of(amount, kind, 0, kind == "calc" ? kMostGoalNs : kMostImportedBytes);
    std::map<std::string_view, std::int64_t> options;
    for (at += 2; at < words.size(); at += 2) {
      const std::string_view name = words[at];
      const bool peer = name == (sends ? "to" : "from") && kind != "calc";
      if (!peer && name != "cpu" && (kind == "calc" || (name != "tag" && name != "nic")))
        lines_.fail(
            fmt::format("'{}'; allowed: to, from, tag, cpu, nic, where they belong", name.substr(0, 60)));
      options[name] =
          lines_.integer(at + 1, name, 0, peer ? static_cast<std::int64_t>(ranks_->count()) - 1 : INT32_MAX);
    }
    // What requires its begin alone waits for a point of its own.
    const std::uint64_t begin = graph_.add(ranks_->point(rank_), lines_.where());
    std::uint64_t end = begin;
    if (kind == "calc") {
      const auto turn = static_cast<int>(std::min<std::int64_t>(1 + options["cpu"], kGoalTurns));
      if (options["cpu"] >= kGoalTurns) ++beyond_;
      end = graph_.add(ranks_->compute(rank_, Time{size * 1000}, turn), lines_.where());
    } else {
      const auto peer = options.find(sends ? "to" : "from");
      if (peer == options.end()) lines_.fail(fmt::format("{}: is missing", sends ? "to" : "from"));
      const bool moves = sends && size > 0 && peer->second != rank_;
      if (sends && !moves) ++still_;
      end = graph_.add(
          moves ? ranks_->transfer(rank_, static_cast<int>(peer->second), size) : ranks_->point(rank_),
          lines_.where());
      const std::int64_t source = sends ? rank_ : peer->second, target = sends ? peer->second : rank_;
      (sends ? sends_ : receives_)[{source, target, options["tag"]}].push_back({end, size, lines_.where()});
    }
    graph_.wait(end, {begin, TrafficDependency::Kind::completion, {}});
    if (!words[0].ends_with(':')) return;
    if (!labels_.emplace(std::string(words[0].substr(0, words[0].size() - 1)), Operation{begin, end}).second)
      lines_.fail(fmt::format("'{}': the rank has it twice", words[0].substr(0, 60)));
  }

  WordLines lines_;
  std::optional<ImportedRanks> ranks_;
  RecordGraph graph_;
  int rank_ = -1;      // whose operations are read; -1: none's
  bool open_ = false;  // its brace has been read
  std::uint64_t still_ = 0, beyond_ = 0;
  std::vector<Requirement> requirements_;
  std::map<std::string, Operation> labels_;
  std::map<Channel, std::deque<Message>> sends_, receives_;
};

}  // namespace

ImportResult import_goal(const std::string& path, const ImportOptions& options, TrafficSink& sink) {
  return GoalImport(path, options).write(sink);
}

}  // namespace cm384::traces
