// Energy by activity: counters times what an action costs, and power that flows whether or not anything
// happens. An allocation by a table of coefficients (hw/energy/), each with a range; no measurement.
//
// A run on some dies of a machine bears their share of what the supernode has in common: switches, optics,
// hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "base/text/parameter_list.h"
#include "hw/machine.h"

namespace cm384::observe {

// Coefficients, as hw/energy/ascend-910c.toml has them.
struct EnergyTable {
  // Joules for each counted action.
  struct Action {
    std::string name, part;
    hw::Texts counters;  // patterns of docs/statistics.md, summed
    double actions = 1;  // for each unit counted
    double picojoules = 0, least = 0, most = 0;
    std::string source;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("name", self.name, "of the action", hw::Required{});
      visit("part", self.part, "that it is shown under", hw::Required{});
      visit("counters", self.counters, hw::Form{"[PATTERN, ...]"}, "of docs/statistics.md, summed",
            hw::Required{});
      visit("actions", self.actions, hw::Range{0.0, 1e9}, "for each unit counted");
      visit("picojoules", self.picojoules, hw::Range{0.0, 1e9}, "an action", hw::Required{});
      visit("least", self.least, hw::Range{0.0, 1e9}, "lower end of its range", hw::Required{});
      visit("most", self.most, hw::Range{0.0, 1e9}, "upper end of its range", hw::Required{});
      visit("source", self.source, "a sentence", hw::Required{});
    }
  };
  // Watts for each of what the machine has.
  struct Power {
    std::string name, part, each;
    double watts = 0, least = 0, most = 0;
    bool in_package = false;  // its supply is converted there
    std::string source;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("name", self.name, "of what draws it", hw::Required{});
      visit("part", self.part, "that it is shown under", hw::Required{});
      visit("each", self.each,
            "name of `cm384 machine count`, or chips_other: those of kinds without a line of their own",
            hw::Required{});
      visit("watts", self.watts, hw::Range{0.0, 1e9}, "of each", hw::Required{});
      visit("least", self.least, hw::Range{0.0, 1e9}, "lower end of its range", hw::Required{});
      visit("most", self.most, hw::Range{0.0, 1e9}, "upper end of its range", hw::Required{});
      visit("in_package", self.in_package, "whether its supply is converted in the package");
      visit("source", self.source, "a sentence", hw::Required{});
    }
  };
  struct Supply {
    double conversion = 0, fans = 0, efficiency = 1, not_allocated = 0;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("conversion", self.conversion, hw::Range{0.0, 1.0}, "of what packages draw, lost beside them");
      visit("fans", self.fans, hw::Range{0.0, 1.0}, "of everything but the supply's own loss");
      visit("efficiency", self.efficiency, hw::Range{0.01, 1.0}, "of the supply");
      visit("not_allocated", self.not_allocated, hw::Range{0.0, 1e9}, "W per package that no line explains");
    }
  };

  std::string name, note;
  hw::Texts presets;  // whose shipped table it is; none: that of all others with cores
  std::vector<Action> actions;
  std::vector<Power> powers;
  Supply supply;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the table", hw::Required{});
    visit("note", self.note, "that every result repeats", hw::Required{});
    visit("presets", self.presets, hw::Form{"[PRESET, ...]"},
          "whose table it is; none: of all others with cores");
    visit("action", self.actions);
    visit("power", self.powers);
    visit("supply", self.supply);
  }

  // The shipped one of this machine for "default", otherwise a file. Throws InputError: file:line: key: what
  // is allowed.
  static EnergyTable load(const std::string& name_or_file, const hw::Machine& machine);
  // Throws InputError where an action's counter is none of these patterns.
  void check(const std::vector<std::string>& patterns) const;
};

// Joules with the ends that they have where every coefficient is at its least or at its most.
struct Joules {
  double value = 0, least = 0, most = 0;
};

struct EnergyShare {
  std::string part;
  Joules joules;
};

struct Energy {
  int dies = 0;        // that took part
  double seconds = 0;  // simulated
  std::vector<EnergyShare>
      parts;        // in the order of the table; then "supply": conversion, fans, losses, the rest
  Joules packages;  // what the dies' packages drew
  Joules all;       // all in, with the dies' share of the supernode

  // { dies, simulated_us, packages_J, all_J, all_J_interval, W_per_package, parts: { part: { J, interval } },
  // note }
  Json to_json(const hw::Machine& machine, const EnergyTable& table) const;
  // A line for each part: joules, its range, its share of all.
  std::string text(const hw::Machine& machine) const;
};

// Energy of one row of a statistics document (system/observe/statistics_file.h). Throws InputError where the
// table names what neither the row's machine counts nor has.
Energy energy_of(const Json& row, const hw::Machine& machine, const EnergyTable& table);

}  // namespace cm384::observe
