// The traffic.csv of ns-3-UB: anything ends in good records or an InputError.
#include <cstddef>
#include <cstdint>

#include "hw/error.h"
#include "testbenches/fuzz/checked_sink.h"
#include "testbenches/fuzz/memory_file.h"
#include "traces/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  static fuzz::MemoryFile file;
  file.fill(data, size);
  try {
    traces::is_ns3ub(file.path());
    fuzz::CheckedSink sink;
    traces::import_ns3ub(file.path(), {}, sink);
  } catch (const InputError&) {
  }
  return 0;
}
