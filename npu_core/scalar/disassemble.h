#pragma once

#include <string>

#include "npu_core/scalar/decode.h"

namespace cm384::npu {

// Mnemonic and operands of a decoded operation, for traces; compressed forms show as what they expand to,
// lui and auipc as `li` of their result.
std::string disassemble(const Operation& op);

}  // namespace cm384::npu
