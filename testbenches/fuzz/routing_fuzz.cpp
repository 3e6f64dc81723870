// Routing traces in JSON lines: anything ends in a routing or an InputError.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/text/error.h"
#include "traces/routing/routing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const traces::Routing routing = traces::read_routing(in, "fuzz.jsonl");
    traces::take_rows(routing, 1, 3);
  } catch (const InputError&) {
  }
  return 0;
}
