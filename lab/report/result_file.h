// result.json as its readers take it: checked, so that what comes from elsewhere ends in one clear line.
#pragma once

#include <string>
#include <string_view>

#include "base/text/json.h"

namespace cm384::report {

// The document of a file, or of a run's folder (its result.json). Throws InputError.
Json read_result(const std::string& path);

// Parses a result from text; `name` stands for the file in messages.
Json parse_result(std::string_view text, const std::string& name);

// A whole file, at most `limit` bytes. Throws InputError.
std::string read_text(const std::string& path, std::size_t limit);

// JSON of at most 32 levels and 4,096 fields an object: deeper or wider is no file of ours, and would cost
// its reader a stack, or time that grows with the square of its size. Throws InputError.
Json parse_json(std::string_view text, const std::string& name);

}  // namespace cm384::report
