// Memory of a die that is given back together.
#pragma once

#include <cstdint>
#include <vector>

#include "host/runtime.h"

namespace cm384::host {

class DeviceMemory {
 public:
  struct Region {
    std::uint64_t address = 0, bytes = 0;
  };

  // The runtime outlives it.
  DeviceMemory(Runtime& runtime, int die) : runtime_(runtime), die_(die) {}
  ~DeviceMemory() {
    for (const Region& region : regions_) runtime_.free(region.address);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // As Runtime::allocate.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t alignment = 512) {
    const std::uint64_t address = runtime_.allocate(die_, bytes, alignment);
    regions_.push_back({address, bytes});
    return address;
  }
  // At least 512 B, for what may be empty.
  std::uint64_t allocate_lines(std::uint64_t bytes) { return allocate(bytes < 512 ? 512 : bytes); }
  // Address of a block of its own with this value.
  template <class T>
  std::uint64_t put(const T& value) {
    const std::uint64_t address = allocate(sizeof value);
    runtime_.put(address, value);
    return address;
  }

  Runtime& runtime() const { return runtime_; }
  int die() const { return die_; }
  // In the order in which they were allocated.
  const std::vector<Region>& regions() const { return regions_; }

 private:
  Runtime& runtime_;
  int die_;
  std::vector<Region> regions_;
};

}  // namespace cm384::host
