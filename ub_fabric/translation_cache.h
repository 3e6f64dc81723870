// A controller's cache of remote address translations, set associative with least-recently-used replacement.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/parameters/ub.h"

namespace cm384::ub {

class TranslationCache {
 public:
  explicit TranslationCache(const hw::UbTranslation& parameters);

  // Key of an address: its unit and page in one number.
  std::uint64_t key(std::uint64_t address) const { return address >> page_shift_; }
  // True on a hit, which becomes the most recently used of its set.
  bool lookup(std::uint64_t key);
  // Puts a translation in the place of the least recently used of its set.
  void insert(std::uint64_t key);

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  std::size_t set(std::uint64_t key) const;

  int page_shift_;
  std::size_t ways_;
  std::size_t sets_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> used_;  // time of last use, in lookups
  std::uint64_t clock_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace cm384::ub
