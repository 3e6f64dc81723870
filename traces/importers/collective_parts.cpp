#include "traces/importers/collective_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "base/text/error.h"
#include "base/text/input_file.h"

namespace cm384::traces {
namespace {

constexpr std::size_t kMostGroups = std::size_t{1} << 20;

std::string title(const CollectivePart& part) {
  return fmt::format("{} of {} B", name_of(part.kind), part.input);
}
std::string title_of_group(const std::string& group) {
  return group.empty() ? "ranks without a group" : fmt::format("group {}", group);
}

using Key = std::tuple<CollectiveKind, std::int64_t, std::int64_t, std::string>;
using KeyOf = std::function<Key(const CollectivePart&)>;
// All algorithms that move no more than they must have a rank send the same.
std::int64_t input_of_sent(CollectiveKind kind, std::int64_t sent, std::int64_t members) {
  const std::int64_t others = std::max<std::int64_t>(1, members - 1);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return (sent * members + others) / (2 * others);
    case CollectiveKind::all_gather:
      return (sent + others / 2) / others;
    default:
      return (sent * members + others / 2) / others;
  }
}

const KeyOf kBySize = [](const CollectivePart& p) { return Key{p.kind, p.input, p.root, ""}; };
const KeyOf kByName = [](const CollectivePart& p) { return Key{p.kind, 0, p.root, p.name}; };
const KeyOf kByKind = [](const CollectivePart& p) { return Key{p.kind, 0, p.root, ""}; };

}  // namespace

CommunicatorGroups read_groups(const std::string& path) {
  const auto document = nlohmann::json::parse(read_input(path, kLargestText), nullptr, false);
  const std::string allowed = "allowed: a JSON object of lists of ranks, {\"GROUP\": [0, 1, ...], ...}";
  if (!document.is_object()) throw InputError(fmt::format("{}: not a JSON object; {}", path, allowed));
  CommunicatorGroups groups;
  for (const auto& [name, ranks] : document.items()) {
    if (!ranks.is_array() || ranks.empty())
      throw InputError(fmt::format("{}: group {}: not a list of ranks; {}", path, name, allowed));
    std::set<std::int64_t> known;
    for (const auto& rank : ranks) {
      if (!rank.is_number_integer() || rank.get<std::int64_t>() < 0 ||
          !known.insert(rank.get<std::int64_t>()).second)
        throw InputError(fmt::format("{}: group {}: {}; allowed: numbers of ranks, each once", path, name,
                                     rank.dump().substr(0, 40)));
    }
    groups[name].assign(known.begin(), known.end());
    if (groups.size() > kMostGroups)
      throw InputError(fmt::format("{}: allowed: at most {} groups", path, kMostGroups));
  }
  return groups;
}

std::int64_t bytes_of_element(std::string name) {
  static const std::map<std::string, std::int64_t, std::less<>> kSizes{
      {"byte", 1},       {"char", 1},
      {"bool", 1},       {"int8", 1},
      {"uint8", 1},      {"qint8", 1},
      {"quint8", 1},     {"fp8", 1},
      {"hif8", 1},       {"half", 2},
      {"float16", 2},    {"fp16", 2},
      {"bf16", 2},       {"bfp16", 2},
      {"bfloat16", 2},   {"short", 2},
      {"int16", 2},      {"uint16", 2},
      {"float", 4},      {"float32", 4},
      {"fp32", 4},       {"int", 4},
      {"int32", 4},      {"uint32", 4},
      {"qint32", 4},     {"double", 8},
      {"float64", 8},    {"fp64", 8},
      {"long", 8},       {"int64", 8},
      {"uint64", 8},     {"int128", 16},
      {"uint128", 16},   {"complexhalf", 4},
      {"complex32", 4},  {"complexfloat", 8},
      {"complex64", 8},  {"complexdouble", 16},
      {"complex128", 16}};
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const std::string_view prefix : {"c10::", "torch.", "hccl_data_type_"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  // Of one byte in all their forms: float8_e4m3fn, Float8_e5m2fnuz, FP8E4M3.
  if (name.starts_with("float8_") || name.starts_with("fp8e")) return 1;
  const auto found = kSizes.find(name);
  return found == kSizes.end() ? 0 : found->second;
}

bool CollectiveParts::empty() const {
  return std::ranges::all_of(parts_, [](const auto& of_rank) { return of_rank.empty(); });
}

std::vector<CollectiveParts::Met> CollectiveParts::match(const ImportedRanks& ranks,
                                                         const CommunicatorGroups& groups) {
  std::map<std::string, std::map<int, List>> by_group;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    for (const CollectivePart& part : parts_[rank])
      by_group[part.group][static_cast<int>(rank)].push_back(&part);
  }
  std::vector<Met> all;
  for (auto& [group, lists] : by_group) {
    const CollectivePart& one = *lists.begin()->second.front();
    if (const auto named = groups.find(group); named != groups.end()) {
      std::set<int> members;
      for (const std::int64_t number : named->second) {
        const auto rank = ranks.rank_of(number);
        if (!rank)
          throw InputError(
              fmt::format("{}: group {} has rank {}, of which there is no file", one.where, group, number));
        members.insert(*rank);
        lists[*rank];
      }
      for (const auto& [rank, list] : lists) {
        if (!members.contains(rank))
          throw InputError(
              fmt::format("{}: rank {} is not of group {}", list.front()->where, ranks.number(rank), group));
      }
    } else if (!groups.empty() && !group.empty()) {
      throw InputError(fmt::format("{}: group {}: is not in the file of groups", one.where, group));
    } else if (group.empty() && lists.size() < ranks.count()) {
      notes_.push_back(fmt::format("{} of {} ranks have collectives without a group: they are taken for one",
                                   lists.size(), ranks.count()));
    }
    std::vector<int> members;
    std::vector<List> of_members;
    for (auto& [rank, list] : lists) {
      members.push_back(rank);
      of_members.push_back(std::move(list));
    }
    match_group(group, ranks, members, of_members, all);
  }
  return all;
}

void CollectiveParts::match_group(const std::string& group, const ImportedRanks& ranks,
                                  const std::vector<int>& members, const std::vector<List>& lists,
                                  std::vector<Met>& all) {
  const auto by_place = [&](const KeyOf& key) {
    return std::ranges::all_of(lists, [&](const List& list) {
      return std::ranges::equal(
          list, lists.front(), {}, [&](const CollectivePart* p) { return key(*p); },
          [&](const CollectivePart* p) { return key(*p); });
    });
  };
  // The n-th of each key, in the order of the first member; nothing where another member has other ones.
  const auto reordered = [&](const KeyOf& key) -> std::optional<std::vector<List>> {
    std::vector<List> ordered(lists.size());
    for (std::size_t m = 0; m < lists.size(); ++m) {
      if (lists[m].size() != lists[0].size()) return std::nullopt;
      std::map<Key, std::vector<const CollectivePart*>> own;
      std::map<Key, std::size_t> used;
      for (const CollectivePart* p : lists[m]) own[key(*p)].push_back(p);
      for (const CollectivePart* p : lists[0]) {
        const Key k = key(*p);
        const auto found = own.find(k);
        const std::size_t n = used[k]++;
        if (found == own.end() || n >= found->second.size()) return std::nullopt;
        ordered[m].push_back(found->second[n]);
      }
    }
    return ordered;
  };
  std::vector<List> matched;
  if (by_place(kBySize)) {
    matched = lists;
  } else if (auto by_size = reordered(kBySize)) {
    matched = std::move(*by_size);
    notes_.push_back(
        fmt::format("{}: ranks begin their collectives in different orders; they are matched by size",
                    title_of_group(group)));
  } else if (auto by_name = reordered(kByName)) {
    matched = std::move(*by_name);
  } else if (by_place(kByKind)) {
    matched = lists;
  } else {
    for (std::size_t m = 1; m < lists.size(); ++m) {
      const std::size_t shared = std::min(lists[m].size(), lists[0].size());
      for (std::size_t n = 0; n < shared; ++n) {
        if (lists[m][n]->kind != lists[0][n]->kind || lists[m][n]->root != lists[0][n]->root)
          throw InputError(
              fmt::format("{}: {}: number {} of rank {} is {}, but of rank {} {}; allowed: the same of all "
                          "ranks of a group",
                          lists[m][n]->where, title_of_group(group), n, ranks.number(members[m]),
                          title(*lists[m][n]), ranks.number(members[0]), title(*lists[0][n])));
      }
      if (lists[m].size() == lists[0].size()) continue;
      const List& longer = lists[m].size() > lists[0].size() ? lists[m] : lists[0];
      throw InputError(fmt::format(
          "{}: {}: rank {} has {} collectives, rank {} {}; allowed: the same of all ranks of a group",
          longer[shared]->where, title_of_group(group), ranks.number(members[m]), lists[m].size(),
          ranks.number(members[0]), lists[0].size()));
    }
  }
  for (std::size_t n = 0; n < matched[0].size(); ++n) {
    Met met{members, {}};
    for (const List& list : matched) met.parts.push_back(list[n]);
    all.push_back(std::move(met));
  }
}

void CollectiveParts::write(const std::vector<Met>& all, RecordGraph& graph, ImportedRanks& ranks) {
  for (const Met& met : all) {
    const CollectivePart& first = *met.parts.front();
    ImportedRanks::Collective collective;
    collective.kind = first.kind;
    collective.members = met.members;
    collective.lane = first.lane;
    collective.where = first.where;
    if (first.root >= 0) {
      const auto root = ranks.rank_of(first.root);
      const auto place = root ? std::ranges::find(met.members, *root) : met.members.end();
      if (place == met.members.end())
        throw InputError(fmt::format("{}: root: rank {} is none of its ranks", first.where, first.root));
      collective.root = static_cast<std::size_t>(place - met.members.begin());
    }
    bool uneven = false;
    for (const CollectivePart* part : met.parts) {
      const auto members = static_cast<std::int64_t>(met.members.size());
      const std::int64_t input = part->sent        ? input_of_sent(part->kind, part->input, members)
                                 : part->power > 0 ? part->input * members
                                 : part->power < 0 ? (part->input + members - 1) / members
                                                   : part->input;
      if (input > kMostImportedBytes)
        throw InputError(fmt::format("{}: {} B; allowed: up to {}", part->where, input, kMostImportedBytes));
      collective.inputs.push_back(input);
      collective.ready.push_back(part->begin);
      collective.end.push_back(part->end);
      // Beside those with parts of their own others have equal ones.
      std::vector<std::int64_t>& parts = collective.parts.emplace_back(part->parts);
      uneven = uneven || parts.size() == met.parts.size();
      if (parts.size() == met.parts.size()) continue;
      parts.assign(met.parts.size(), input / members);
      for (std::int64_t n = 0; n < input % members; ++n) ++parts[static_cast<std::size_t>(n)];
    }
    if (!uneven) collective.parts.clear();
    ranks.add(graph, collective);
  }
}

}  // namespace cm384::traces
