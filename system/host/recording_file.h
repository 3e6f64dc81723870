// Recordings of launches in a file: a line of JSON with `format`, `key` and how long the arrays are that
// follow it: for each launch its steps and waits, little-endian; then a checksum over all of that, which
// those of format 1 have not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npu_core/replay/recording.h"

namespace cm384::host {

using Recordings = std::vector<std::shared_ptr<const npu::Recording>>;

// The content of a file; `key` says what was recorded.
std::string bytes_of(const std::string& key, const Recordings& recordings);
// Throws InputError naming the file: not readable, no recording, damaged, or of another key. `checked`:
// whether it has a checksum.
Recordings load_recordings(const std::string& path, const std::string& key, bool* checked = nullptr);

// Throws InputError where a launch on so many cores, whose memory has regions of so many bytes, cannot play
// it.
void check_fits(const npu::Recording& recording, std::size_t blocks, std::span<const std::uint64_t> regions);

}  // namespace cm384::host
