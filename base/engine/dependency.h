// How far something must have got before what waits for it may begin: transactions of a die, steps of a
// recorded launch and records of a trace.
#pragma once

#include <cstdint>

namespace cm384::sim {

enum class DependencyKind : std::uint8_t {
  completion,  // its last request was answered
  arrival,     // its last request reached its target
  issue,       // its last request left
};

}  // namespace cm384::sim
