// Faults of a service as the command line names them.
#pragma once

#include "service/faults.h"
#include "studies/serve_options.h"

namespace cm384::studies {

// --outage, --fault and --switch; `planes` of the machine. Throws InputError: one line.
service::Faults serve_faults(const ServeOptions& options, int planes);

}  // namespace cm384::studies
