#pragma once

#include <string_view>

namespace cm384::npu {

// target.xml: 32 integer registers, pc, 32 single-precision registers, the float CSRs.
std::string_view gdb_target_description();

}  // namespace cm384::npu
