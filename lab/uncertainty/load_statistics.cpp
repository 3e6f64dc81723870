#include <dlfcn.h>
#include <fmt/format.h>

#include "base/text/error.h"
#include "base/text/installation.h"
#include "lab/uncertainty/statistics.h"

namespace cm384::uncertainty {
namespace {

Statistics* load() {
  const auto path = find_installed("lib/cm384/libcm384_statistics.so");
  if (!path)
    throw InputError(
        "statistics: libcm384_statistics.so is not there; in the source tree `./dev build release "
        "cm384_statistics` installs OpenTURNS and makes it");
  // Sums over several threads would round differently from host to host.
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
  void* const library = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw InputError(fmt::format("statistics: {}", dlerror()));
  const auto abi = reinterpret_cast<decltype(&cm384_statistics_abi)>(dlsym(library, "cm384_statistics_abi"));
  const auto make = reinterpret_cast<decltype(&cm384_statistics)>(dlsym(library, "cm384_statistics"));
  if (abi == nullptr || make == nullptr || std::string_view(abi()) != kStatisticsAbi)
    throw InputError(fmt::format("statistics: {}: is of another version of cm384", *path));
  return make();
}

}  // namespace

Statistics& statistics() {
  static Statistics* const loaded = load();
  return *loaded;
}

}  // namespace cm384::uncertainty
