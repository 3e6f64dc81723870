#include "ub_fabric/rtl_switch.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/text/error.h"
#include "base/text/installation.h"

namespace cm384::ub {
namespace {

using MakeChip = decltype(&cm384_make_chip);

std::string own_library() {
  constexpr std::string_view kName = "lib/cm384/libcm384_rtl.so";
  if (const auto path = find_installed(kName)) return *path;
  throw InputError(
      "RTL switch chips: libcm384_rtl.so is not there; in the source tree `./dev build release cm384_rtl` "
      "makes it");
}

// Stays loaded for the life of the process: chips keep their code there.
MakeChip load_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw InputError(fmt::format("RTL switch chips: {}", dlerror()));
  const auto abi = reinterpret_cast<decltype(&cm384_chip_abi)>(dlsym(library, "cm384_chip_abi"));
  const auto make = reinterpret_cast<MakeChip>(dlsym(library, "cm384_make_chip"));
  if (abi == nullptr || make == nullptr)
    throw InputError(fmt::format("RTL switch chips: {}: is no library of switch chips", path));
  if (std::string_view(abi()) != kChipAbi)
    throw InputError(fmt::format("RTL switch chips: {}: is of another version of cm384 ({}, not {})", path,
                                 abi(), kChipAbi));
  return make;
}

}  // namespace

std::unique_ptr<RtlSwitch> make_rtl_switch(const Parameters& parameters, const ChipTiming& timing,
                                           unsigned ports, const std::string& library) {
  static std::map<std::string, MakeChip> loaded;
  MakeChip& make = loaded[library];
  // Without a slash it would be looked for among the system's.
  if (make == nullptr)
    make = load_library(library.empty() ? own_library() : std::filesystem::absolute(library).string());
  return std::unique_ptr<RtlSwitch>(make(parameters, ServiceClasses(parameters.ub.qos), timing, ports));
}

}  // namespace cm384::ub
