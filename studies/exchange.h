// An exchange among ranks by the SDMA engines of their dies: each engine copies what its die has for every
// rank, one copy a rank, from as many streams as it has channels. No core takes part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/confidence.h"
#include "studies/study.h"

namespace cm384::studies {

struct ExchangeCase {
  // [source][target] bytes; those for the own rank are copied in the own memory. 0: no copy.
  std::vector<std::vector<std::uint64_t>> bytes;

  // As many for every rank.
  static ExchangeCase even(int ranks, std::uint64_t bytes) {
    const auto count = static_cast<std::size_t>(ranks);
    return {std::vector<std::vector<std::uint64_t>>(count, std::vector<std::uint64_t>(count, bytes))};
  }
};

// Microseconds, over ranks: from where all have what they send to the end of a rank's last copy, from it or
// to it. Ranks stand on dies 0, 1, ... Without samples: interrupted.
Summary measure_exchange(const StudyContext& context, const std::string& what, const ExchangeCase& exchange,
                         SimulatorCounts& counts);

}  // namespace cm384::studies
