#include "workloads/frame/result_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/program_options/parsers.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/engine/peers.h"
#include "base/text/error.h"
#include "base/text/number.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/input_hash.h"

namespace cm384::studies {
namespace {

double peak_rss_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

// What each of several processes took; all of them come here.
Json processes_array() {
  struct Process {
    double peak_rss_MB, exchange_s, exchanged_MB;
    std::uint64_t exchanges;
  };
  const sim::Peers::Cost& cost = sim::peers().cost();
  const Process mine{peak_rss_megabytes(), cost.seconds, static_cast<double>(cost.bytes) / 1e6,
                     cost.exchanges};
  Json processes = Json::array();
  for (const sim::Blob& blob : sim::peers().all(std::as_bytes(std::span(&mine, 1)))) {
    Process process{};
    std::memcpy(&process, blob.data(), sizeof process);
    processes.push_back({{"peak_rss_MB", process.peak_rss_MB},
                         {"exchange_s", process.exchange_s},
                         {"exchanges", process.exchanges},
                         {"exchanged_MB", process.exchanged_MB}});
  }
  return processes;
}

Json what_if_object(const SimulatorCounts& counts) {
  return {{"threads", counts.what_if_threads}, {"speedup", counts.what_if_speedup()}};
}

Json simulator_object(const StudyResult& result, const RunFacts& run) {
  const BuildInfo& build = build_info();
  const SimulatorCounts& counts = result.simulator;
  return {{"wall_s", run.wall_s},
          {"simulated_us", counts.simulated.us()},
          {"instructions", counts.instructions},
          {"packet_hops", counts.packet_hops},
          {"memory_requests", counts.memory_requests},
          {"damaged_transmissions", counts.damaged},
          {"lost_packets", counts.lost},
          {"resent_requests", counts.resent},
          {"threads", std::max(1u, counts.threads)},
          {"threads_why", counts.threads == 0 ? "nothing to run side by side" : counts.threads_why},
          {"rtl_cycles", counts.rtl_cycles},
          {"rtl_packets", counts.rtl_packets},
          {"events", counts.events},
          {"peak_rss_MB", peak_rss_megabytes()},
          {"build",
           {{"version", build.version},
            {"commit", build.commit},
            {"compiler", build.compiler},
            {"type", build.build_type},
            {"sanitizers", build.sanitizers}}}};
}

Json inputs_object(const StudyResult& result, const hw::Machine& machine) {
  Json inputs = Json::array();
  for (const auto* list : {&machine.files, &result.input_files}) {
    for (const std::string& path : *list) {
      inputs.push_back({{"path", path}, {"hash", hash_of_file(path)}});
      if (const auto code = hash_of_code(path)) inputs.back()["code"] = *code;
    }
  }
  return inputs;
}

Json to_json_value(const Value& value) {
  if (const bool* held = value.boolean()) return *held;
  if (const std::int64_t* held = value.integer()) return *held;
  if (const double* held = value.real()) return *held;
  if (const std::string* held = value.text()) return *held;
  if (const Row* held = value.row()) return to_json(*held);
  if (const Rows* held = value.rows()) return to_json(*held);
  Json list = nullptr;
  if (const Values* held = value.values()) {
    list = Json::array();
    for (const Value& element : *held) list.push_back(to_json_value(element));
  }
  return list;
}

}  // namespace

Json to_json(const Row& row) {
  Json json = Json::object();
  for (const auto& [name, value] : row.entries()) json[name] = to_json_value(value);
  return json;
}

Json to_json(const Rows& rows) {
  Json json = Json::array();
  for (const Row& row : rows) json.push_back(to_json(row));
  return json;
}

Value value_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number()) return json.get<std::int64_t>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object()) return row_of(json);
  if (!json.is_array()) return {};
  const bool of_rows = !json.empty() && json.front().is_object();
  if (of_rows) {
    Rows rows;
    for (const Json& element : json) rows.push_back(row_of(element));
    return rows;
  }
  Values values;
  for (const Json& element : json) values.push_back(value_of(element));
  return values;
}

Row row_of(const Json& object) {
  Row row;
  for (const auto& [name, value] : object.items()) row.set(name, value_of(value));
  return row;
}

std::string date_now() {
  std::time_t now = std::time(nullptr);
  if (const char* fixed = std::getenv("SOURCE_DATE_EPOCH")) {
    const std::string_view text = fixed;
    const auto seconds = hw::number_of<std::int64_t>(text);
    constexpr std::int64_t kYear10000 = 253'402'300'800;
    if (!seconds || *seconds < 0 || *seconds >= kYear10000)
      throw InputError(fmt::format("SOURCE_DATE_EPOCH: '{}'; allowed: seconds since 1970", text));
    now = static_cast<std::time_t>(*seconds);
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

std::string shell_command(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:%@^";
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  }
  return command;
}

std::vector<std::string> shell_words(const std::string& command) {
  return boost::program_options::split_unix(command);
}

Json to_document(const StudyResult& result, const hw::Machine& machine, const RunFacts& run) {
  Json document;
  document["schema"] = 1;
  document["study"] = run.study;
  if (!run.arguments.empty()) {
    std::vector<std::string> words = run.arguments;
    words.insert(words.begin(), "cm384");
    document["invocation"] = {{"command", shell_command(words)}, {"date", run.date}};
  }
  document["machine"] = machine.name;
  document["seed"] = run.seed;
  document["complete"] = result.complete;
  document["parameters"] = to_json(result.parameters);
  document["machine_overrides"] = Json::object();
  for (const auto& [key, value] : machine.overrides) document["machine_overrides"][key] = value;
  document["rows"] = to_json(result.rows);
  std::vector<std::string> notes = machine.notes;
  notes.insert(notes.end(), result.notes.begin(), result.notes.end());
  if (!notes.empty()) document["notes"] = notes;
  document["inputs"] = inputs_object(result, machine);
  document["simulator"] = simulator_object(result, run);
  if (result.simulator.what_if_longest > 0)
    document["simulator"]["threads_what_if"] = what_if_object(result.simulator);
  if (sim::peers().several()) document["simulator"]["processes"] = processes_array();
  return document;
}

}  // namespace cm384::studies
