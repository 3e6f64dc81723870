// What the buffers of a program hold before it runs, and what checks expect afterwards.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "studies/program_file.h"

namespace cm384::studies {

// Throws InputError for a file that cannot be read or does not fit the buffer.
std::vector<std::byte> content_of(const ProgramFile& program, const ProgramBuffer& buffer, int rank);
// The array that a check compares a rank's buffer with. Throws InputError where it does not fit.
Array expected_array(const ProgramFile& program, const std::string& path, int rank,
                     const ProgramCheck& check);

}  // namespace cm384::studies
