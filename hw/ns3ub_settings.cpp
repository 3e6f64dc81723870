#include "hw/ns3ub_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "base/text/quantity.h"

namespace cm384::hw {
namespace {

constexpr std::string_view kClassPrefix = "ns3::";
constexpr std::size_t kMostSettings = 10'000;

struct Setting {
  std::string value;
  std::string where;
};

// What those that nothing is made of have when they change nothing here.
bool is_idle(const std::string& name, const std::string& value) {
  static const std::map<std::string, std::string, std::less<>> kIdle{
      {"UbApp::EnableMultiPath", "false"}, {"UbPort::UbInterframeGap", "+0ns"},
      {"UbSwitch::FlowControl", "CBFC"},   {"UbTransportChannel::EnableRetrans", "false"},
      {"UB_CC_ENABLED", "false"},          {"UbPort::CbfcFlitLenByte", "20"},
      {"UbPort::CbfcFlitsPerCell", "8"}};
  const auto found = kIdle.find(name);
  if (found != kIdle.end()) return found->second == value;
  // What is traced, and the parts of congestion control, which is named by its switch.
  return name.find("TRACE") != std::string::npos || name.find("PYTHON") != std::string::npos ||
         name.find("Caqm") != std::string::npos || name.starts_with("UB_CC_");
}

class SettingsReader {
 public:
  explicit SettingsReader(const std::string& path) : path_(path) {
    LineReader lines(path);
    std::string line;
    while (lines.next(line)) {
      const std::size_t begin = line.find_first_not_of(" \t\r");
      if (begin == std::string::npos || line[begin] == '#') continue;
      const std::string_view text = std::string_view(line).substr(begin);
      const std::size_t first = text.find_first_of(" \t"), quote = text.find('"');
      const std::string_view kind = text.substr(0, first);
      if ((kind != "default" && kind != "global") || quote == std::string_view::npos ||
          text.find('"', quote + 1) == std::string_view::npos)
        lines.fail(
            fmt::format("line: '{}'; allowed: default ns3::CLASS::NAME \"VALUE\", global NAME \"VALUE\"",
                        text.substr(0, 60)));
      std::string_view name = text.substr(first, quote - first);
      while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
      while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
      if (name.starts_with(kClassPrefix)) name.remove_prefix(kClassPrefix.size());
      const std::string_view value = text.substr(quote + 1, text.find('"', quote + 1) - quote - 1);
      settings_[std::string(name)] = {std::string(value), fmt::format("{}:{}", path, lines.number())};
      if (settings_.size() > kMostSettings)
        lines.fail(fmt::format("line: more than {} settings", kMostSettings));
    }
  }

  Ns3UbSettings read() {
    Ns3UbSettings made;
    if (const auto spray = flag("UbTransportChannel::UsePacketSpray")) {
      made.machine.emplace_back("ub.switch.routing", *spray ? "\"spray\"" : "\"flow\"");
      const auto memory = flag("UbLdstApi::UsePacketSpray");
      if (memory && *memory != *spray)
        made.notes.push_back(
            fmt::format("{}: UbLdstApi::UsePacketSpray: ignored: loads and stores go as "
                        "UbTransportChannel::UsePacketSpray says",
                        settings_.at("UbLdstApi::UsePacketSpray").where));
    }
    for (const char* name :
         {"UbApp::UseShortestPaths", "UbTransportChannel::UseShortestPaths", "UbLdstApi::UseShortestPaths"}) {
      if (const auto shortest = flag(name)) made.all_metrics = made.all_metrics || !*shortest;
    }
    if (made.all_metrics)
      made.notes.push_back(
          fmt::format("{}: UseShortestPaths false: out ports of any metric are taken, for all "
                      "traffic",
                      path_));
    time("UbSwitchAllocator::AllocationTime", "ub.switch.pipeline_latency", made);
    time("UbLink::Delay", "ub.link.endpoint_latency", made);
    if (const Setting* rate = find("UbPort::UbDataRate")) {
      std::string ours = rate->value;
      if (ours.ends_with("bps")) ours.replace(ours.size() - 2, 2, "it/s");
      try {
        parse_bandwidth(ours);
      } catch (const InputError& error) {
        refuse("UbPort::UbDataRate", *rate, error.what());
      }
      made.machine.emplace_back("ub.link.bandwidth", fmt::format("\"{}\"", ours));
    }
    if (const Setting* lanes = find("UB_VL_NUM")) {
      const auto count = number_of<int>(lanes->value);
      if (!count || *count < 1 || *count > 16) refuse("UB_VL_NUM", *lanes, "allowed: 1 to 16");
      made.lanes = std::max(2, *count + *count % 2);
      made.machine.emplace_back("ub.link.lanes", std::to_string(made.lanes));
    }
    find("UB_PRIORITY_NUM");
    if (const auto faults = flag("UB_FAULT_ENABLE")) made.faults_enabled = *faults;
    schedule(made);
    std::vector<std::string> rest;
    for (const auto& [name, setting] : settings_) {
      if (!taken_.contains(name) && !is_idle(name, setting.value)) rest.push_back(name);
    }
    if (!rest.empty()) made.notes.push_back(fmt::format("{}: ignored: {}", path_, fmt::join(rest, ", ")));
    return made;
  }

 private:
  void schedule(Ns3UbSettings& made) {
    const Setting* scheduler = find("UbSwitch::VlScheduler");
    if (scheduler == nullptr) return;
    const Setting* others = find("UbDwrrAllocator::DefaultQuantum");
    const Setting* named = find("UbDwrrAllocator::VlQuantums");
    if (scheduler->value != "DWRR") {
      // The files do not say which end of the priorities SP has first.
      if (scheduler->value != "RR")
        made.notes.push_back(fmt::format(
            "{}: UbSwitch::VlScheduler {}: ignored, lanes have equal turns{}", scheduler->where,
            scheduler->value.substr(0, 60),
            scheduler->value == "SP" ? ": with ub.qos.arbitration=strict and ub.qos.classes=N the highest of "
                                       "priorities 0 to N - 1 goes first"
                                     : ""));
      return;
    }
    const auto quantum = [](std::string_view text) {
      const auto bytes = number_of<int>(text);
      return bytes && *bytes > 0 ? bytes : std::nullopt;
    };
    Ns3UbQuanta quanta{scheduler->where, 0, {}};
    if (others != nullptr) {
      const auto bytes = quantum(others->value);
      if (!bytes) refuse("UbDwrrAllocator::DefaultQuantum", *others, "allowed: bytes from 1 on");
      quanta.others = *bytes;
    }
    const std::string_view lanes = named == nullptr ? std::string_view() : named->value;
    for (const std::string_view part : split_fields(lanes)) {
      if (part.empty()) continue;
      const std::size_t colon = std::min(part.find(':'), part.size() - 1);
      const auto lane = number_of<int>(part.substr(0, colon));
      const auto bytes = quantum(part.substr(colon + 1));
      if (!lane || *lane < 0 || *lane > 15 || !bytes)
        refuse("UbDwrrAllocator::VlQuantums", *named,
               "allowed: LANE:BYTES,..., lanes from 0 to 15, bytes from 1 on");
      quanta.quanta[*lane] = *bytes;
    }
    made.quanta = std::move(quanta);
  }

  const Setting* find(const std::string& name) {
    const auto found = settings_.find(name);
    if (found == settings_.end()) return nullptr;
    taken_.insert(name);
    return &found->second;
  }
  [[noreturn]] static void refuse(const char* name, const Setting& setting, const std::string& why) {
    throw InputError(fmt::format("{}: {}: '{}'; {}", setting.where, name, setting.value.substr(0, 60), why));
  }
  std::optional<bool> flag(const char* name) {
    const Setting* setting = find(name);
    if (setting == nullptr) return std::nullopt;
    if (setting->value != "true" && setting->value != "false") refuse(name, *setting, "allowed: true, false");
    return setting->value == "true";
  }
  // "+10ns". None is not a latency that a machine can have: the least one stands for it.
  void time(const char* name, const char* key, Ns3UbSettings& made) {
    const Setting* setting = find(name);
    if (setting == nullptr) return;
    const std::string value = setting->value.starts_with('+') ? setting->value.substr(1) : setting->value;
    Time parsed;
    try {
      parsed = parse_time(value);
    } catch (const InputError& error) {
      refuse(name, *setting, error.what());
    }
    if (parsed >= Time{1'000}) made.machine.emplace_back(key, fmt::format("\"{}\"", value));
  }

  std::string path_;
  std::map<std::string, Setting> settings_;
  std::set<std::string> taken_;
};

}  // namespace

Ns3UbSettings read_ns3ub_settings(const std::string& path) {
  return SettingsReader(path).read();
}

}  // namespace cm384::hw
