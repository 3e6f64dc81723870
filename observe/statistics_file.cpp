#include "observe/statistics_file.h"

#include <map>

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
void put(const Sums& sums, Json& into) {
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

}  // namespace

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
    const std::uint64_t value = s.value();
    add_to(totals, s.pattern, value);
    const std::string unit = s.name.substr(0, s.name.find('.'));
    if (order.empty() || order.back() != unit) order.push_back(unit);
    add_to(units[unit], std::string_view(s.pattern).substr(s.pattern.find('.') + 1), value);
    if (!glossary_.contains(s.pattern)) glossary_[s.pattern] = {{"unit", s.unit}, {"sentence", s.sentence}};
    if (detail_ && value != 0) row["detail"].get_ref<Json::object_t&>().emplace_back(s.name, value);
  }
  put(totals, row["totals"]);
  for (const std::string& unit : order) put(units[unit], row["parts"][unit]);
}

Json StatisticsFile::to_document(const std::string& study) const {
  return {{"schema", 1}, {"study", study}, {"glossary", glossary_}, {"rows", rows_}};
}

}  // namespace cm384::observe
