#include "base/engine/host_heap.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#endif

namespace cm384::sim {

std::uint64_t use_huge_pages() {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kLargest = std::uint64_t{8} << 30, kHugePage = std::uint64_t{2} << 20;
  const auto memory =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t bytes = std::min(memory / 2, kLargest) / kHugePage * kHugePage;
  // All allocations from one heap, which keeps what is freed.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  void* const range = std::malloc(bytes);
  if (range == nullptr) return 0;
  const auto begin = (reinterpret_cast<std::uintptr_t>(range) + kHugePage - 1) / kHugePage * kHugePage;
  const bool taken = madvise(reinterpret_cast<void*>(begin), bytes - kHugePage, MADV_HUGEPAGE) == 0;
  std::free(range);
  return taken ? bytes : 0;
#else
  return 0;
#endif
}

}  // namespace cm384::sim
