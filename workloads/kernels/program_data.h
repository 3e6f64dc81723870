// What the buffers of a program hold before it runs, what checks expect afterwards, and which kernels its
// launches start on which cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "npu_core/scalar/elf_image.h"
#include "workloads/frame/session.h"
#include "workloads/kernels/program_file.h"

namespace cm384::studies {

// Throws InputError for a file that cannot be read or does not fit the buffer.
std::vector<std::byte> content_of(const ProgramFile& program, const ProgramBuffer& buffer, int rank);
// The array that a check compares a rank's buffer with. Throws InputError where it does not fit.
Array expected_array(const ProgramFile& program, const std::string& path, int rank,
                     const ProgramCheck& check);

// The image of a launch. Throws InputError where it is no kernel with so many arguments.
std::shared_ptr<const npu::ElfImage> read_kernel(const std::string& path, const ProgramLaunch& launch);

}  // namespace cm384::studies
