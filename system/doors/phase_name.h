// Names, for messages, of a phase and a response of TLM's base protocol.
#pragma once

#include <sstream>
#include <string>
#include <tlm>

namespace cm384::doors {

inline std::string phase_name(const tlm::tlm_phase& phase) {
  std::ostringstream text;
  text << phase;
  return text.str();
}

}  // namespace cm384::doors
