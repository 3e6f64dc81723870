// The last writer of each 512 B line of a die's memory and, of lines that get flags, of each 32 B block.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/engine/transaction.h"

namespace cm384::npu {

class LineTable {
 public:
  static constexpr std::uint32_t kLine = 512, kBlock = 32, kBlocks = kLine / kBlock, kLinesPerPage = 8;

  struct Flags {  // who set each block, 0: nobody from outside
    std::array<sim::TransactionId, kBlocks> writer{};
    std::array<std::int64_t, kBlocks> at_ps{};
  };
  struct Page {
    std::array<sim::TransactionId, kLinesPerPage> writer{};  // 0: none
    std::array<std::uint32_t, kLinesPerPage> flags{};        // 1 + index, 0: none
  };

  // The page of the line at a byte offset; nullptr where no line of the page was written.
  const Page* find(std::uint64_t offset) const {
    const std::uint64_t page = offset / kPageBytes, leaf = page / kLeafPages;
    if (leaf >= directory_.size() || !directory_[leaf]) return nullptr;
    const std::uint32_t index = directory_[leaf][page % kLeafPages];
    return index == 0 ? nullptr : &pages_[index - 1];
  }
  static std::size_t line_in_page(std::uint64_t offset) { return offset / kLine % kLinesPerPage; }

  sim::TransactionId writer(std::uint64_t offset) const {
    const Page* const page = find(offset);
    return page == nullptr ? 0 : page->writer[line_in_page(offset)];
  }
  void set_writer(std::uint64_t offset, sim::TransactionId writer) {
    touch(offset).writer[line_in_page(offset)] = writer;
  }
  const Flags* flags(const Page& page, std::size_t line) const {
    return page.flags[line] == 0 ? nullptr : &flags_[page.flags[line] - 1];
  }
  Flags* flags(std::uint64_t offset) {
    const Page* const page = find(offset);
    const std::uint32_t index = page == nullptr ? 0 : page->flags[line_in_page(offset)];
    return index == 0 ? nullptr : &flags_[index - 1];
  }
  Flags& make_flags(std::uint64_t offset) {
    std::uint32_t& index = touch(offset).flags[line_in_page(offset)];
    if (index == 0) {
      flags_.emplace_back();
      index = static_cast<std::uint32_t>(flags_.size());
    }
    return flags_[index - 1];
  }

 private:
  static constexpr std::uint64_t kPageBytes = std::uint64_t{kLine} * kLinesPerPage, kLeafPages = 4096;

  Page& touch(std::uint64_t offset) {
    const std::uint64_t page = offset / kPageBytes, leaf = page / kLeafPages;
    if (leaf >= directory_.size()) directory_.resize(leaf + 1);
    if (!directory_[leaf]) directory_[leaf] = std::make_unique<std::uint32_t[]>(kLeafPages);
    std::uint32_t& index = directory_[leaf][page % kLeafPages];
    if (index == 0) {
      pages_.emplace_back();
      index = static_cast<std::uint32_t>(pages_.size());
    }
    return pages_[index - 1];
  }

  std::vector<std::unique_ptr<std::uint32_t[]>> directory_;  // by page: 1 + index, 0: none
  std::vector<Page> pages_;
  std::vector<Flags> flags_;
};

}  // namespace cm384::npu
