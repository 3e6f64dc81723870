#include "hw/topology_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/text/content_hash.h"
#include "base/text/csv_table.h"
#include "base/text/error.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "hw/ns3ub_settings.h"

namespace cm384::hw {
namespace {

constexpr std::int64_t kMostId = std::int64_t{1} << 40;
constexpr std::int64_t kMostPort = 65'534;  // of a chip, its own die's included
constexpr std::size_t kMostNodes = 65'535;
constexpr std::size_t kMostRoutes = std::size_t{1} << 24;
constexpr std::size_t kMostRates = 200;  // that differ: links keep the number of theirs in a byte
constexpr Time kLeastDelay{1'000};       // to a die: the width of a window depends on it

using Names = std::vector<std::string>;
using Table = CsvTable;

struct Span {
  std::int64_t first = 0, last = 0;
};

class Reader {
 public:
  explicit Reader(const TopologyPaths& paths) : paths_(paths) {}

  TopologyFiles read() {
    read_nodes();
    read_links();
    check_ports();
    if (!paths_.routes.empty()) read_routes();
    if (!paths_.faults.empty()) read_faults();
    std::string hashes;
    for (const std::string* path : {&paths_.nodes, &paths_.links, &paths_.routes, &paths_.faults}) {
      if (!path->empty()) {
        files_.paths.push_back(*path);
        hashes += hash_of_file(*path);
      }
      hashes += '\n';
    }
    files_.content = hash_of(hashes);
    return std::move(files_);
  }

 private:
  // A number, or a range such as 0..15.
  static Span span_of(const Table& table, const FieldReader& fields, std::size_t column) {
    const std::string_view text = fields.text(column);
    const std::size_t dots = text.find("..");
    const Names name{table.names()[column]};
    const auto number = [&](std::string_view part) {
      return FieldReader(table.lines(), {part}, name).integer(0, 0, kMostId);
    };
    Span span;
    span.first = number(text.substr(0, dots));
    span.last = dots == std::string_view::npos ? span.first : number(text.substr(dots + 2));
    if (span.last < span.first || span.last - span.first >= static_cast<std::int64_t>(kMostNodes))
      fields.fail(column, fmt::format("a number, or a range that rises by less than {}", kMostNodes));
    return span;
  }

  static std::string part_of(const Table& table, const FieldReader& fields) {
    const std::string_view text = table.further(fields, "class");
    if (text.empty() || text == "chip") return "chip";
    if (text == "l1" || text == "l2" || text == "l3") return std::string(text) + "chip";
    fields.fail(table.column("class"), "chip, l1, l2, l3, or nothing");
  }

  template <class Parse>
  static auto quantity(const FieldReader& fields, std::size_t column, std::string_view text, Parse&& parse,
                       std::string_view such) {
    try {
      return parse(text);
    } catch (const InputError& error) {
      fields.fail(column, fmt::format("{} ({})", such, error.what()));
    }
  }

  void read_nodes() {
    Table table(paths_.nodes, {"nodeId", "nodeType", "portNum"}, {"forwardDelay", "class", "systemId"});
    std::vector<std::int64_t> ports;
    std::map<std::int64_t, std::pair<TopologyNode, std::int64_t>> by_id;
    table.each([&](const FieldReader& fields) {
      TopologyNode node;
      const Span ids = span_of(table, fields, 0);
      const std::string_view type = fields.text(1);
      using Type = TopologyNode::Type;
      const std::pair<std::string_view, Type> types[] = {{"DEVICE", Type::device},
                                                         {"SWITCH", Type::switch_chip},
                                                         {"DIE", Type::die},
                                                         {"SOCKET", Type::socket}};
      const auto* found = std::ranges::find(types, type, &std::pair<std::string_view, Type>::first);
      if (found == std::end(types)) fields.fail(1, "DEVICE, SWITCH, DIE, SOCKET");
      node.type = found->second;
      const bool chip = node.type == Type::device || node.type == Type::switch_chip;
      const std::int64_t count = fields.integer(2, chip ? 0 : 1, chip ? kMostPort : 1);
      if (const auto delay = table.further(fields, "forwardDelay"); !delay.empty()) {
        if (!chip) fields.fail(table.column("forwardDelay"), "nothing, a DIE or SOCKET forwards nothing");
        node.forward_delay = quantity(fields, table.column("forwardDelay"), delay, parse_time,
                                      "a time with unit, such as 10ns");
        if (node.forward_delay > Time{1'000'000'000}) fields.fail(table.column("forwardDelay"), "up to 1ms");
      }
      node.part = part_of(table, fields);
      if (!chip && node.part != "chip") fields.fail(table.column("class"), "nothing, of a DIE or SOCKET");
      for (node.id = ids.first; node.id <= ids.last; ++node.id) {
        if (!by_id.emplace(node.id, std::pair{node, count}).second)
          fields.fail(0, fmt::format("each node once, {} is already known", node.id));
        if (by_id.size() > kMostNodes) fields.fail(0, fmt::format("at most {} nodes", kMostNodes));
      }
    });
    for (const auto& [id, node] : by_id) {
      index_[id] = static_cast<std::uint32_t>(files_.nodes.size());
      files_.nodes.push_back(node.first);
      port_count_.push_back(node.second);
    }
    links_at_.resize(files_.nodes.size());
    if (files_.dies() == 0) table.lines().fail("node: none is a DEVICE or DIE; allowed: one or more");
  }

  std::uint32_t node_of(const FieldReader& fields, std::size_t column) const {
    const auto found = index_.find(fields.integer(column, 0, kMostId));
    if (found == index_.end()) fields.fail(column, fmt::format("a node of {}", paths_.nodes));
    return found->second;
  }
  std::string text_of(std::uint32_t node) const { return fmt::format("node {}", files_.nodes[node].id); }

  Bandwidth rate_of(const FieldReader& fields, std::size_t column, std::string_view text) {
    std::string ours(text);
    // ns-3's unit of bits.
    if (ours.ends_with("bps")) ours.replace(ours.size() - 2, 2, "it/s");
    const Bandwidth rate =
        quantity(fields, column, ours, parse_bandwidth, "a rate with unit, such as 400Gbps or 50GB/s");
    if (rate.bytes_per_second < 5'000'000 || rate.bytes_per_second > 4'000'000'000'000)
      fields.fail(column, "a rate from 40Mbps to 32Tbps");
    rates_.insert(rate.bytes_per_second);
    if (rates_.size() > kMostRates)
      fields.fail(column, fmt::format("at most {} different rates", kMostRates));
    return rate;
  }

  void read_links() {
    Table table(paths_.links, {"nodeId1", "portId1", "nodeId2", "portId2", "bandwidth", "delay"});
    table.each([&](const FieldReader& fields) {
      TopologyLink link;
      for (const std::size_t k : {0, 1}) {
        TopologyLink::End& end = link.ends[k];
        end.node = node_of(fields, 2 * k);
        end.port = fields.integer(2 * k + 1, 0, kMostPort);
        if (end.port >= port_count_[end.node])
          fields.fail(2 * k + 1, fmt::format("0 to portNum - 1 of {}, {}", text_of(end.node),
                                             port_count_[end.node] - 1));
      }
      if (link.ends[0].node == link.ends[1].node) fields.fail(2, "another node than nodeId1");
      const auto ends_ways = [&](std::size_t k) {
        const auto type = files_.nodes[link.ends[k].node].type;
        return type == TopologyNode::Type::die || type == TopologyNode::Type::socket;
      };
      for (const std::size_t k : {0, 1}) {
        if (ends_ways(k) && files_.nodes[link.ends[1 - k].node].type != TopologyNode::Type::switch_chip)
          fields.fail(2 * (1 - k), "a SWITCH, where the other end is a DIE or SOCKET");
      }
      if (!fields.text(4).empty()) link.ends[0].rate = link.ends[1].rate = rate_of(fields, 4, fields.text(4));
      if (!fields.text(5).empty()) {
        link.latency = quantity(fields, 5, fields.text(5), parse_time, "a time with unit, such as 20ns");
        if (link.latency > Time{1'000'000'000}) fields.fail(5, "up to 1ms");
        if ((ends_ways(0) || ends_ways(1)) && link.latency < kLeastDelay)
          fields.fail(5, "at least 1ns to a die");
      }
      for (const std::size_t k : {0, 1}) {
        const TopologyLink::End& end = link.ends[k];
        if (!links_at_[end.node].emplace(end.port, files_.links.size()).second)
          fields.fail(2 * k + 1, fmt::format("each port once, that of {} has a link", text_of(end.node)));
      }
      files_.links.push_back(link);
    });
  }

  void check_ports() {
    for (std::uint32_t n = 0; n < files_.nodes.size(); ++n) {
      if (links_at_[n].empty())
        throw InputError(
            fmt::format("{}: {} has no link; allowed: one or more per node", paths_.links, text_of(n)));
    }
  }

  void read_routes() {
    Table table(paths_.routes, {"nodeId", "dstNodeId", "dstPortId", "outPorts", "metrics"});
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> metric_of;
    std::size_t taken = 0, longer = 0;
    table.each([&](const FieldReader& fields) {
      const Span from = span_of(table, fields, 0), to = span_of(table, fields, 1);
      fields.integer(2, 0, kMostPort);
      std::vector<std::int64_t> ports, metrics;
      const auto numbers = [&](std::size_t column, std::int64_t most, std::vector<std::int64_t>& list) {
        const Names name{table.names()[column]};
        for (const std::string_view text : split_fields(fields.text(column), ' ')) {
          if (!text.empty()) list.push_back(FieldReader(table.lines(), {text}, name).integer(0, 0, most));
        }
      };
      numbers(3, kMostPort, ports);
      numbers(4, kMostId, metrics);
      if (ports.empty()) fields.fail(3, "ports, separated by blanks");
      if (metrics.size() != ports.size())
        fields.fail(4, fmt::format("a number for each of {} ports", ports.size()));
      for (std::int64_t a = from.first; a <= from.last; ++a) {
        const std::uint32_t node = known(fields, 0, a);
        for (const std::int64_t port : ports) {
          if (!links_at_[node].contains(port))
            fields.fail(3, fmt::format("ports of node {} that have a link; {} has none", a, port));
        }
        for (std::int64_t b = to.first; b <= to.last; ++b) {
          const std::uint32_t destination = known(fields, 1, b);
          if (a == b && from.first == from.last && to.first == to.last)
            fields.fail(1, "another node than nodeId");
          if (a == b) continue;
          if (files_.nodes[destination].type == TopologyNode::Type::switch_chip)
            fields.fail(1, "no SWITCH: nothing is sent to one");
          if (++taken > kMostRoutes) fields.fail(0, fmt::format("at most {} routes", kMostRoutes));
          longer += add_route(metric_of, {node, destination}, ports, metrics);
        }
      }
    });
    if (longer != 0)
      files_.notes.push_back(fmt::format(
          "{}: {} out ports of a higher metric than another for the same destination are not used",
          paths_.routes, longer));
  }

  std::uint32_t known(const FieldReader& fields, std::size_t column, std::int64_t id) const {
    const auto found = index_.find(id);
    if (found == index_.end()) fields.fail(column, fmt::format("nodes of {}", paths_.nodes));
    return found->second;
  }

  // Ports of the lowest metric stay. Returns how many were left out, now or before.
  template <class Metrics>
  std::size_t add_route(Metrics& metric_of, std::pair<std::uint32_t, std::uint32_t> key,
                        const std::vector<std::int64_t>& ports, const std::vector<std::int64_t>& metrics) {
    std::size_t left_out = 0;
    std::vector<std::int64_t>& kept = files_.routes[key];
    auto [metric, fresh] = metric_of.emplace(key, metrics.front());
    for (std::size_t k = 0; k < ports.size(); ++k) {
      if (paths_.all_metrics) {
        if (std::ranges::find(kept, ports[k]) == kept.end()) kept.push_back(ports[k]);
        continue;
      }
      if (metrics[k] < metric->second) {
        left_out += kept.size();
        kept.clear();
        metric->second = metrics[k];
      }
      if (metrics[k] > metric->second) {
        ++left_out;
      } else if (std::ranges::find(kept, ports[k]) == kept.end()) {
        kept.push_back(ports[k]);
      }
    }
    return left_out;
  }

  // Rates of ports are taken, from the start and for all that passes. The rest is said by line.
  void read_faults() {
    Table table(paths_.faults,
                {"taskId", "faultType", "dropRate(%)", "delay(ns)", "lowerDataRate(node port datrate(Mbps))",
                 "shutdownDropPackets(start end)", "OccasionalDropRate(%)"});
    std::map<std::int64_t, std::pair<std::string, std::size_t>>
        not_taken;  // by type: its first line, how many
    std::vector<Loss> losses;
    table.each([&](const FieldReader& fields) {
      fields.integer(0, 0, kMostId);
      const std::int64_t type = fields.integer(1, 0, 5);
      const std::string where = fmt::format("{}:{}", paths_.faults, table.lines().number());
      if (type == 2 || type == 4) return lower_rate(table, fields, where);
      ++not_taken.try_emplace(type, where, 0).first->second.second;
      if (type == 0 || type == 5)
        losses.push_back({fields.integer(0, 0, kMostId), {share_of(fields, type), type == 0}});
    });
    constexpr std::string_view kTypes[] = {"loss of a task's packets",
                                           "added delay of a task's packets",
                                           "",
                                           "a port that is shut for a time",
                                           "",
                                           "damage of a task's packets"};
    for (const auto& [type, lines] : not_taken) {
      const auto& [first, count] = lines;
      files_.notes.push_back(fmt::format("{}{}: ignored: {}", first,
                                         count == 1 ? "" : fmt::format(" and {} further lines", count - 1),
                                         kTypes[type]));
    }
    if (!losses.empty()) note_losses(losses);
  }

  struct Loss {
    std::int64_t task = 0;
    std::pair<double, bool> share{};  // of its packets; whether they are lost, or damaged
  };

  // Each type has a column of its own, in %.
  static double share_of(const FieldReader& fields, std::int64_t type) {
    const std::size_t column = type == 0 ? 2 : 6;
    const auto percent = number_of<double>(fields.text(column));
    if (!percent || !(*percent >= 0 && *percent <= 100)) fields.fail(column, "0 to 100");
    return *percent / 100;
  }

  // A link loses what passes, whatever task it serves: where all tasks of a device lose the same, that is
  // what its own link loses, which a run can be told.
  void note_losses(const std::vector<Loss>& losses) {
    const std::string traffic = (std::filesystem::path(paths_.faults).parent_path() / "traffic.csv").string();
    if (!std::filesystem::exists(traffic)) return;
    std::map<std::int64_t, std::set<std::int64_t>> tasks_of;  // by the node that sends
    std::map<std::int64_t, std::pair<double, bool>> share_of_task;
    for (const Loss& loss : losses) share_of_task[loss.task] = loss.share;
    LineReader lines(traffic);
    std::string line;
    const Names names{"taskId", "sourceNode"};
    for (bool header = true; lines.next(line); header = false) {
      if (header || line.find_first_not_of(" \t\r") == std::string::npos) continue;
      auto parts = split_fields(line);
      if (parts.size() < names.size()) lines.fail("line: allowed: taskId,sourceNode,...");
      const FieldReader fields(lines, std::move(parts), names);
      tasks_of[fields.integer(1, 0, kMostId)].insert(fields.integer(0, 0, kMostId));
    }
    std::vector<std::string> faults;
    const std::vector<std::int64_t> ids = files_.ids_of_dies();
    for (const auto& [node, tasks] : tasks_of) {
      const auto die = std::ranges::lower_bound(ids, node);
      std::set<std::pair<double, bool>> shares;
      for (const std::int64_t task : tasks) {
        const auto known = share_of_task.find(task);
        shares.insert(known == share_of_task.end() ? std::pair(0.0, false) : known->second);
      }
      const auto [share, lost] = *shares.begin();
      if (die == ids.end() || *die != node || shares.size() != 1 || share == 0 || share == 1) continue;
      faults.push_back(fmt::format("--fault die={},rate={:g},kind={}", die - ids.begin(), share,
                                   lost ? "lost" : "corrupt"));
    }
    if (faults.empty()) return;
    const std::size_t shown = std::min<std::size_t>(faults.size(), 2);
    files_.notes.push_back(fmt::format(
        "{}: a link loses what passes, whatever task it serves; of devices whose tasks all lose the same a "
        "replay takes: {}{}",
        paths_.faults, fmt::join(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(shown), " "),
        faults.size() > shown ? fmt::format(" ... ({} in all)", faults.size()) : ""));
  }

  void lower_rate(const Table& table, const FieldReader& fields, const std::string& where) {
    std::vector<std::string_view> parts = split_fields(fields.text(4), ' ');
    std::erase_if(parts, [](std::string_view part) { return part.empty(); });
    if (parts.size() != 3) fields.fail(4, "a node, a port and Mbps, separated by blanks");
    const Names names{table.names()[4], table.names()[4], table.names()[4]};
    const FieldReader numbers(table.lines(), parts, names);
    const std::uint32_t node = node_of(numbers, 0);
    const auto link = links_at_[node].find(numbers.integer(1, 0, kMostPort));
    if (link == links_at_[node].end())
      numbers.fail(1, fmt::format("a port of {} that has a link", text_of(node)));
    const Bandwidth rate = rate_of(numbers, 2, fmt::format("{}Mbps", parts[2]));
    for (TopologyLink::End& end : files_.links[link->second].ends) {
      if (end.node == node) end.rate = rate;
    }
    files_.notes.push_back(
        fmt::format("{}: port {} of {} sends at {} from the start, whatever task it serves", where, parts[1],
                    text_of(node), format(rate)));
  }

  const TopologyPaths& paths_;
  TopologyFiles files_;
  std::map<std::int64_t, std::uint32_t> index_;  // by id
  std::vector<std::int64_t> port_count_;
  std::vector<std::map<std::int64_t, std::size_t>> links_at_;  // by node and port
  std::set<std::int64_t> rates_;
};

std::string beside(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

std::optional<Ns3UbSettings> settings_of(const std::string& folder) {
  const std::string path = beside(folder, "network_attribute.txt");
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_ns3ub_settings(path);
}

}  // namespace

int TopologyFiles::dies() const {
  return static_cast<int>(std::ranges::count_if(nodes, [](const TopologyNode& n) {
    return n.type == TopologyNode::Type::device || n.type == TopologyNode::Type::die;
  }));
}

int TopologyFiles::sockets() const {
  return static_cast<int>(std::ranges::count(nodes, TopologyNode::Type::socket, &TopologyNode::type));
}

std::vector<std::int64_t> TopologyFiles::ids_of_dies() const {
  std::vector<std::int64_t> ids;
  for (const TopologyNode& n : nodes) {
    if (n.type == TopologyNode::Type::device || n.type == TopologyNode::Type::die) ids.push_back(n.id);
  }
  return ids;
}

TopologyPaths topology_paths(const std::string& folder) {
  const auto if_there = [&](std::string_view name) {
    const std::string path = beside(folder, name);
    return std::filesystem::exists(path) ? path : std::string();
  };
  TopologyPaths paths{beside(folder, "node.csv"), beside(folder, "topology.csv"),
                      if_there("routing_table.csv"), if_there("fault.csv"), false};
  if (const auto settings = settings_of(folder)) {
    paths.all_metrics = settings->all_metrics;
    if (!settings->faults_enabled) paths.faults.clear();
  }
  return paths;
}

bool is_topology_folder(const std::string& path) {
  return std::filesystem::is_directory(path) && std::filesystem::exists(beside(path, "node.csv"));
}

TopologyFiles read_topology(const TopologyPaths& paths) {
  return Reader(paths).read();
}

std::shared_ptr<const TopologyFiles> read_topology_folder(const std::string& folder) {
  auto files = std::make_shared<TopologyFiles>(read_topology(topology_paths(folder)));
  if (const std::string channels = beside(folder, "transport_channel.csv"); std::filesystem::exists(channels))
    files->notes.push_back(fmt::format("{}: ignored: controllers have no transport channels", channels));
  if (const auto settings = settings_of(folder)) {
    files->notes.insert(files->notes.end(), settings->notes.begin(), settings->notes.end());
    if (settings->quanta) {
      const std::string note = ns3ub_classes(folder, *settings->quanta, settings->lanes).note;
      if (!note.empty()) files->notes.push_back(note);
    }
    if (const std::string faults = beside(folder, "fault.csv");
        !settings->faults_enabled && std::filesystem::exists(faults))
      files->notes.push_back(fmt::format("{}: ignored: UB_FAULT_ENABLE is false", faults));
  }
  return files;
}

std::string machine_of_case(const std::string& folder) {
  const TopologyFiles files = read_topology(topology_paths(folder));
  std::vector<std::pair<std::string, std::string>> values{
      {"topology.kind", "\"file\""},
      {"topology.file", "\".\""},
      {"topology.nodes", std::to_string(files.dies())},
      {"topology.dies_per_node", "1"},
      {"topology.dies_per_package", "1"},
      {"topology.sockets_per_node", files.sockets() == 0 ? "0" : "1"},
      {"topology.sub_planes", "1"},
      {"ub.link.endpoint_latency", "\"1ns\""},
      {"ub.link.lanes", "8"},
      {"ub.switch.pipeline_latency", "\"10ns\""},
  };
  if (const auto settings = settings_of(folder)) {
    auto following = settings->machine;
    if (settings->quanta) {
      const auto classes = ns3ub_classes(folder, *settings->quanta, settings->lanes).machine;
      following.insert(following.end(), classes.begin(), classes.end());
    }
    for (const auto& [key, value] : following) {
      const auto known = std::ranges::find(values, key, &std::pair<std::string, std::string>::first);
      if (known == values.end()) {
        values.emplace_back(key, value);
      } else {
        known->second = value;
      }
    }
  }
  std::string text =
      "base = \"cloudmatrix384\"\n"
      "description = \"dies of cloudmatrix384 as the devices of an ns-3-UB case\"\n";
  for (const auto& [key, value] : values)
    text += fmt::format("{} = {{ value = {}, from = \"derived\", source = \"a case of ns-3-UB\" }}\n", key,
                        value);
  return text;
}

}  // namespace cm384::hw
