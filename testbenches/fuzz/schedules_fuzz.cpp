// Schedules and timelines of others: anything ends in good records or an InputError. The first byte chooses
// the reader.
#include <cstddef>
#include <cstdint>

#include "base/text/error.h"
#include "testbenches/fuzz/checked_sink.h"
#include "testbenches/fuzz/memory_file.h"
#include "traces/import.h"
#include "traces/importers/collective_parts.h"
#include "traces/importers/import_timeline.h"
#include "traces/importers/imported_collectives.h"
#include "traces/importers/recognise.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  static fuzz::MemoryFile file;
  if (size == 0) return 0;
  file.fill(data + 1, size - 1);
  traces::ImportOptions options;
  options.time_unit = Time{1'000};
  options.bytes = 4096;
  try {
    traces::recognise(file.path());
    fuzz::CheckedSink sink;
    switch (data[0] % 8) {
      case 0:
        traces::import_htsim(file.path(), options, sink);
        break;
      case 1:
        traces::import_goal(file.path(), options, sink);
        break;
      case 2:
        traces::import_simai(file.path(), options, sink);
        break;
      case 3:
        traces::import_msccl(file.path(), options, sink);
        break;
      case 4:
        traces::import_timelines({file.path()}, {{"h", traces::CollectiveKind::all_gather, 64}}, options,
                                 sink);
        break;
      case 5:
        traces::read_groups(file.path());
        break;
      case 6:
        traces::import_log({file.path()}, options, sink);
        break;
      default:
        traces::read_collectives(file.path());
    }
  } catch (const InputError&) {
  }
  return 0;
}
