// The heap's huge pages, as the host's kernel tells of them.
#include "base/engine/host_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

namespace cm384::sim::host_heap_test {
namespace {

// Whether huge pages were asked for where `address` lies.
bool may_be_huge(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool within = false;
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0;
    const std::uint64_t begin = line[0] <= '9' || line[0] >= 'a' ? std::stoull("0" + line, &dash, 16) : 0;
    if (dash > 1 && line[dash - 1] == '-') {
      within = begin <= at && at < std::stoull(line.substr(dash), nullptr, 16);
    } else if (within && line.rfind("VmFlags:", 0) == 0) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

TEST(HostHeap, WhatIsAllocatedMayStandInHugePages) {
  const std::uint64_t bytes = use_huge_pages();
  if (bytes == 0) GTEST_SKIP() << "this host or build has none";
  EXPECT_EQ(bytes % (std::uint64_t{2} << 20), 0u);
  // What would else be mapped by itself, and small pieces; the range begins within a huge page.
  const auto room = std::make_unique_for_overwrite<std::byte[]>(std::size_t{4} << 20);
  EXPECT_TRUE(may_be_huge(room.get() + (std::size_t{4} << 20) - 1));
  const auto large = std::make_unique_for_overwrite<std::byte[]>(std::size_t{64} << 20);
  EXPECT_TRUE(may_be_huge(large.get()));
  const auto small = std::make_unique_for_overwrite<std::byte[]>(100'000);
  EXPECT_TRUE(may_be_huge(small.get()));
}

}  // namespace
}  // namespace cm384::sim::host_heap_test
