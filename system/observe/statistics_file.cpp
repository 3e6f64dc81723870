#include "system/observe/statistics_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text/error.h"

namespace cm384::observe {
namespace {

// A pattern and its sum. Json objects are searched from the front; there are many more counters than
// patterns.
struct Sum {
  std::uint64_t value = 0;
  std::size_t order = 0;
};
using Sums = std::map<std::string, Sum, std::less<>>;

void add_to(Sums& sums, std::string_view key, std::uint64_t value) {
  auto found = sums.find(key);
  if (found == sums.end()) found = sums.emplace(std::string(key), Sum{0, sums.size()}).first;
  found->second.value += value;
}

// Into an object, in the order in which the sums were begun.
void add_to(const Sums& sums, Json& into) {
  std::vector<const Sums::value_type*> ordered(sums.size());
  for (const auto& entry : sums) ordered[entry.second.order] = &entry;
  for (const auto* entry : ordered) {
    const auto before = into.find(entry->first);
    if (before == into.end()) {
      into[entry->first] = entry->second.value;
    } else {
      *before = before->get<std::uint64_t>() + entry->second.value;
    }
  }
}

// Whether a counter is of all the parts, or of a link that touches them: its name has each of them, and of a
// sub-plane that or a port to it, as in "plane2.l1chip0.to_l2chip5.packets" and "die5.ub.port2.packets".
bool meant(const supernode::LinkSelection& selection, std::string_view counter) {
  const auto has = [&](const std::string& part) {
    for (std::string_view rest = counter;;) {
      const std::size_t dot = rest.find('.');
      const std::string_view segment = rest.substr(0, dot);
      if (segment == part || (segment.starts_with("to_") && segment.substr(3) == part)) return true;
      if (dot == std::string_view::npos) return false;
      rest.remove_prefix(dot + 1);
    }
  };
  return (selection.plane < 0 || has(fmt::format("plane{}", selection.plane)) ||
          has(fmt::format("port{}", selection.plane))) &&
         std::ranges::all_of(selection.parts, [&](const supernode::LinkName::End& part) {
           return has(fmt::format("{}{}", part.part, part.number));
         });
}

}  // namespace

void StatisticsFile::check(const ub::Network& network, int planes) const {
  try {
    for (const supernode::LinkSelection& selection : chosen_) selection.check(network, planes);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--stats-parts: {}", error.what()));
  }
}

bool StatisticsFile::shows(std::string_view counter) const {
  return chosen_.empty() ||
         std::ranges::any_of(chosen_, [&](const auto& selection) { return meant(selection, counter); });
}

void StatisticsFile::begin(const std::string& what, Time simulated) {
  Json row = {
      {"run", what}, {"simulated_us", simulated.us()}, {"totals", Json::object()}, {"parts", Json::object()}};
  if (detail_) row["detail"] = Json::object();
  rows_.push_back(std::move(row));
}

void StatisticsFile::add(const sim::Statistics& part) {
  Json& row = rows_.back();
  Sums totals;
  std::map<std::string, Sums, std::less<>> units;
  std::vector<std::string> order;
  for (const sim::Statistic& s : part.list()) {
    if (!shows(s.name)) continue;
    const std::uint64_t value = s.value();
    add_to(totals, s.pattern, value);
    const std::string unit = s.name.substr(0, s.name.find('.'));
    if (order.empty() || order.back() != unit) order.push_back(unit);
    add_to(units[unit], std::string_view(s.pattern).substr(s.pattern.find('.') + 1), value);
    if (!glossary_.contains(s.pattern)) glossary_[s.pattern] = {{"unit", s.unit}, {"sentence", s.sentence}};
    if (detail_ && value != 0) row["detail"].get_ref<Json::object_t&>().emplace_back(s.name, value);
  }
  add_to(totals, row["totals"]);
  for (const std::string& unit : order) add_to(units[unit], row["parts"][unit]);
}

Json StatisticsFile::to_document(const std::string& study) const {
  return {{"schema", 1}, {"study", study}, {"glossary", glossary_}, {"rows", rows_}};
}

}  // namespace cm384::observe
