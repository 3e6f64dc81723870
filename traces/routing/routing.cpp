#include "traces/routing/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/text/error.h"
#include "base/text/number.h"

namespace cm384::traces {

std::vector<std::int32_t> rows_of_block(const Routing& routing, std::int64_t block, int batch) {
  const std::int64_t rows = routing.rows();
  assert(rows > 0);
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(batch) * static_cast<std::size_t>(routing.top_k));
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto row = routing.row((block * batch + i) % rows);
    ids.insert(ids.end(), row.begin(), row.end());
  }
  return ids;
}

RoutingSource parse_routing_source(std::string_view text) {
  constexpr std::string_view kAllowed =
      "allowed are uniform, zipf:EXPONENT (0 to 10), groups:N:M (M of N groups) and trace:FILE";
  if (text == "uniform") return {};
  if (text.starts_with("zipf:")) {
    const auto exponent = hw::number_of<double>(text.substr(5));
    if (exponent && *exponent >= 0 && *exponent <= 10) return {RoutingSource::Kind::kZipf, *exponent, {}};
  } else if (text.starts_with("groups:")) {
    const std::string_view numbers = text.substr(7);
    const std::size_t colon = std::min(numbers.find(':'), numbers.size());
    const auto groups = hw::number_of<int>(numbers.substr(0, colon));
    const auto top = hw::number_of<int>(numbers.substr(std::min(colon + 1, numbers.size())));
    if (groups && top && *top >= 1 && *top <= *groups)
      return {RoutingSource::Kind::kGroups, 0, {}, *groups, *top};
  } else if (text.starts_with("trace:") && text.size() > 6) {
    return {RoutingSource::Kind::kTrace, 0, std::string(text.substr(6))};
  }
  throw InputError(fmt::format("routing '{}': {}", text, kAllowed));
}

}  // namespace cm384::traces
