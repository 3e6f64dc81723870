// Reading traffic, and saying what a file is that has none.
#include "base/text/error.h"
#include "traces/importers/recognise.h"
#include "traces/traffic.h"
#include "traces/traffic_csv.h"
#include "traces/traffic_file.h"

namespace cm384::traces {

std::unique_ptr<TrafficSource> open_traffic(const std::string& path) {
  try {
    if (path.ends_with(".csv")) return std::make_unique<TrafficCsvReader>(path);
    return std::make_unique<TrafficFileReader>(path);
  } catch (const InputError&) {
    refuse_foreign(path);
    throw;
  }
}

}  // namespace cm384::traces
