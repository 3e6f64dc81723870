// Tolerance files and baseline.toml: anything ends in rules or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text/error.h"
#include "lab/report/baseline.h"
#include "lab/report/tolerances.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    report::parse_baseline(text, "fuzz.toml").tolerances.of("latency_us.mean").allows(1, 2);
  } catch (const InputError&) {
  }
  try {
    report::parse_tolerances(text, "fuzz.toml").of("latency_us.mean").allows(1, 2);
  } catch (const InputError&) {
  }
  return 0;
}
