// Recorded requests of every format: anything ends in good requests or an InputError. The first byte chooses
// how long blocks of token ids are; 255: the file is a recorded run of a server.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/text/error.h"
#include "testbenches/fuzz/memory_file.h"
#include "workloads/service/observed_run.h"
#include "workloads/service/requests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  static fuzz::MemoryFile file;
  if (size == 0) return 0;
  file.fill(data + 1, size - 1);
  try {
    if (data[0] == 255) {
      const service::ObservedRun run = service::read_observed(file.path());
      if (run.times.size() != run.trace.requests.size()) std::abort();
      for (const service::ObservedTimes& times : run.times)
        if (!(times.ttft_ms >= 0 && times.e2e_ms >= times.ttft_ms)) std::abort();
      return 0;
    }
    const service::RequestTrace trace = service::read_requests(file.path(), 1 + data[0]);
    for (std::size_t k = 0; k < trace.requests.size(); ++k) {
      const service::Request& request = trace.requests[k];
      const bool good = request.prompt >= 1 && request.prompt <= service::kMostTokens &&
                        request.output >= 0 && request.output <= service::kMostTokens &&
                        request.arrival >= Time{} &&
                        std::size_t{request.first_block} + request.blocks <= trace.keys.size() &&
                        request.follows < static_cast<std::int32_t>(k);
      if (!good) std::abort();
    }
  } catch (const InputError&) {
  }
  return 0;
}
