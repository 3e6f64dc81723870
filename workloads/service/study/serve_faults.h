// Faults of a service as the command line names them.
#pragma once

#include "workloads/service/faults.h"
#include "workloads/service/study/serve_options.h"

namespace cm384::studies {

// --outage, --fault and --switch; `planes` of the machine. Throws InputError: one line.
service::Faults serve_faults(const ServeOptions& options, int planes);

}  // namespace cm384::studies
