// What an NPU costs and draws: rows of steps, batches and services say what a token comes to by it.
#pragma once

#include "workloads/frame/fields.h"
#include "workloads/frame/options.h"
#include "workloads/frame/row.h"

namespace cm384::studies {

struct NpuPrices {
  double hour = 0, watt = 0;  // 0: not known, and no row says anything of it

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("npu-hour", self.hour, Range{0.0, 1e6},
          "price of an NPU and hour, in any currency, for cost_per_million; 0: not known");
    visit("npu-watt", self.watt, Range{0.0, 1e5},
          "power of an NPU with all that belongs to it, for joule_per_token; 0: not known");
  }
  // `tokens_s`: tokens a second per NPU.
  void add_to(Row& row, double tokens_s) const {
    if (hour > 0) row.set("cost_per_million", hour / 3600 / tokens_s * 1e6);
    if (watt > 0) row.set("joule_per_token", watt / tokens_s);
  }
};
inline constexpr Field kCostField{"cost_per_million", FieldType::number,
                                  "price of all NPUs over a million tokens, with --npu-hour"};
inline constexpr Field kEnergyField{"joule_per_token", FieldType::number,
                                    "power of all NPUs over tokens a second, with --npu-watt"};

}  // namespace cm384::studies
