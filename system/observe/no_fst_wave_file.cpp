#include <fmt/format.h>

#include "base/text/error.h"
#include "system/observe/fst_wave_file.h"

namespace cm384::observe {

std::unique_ptr<WaveFile> create_fst_file(const std::string& path) {
  throw InputError(fmt::format(
      "--wave {}: FST needs a build with Verilator; allowed: a name that does not end in .fst", path));
}

}  // namespace cm384::observe
