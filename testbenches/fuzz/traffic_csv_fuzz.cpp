// Traffic traces as CSV: anything ends in good records or an InputError.
#include <cstddef>
#include <cstdint>

#include "base/text/error.h"
#include "testbenches/fuzz/checked_sink.h"
#include "testbenches/fuzz/memory_file.h"
#include "traces/traffic_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  static fuzz::MemoryFile file;
  file.fill(data, size);
  try {
    traces::TrafficCsvReader reader(file.path());
    fuzz::CheckedSink sink;
    for (traces::TrafficRecord record; reader.next(record);) sink.add(record);
  } catch (const InputError&) {
  }
  return 0;
}
