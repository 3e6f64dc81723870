// `--stats FILE`: what every part of the machine counted, one row a machine that a study built.
//
// Equal parts are summed: `totals` over the machine, `parts` over each die, sub-plane and socket. With
// detail, every counter that is not 0 by its full name as well.
#pragma once

#include <string>

#include "hw/json.h"
#include "hw/units.h"
#include "sim/statistics.h"

namespace cm384::observe {

class StatisticsFile {
 public:
  explicit StatisticsFile(bool detail) : detail_(detail) {}

  // Begins the row of a machine; `what` is what it ran ("p2p write to npu, inter-node, 1 core").
  void begin(const std::string& what, Time simulated);
  // Adds a part's counters to the row; parts have names and patterns of two levels at least.
  void add(const sim::Statistics& part);

  // { "schema": 1, "study", "glossary": { pattern: { unit, sentence } }, "rows": [ { "run", "simulated_us",
  //   "totals": { pattern: value }, "parts": { "die0": { rest of the pattern: value } }, "detail": {...} } ]
  //   }
  Json to_document(const std::string& study) const;

 private:
  bool detail_;
  Json glossary_ = Json::object();
  Json rows_ = Json::array();
};

}  // namespace cm384::observe
