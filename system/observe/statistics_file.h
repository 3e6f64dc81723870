// `--stats FILE`: what every part of the machine counted, one row a machine that a study built.
//
// Equal parts are summed: `totals` over the machine, `parts` over each die, sub-plane and socket. With
// detail, every counter that is not 0 by its full name as well. Parts and links may be chosen, in the grammar
// of system/machine/link_name.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/engine/statistics.h"
#include "base/text/json.h"
#include "base/text/units.h"
#include "system/machine/link_name.h"

namespace cm384::observe {

class StatisticsFile {
 public:
  // `chosen`: counters of any of these alone; none: all.
  explicit StatisticsFile(bool detail, std::vector<supernode::LinkSelection> chosen = {})
      : detail_(detail), chosen_(std::move(chosen)) {}
  // Throws InputError where a chosen part does not exist.
  void check(const ub::Network& network, int planes) const;

  // Begins the row of a machine; `what` is what it ran ("p2p write to npu, inter-node, 1 core").
  void begin(const std::string& what, Time simulated);
  // Adds a part's counters to the row; parts have names and patterns of two levels at least.
  void add(const sim::Statistics& part);

  // { "schema": 1, "study", "glossary": { pattern: { unit, sentence } }, "rows": [ { "run", "simulated_us",
  //   "totals": { pattern: value }, "parts": { "die0": { rest of the pattern: value } }, "detail": {...} } ]
  //   }
  Json to_document(const std::string& study) const;

 private:
  bool shows(std::string_view counter) const;

  bool detail_;
  std::vector<supernode::LinkSelection> chosen_;
  Json glossary_ = Json::object();
  Json rows_ = Json::array();
};

}  // namespace cm384::observe
