#include "hw/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <set>
#include <span>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/parameter_list.h"
#include "base/text/quantity.h"
#include "hw/hbm_bandwidth.h"
#include "hw/machine_reader.h"
#include "hw/qos.h"
#include "hw/topology_files.h"

namespace cm384::hw {
namespace {

// Limits of a global address (firmware/abi/memory_map.h): a die's or socket's number and the offset in it.
constexpr int kAddressable = 65'535;  // dies and sockets together
constexpr Bytes kAddressableMemory = 64_GiB;

void check_complete(Machine& machine, const std::string& where) {
  for (const Parameter& parameter : list_parameters(machine)) {
    if (machine.provenance.contains(parameter.key)) continue;
    throw InputError(fmt::format("{}: {}: has no value ({}); allowed: {}", where, parameter.key,
                                 parameter.sentence, allowed_text(parameter)));
  }
}

void require(bool holds, const std::string& key, std::int64_t found, std::string_view allowed) {
  if (!holds) throw InputError(fmt::format("{}: {} does not fit; allowed: {}", key, found, allowed));
}

// Which kinds of topology read a parameter that not all of them read.
const std::map<std::string_view, std::vector<std::string_view>> kParametersOfKinds = {
    {"l2_switches", {"clos", "clos3"}},
    {"l3_switches", {"clos3"}},
    {"groups", {"clos3", "dragonfly"}},
    {"global_links", {"dragonfly"}},
    {"shape", {"full-mesh", "mesh", "torus"}},
    {"switches_per_rack", {"clos", "clos3", "full-mesh", "mesh", "torus", "star", "file"}},
    {"file", {"file"}},
    {"content", {"file"}}};

// What only one kind of accelerator has.
constexpr std::string_view kSectionsWithoutCores[] = {"transfer_engine", "processor"};
constexpr std::string_view kSectionsOfCores[] = {"die",         "scheduler",      "sdma", "host",
                                                 "scalar_core", "vector_core",    "mte",  "cube_core",
                                                 "cube_mte",    "on_die_network", "l2",   "hbm"};

// Spines join the rails of all supernodes: there are no core switches.
std::string without_effect_on_rails(const Machine& machine, const std::string& key) {
  if (machine.rdma.wiring != "rails" || !key.starts_with("rdma.core_")) return {};
  return "has no effect with rdma.wiring=rails; allowed with: blocks";
}

// Why a parameter has no effect with the machine's kinds of topology and accelerator; empty: it has one.
std::string without_effect(const Machine& machine, const std::string& key) {
  const std::string section = key.substr(0, key.find('.'));
  if (section == "topology") {
    const auto of_kinds = kParametersOfKinds.find(std::string_view(key).substr(section.size() + 1));
    if (of_kinds == kParametersOfKinds.end()) return {};
    const auto& kinds = of_kinds->second;
    if (std::ranges::find(kinds, machine.topology.kind) != kinds.end()) return {};
    return fmt::format("has no effect with topology.kind={}; allowed with: {}", machine.topology.kind,
                       fmt::join(kinds, ", "));
  }
  if (const std::string why = without_effect_on_rails(machine, key); !why.empty()) return why;
  if (const std::string why = without_effect_of_qos(machine, key); !why.empty()) return why;
  const bool cores = machine.accelerator.has_cores();
  const auto& others = cores ? std::span<const std::string_view>(kSectionsWithoutCores)
                             : std::span<const std::string_view>(kSectionsOfCores);
  if (std::ranges::find(others, section) == others.end()) return {};
  return fmt::format("has no effect with accelerator.kind={}; allowed with: {}", machine.accelerator.kind,
                     cores ? "transfer-engine" : "ascend");
}

void check_effects(const Machine& machine) {
  for (const auto& [key, provenance] : machine.provenance) {
    if (provenance.from != Origin::command_line) continue;
    if (const std::string why = without_effect(machine, key); !why.empty())
      throw InputError(fmt::format("--set {}: {}", key, why));
  }
}

// Sets what has an effect, and notes what has none. Which it is depends on kinds that may be set here, too.
void override_where_used(Machine& machine, const std::vector<std::string>& assignments) {
  Machine all = machine;
  for (const std::string& assignment : assignments) override_parameter(all, assignment);
  std::vector<std::string> used;
  for (const std::string& assignment : assignments) {
    const std::string key = assignment.substr(0, assignment.find('='));
    if (const std::string why = without_effect(all, key); why.empty()) {
      used.push_back(assignment);
    } else {
      machine.notes.push_back(fmt::format("{}: {}", assignment, why));
    }
  }
  override_parameters(machine, used);
}

void check_topology(const Machine& machine) {
  const Topology& topology = machine.topology;
  require(topology.dies_per_node % topology.dies_per_package == 0, "topology.dies_per_node",
          topology.dies_per_node,
          "a multiple of topology.dies_per_package: an even number where a package has two dies");
  const std::int64_t units =
      std::int64_t{topology.nodes} * (topology.dies_per_node + topology.sockets_per_node);
  require(units <= kAddressable, "topology.nodes", topology.nodes,
          fmt::format("dies and sockets together at most {}, what packets can name", kAddressable));
  require(machine.ub.link.lanes % 2 == 0, "ub.link.lanes", machine.ub.link.lanes, "an even number");
  require(machine.ub.translation.entries % machine.ub.translation.ways == 0, "ub.translation.entries",
          machine.ub.translation.entries, "a multiple of ub.translation.ways");
  check_qos(machine);
}

void check_accelerator(const Machine& machine) {
  require(std::has_single_bit(static_cast<std::uint64_t>(machine.transfer_engine.request.count)),
          "transfer_engine.request", machine.transfer_engine.request.count, "a power of two");
}

void check_memory(const Machine& machine) {
  const Hbm& hbm = machine.memory.hbm;
  require(hbm.capacity <= kAddressableMemory, "hbm.capacity", hbm.capacity.count,
          "at most 64GiB, what global addresses hold per die");
  require(machine.die.aic + machine.die.aiv <= machine.memory.on_die_network.core_ports,
          "on_die_network.core_ports", machine.memory.on_die_network.core_ports,
          "at least die.aic + die.aiv, one per core");
  const auto power = [](const std::string& key, std::int64_t value) {
    require(std::has_single_bit(static_cast<std::uint64_t>(value)), key, value, "a power of two");
  };
  power("hbm.pseudo_channels", hbm.pseudo_channels);
  power("hbm.bank_groups", hbm.bank_groups);
  power("hbm.banks_per_group", hbm.banks_per_group);
  power("hbm.row", hbm.row.count);
  power("l2.sector", machine.memory.l2.sector.count);
  power("ub.translation.page", machine.ub.translation.page.count);
  power("scalar_core.instruction_cache_line", machine.scalar_core.instruction_cache_line.count);
  power("scalar_core.data_cache_line", machine.scalar_core.data_cache_line.count);
}

bool is_preset(const std::string& name) {
  return std::ranges::find(embedded_presets(), name, &EmbeddedText::name) != embedded_presets().end();
}

// Values of a machine that are not those of a preset, by key.
std::map<std::string, std::string> differences(Machine& machine, const std::string& preset_name) {
  Machine preset = read_layers(preset_name);
  const std::vector<Parameter> own = list_parameters(machine), published = list_parameters(preset);
  std::map<std::string, std::string> keys;
  for (std::size_t k = 0; k < own.size(); ++k) {
    const std::string value = value_text(own[k]);
    if (value != value_text(published[k])) keys[own[k].key] = value;
  }
  return keys;
}

// What the files of a topology hold is part of the machine: their hash is one of its values.
void take_topology_files(Machine& machine) {
  Topology& topology = machine.topology;
  if (topology.kind != "file") return;
  if (!is_topology_folder(topology.file))
    throw InputError(fmt::format(
        "topology.file: '{}' is not a folder with a node.csv; allowed: one that has nodes and links",
        topology.file));
  topology.files = read_topology_folder(topology.file);
  if (topology.content != "auto" && topology.content != topology.files->content)
    throw InputError(fmt::format(
        "topology.content: the files of {} have changed, their hash is {}; allowed: auto, or this one",
        topology.file, topology.files->content));
  topology.content = topology.files->content;
  machine.provenance["topology.content"] = {Origin::derived, "hash of the files"};
  const auto agree = [&](std::string_view what, int found, int machine_has, std::string_view key) {
    if (found == machine_has) return;
    throw InputError(
        fmt::format("{}: {} {}, but the machine has {}; allowed: as many as topology.nodes x topology.{}",
                    topology.files->paths.front(), found, what, machine_has, key));
  };
  agree("dies (DEVICE or DIE)", topology.files->dies(), topology.one_supernode().dies(), "dies_per_node");
  agree("CPU sockets (SOCKET)", topology.files->sockets(), topology.one_supernode().sockets(),
        "sockets_per_node");
  machine.files.insert(machine.files.end(), topology.files->paths.begin(), topology.files->paths.end());
  machine.notes.insert(machine.notes.end(), topology.files->notes.begin(), topology.files->notes.end());
}

// A machine is what its values are: they are held against the preset that it stands on, or whose name it
// bears, and a user's file with other values does not keep the preset's name.
Machine finish(Machine machine, const std::string& where, const std::vector<std::string>& overrides,
               const std::vector<std::string>& where_used) {
  const bool claims = is_preset(machine.name) && !machine.files.empty();
  if (claims && machine.preset.empty()) machine.preset = machine.name;
  const bool changed =
      claims && (machine.name != machine.preset || !differences(machine, machine.preset).empty());
  override_parameters(machine, overrides);
  override_where_used(machine, where_used);
  check_complete(machine, where);
  take_topology_files(machine);
  check_machine(machine);
  if (!machine.preset.empty()) machine.overrides = differences(machine, machine.preset);
  if (changed) {
    const std::string stem = std::filesystem::path(where).stem().string();
    machine.name = is_preset(stem) ? stem + " (changed)" : stem;
  }
  return machine;
}

}  // namespace

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::published:
      return "published";
    case Origin::derived:
      return "derived";
    case Origin::calibrated:
      return "calibrated";
    case Origin::assumed:
      return "assumed";
    case Origin::user_file:
      return "user file";
    case Origin::command_line:
      return "command line";
  }
  return "";
}

Machine load_machine(const std::string& preset_or_path, const std::vector<std::string>& overrides,
                     const std::vector<std::string>& where_used) {
  return finish(read_layers(preset_or_path), preset_or_path, overrides, where_used);
}

Machine parse_machine(std::string_view text, const std::string& name,
                      const std::vector<std::string>& overrides) {
  return finish(read_layers_of_text(text, name), name, overrides, {});
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const EmbeddedText& preset : embedded_presets()) names.emplace_back(preset.name);
  std::ranges::sort(names);
  return names;
}

void override_parameter(Machine& machine, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw InputError(fmt::format("--set {}: has no '='; allowed: section.key=value", assignment));
  }
  const std::string key(assignment.substr(0, equals));
  const std::vector<Parameter> parameters = list_parameters(machine);
  const auto parameter = std::ranges::find(parameters, key, &Parameter::key);
  if (parameter == parameters.end()) {
    throw InputError(
        fmt::format("--set {}: no such parameter{}", key, unknown_key(key, keys_of(parameters))));
  }
  try {
    assign(*parameter, assignment.substr(equals + 1));
  } catch (const InputError& error) {
    throw InputError(fmt::format("--set {}: {}", key, error.what()));
  }
  machine.provenance[key] = {Origin::command_line, "--set"};
  machine.overrides[key] = value_text(*parameter);
}

void override_parameters(Machine& machine, const std::vector<std::string>& assignments) {
  const Machine before = machine;
  std::set<std::string, std::less<>> given;
  for (const std::string& assignment : assignments) {
    override_parameter(machine, assignment);
    given.insert(assignment.substr(0, assignment.find('=')));
  }
  settle_hbm(machine, before, given);
  settle_core_ports(machine, given);
}

void check_machine(const Machine& machine) {
  check_effects(machine);
  check_topology(machine);
  check_accelerator(machine);
  check_memory(machine);
}

Peaks peaks_of(const Machine& machine) {
  const auto cubes = [&](int macs_per_cycle) {
    return 2e-12 * macs_per_cycle * machine.die.aic * static_cast<double>(machine.die.clock.hertz);
  };
  const MacsPerCycle& macs = machine.cube_core.macs_per_cycle;
  Bandwidth unified_bus;
  for (int plane = 0; plane < machine.topology.sub_planes; ++plane)
    unified_bus.bytes_per_second += machine.ub.link.die_bandwidth(plane).bytes_per_second;
  if (!machine.accelerator.has_cores())
    return {.unified_bus = unified_bus,
            .hbm = machine.transfer_engine.memory_bandwidth,
            .int8_tops = machine.processor.int8_tops,
            .bf16_tflops = machine.processor.bf16_tflops,
            .fp8_tflops = machine.processor.fp8_tflops};
  return {.unified_bus = unified_bus,
          .hbm = hbm_peak(machine.memory.hbm),
          .int8_tops = cubes(macs.int8),
          .bf16_tflops = cubes(macs.bf16),
          .fp32_tflops = cubes(macs.fp32)};
}

std::string value_of(const Machine& machine, std::string_view key) {
  Machine copy = machine;
  const std::vector<Parameter> parameters = list_parameters(copy);
  const auto parameter = std::ranges::find(parameters, key, &Parameter::key);
  if (parameter == parameters.end()) {
    throw InputError(fmt::format("{}: no such parameter{}", key, suggestion(key, keys_of(parameters))));
  }
  return value_text(*parameter);
}

}  // namespace cm384::hw
