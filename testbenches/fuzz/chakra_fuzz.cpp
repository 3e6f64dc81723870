// Chakra execution traces: anything ends in good records or an InputError. The first byte says where the
// input parts into the files of two ranks; 0: the same file for both.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/text/error.h"
#include "testbenches/fuzz/checked_sink.h"
#include "testbenches/fuzz/memory_file.h"
#include "traces/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  static fuzz::MemoryFile first, second;
  if (size == 0) return 0;
  const std::size_t rest = size - 1;
  const std::size_t part = data[0] == 0 ? rest : std::min<std::size_t>(rest, data[0] * rest / 255);
  first.fill(data + 1, part);
  second.fill(data + 1 + (data[0] == 0 ? 0 : part), data[0] == 0 ? rest : rest - part);
  try {
    fuzz::CheckedSink sink;
    traces::import_chakra({first.path(), second.path()}, {}, sink);
  } catch (const InputError&) {
  }
  return 0;
}
