// A trace that may take the place of the one that it is made of: it appears when that has been read.
#pragma once

#include <string>

#include "base/text/run_files.h"

namespace cm384::cli {

// To be called before the trace is created.
inline void may_replace(const std::string& trace) {
  if (RunFiles* files = RunFiles::current()) files->add_output(trace, trace, RunFiles::Use::renewed);
}

}  // namespace cm384::cli
