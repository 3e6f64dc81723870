#include "studies/result.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "hw/error.h"
#include "studies/build_info.h"

namespace cm384::studies {
namespace {

// FNV-1a, 64 bit: tells whether an input is the same file, nothing more.
std::string hash_of_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325u;
  char block[1 << 16];
  while (stream.read(block, sizeof block) || stream.gcount() > 0) {
    for (std::streamsize i = 0; i < stream.gcount(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(block[i])) * 0x100000001b3u;
    }
  }
  return fmt::format("fnv1a64:{:016x}", hash);
}

double peak_rss_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
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
          {"threads", counts.threads},
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
    for (const std::string& path : *list) inputs.push_back({{"path", path}, {"hash", hash_of_file(path)}});
  }
  return inputs;
}

}  // namespace

Json to_document(const StudyResult& result, const hw::Machine& machine, const RunFacts& run) {
  Json document;
  document["schema"] = 1;
  document["study"] = run.study;
  document["machine"] = machine.name;
  document["seed"] = run.seed;
  document["complete"] = result.complete;
  document["parameters"] = result.parameters;
  document["machine_overrides"] = Json::object();
  for (const auto& [key, value] : machine.overrides) document["machine_overrides"][key] = value;
  document["rows"] = result.rows;
  if (!result.notes.empty()) document["notes"] = result.notes;
  document["inputs"] = inputs_object(result, machine);
  document["simulator"] = simulator_object(result, run);
  return document;
}

}  // namespace cm384::studies
