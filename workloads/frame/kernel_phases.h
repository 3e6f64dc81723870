// What the phases of the built-in kernels are called.
#pragma once

#include <span>
#include <string_view>

namespace cm384::studies {

// From phase 0 on; empty: the kernel marks none.
std::span<const std::string_view> phases_of_kernel(std::string_view kernel);

}  // namespace cm384::studies
