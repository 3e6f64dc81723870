// The kinds of cores, as CoreCausality knows them.
#pragma once

#include "hw/parameters/cube_core.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/causality/core_causality.h"
#include "npu_core/cube/aic.h"
#include "npu_core/vector/vector_pipes.h"

namespace cm384::npu {

inline CoreShape vector_shape(const hw::VectorCore& core) {
  using Class = Cause::Class;
  return {{kPipes, static_cast<std::size_t>(core.queue_depth), {kPipeMte2, kPipeMte3, 0}},
          {Class::mte2, Class::mte3, Class::mte3}};
}
inline CoreShape cube_shape(const hw::CubeCore& core) {
  using Class = Cause::Class;
  return {{kCubePipes, static_cast<std::size_t>(core.queue_depth), {kCubeMte2, kCubeMte3, kCubeFix}},
          {Class::mte2, Class::mte3, Class::fix}};
}

}  // namespace cm384::npu
