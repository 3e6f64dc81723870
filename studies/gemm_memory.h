// The memory of a grouped matrix multiplication on a die.
#pragma once

#include <cstdint>

#include "firmware/abi/gemm.h"
#include "host/runtime.h"
#include "operators/reference/gemm_reference.h"
#include "studies/gemm_tiling.h"

namespace cm384::studies {

// The arguments of a multiplication of `shape` on blocks of die `die`: B, the workspace, and for INT8 the
// scales of columns are allocated, rows of A and C are dense and those of all groups follow on. B and scales
// are payload unless `full`. A, C, the groups' rows and scales of rows are the caller's to fill in.
cm384_gemm place_gemm(host::Runtime& runtime, int die, const GemmShape& shape,
                      const cm384_gemm_tiling& tiling, bool b_nz, bool full);
// Copies B, groups x n rows of k, to where the arguments say, in its layout.
void put_b(host::Runtime& runtime, const cm384_gemm& gemm, std::span<const std::byte> b);

// All of it on die 0.
struct GemmMemory {
  // Allocates everything and writes the groups' rows. Unless `full`, what is tensor becomes payload.
  GemmMemory(host::Runtime& runtime, const reference::GemmCase& gemm, const cm384_gemm_tiling& tiling,
             int blocks, bool b_nz, bool full);

  void put(host::Runtime& runtime, const reference::GemmInputs& inputs) const;

  cm384_gemm arguments{};
};

}  // namespace cm384::studies
