// Where a debugger waits, as --gdb-at says it.
#pragma once

#include <string_view>

namespace cm384::cli {

struct GdbPlace {
  bool at_fault = false;  // at whichever core faults first
  int die = -1;           // -1: the first that takes part
  int core = 0;
};

// "die=3,core=17", "core=17", "fault", or nothing. Throws InputError.
GdbPlace parse_gdb_place(std::string_view text);

}  // namespace cm384::cli
