// Which kind of trace a file holds, from how it begins.
#pragma once

#include <cstdint>
#include <string>

namespace cm384::traces {

enum class TraceKind : std::uint8_t {
  traffic,  // ours, binary or CSV
  routing,  // JSON lines
  ns3ub,    // traffic.csv of ns-3-UB
  other,    // Chakra, or none; reading it as traffic says what is wrong
};

// Throws InputError if the file cannot be opened.
TraceKind recognise(const std::string& path);

}  // namespace cm384::traces
