// Which kind of trace a file holds, from how it begins.
#pragma once

#include <cstdint>
#include <string>

namespace cm384::traces {

enum class TraceKind : std::uint8_t {
  traffic,   // ours, binary or CSV
  routing,   // JSON lines
  ns3ub,     // traffic.csv of ns-3-UB
  messages,  // a list of messages (import.h)
  chakra,
  timeline,  // of a profiler
  htsim,
  goal,
  simai,
  msccl,
  log,       // of NCCL or HCCL
  requests,  // of users of a service
  experts,   // which rank has which experts
  other,     // none of these; reading it as traffic says what is wrong
};

// "a traffic.csv of ns-3-UB": for people.
std::string text_of(TraceKind kind);

// Throws InputError naming what the file looks like and which command reads it, where that is none of our
// traces.
void refuse_foreign(const std::string& path);

// Of a file packed by gzip or not. Throws InputError if it cannot be opened.
TraceKind recognise(const std::string& path);

// How a file begins, for a message: its first letters, or that they are none.
std::string beginning_of(const std::string& path);

}  // namespace cm384::traces
