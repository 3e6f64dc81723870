// What a machine costs: what is counted of it (inventory.h) times prices of a table, hw/prices/. All of them
// are assumed, each with a range.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/parameter_list.h"
#include "hw/machine.h"

namespace cm384::supernode {

struct PriceTable {
  struct Price {
    std::string name, each;
    hw::Texts presets;  // whose machines have it
    double dollars = 0, least = 0, most = 0;
    std::string source;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("name", self.name, "of what is bought", hw::Required{});
      visit("presets", self.presets, hw::Form{"[PRESET, ...]"}, "whose machines have it", hw::Required{});
      visit("each", self.each, "name of `cm384 machine count`", hw::Required{});
      visit("dollars", self.dollars, hw::Range{0.0, 1e12}, "of each", hw::Required{});
      visit("least", self.least, hw::Range{0.0, 1e12}, "lower end of its range", hw::Required{});
      visit("most", self.most, hw::Range{0.0, 1e12}, "upper end of its range", hw::Required{});
      visit("source", self.source, "a sentence", hw::Required{});
    }
  };
  struct Power {
    hw::Texts presets;
    double watts = 0, least = 0, most = 0;
    std::string source;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("presets", self.presets, hw::Form{"[PRESET, ...]"}, "whose machines draw it", hw::Required{});
      visit("watts", self.watts, hw::Range{0.0, 1e9}, "of a package with all that belongs to it",
            hw::Required{});
      visit("least", self.least, hw::Range{0.0, 1e9}, "lower end of its range", hw::Required{});
      visit("most", self.most, hw::Range{0.0, 1e9}, "upper end of its range", hw::Required{});
      visit("source", self.source, "a sentence", hw::Required{});
    }
  };

  std::string name, note;
  double years = 4, kilowatt_hour = 0;
  std::vector<Price> prices;
  std::vector<Power> powers;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the table", hw::Required{});
    visit("note", self.note, "that is shown with every sum", hw::Required{});
    visit("years", self.years, hw::Range{0.1, 100.0}, "over which a machine is written off");
    visit("kilowatt_hour", self.kilowatt_hour, hw::Range{0.0, 1e3}, "dollars");
    visit("price", self.prices);
    visit("power", self.powers);
  }

  // The shipped one for "default", otherwise a file. Throws InputError: file:line: key: what is allowed.
  static PriceTable load(const std::string& name_or_file);
  // Whether machines of this preset have prices and power here.
  bool has(const hw::Machine& machine) const;
};

// With the ends that it has where every price is at its least or at its most.
struct Ranged {
  double value = 0, least = 0, most = 0;
};

struct PricedLine {
  std::string name;
  std::int64_t count = 0;
  Ranged each, all;
  std::string source;
};

struct Priced {
  std::vector<PricedLine> lines;
  Ranged machine;  // dollars
  Ranged watts;    // of a package with all that belongs to it
  Ranged hour;     // dollars of a package and hour: written off, and its power
};

// Throws InputError where the table has nothing of the machine's preset.
Priced priced(const hw::Machine& machine, const PriceTable& table);

// For formulas of costs, by the shipped table: price.machine, price.hour, price.watts, and each of them with
// _least and _most behind. Throws InputError with a suggestion.
double price_named(const hw::Machine& machine, std::string_view name);
inline constexpr std::string_view kPricePrefix = "price.";

}  // namespace cm384::supernode
