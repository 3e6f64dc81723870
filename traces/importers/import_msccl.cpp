#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "base/text/number.h"
#include "base/text/unpacked_input.h"
#include "traces/import.h"
#include "traces/importers/imported_ranks.h"

namespace cm384::traces {
namespace {

using Tree = boost::property_tree::ptree;

constexpr std::size_t kMostXml = std::size_t{64} << 20;
constexpr int kDeepestXml = 16;

// The parser follows elements into each other by calls of itself: how deep they go is found out before.
void check_depth(const std::string& text, const std::string& path) {
  int depth = 0;
  char quote = 0;
  bool in_tag = false;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const char c = text[n];
    if (quote == 0 && !in_tag && text.compare(n, 4, "<!--") == 0) {
      const std::size_t end = text.find("-->", n + 4);
      if (end == std::string::npos)
        throw InputError(fmt::format("{}: offset {}: no end of a comment", path, n));
      n = end + 2;
    } else if (quote != 0) {
      if (c == '<') throw InputError(fmt::format("{}: offset {}: '<' in a value", path, n));
      if (c == quote) quote = 0;
    } else if (in_tag && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '<') {
      const char next = n + 1 < text.size() ? text[n + 1] : '\0';
      if (next == '!') throw InputError(fmt::format("{}: offset {}: allowed: elements alone", path, n));
      in_tag = true;
      depth += next == '/' ? -1 : next == '?' ? 0 : 1;
      if (depth > kDeepestXml)
        throw InputError(fmt::format("{}: offset {}: nested deeper than {}", path, n, kDeepestXml));
    } else if (in_tag && c == '>') {
      if (n > 0 && text[n - 1] == '/') --depth;
      in_tag = false;
    }
  }
}

std::string read_xml(const std::string& path) {
  const auto stream = open_unpacked(path);
  std::string text;
  std::array<char, 65536> piece{};
  while (stream->read(piece.data(), piece.size()), stream->gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(stream->gcount()));
    if (text.size() > kMostXml)
      throw InputError(fmt::format("{}: is larger than {} MiB", path, kMostXml >> 20));
  }
  check_depth(text, path);
  return text;
}

// An element with the place that messages name.
class Element {
 public:
  Element(const Tree& tree, std::string where) : tree_(tree), where_(std::move(where)) {}

  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> missing = {}) const {
    const auto text = tree_.get_optional<std::string>(std::string("<xmlattr>.") + name);
    if (!text && missing) return *missing;
    const auto value = text ? hw::number_of<std::int64_t>(*text) : std::nullopt;
    if (!value || *value < low || *value > high)
      throw InputError(fmt::format("{}: {}: {}; allowed: a whole number from {} to {}", where_, name,
                                   text ? fmt::format("'{}'", text->substr(0, 60)) : "is missing", low,
                                   high));
    return *value;
  }
  std::string text(const char* name) const {
    return tree_.get<std::string>(std::string("<xmlattr>.") + name, "");
  }
  // Children of a name, in the order of their numbers, which `number` has.
  template <class Take>
  void each(const char* name, const char* number, std::int64_t most, Take&& take) const {
    std::vector<std::pair<std::int64_t, const Tree*>> numbered;
    for (const auto& [key, child] : tree_) {
      if (key == "<xmlattr>" || key == "<xmlcomment>") continue;
      if (key != name)
        throw InputError(fmt::format("{}: <{}>; allowed: <{}>", where_, key.substr(0, 60), name));
      const Element one(child, fmt::format("{}: {}", where_, name));
      numbered.emplace_back(one.integer(number, 0, most), &child);
    }
    std::ranges::stable_sort(numbered, {}, &std::pair<std::int64_t, const Tree*>::first);
    for (const auto& [n, child] : numbered)
      take(Element(*child, fmt::format("{}: {} {}", where_, name, n)), n);
  }
  const std::string& where() const { return where_; }

 private:
  const Tree& tree_;
  std::string where_;
};

class MscclImport {
 public:
  MscclImport(const std::string& path, const ImportOptions& options) : path_(path) {
    Tree document;
    try {
      std::istringstream stream(read_xml(path));
      boost::property_tree::read_xml(stream, document);
    } catch (const boost::property_tree::xml_parser_error& error) {
      throw InputError(fmt::format("{}:{}: no XML: {}", path, error.line(), error.message()));
    }
    const auto found = document.get_child_optional("algo");
    if (!found) throw InputError(fmt::format("{}: no <algo>; allowed: an algorithm of MSCCL", path));
    const Element algo(*found, path);
    const std::int64_t ranks = algo.integer("ngpus", 1, kMostRanksXml),
                       chunks = algo.integer("nchunksperloop", 1, kMostChunks);
    if (options.bytes == 0)
      throw InputError(
          fmt::format("{}: chunks are parts of a buffer whose size is not given; allowed: --bytes N", path));
    chunk_ = (options.bytes + chunks - 1) / chunks;
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(ranks));
    std::iota(numbers.begin(), numbers.end(), 0);
    ranks_.emplace(std::move(numbers), path, options);
    algo.each("gpu", "id", ranks - 1, [&](const Element& gpu, std::int64_t rank) { read_rank(gpu, rank); });
  }

  ImportResult write(TrafficSink& sink) {
    for (const auto& [where, on, record] : waits_) {
      const auto end = ends_.find(on);
      if (end == ends_.end()) throw InputError(fmt::format("{}: depid, deps: there is no such step", where));
      graph_.wait(record, {end->second, TrafficDependency::Kind::completion, {}});
    }
    for (auto& [channel, receives] : receives_) {
      auto& sends = sends_[channel];
      for (const auto& [record, where] : receives) {
        if (sends.empty()) throw InputError(fmt::format("{}: receives what nobody sends", where));
        graph_.wait(record, {sends.front(), TrafficDependency::Kind::arrival, {}});
        sends.pop_front();
      }
    }
    for (const auto& [channel, sends] : sends_) {
      if (!sends.empty())
        throw InputError(fmt::format("{}: gpu {} sends gpu {} more than it receives", path_,
                                     std::get<0>(channel), std::get<1>(channel)));
    }
    ImportResult result = ranks_->write(graph_, sink);
    result.notes.push_back(fmt::format("a chunk is {} B, one loop", chunk_));
    return result;
  }

 private:
  static constexpr std::int64_t kMostRanksXml = 65'535, kMostChunks = 1 << 20, kMostBlocks = 1 << 16;
  using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // source, target, channel
  using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t>;    // rank, thread block, step
  struct Awaited {
    std::string where;
    Place on;
    std::uint64_t record = 0;
  };

  void read_rank(const Element& gpu, std::int64_t rank) {
    if (!known_.insert(rank).second) throw InputError(fmt::format("{}: is there twice", gpu.where()));
    gpu.each("tb", "id", kMostBlocks, [&](const Element& block, std::int64_t tb) {
      const auto last = static_cast<std::int64_t>(ranks_->count()) - 1;
      const std::int64_t to = block.integer("send", -1, last), from = block.integer("recv", -1, last),
                         channel = block.integer("chan", 0, kMostBlocks);
      std::optional<std::uint64_t> before;
      block.each("step", "s", kMostBlocks, [&](const Element& step, std::int64_t s) {
        before = add_step(step, {rank, tb, s}, to, from, channel, before);
      });
    });
  }

  std::uint64_t add_step(const Element& step, const Place& place, std::int64_t to, std::int64_t from,
                         std::int64_t channel, std::optional<std::uint64_t> before) {
    const std::int64_t rank = std::get<0>(place);
    const std::string type = step.text("type");
    const std::set<std::string> receiving{"r", "rcs", "rrs", "rrc", "rrcs"},
        sending{"s", "rcs", "rrs", "rrcs"};
    const bool receives = receiving.contains(type), sends = sending.contains(type);
    if (!receives && !sends && type != "cpy" && type != "re" && type != "nop")
      throw InputError(fmt::format("{}: type: '{}'; allowed: s, r, rcs, rrs, rrc, rrcs, cpy, re, nop",
                                   step.where(), type.substr(0, 20)));
    const std::int64_t count = step.integer("cnt", 0, kMostChunks, 1);
    std::uint64_t record = graph_.add(ranks_->point(static_cast<int>(rank)), step.where());
    if (before) graph_.wait(record, {*before, TrafficDependency::Kind::completion, {}});
    if (const std::int64_t block = step.integer("depid", -1, kMostBlocks, -1); block >= 0)
      waits_.push_back({step.where(), {rank, block, step.integer("deps", 0, kMostBlocks)}, record});
    if (receives) {
      if (from < 0) throw InputError(fmt::format("{}: its thread block receives from nobody", step.where()));
      receives_[{from, rank, channel}].emplace_back(record, step.where());
    }
    if (sends) {
      if (to < 0 || to == rank)
        throw InputError(fmt::format("{}: its thread block sends to nobody else", step.where()));
      if (count > 0 && chunk_ > kMostImportedBytes / count)
        throw InputError(fmt::format("{}: cnt: {} chunks of {} B; allowed: {} B", step.where(), count, chunk_,
                                     kMostImportedBytes));
      const std::uint64_t sent = graph_.add(
          count == 0 ? ranks_->point(static_cast<int>(rank))
                     : ranks_->transfer(static_cast<int>(rank), static_cast<int>(to), count * chunk_),
          step.where());
      graph_.wait(sent, {record, TrafficDependency::Kind::completion, {}});
      sends_[{rank, to, channel}].push_back(sent);
      record = sent;
    }
    if (!ends_.emplace(place, record).second)
      throw InputError(fmt::format("{}: is there twice", step.where()));
    return record;
  }

  std::string path_;
  std::int64_t chunk_ = 0;  // bytes
  std::optional<ImportedRanks> ranks_;
  RecordGraph graph_;
  std::set<std::int64_t> known_;
  std::map<Place, std::uint64_t> ends_;
  std::vector<Awaited> waits_;
  std::map<Channel, std::deque<std::uint64_t>> sends_;
  std::map<Channel, std::deque<std::pair<std::uint64_t, std::string>>> receives_;
};

}  // namespace

ImportResult import_msccl(const std::string& path, const ImportOptions& options, TrafficSink& sink) {
  return MscclImport(path, options).write(sink);
}

}  // namespace cm384::traces
