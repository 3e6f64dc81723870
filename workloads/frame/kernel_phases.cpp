#include "workloads/frame/kernel_phases.h"

#include <array>

#include "firmware/abi/combine.h"
#include "firmware/abi/dispatch.h"
#include "firmware/abi/dispatch_full_mesh.h"
#include "firmware/abi/relay.h"

namespace cm384::studies {
namespace {

using Name = std::string_view;

constexpr std::array<Name, CM384_DISPATCH_COPY + 1> kDispatchPhases{"init", "send", "status", "wait", "copy"};
constexpr std::array<Name, CM384_FULL_MESH_COPY + 1> kFullMesh{"init", "send", "counts", "copy"};
constexpr std::array<Name, CM384_COMBINE_SUM + 1> kCombinePhases{"init", "send", "wait", "sum"};
constexpr std::array<Name, CM384_DISPATCH_RELAY_COPY + 1> kDispatchRelay{"init",   "send", "forward",
                                                                         "status", "wait", "copy"};
constexpr std::array<Name, CM384_COMBINE_RELAY_SUM + 1> kCombineRelay{"init", "send", "relay", "wait", "sum"};
static_assert(!kDispatchRelay.back().empty() && !kCombineRelay.back().empty());
static_assert(!kDispatchPhases.back().empty() && !kFullMesh.back().empty() && !kCombinePhases.back().empty());

}  // namespace

std::span<const Name> phases_of_kernel(Name kernel) {
  if (kernel == "dispatch") return kDispatchPhases;
  if (kernel == "dispatch_full_mesh") return kFullMesh;
  if (kernel == "combine") return kCombinePhases;
  if (kernel == "dispatch_relay") return kDispatchRelay;
  if (kernel == "combine_relay") return kCombineRelay;
  return {};
}

}  // namespace cm384::studies
