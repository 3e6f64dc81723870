#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "traces/import.h"
#include "traces/importers/collective_parts.h"
#include "traces/importers/imported_ranks.h"

namespace cm384::traces {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 50, kMostLocalRank = 65'535;
// Of ncclDataType_t, by its numbers: int8, uint8, int32, uint32, int64, uint64, float16, float32, float64,
// bfloat16, float8 twice.
constexpr std::array<std::int64_t, 12> kNcclBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr std::string_view kNcclMark = "NCCL INFO ", kHcclMark = "Entry-Hccl";

struct LoggedCall {
  enum class What { collective, send, receive } what = What::collective;
  CollectiveKind kind{};
  std::int64_t bytes = 0;
  int power = 0;  // CollectivePart
  std::string group;
  std::int64_t root = -1;         // or the other rank of a message: in the group
  std::string stream, operation;  // messages of one operation begin together
  std::string where;
};

// One rank.
struct LoggedProcess {
  std::string name;
  std::vector<LoggedCall> calls;
  std::map<std::string, std::int64_t> place;    // its rank in each group
  std::map<std::string, std::string> group_of;  // NCCL: by the communicator's address
  std::map<std::string, std::int64_t> size;     // of its groups, where it is told
};

// "count 1024 datatype 7": the word behind a word.
std::string word_behind(std::string_view line, std::string_view name) {
  for (std::size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at != 0 && line[at - 1] != ' ') || end >= line.size() || line[end] != ' ') continue;
    const std::size_t begin = line.find_first_not_of(' ', end);
    if (begin == std::string_view::npos) return "";
    return std::string(line.substr(begin, line.find_first_of(" \r", begin) - begin));
  }
  return "";
}

// "count[1024], dataType[float32]": what stands in brackets behind a word.
std::string in_brackets(std::string_view line, std::string_view name) {
  for (std::size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool alone = at == 0 || line[at - 1] == ' ' || line[at - 1] == ':' || line[at - 1] == ',';
    if (!alone || end >= line.size() || line[end] != '[') continue;
    const std::size_t close = line.find(']', end);
    if (close == std::string_view::npos) return "";
    return std::string(line.substr(end + 1, close - end - 1));
  }
  return "";
}

class LogReader {
 public:
  explicit LogReader(const std::string& path) : path_(path), lines_(path) {
    bool known = false;
    for (std::string line; lines_.next(line);) {
      const std::string_view text(line);
      known = known || text.find(kNcclMark) != std::string_view::npos ||
              text.find(kHcclMark) != std::string_view::npos;
      if (const std::size_t nccl = text.find(kNcclMark); nccl != std::string_view::npos) {
        read_nccl(text.substr(0, nccl), text.substr(nccl + kNcclMark.size()));
      } else if (const std::size_t hccl = text.find(kHcclMark); hccl != std::string_view::npos) {
        read_hccl(text.substr(0, hccl), text.substr(hccl + kHcclMark.size()));
      }
    }
    if (!known)
      throw InputError(fmt::format("{}: no line of it is NCCL's or HCCL's; allowed: their logs", path));
  }
  std::vector<LoggedProcess> processes;
  std::uint64_t not_taken = 0;  // calls that are known and not followed
  bool unnamed = false;         // there are communicators without a commId

 private:
  LoggedProcess& process(const std::string& name) {
    for (LoggedProcess& p : processes) {
      if (p.name == name) return p;
    }
    processes.push_back({name, {}, {}, {}, {}});
    return processes.back();
  }

  std::int64_t whole(const std::string& text, const char* what, std::int64_t most) const {
    const auto value = hw::number_of<std::int64_t>(text);
    if (!value || *value < 0 || *value > most)
      lines_.fail(fmt::format("{}: {}; allowed: a whole number from 0 to {}", what,
                              text.empty() ? "is missing" : fmt::format("'{}'", text.substr(0, 40)), most));
    return *value;
  }

  std::string where() const { return fmt::format("{}:{}", path_, lines_.number()); }

  // How often the count is in what a rank puts in.
  static int power_of(CollectiveKind kind) {
    return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all ||
                   kind == CollectiveKind::scatter
               ? 1
               : 0;
  }

  // "host:pid:tid [device] NCCL INFO ...": the thread does not matter.
  static std::string nccl_process(std::string_view head) {
    while (head.ends_with(' ')) head.remove_suffix(1);
    const std::size_t device = head.rfind('[');
    std::string_view id = head.substr(0, device == std::string_view::npos ? head.size() : device);
    while (id.ends_with(' ')) id.remove_suffix(1);
    if (const std::size_t blank = id.rfind(' '); blank != std::string_view::npos) id.remove_prefix(blank + 1);
    id = id.substr(0, id.rfind(':'));
    return std::string(id) + (device == std::string_view::npos ? "" : std::string(head.substr(device)));
  }

  void read_nccl(std::string_view head, std::string_view text) {
    const std::string id = word_behind(text, "commId"), address = word_behind(text, "comm");
    if (!id.empty() && !address.empty()) {
      LoggedProcess& own = process(nccl_process(head));
      own.group_of[address] = id;
      own.place[id] = whole(word_behind(text, "rank"), "rank", kMostLocalRank);
      own.size[id] = whole(word_behind(text, "nranks"), "nranks", kMostLocalRank);
      return;
    }
    // Before NCCL 2.18 a communicator had no name: the n-th of a process is taken for that of the others.
    if (!address.empty() && text.find("Init COMPLETE") != std::string_view::npos) {
      LoggedProcess& own = process(nccl_process(head));
      const std::int64_t size = whole(word_behind(text, "nranks"), "nranks", kMostLocalRank);
      const std::string name = fmt::format("communicator {}", own.place.size() + 1);
      own.group_of[address] = name;
      own.place[name] = whole(word_behind(text, "rank"), "rank", kMostLocalRank);
      own.size[name] = size;
      unnamed = true;
      return;
    }
    const std::size_t colon = text.find(": opCount ");
    if (colon == std::string_view::npos) return;
    const std::string_view name = text.substr(0, colon);
    LoggedProcess& own = process(nccl_process(head));
    LoggedCall call;
    call.where = where();
    const auto kind = collective_named(name);
    if (name == "Send" || name == "Recv") {
      call.what = name == "Send" ? LoggedCall::What::send : LoggedCall::What::receive;
    } else if (kind) {
      call.kind = *kind;
      call.power = power_of(*kind);
    } else {
      ++not_taken;
      return;
    }
    const auto type = static_cast<std::size_t>(
        whole(word_behind(text, "datatype"), "datatype", static_cast<std::int64_t>(kNcclBytes.size()) - 1));
    call.bytes = whole(word_behind(text, "count"), "count", kMostElements) * kNcclBytes[type];
    const auto group = own.group_of.find(address);
    if (group == own.group_of.end())
      lines_.fail(
          fmt::format("comm: no line before tells rank and commId of '{}'; allowed: a log with "
                      "NCCL_DEBUG_SUBSYS=INIT,COLL",
                      address.substr(0, 40)));
    call.group = group->second;
    if (call.what != LoggedCall::What::collective || is_rooted(call.kind))
      call.root = whole(word_behind(text, "root"), "root", kMostLocalRank);
    call.stream = word_behind(text, "stream");
    call.operation = call.group + "/" + word_behind(text, "opCount");
    own.calls.push_back(std::move(call));
  }

  // Letters of "0_1_" in "0_1_GROUP"; 0 where two numbers do not stand there.
  static std::size_t ends_in(std::string_view text) {
    std::size_t at = 0;
    for (int n = 0; n < 2; ++n) {
      const std::size_t end = text.find('_', at);
      if (end == std::string_view::npos || !hw::number_of<std::int64_t>(text.substr(at, end - at))) return 0;
      at = end + 1;
    }
    return at;
  }

  // "... Entry-HcclAllReduce:tag[AllReduce_GROUP], sendBuf[..], count[1024], dataType[float32], .."
  void read_hccl(std::string_view head, std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    const auto kind = collective_named(text.substr(0, colon));
    const std::string tag = in_brackets(text, "tag"), local = in_brackets(text, "localRank");
    if (tag.empty()) return;  // of a communicator
    const std::string name(text.substr(0, colon));
    const bool sends = name == "Send", receives = name == "Recv" || name == "Receive";
    if (!kind && !sends && !receives) {
      ++not_taken;
      return;
    }
    // "[INFO] HCCL(1234,python3):date"
    const std::size_t open = head.find("HCCL("), end = head.find_first_of(",)", open);
    LoggedProcess& own =
        process(open == std::string_view::npos ? "" : std::string(head.substr(open, end - open)));
    LoggedCall call;
    call.where = where();
    if (kind) {
      call.kind = *kind;
      call.power = power_of(*kind);
    } else {
      call.what = sends ? LoggedCall::What::send : LoggedCall::What::receive;
      call.operation = call.where;
    }
    const auto first = [&](std::initializer_list<const char*> names) {
      std::string found;
      for (const char* word : names) {
        if (found.empty()) found = in_brackets(text, word);
      }
      return found;
    };
    if (!kind || *kind != CollectiveKind::barrier) {
      const std::string type = first({"dataType", "sendType"}),
                        count = first({"count", "sendCount", "recvCount"});
      const std::int64_t bytes = bytes_of_element(type);
      if (bytes == 0) lines_.fail(fmt::format("dataType: '{}'; allowed: a type of HCCL", type.substr(0, 40)));
      // Counts of each rank stand in memory.
      if (count.empty() || count.starts_with("0x")) {
        ++not_taken;
        return;
      }
      call.bytes = whole(count, "count", kMostElements) * bytes;
    }
    call.group = tag.substr(tag.find('_') == std::string::npos ? 0 : tag.find('_') + 1);
    // That of a message names both ends before its group.
    if (!kind) call.group.erase(0, ends_in(call.group));
    if (!local.empty()) own.place[call.group] = whole(local, "localRank", kMostLocalRank);
    if (!kind) {
      call.root = whole(in_brackets(text, sends ? "destRank" : "srcRank"), sends ? "destRank" : "srcRank",
                        kMostLocalRank);
    } else if (is_rooted(*kind)) {
      call.root = whole(in_brackets(text, "root"), "root", kMostLocalRank);
    }
    call.stream = in_brackets(text, "streamId");
    own.calls.push_back(std::move(call));
  }

  std::string path_;
  LineReader lines_;
};

class LogImport {
 public:
  LogImport(const std::vector<std::string>& paths, const ImportOptions& options) {
    const RankFiles files = in_order_of_ranks(paths);
    std::vector<std::int64_t> numbers = files.numbers;
    for (const std::string& path : files.paths) {
      LogReader read(path);
      for (LoggedProcess& p : read.processes) {
        if (!p.calls.empty()) processes_.push_back(std::move(p));
      }
      not_taken_ += read.not_taken;
      unnamed_ = unnamed_ || read.unnamed;
    }
    if (processes_.empty())
      throw InputError(
          fmt::format("{}: no call; allowed: NCCL's log with NCCL_DEBUG=INFO and "
                      "NCCL_DEBUG_SUBSYS=INIT,COLL, or HCCL's with its entries of calls",
                      files.paths.front()));
    check_groups(files.paths.front());
    if (order_by_largest_group() || processes_.size() != numbers.size()) {
      numbers.clear();
      for (std::size_t n = 0; n < processes_.size(); ++n) numbers.push_back(static_cast<std::int64_t>(n));
    }
    ranks_.emplace(std::move(numbers), files.paths.front(), options);
    parts_.emplace(processes_.size());
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) add_rank(static_cast<int>(rank));
  }

  ImportResult write(TrafficSink& sink, bool strict) {
    std::vector<std::string> not_taken;
    if (not_taken_ != 0)
      not_taken.push_back(
          fmt::format("calls that do not say how much they move, or of no known kind: {}", not_taken_));
    match_messages(not_taken);
    if (strict && !not_taken.empty())
      throw InputError(fmt::format("--strict: not imported exactly: {}", not_taken.front()));
    CollectiveParts::write(parts_->match(*ranks_, {}), graph_, *ranks_);
    ImportResult result = ranks_->write(graph_, sink);
    result.not_taken = std::move(not_taken);
    result.notes.insert(result.notes.begin(), parts_->notes().begin(), parts_->notes().end());
    if (unnamed_)
      result.notes.emplace_back(
          "communicators without a commId are matched by the order in which each process made them");
    result.notes.insert(result.notes.begin(),
                        fmt::format("{} calls; those of a stream follow each other at once, since a log does "
                                    "not say what was computed between them",
                                    calls_));
    return result;
  }

 private:
  using Channel = std::tuple<std::string, int, int>;  // group, from, to
  using Where = std::pair<std::uint64_t, std::string>;

  // All ranks of a group are logged.
  void check_groups(const std::string& first) const {
    std::map<std::string, std::int64_t> logged;
    for (const LoggedProcess& p : processes_) {
      for (const auto& [group, place] : p.place) ++logged[group];
    }
    for (const LoggedProcess& p : processes_) {
      for (const LoggedCall& call : p.calls) {
        const auto size = p.size.find(call.group);
        if (size != p.size.end() && logged.at(call.group) != size->second)
          throw InputError(
              fmt::format("{}: group {} has {} ranks, of which {} are logged in {} and the files "
                          "beside it; allowed: the logs of all",
                          call.where, call.group, size->second, logged.at(call.group), first));
      }
    }
  }

  // A group that all are of numbers them. True if there is one.
  bool order_by_largest_group() {
    for (const auto& [group, place] : processes_.front().place) {
      std::map<std::int64_t, LoggedProcess*> order;
      for (LoggedProcess& p : processes_) {
        const auto own = p.place.find(group);
        if (own != p.place.end()) order.emplace(own->second, &p);
      }
      if (order.size() != processes_.size() || order.rbegin()->first >= std::ssize(processes_)) continue;
      std::vector<LoggedProcess> sorted;
      for (const auto& [rank, p] : order) sorted.push_back(std::move(*p));
      processes_ = std::move(sorted);
      return true;
    }
    return false;
  }

  int rank_in(const std::string& group, std::int64_t place, const std::string& where) const {
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      const auto own = processes_[rank].place.find(group);
      if (own != processes_[rank].place.end() && own->second == place) return static_cast<int>(rank);
    }
    throw InputError(fmt::format("{}: root: nothing is logged of rank {} of group {}", where, place, group));
  }

  void add_rank(int rank) {
    struct Stream {
      std::uint64_t last = 0;
      bool any = false;
    };
    std::map<std::string, Stream> streams;
    const std::vector<LoggedCall>& calls = processes_[static_cast<std::size_t>(rank)].calls;
    calls_ += calls.size();
    for (std::size_t n = 0; n < calls.size();) {
      Stream& stream = streams[calls[n].stream];
      const std::uint64_t begin = graph_.add(ranks_->point(rank), calls[n].where),
                          end = graph_.add(ranks_->point(rank), calls[n].where);
      graph_.wait(end, {begin, TrafficDependency::Kind::completion, {}});
      if (stream.any) graph_.wait(begin, {stream.last, TrafficDependency::Kind::completion, {}});
      stream = {end, true};
      if (calls[n].what == LoggedCall::What::collective) {
        add_part(rank, calls[n], begin, end);
        ++n;
        continue;
      }
      const std::size_t first = n;
      for (; n < calls.size() && calls[n].what != LoggedCall::What::collective &&
             calls[n].operation == calls[first].operation && calls[n].stream == calls[first].stream;
           ++n)
        add_message(rank, calls[n], begin, end);
    }
  }

  void add_part(int rank, const LoggedCall& call, std::uint64_t begin, std::uint64_t end) {
    CollectivePart part;
    part.kind = call.kind;
    part.input = call.bytes;
    part.power = call.power;
    part.group = call.group;
    part.where = call.where;
    part.begin = begin;
    part.end = end;
    if (call.root >= 0) part.root = ranks_->number(rank_in(call.group, call.root, call.where));
    if (call.bytes > kMostImportedBytes)
      throw InputError(
          fmt::format("{}: {} B; allowed: up to {}", call.where, call.bytes, kMostImportedBytes));
    parts_->add(rank, std::move(part));
  }

  void add_message(int rank, const LoggedCall& call, std::uint64_t begin, std::uint64_t end) {
    const int other = rank_in(call.group, call.root, call.where);
    if (call.bytes > kMostImportedBytes)
      throw InputError(
          fmt::format("{}: {} B; allowed: up to {}", call.where, call.bytes, kMostImportedBytes));
    if (call.what == LoggedCall::What::receive) {
      receives_[{call.group, other, rank}].emplace_back(end, call.where);
      return;
    }
    const bool moves = other != rank && call.bytes != 0;
    const std::uint64_t sent =
        graph_.add(moves ? ranks_->transfer(rank, other, call.bytes) : ranks_->point(rank), call.where);
    graph_.wait(sent, {begin, TrafficDependency::Kind::completion, {}});
    graph_.wait(end, {sent, TrafficDependency::Kind::completion, {}});
    sends_[{call.group, rank, other}].emplace_back(sent, call.where);
  }

  void match_messages(std::vector<std::string>& not_taken) {
    for (auto& [channel, receives] : receives_) {
      auto& sends = sends_[channel];
      for (const auto& [record, where] : receives) {
        if (sends.empty()) throw InputError(fmt::format("{}: receives what nobody sends", where));
        graph_.wait(record, {sends.front().first, TrafficDependency::Kind::arrival, {}});
        sends.pop_front();
      }
    }
    std::uint64_t lonely = 0;
    std::string first;
    for (const auto& [channel, sends] : sends_) {
      if (!sends.empty() && first.empty()) first = sends.front().second;
      lonely += sends.size();
    }
    if (lonely != 0)
      not_taken.push_back(
          fmt::format("sends that no rank receives, which nobody waits for: {} ({})", lonely, first));
  }

  std::vector<LoggedProcess> processes_;  // by rank
  std::uint64_t not_taken_ = 0, calls_ = 0;
  bool unnamed_ = false;
  std::optional<ImportedRanks> ranks_;
  std::optional<CollectiveParts> parts_;
  RecordGraph graph_;
  std::map<Channel, std::deque<Where>> sends_, receives_;
};

}  // namespace

ImportResult import_log(const std::vector<std::string>& paths, const ImportOptions& options,
                        TrafficSink& sink) {
  return LogImport(paths, options).write(sink, options.strict);
}

}  // namespace cm384::traces
