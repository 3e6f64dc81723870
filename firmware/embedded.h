// The kernels of firmware/kernels as ELF images inside the program.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace cm384::firmware {

// Names of the built-in kernels, in alphabetical order.
std::span<const std::string_view> kernel_names();

// The ELF image of a built-in kernel, 16 B aligned, valid for ever; empty for an unknown name.
std::span<const std::byte> kernel_image(std::string_view name);

}  // namespace cm384::firmware
