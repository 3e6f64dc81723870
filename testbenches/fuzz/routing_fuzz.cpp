// Routing traces in JSON lines: anything ends in a routing or an InputError.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/text/error.h"
#include "testbenches/fuzz/memory_file.h"
#include "traces/routing/routing.h"
#include "traces/routing/routing_traffic.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const traces::Routing routing = traces::read_routing(in, "fuzz.jsonl");
    traces::rows_of_block(routing, 1, 3);
  } catch (const InputError&) {
  }
  static fuzz::MemoryFile file;
  file.fill(data, size);
  try {
    traces::expert_ranks_from_file(file.path(), 4, 2, size % 3 == 0 ? 0 : -1);
  } catch (const InputError&) {
  }
  return 0;
}
