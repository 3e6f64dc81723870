#include "workloads/frame/kernel_phases.h"

#include <array>

#include "firmware/abi/combine.h"
#include "firmware/abi/dispatch.h"
#include "firmware/abi/dispatch_full_mesh.h"

namespace cm384::studies {
namespace {

using Name = std::string_view;

constexpr std::array<Name, CM384_DISPATCH_COPY + 1> kDispatchPhases{"init", "send", "status", "wait", "copy"};
constexpr std::array<Name, CM384_FULL_MESH_COPY + 1> kFullMesh{"init", "send", "counts", "copy"};
constexpr std::array<Name, CM384_COMBINE_SUM + 1> kCombinePhases{"init", "send", "wait", "sum"};
static_assert(!kDispatchPhases.back().empty() && !kFullMesh.back().empty() && !kCombinePhases.back().empty());

}  // namespace

std::span<const Name> phases_of_kernel(Name kernel) {
  if (kernel == "dispatch") return kDispatchPhases;
  if (kernel == "dispatch_full_mesh") return kFullMesh;
  if (kernel == "combine") return kCombinePhases;
  return {};
}

}  // namespace cm384::studies
