// When each rank of an imported timeline had its collectives, as a file beside the trace: a replay compares
// its own times with it.
#pragma once

#include <string>
#include <vector>

#include "traces/import.h"

namespace cm384::traces {

// CSV, a line for each rank's part: collective,name,bytes,rank,begin_record,end_record,begin_us,end_us.
// Commas in names become blanks.
std::string text_of(const std::vector<ImportedCollective>& collectives);
// Throws InputError naming file, line and field.
std::vector<ImportedCollective> read_collectives(const std::string& path);

}  // namespace cm384::traces
