// SystemC's simulation context, made anew for each machine.
#pragma once

#include <stdexcept>
#include <systemc>

namespace cm384::supernode {

// SystemC keeps one simulation a process and cannot elaborate a second time; a new machine gets a new
// context, which outlives its modules.
class Simulation {
 public:
  Simulation() {
    sc_core::sc_curr_simcontext = new sc_core::sc_simcontext();
    sc_core::sc_default_global_context = sc_core::sc_curr_simcontext;
    if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS))
      throw std::logic_error("SystemC's time resolution is not 1 ps");
  }
  ~Simulation() {
    delete sc_core::sc_curr_simcontext;
    sc_core::sc_curr_simcontext = sc_core::sc_default_global_context = nullptr;
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
};

}  // namespace cm384::supernode
