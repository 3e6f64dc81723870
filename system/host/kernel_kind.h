// Which cores a kernel runs on, as its image says: KERNEL_TASK_TYPE of its source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/parameters/die.h"
#include "npu_core/die/launch.h"
#include "npu_core/scalar/elf_image.h"

namespace cm384::host {

// What a launch of a kernel with this tiling key starts. Throws InputError for a kind that cannot be
// launched.
npu::KernelType kernel_type(const npu::ElfImage& image, std::uint64_t tiling_key);
// All that launches of it may start; `name` stands for the image in what is thrown.
std::vector<npu::KernelType> kernel_types(const npu::ElfImage& image, const std::string& name);

// Most blocks of a launch (BlockDim of the public launch calls).
inline constexpr std::uint64_t kMostBlocks = 65535;
// Its blocks on the first cores or groups of a die; more than these run in turns. Throws InputError where a
// die has none of the kind, or for another number of blocks.
void set_blocks(npu::LaunchRequest& request, std::uint64_t blocks, const hw::Die& die);

// Vector cores of a block.
std::uint64_t vector_cores(npu::KernelType type);

}  // namespace cm384::host
