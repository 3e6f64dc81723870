// Asking the host's cache early. No part of what is simulated.
#pragma once

#include <cstddef>

namespace cm384::sim {

// For all of [at, at + bytes), to be written.
inline void prefetch(const void* at, std::size_t bytes) {
  constexpr std::size_t kLine = 64;  // of a host's cache
  const char* const first = static_cast<const char*>(at);
  for (std::size_t k = 0; k < bytes; k += kLine) __builtin_prefetch(first + k, 1);
  __builtin_prefetch(first + bytes - 1, 1);
}

}  // namespace cm384::sim
