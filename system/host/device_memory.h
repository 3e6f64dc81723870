// Memory of a die that is freed together. Weights may be borrowed from another DeviceMemory, and single
// regions may be another operator's output or input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "system/host/runtime.h"

namespace cm384::host {

class DeviceMemory {
 public:
  struct Region {
    std::uint64_t address = 0, bytes = 0;
  };

  // The runtime outlives it.
  DeviceMemory(Runtime& runtime, int die) : runtime_(runtime), die_(die) {}
  ~DeviceMemory() {
    for (const std::uint64_t address : own_) runtime_.free(address);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // As Runtime::allocate.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t alignment = 512) {
    const std::uint64_t address = runtime_.allocate(die_, bytes, alignment);
    regions_.push_back({address, bytes});
    own_.push_back(address);
    return address;
  }
  // Uses memory of another owner, which outlives this object, in the place of an allocation.
  std::uint64_t use(std::uint64_t address, std::uint64_t bytes) {
    regions_.push_back({address, bytes});
    return address;
  }
  // Takes the weights of `lender` instead of allocating: the same sizes in the same order. `lender` outlives
  // this object and has weights of its own.
  void borrow_weights_of(const DeviceMemory& lender) { lender_ = &lender; }
  // As allocate_lines. Throws std::logic_error where the lender has none of this size at this place.
  std::uint64_t allocate_weights(std::uint64_t bytes) {
    if (lender_ == nullptr) {
      weights_.push_back({allocate_lines(bytes), bytes});
      return weights_.back().address;
    }
    if (borrowed_ >= lender_->weights_.size() || lender_->weights_[borrowed_].bytes != bytes)
      throw std::logic_error("weights to share differ");
    return use(lender_->weights_[borrowed_++].address, bytes < 512 ? 512 : bytes);
  }
  // Allocates at least 512 B, for operands that may be empty.
  std::uint64_t allocate_lines(std::uint64_t bytes) { return allocate(bytes < 512 ? 512 : bytes); }
  // Allocates a block for `value`, writes it there and returns its address.
  template <class T>
  std::uint64_t put(const T& value) {
    const std::uint64_t address = allocate(sizeof value);
    runtime_.put(address, value);
    return address;
  }

  Runtime& runtime() const { return runtime_; }
  int die() const { return die_; }
  // The regions, in the order in which they were allocated.
  const std::vector<Region>& regions() const { return regions_; }

 private:
  Runtime& runtime_;
  int die_;
  std::vector<Region> regions_, weights_;
  std::vector<std::uint64_t> own_;
  const DeviceMemory* lender_ = nullptr;
  std::size_t borrowed_ = 0;
};

}  // namespace cm384::host
