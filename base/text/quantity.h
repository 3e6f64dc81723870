// Quantities as people write them: "47.5ns", "7.5KiB", "28GB/s", "224Gbit/s", "1.85GHz".
//
// k, M, G, T are powers of 1000 and Ki, Mi, Gi, Ti powers of 1024; "KB" means both in the literature and is
// refused. A number without a unit is refused. Conversion is exact; what is finer than the type's resolution
// (1 ps, 1 B, 1 B/s, 1 Hz) is refused. All parsers throw InputError with one line: what was found, what is
// allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/units.h"

namespace cm384::hw {

Time parse_time(std::string_view text);            // ps ns us ms s
Bytes parse_bytes(std::string_view text);          // B kB MB GB TB KiB MiB GiB TiB
Bandwidth parse_bandwidth(std::string_view text);  // B/s kB/s MB/s GB/s TB/s, KiB/s.., bit/s kbit/s .. Tbit/s
Frequency parse_frequency(std::string_view text);  // Hz kHz MHz GHz

// Whole and real numbers without a unit, nothing after them.
std::int64_t parse_integer(std::string_view text);
double parse_real(std::string_view text);
bool parse_bool(std::string_view text);  // true or false

// The shortest text that parses back to the same value.
std::string format(Time value);
std::string format(Bytes value);
std::string format(Bandwidth value);
std::string format(Frequency value);
std::string format(double value);

}  // namespace cm384::hw
