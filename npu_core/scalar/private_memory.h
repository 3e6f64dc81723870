// A core's private memory: pages of 4 KiB, copied from the program's image when first written, with payload
// taint to the byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "firmware/abi/memory_map.h"
#include "npu_core/scalar/program.h"

namespace cm384::npu {

class PrivateMemory {
 public:
  static constexpr std::size_t kPages = CM384_PRIVATE_BYTES / kPageBytes;

  static bool contains(std::uint64_t address) { return address - CM384_PRIVATE_BASE < CM384_PRIVATE_BYTES; }
  static std::size_t page_of(std::uint64_t address) { return (address - CM384_PRIVATE_BASE) / kPageBytes; }

  // Forgets all pages; reads see the program's image from now on.
  void reset(const Program* program) {
    leaves_.reset();
    program_ = program;
    pages_ = 0;
  }

  // The bytes at the address up to the end of its page.
  const std::byte* read(std::uint64_t address) const {
    const Page* page = find(page_of(address));
    const std::size_t in_page = address % kPageBytes;
    return page != nullptr ? page->bytes.data() + in_page : program_->page(page_of(address)).data() + in_page;
  }
  bool is_owned(std::uint64_t address) const { return find(page_of(address)) != nullptr; }
  // As read(), of a page of the core's own.
  std::byte* write(std::uint64_t address) {
    return page_for_write(page_of(address)).bytes.data() + address % kPageBytes;
  }

  // Payload taint of [address, address + bytes), which lies in one page.
  bool is_tainted(std::uint64_t address, std::size_t bytes) const;
  void set_taint(std::uint64_t address, std::size_t bytes, bool tainted);

  std::size_t pages() const { return pages_; }
  std::size_t footprint() const;

 private:
  struct Page {
    PageBytes bytes;
    std::unique_ptr<std::array<bool, kPageBytes>> taint;
  };
  static constexpr std::size_t kLeafPages = 64;
  using Leaf = std::array<std::unique_ptr<Page>, kLeafPages>;
  using Root = std::array<std::unique_ptr<Leaf>, kPages / kLeafPages>;

  const Page* find(std::size_t index) const {
    if (leaves_ == nullptr) return nullptr;
    const auto& leaf = (*leaves_)[index / kLeafPages];
    return leaf == nullptr ? nullptr : (*leaf)[index % kLeafPages].get();
  }
  Page& page_for_write(std::size_t index);

  const Program* program_ = nullptr;
  std::unique_ptr<Root> leaves_;
  std::size_t pages_ = 0;
};

}  // namespace cm384::npu
