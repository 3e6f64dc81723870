#include "npu_core/scalar/private_memory.h"

#include <algorithm>

namespace cm384::npu {

PrivateMemory::Page& PrivateMemory::page_for_write(std::size_t index) {
  if (leaves_ == nullptr) leaves_ = std::make_unique<Root>();
  auto& leaf = (*leaves_)[index / kLeafPages];
  if (leaf == nullptr) leaf = std::make_unique<Leaf>();
  auto& page = (*leaf)[index % kLeafPages];
  if (page == nullptr) {
    page = std::make_unique<Page>();
    page->bytes = program_->page(index);
    ++pages_;
  }
  return *page;
}

bool PrivateMemory::is_tainted(std::uint64_t address, std::size_t bytes) const {
  const Page* page = find(page_of(address));
  if (page == nullptr || page->taint == nullptr) return false;
  const bool* first = page->taint->data() + address % kPageBytes;
  return std::any_of(first, first + bytes, [](bool tainted) { return tainted; });
}

void PrivateMemory::set_taint(std::uint64_t address, std::size_t bytes, bool tainted) {
  Page& page = page_for_write(page_of(address));
  if (page.taint == nullptr) {
    if (!tainted) return;
    page.taint = std::make_unique<std::array<bool, kPageBytes>>();
  }
  std::fill_n(page.taint->begin() + static_cast<std::ptrdiff_t>(address % kPageBytes), bytes, tainted);
}

std::size_t PrivateMemory::footprint() const {
  if (leaves_ == nullptr) return 0;
  std::size_t bytes = sizeof(Root);
  for (const auto& leaf : *leaves_) {
    if (leaf == nullptr) continue;
    bytes += sizeof(Leaf);
    for (const auto& page : *leaf) {
      if (page != nullptr) bytes += sizeof(Page) + (page->taint != nullptr ? kPageBytes : 0);
    }
  }
  return bytes;
}

}  // namespace cm384::npu
