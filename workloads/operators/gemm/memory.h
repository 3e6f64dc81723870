// The memory of a grouped matrix multiplication on a die.
#pragma once

#include <cstdint>
#include <span>

#include "firmware/abi/gemm.h"
#include "system/host/device_memory.h"
#include "workloads/operators/gemm/tiling.h"
#include "workloads/operators/reference/gemm_reference.h"

namespace cm384::operators {

// The arguments of a multiplication of `shape`: B, the workspace, and for INT8 the scales of columns are
// allocated, rows of A and C are dense and those of all groups follow on. B and scales are payload unless
// `full`. A, C, the groups' rows and scales of rows are the caller's to fill in.
cm384_gemm place_gemm(host::DeviceMemory& memory, const GemmShape& shape, const cm384_gemm_tiling& tiling,
                      bool b_nz, bool full);
// Copies B, groups x n rows of k, to where the arguments say, in its layout.
void write_b(host::Runtime& runtime, const cm384_gemm& gemm, std::span<const std::byte> b);

// All of it: with A, C, the groups' rows, which it writes, and scales of rows. Unless `full`, what is tensor
// becomes payload.
cm384_gemm place_whole_gemm(host::DeviceMemory& memory, const reference::GemmCase& gemm,
                            const GemmShape& shape, const cm384_gemm_tiling& tiling, bool b_nz, bool full);
void write_inputs(host::Runtime& runtime, const cm384_gemm& gemm, const reference::GemmInputs& inputs);

}  // namespace cm384::operators
