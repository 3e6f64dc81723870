// The machine as data: every parameter of every part, with where its value comes from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hw/parameters/accelerator.h"
#include "hw/parameters/aicpu.h"
#include "hw/parameters/cube_core.h"
#include "hw/parameters/die.h"
#include "hw/parameters/host.h"
#include "hw/parameters/memory.h"
#include "hw/parameters/rdma.h"
#include "hw/parameters/scalar_core.h"
#include "hw/parameters/scheduler.h"
#include "hw/parameters/sdma.h"
#include "hw/parameters/ub.h"
#include "hw/parameters/vector_core.h"

namespace cm384::hw {

// Where a value comes from.
enum class Origin : std::uint8_t { published, derived, calibrated, assumed, user_file, command_line };
std::string_view to_string(Origin origin);

// Which values would be as plausible as the one that a parameter has, and why. As the reader takes them.
struct Plausible {
  std::vector<std::string> values;  // of an interval: its ends, the lower one first; otherwise all of them
  bool interval = false;            // any value between the two
  std::string reason;
};

struct Provenance {
  Origin from = Origin::assumed;
  std::string source;  // a sentence: the publication, the derivation, the figure calibrated to; or file:line
  Plausible plausible{};  // without values: not stated
};

struct Machine {
  std::string name;         // of the preset, or of the file: a changed machine does not keep a preset's name
  std::string description;  // one line

  Accelerator accelerator;
  Die die;
  Scheduler scheduler;
  Sdma sdma;
  Host host;
  Aicpu aicpu;
  ScalarCoreParameters scalar_core;
  VectorCore vector_core;
  Mte mte;
  CubeCore cube_core;
  Mte cube_mte;   // of a cube core: MTE2 to L1, MTE3, and FIX but for its rate
  Memory memory;  // sections on_die_network, l2, hbm
  Topology topology;
  UnifiedBus ub;
  CpuSocket cpu;
  PackageLink package_link;
  Rdma rdma;
  TransferEngine transfer_engine;
  Processor processor;

  std::map<std::string, Provenance> provenance;  // by key such as "hbm.t_rc"; one entry a parameter
  // Key to value: what differs from the preset. Of a file on its own: what --set changed.
  std::map<std::string, std::string> overrides;
  std::string preset;  // that all of this stands on, or whose name it bears; empty: a file on its own
  std::vector<std::string> files;  // the user's files that were read, base first; those of a topology last
  std::vector<std::string> notes;  // what of them is not taken, or taken for something else; for people

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("accelerator", self.accelerator);
    visit("die", self.die);
    visit("scheduler", self.scheduler);
    visit("sdma", self.sdma);
    visit("host", self.host);
    visit("aicpu", self.aicpu);
    visit("scalar_core", self.scalar_core);
    visit("vector_core", self.vector_core);
    visit("mte", self.mte);
    visit("cube_core", self.cube_core);
    visit("cube_mte", self.cube_mte);
    Memory::describe(self.memory, visit);
    visit("topology", self.topology);
    visit("ub", self.ub);
    visit("cpu", self.cpu);
    visit("package_link", self.package_link);
    visit("rdma", self.rdma);
    visit("transfer_engine", self.transfer_engine);
    visit("processor", self.processor);
  }
};

// A machine from a preset's name, a TOML file (anything with a '/' or the ending .toml) or a case folder of
// ns-3-UB (topology_files.h), with overrides of
// the form "section.key=value" applied in order. Checked: every parameter has a value of its kind, in its
// range, and the cross-checks of check_machine hold. Throws InputError: one line, file:line: key: what was
// found; what is allowed. Overrides that have no effect with the machine's kinds are refused; those of
// `where_used` are left out with a note.
Machine load_machine(const std::string& preset_or_path, const std::vector<std::string>& overrides = {},
                     const std::vector<std::string>& where_used = {});

// Loads a machine from TOML text; `name` stands for the file in messages and names the machine.
Machine parse_machine(std::string_view text, const std::string& name,
                      const std::vector<std::string>& overrides = {});

// Names of the presets built into the program, sorted.
std::vector<std::string> preset_names();
inline constexpr std::string_view kDefaultMachine = "cloudmatrix384";

// Applies one "key=value", to that parameter alone. Throws InputError.
void override_parameter(Machine& machine, std::string_view assignment);
// Applies all of them, in order; then what they are coupled with follows (hw/hbm_bandwidth.h).
void override_parameters(Machine& machine, const std::vector<std::string>& assignments);

// Checks that span parameters: clocks that convert exactly, counts that fit together. Throws InputError.
void check_machine(const Machine& machine);

// What utilisations are taken against, all of a die and of its parts' parameters.
struct Peaks {
  Bandwidth unified_bus{};  // ports together, one way, headers included
  Bandwidth hbm{};          // hw/hbm_bandwidth.h; without cores transfer_engine.memory_bandwidth
  // Of all AICs, 10^12 operations per second: a multiply-add is two (cube_core.macs_per_cycle). Without
  // cores those of section processor. 0: has none.
  double int8_tops = 0, bf16_tflops = 0, fp32_tflops = 0, fp8_tflops = 0;
};
Peaks peaks_of(const Machine& machine);

// Every value with its provenance, as TOML that load_machine reads back to the same machine.
std::string to_toml(const Machine& machine);
// Every value with its provenance, as JSON.
std::string to_json(const Machine& machine);
// The reference page (Markdown): key, range, sentence, value, origin and source of every parameter.
std::string reference_page(const Machine& machine);

// The value of one parameter as text, such as "47.5ns". Throws InputError for an unknown key.
std::string value_of(const Machine& machine, std::string_view key);

}  // namespace cm384::hw
