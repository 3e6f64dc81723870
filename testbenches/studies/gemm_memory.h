// The memory of a grouped matrix multiplication on die 0.
#pragma once

#include <cstdint>

#include "firmware/abi/gemm.h"
#include "supernode/runtime.h"
#include "testbenches/reference/gemm_reference.h"

namespace cm384::studies {

struct GemmMemory {
  // Allocates everything and writes the groups' rows. Unless `full`, what is tensor becomes payload.
  GemmMemory(supernode::Runtime& runtime, const reference::GemmCase& gemm, const cm384_gemm_tiling& tiling,
             int blocks, bool b_nz, bool full);

  // Address of an argument block with the arguments as they are now.
  std::uint64_t put_arguments(supernode::Runtime& runtime) const;
  void put(supernode::Runtime& runtime, const reference::GemmCase& gemm,
           const reference::GemmInputs& inputs) const;

  cm384_gemm arguments{};
  std::uint64_t a_bytes = 0, b_bytes = 0;
};

}  // namespace cm384::studies
