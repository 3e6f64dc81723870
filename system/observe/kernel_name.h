// The name of the kernel of a launch.
#pragma once

#include <string>

#include "npu_core/die/launch.h"
#include "npu_core/scalar/elf_image.h"

namespace cm384::observe {

// "dispatch" of "dispatch.elf (built in)" and of "my/dispatch.elf"; empty where nothing is known.
std::string kernel_name(const npu::LaunchRecord& record);
std::string kernel_name(const npu::ElfImage& image);

}  // namespace cm384::observe
