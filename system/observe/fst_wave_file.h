#pragma once

#include <memory>
#include <string>

#include "system/observe/wave_file.h"

namespace cm384::observe {

// The part of WaveFile::create() that a build without Verilator has not.
std::unique_ptr<WaveFile> create_fst_file(const std::string& path);

}  // namespace cm384::observe
