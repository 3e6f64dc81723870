#include "traces/importers/ns3ub_topology.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <string_view>

#include "base/text/lines.h"

namespace cm384::traces {
namespace {

constexpr std::int64_t kMostDevice = std::int64_t{1} << 40;
constexpr std::int64_t kMostSwitches = 1 << 20;  // of one line
constexpr std::string_view kTraffic = "traffic.csv";

const std::vector<std::string> kNodeColumns{"nodeId", "nodeType"};
const std::vector<std::string> kLinkColumns{"nodeId1", "portId1", "nodeId2"};

// The lines of a file behind its header, whose first columns must be these.
template <class Line>
void read_lines(const std::string& path, const std::vector<std::string>& columns, Line&& take) {
  LineReader lines(path);
  std::string line;
  const auto begins = [&](const std::vector<std::string_view>& fields) {
    return fields.size() >= columns.size() && std::equal(columns.begin(), columns.end(), fields.begin());
  };
  if (!lines.next(line) || !begins(split_fields(line)))
    lines.fail(fmt::format("header: '{}'; allowed: {},...", line.substr(0, 80), fmt::join(columns, ",")));
  while (lines.next(line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto fields = split_fields(line);
    if (fields.size() < columns.size())
      lines.fail(fmt::format("line: {} fields; allowed: {} or more", fields.size(), columns.size()));
    take(lines, FieldReader(lines, std::move(fields), columns));
  }
}

// Numbers of the switches; an id may be a range `32..35`.
std::set<std::int64_t> switches_of(const std::string& path) {
  std::set<std::int64_t> switches;
  read_lines(path, kNodeColumns, [&](const LineReader& lines, const FieldReader& fields) {
    if (fields.text(1) != "SWITCH" && fields.text(1) != "DEVICE") fields.fail(1, "DEVICE, SWITCH");
    const std::string_view id = fields.text(0);
    const std::size_t dots = id.find("..");
    const std::vector<std::string> name{kNodeColumns[0]};
    const auto number = [&](std::string_view text) {
      return FieldReader(lines, {text}, name).integer(0, 0, kMostDevice);
    };
    const std::int64_t first = number(id.substr(0, dots));
    const std::int64_t last = dots == std::string_view::npos ? first : number(id.substr(dots + 2));
    if (last < first || last - first >= kMostSwitches)
      fields.fail(0, fmt::format("a number, or a range that rises by less than {}", kMostSwitches));
    if (fields.text(1) == "DEVICE") return;
    for (std::int64_t n = first; n <= last; ++n) switches.insert(n);
  });
  return switches;
}

}  // namespace

Ns3UbCase read_ns3ub_case(const std::string& traffic) {
  Ns3UbCase found;
  if (!traffic.ends_with(kTraffic)) return found;
  const std::string stem = traffic.substr(0, traffic.size() - kTraffic.size());
  const auto exists = [&](const char* name) { return std::filesystem::exists(stem + name); };
  for (const char* name :
       {"routing_table.csv", "transport_channel.csv", "fault.csv", "network_attribute.txt"}) {
    if (exists(name)) found.unread.push_back(std::filesystem::path(stem + name).filename().string());
  }
  if (!exists("node.csv") || !exists("topology.csv")) return found;
  const std::set<std::int64_t> switches = switches_of(stem + "node.csv");
  read_lines(stem + "topology.csv", kLinkColumns, [&](const LineReader&, const FieldReader& fields) {
    std::int64_t device = fields.integer(0, 0, kMostDevice), other = fields.integer(2, 0, kMostDevice);
    if (switches.contains(device)) std::swap(device, other);
    if (switches.contains(device) || !switches.contains(other)) return;
    const auto [known, fresh] = found.leaves.emplace(device, other);
    if (!fresh) known->second = std::min(known->second, other);
  });
  return found;
}

}  // namespace cm384::traces
