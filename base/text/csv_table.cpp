#include "base/text/csv_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace cm384::hw {

CsvTable::CsvTable(const std::string& path, Names required, const Names& further, Order order)
    : lines_(path), names_(std::move(required)) {
  const std::size_t least = names_.size();
  const auto refuse = [&](const std::string& what) {
    lines_.fail(fmt::format("header: {}; allowed: {}{}{}", what, fmt::join(names_, ","),
                            further.empty() ? "" : ", further ", fmt::join(further, ", ")));
  };
  if (!lines_.next(line_)) refuse("is missing");
  const auto header = split_fields(line_);
  if (order == Order::any) {
    Names met;
    for (const std::string_view name : header) {
      const bool known = std::ranges::find(names_, name) != names_.end() ||
                         std::ranges::find(further, name) != further.end();
      if (!known) refuse(fmt::format("'{}'", name.substr(0, 80)));
      if (std::ranges::find(met, name) != met.end()) refuse(fmt::format("'{}' twice", name));
      met.emplace_back(name);
    }
    for (const std::string& name : names_) {
      if (std::ranges::find(met, name) == met.end()) refuse(fmt::format("{} is missing", name));
    }
    names_ = std::move(met);
    return;
  }
  for (std::size_t k = 0; k < least; ++k) {
    if (k >= header.size() || header[k] != names_[k]) refuse(fmt::format("'{}'", line_.substr(0, 120)));
  }
  for (std::size_t k = least; k < header.size(); ++k) {
    if (std::ranges::find(further, header[k]) == further.end())
      refuse(fmt::format("'{}'", header[k].substr(0, 80)));
    if (std::ranges::find(names_, header[k]) != names_.end()) refuse(fmt::format("'{}' twice", header[k]));
    names_.emplace_back(header[k]);
  }
}

bool CsvTable::next(std::vector<std::string_view>& fields) {
  while (lines_.next(line_)) {
    if (line_.find_first_not_of(" \t\r") == std::string::npos) continue;
    fields = split_fields(line_);
    if (fields.size() != names_.size())
      lines_.fail(fmt::format("line: {} fields; allowed: {}", fields.size(), names_.size()));
    return true;
  }
  return false;
}

std::string_view CsvTable::further(const FieldReader& fields, std::string_view name) const {
  const std::size_t at = column(name);
  return at == names_.size() ? std::string_view{} : fields.text(at);
}

std::size_t CsvTable::column(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
}

}  // namespace cm384::hw
