// What a command tells of an imported trace.
#pragma once

#include <string>

#include "traces/import.h"

namespace cm384::cli {

// To standard output as text or JSON; notes and what was not taken to standard error.
void print_import(const traces::ImportResult& result, const std::string& output, bool json);

}  // namespace cm384::cli
