// What an NPU costs and draws: rows of steps, batches and services say what a token comes to by it.
#pragma once

#include <string>
#include <vector>

#include "system/machine/prices.h"
#include "workloads/frame/fields.h"
#include "workloads/frame/options.h"
#include "workloads/frame/row.h"

namespace cm384::studies {

struct NpuPrices {
  double hour = 0, watt = 0;  // 0: not known, and no row says anything of it
  bool assumed = false;       // one of them is of the shipped table

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("npu-hour", self.hour, Range{0.0, 1e6},
          "price of an NPU per hour, in any currency, for cost_per_million; 0: dollars by hw/prices/, if it "
          "has the machine's preset");
    visit("npu-watt", self.watt, Range{0.0, 1e5},
          "power of an NPU with all that belongs to it, for joule_per_token; 0: as above");
  }
  void settle(const hw::Machine& machine) {
    const supernode::PriceTable table = supernode::PriceTable::load("default");
    if ((hour > 0 && watt > 0) || !table.has(machine)) return;
    const supernode::Priced priced = supernode::priced(machine, table);
    if (hour == 0) hour = priced.hour.value;
    if (watt == 0) watt = priced.watts.value;
    assumed = true;
  }
  // `tokens_s`: tokens per second per NPU.
  void add_to(Row& row, double tokens_s) const {
    if (hour > 0) row.set("cost_per_million", hour / 3600 / tokens_s * 1e6);
    if (watt > 0) row.set("joule_per_token", watt / tokens_s).set("tokens_per_joule", tokens_s / watt);
  }
  void add_to(std::vector<std::string>& notes) const {
    if (assumed)
      notes.emplace_back(
          "prices and power not given are those of hw/prices/default.toml: every one of them is assumed");
  }
};
inline constexpr Field kCostField{"cost_per_million", FieldType::number,
                                  "price of all NPUs over a million tokens, by --npu-hour"};
inline constexpr Field kEnergyField{"joule_per_token", FieldType::number,
                                    "power of all NPUs over tokens per second, by --npu-watt"};
inline constexpr Field kTokensField{"tokens_per_joule", FieldType::number, "its inverse"};

}  // namespace cm384::studies
