// Options that several commands have in common.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "hw/machine.h"
#include "workloads/frame/options.h"

namespace cm384::cli {

struct MachineOptions {
  std::string machine{hw::kDefaultMachine};
  studies::Texts set, set_where_used;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("machine", self.machine, studies::Form{"PRESET|FILE"},
          "the machine; `cm384 machine list` names the presets; FILE may be a case folder of ns-3-UB");
    visit("set", self.set, studies::Form{"KEY=VALUE"},
          "change one parameter, such as ub.link.bandwidth=28GB/s; may be repeated");
    visit("set-where-used", self.set_where_used, studies::Form{"KEY=VALUE"},
          "as --set, but a note instead of an error where the parameter has no effect with the machine's "
          "kinds of topology and accelerator");
  }
  // Its lanes follow its topology. Says on standard error, once, what follows and what is not taken. Throws
  // InputError.
  hw::Machine load() const;
};

struct SeedOption {
  std::int64_t seed = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("seed", self.seed, studies::Range{std::int64_t{0}, std::numeric_limits<std::int64_t>::max()},
          "seed for all random numbers");
  }
  std::uint64_t value() const { return static_cast<std::uint64_t>(seed); }
};

// Threads of the host that run a machine.
struct ThreadsChosen {
  unsigned threads = 1;
  std::string why = "asked for";
};
// `asked`: by --threads; 0: one per core of the host.
ThreadsChosen choose_threads(int asked);

// How rows are printed on standard output.
struct RowOptions {
  std::string format = "table";
  std::string columns;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("format", self.format, studies::OneOf{{"table", "json", "csv"}}, "of the rows on standard output");
    visit("columns", self.columns, studies::Form{"NAME,..|all"},
          "columns of the table, as --format csv names them; default: the most important ones",
          studies::Needs{"format", {"table"}});
  }
};

}  // namespace cm384::cli
