// What atomic operations do to elements of memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/engine/transaction.h"

namespace cm384::npu {

struct Atomic {
  std::uint32_t element_bytes;
  // after = before op operand, for each element of `bytes`.
  void (*apply)(const std::byte* before, const std::byte* operand, std::byte* after, std::uint32_t bytes);
};

// Bytes of an element. Requires an atomic operation, as the function below.
constexpr std::uint32_t atomic_element_bytes(sim::Operation operation) {
  constexpr std::uint32_t kBytes[] = {4, 4, 2, 1, 2, 2};
  return kBytes[(static_cast<unsigned>(operation) - static_cast<unsigned>(sim::Operation::atomic_add_s32)) %
                6];
}
Atomic atomic_of(sim::Operation operation);

}  // namespace cm384::npu
