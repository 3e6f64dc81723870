#include "studies/kernel_phases.h"

#include <array>

#include "firmware/abi/combine.h"
#include "firmware/abi/dispatch.h"
#include "firmware/abi/dispatch_full_mesh.h"

namespace cm384::studies {
namespace {

using Name = std::string_view;

constexpr std::array<Name, CM384_DISPATCH_COPY + 1> kDispatch{"init", "send", "status", "wait", "copy"};
constexpr std::array<Name, CM384_FULL_MESH_COPY + 1> kFullMesh{"init", "send", "counts", "copy"};
constexpr std::array<Name, CM384_COMBINE_SUM + 1> kCombine{"init", "send", "wait", "sum"};
static_assert(!kDispatch.back().empty() && !kFullMesh.back().empty() && !kCombine.back().empty());

}  // namespace

std::span<const Name> phases_of_kernel(Name kernel) {
  if (kernel == "dispatch") return kDispatch;
  if (kernel == "dispatch_full_mesh") return kFullMesh;
  if (kernel == "combine") return kCombine;
  return {};
}

}  // namespace cm384::studies
