#include "ub_fabric/translation_cache.h"

#include <bit>

#include "ub_fabric/routing.h"

namespace cm384::ub {

TranslationCache::TranslationCache(const hw::UbTranslation& p)
    : page_shift_(std::countr_zero(static_cast<std::uint64_t>(p.page.count))),
      ways_(static_cast<std::size_t>(p.ways)),
      sets_(static_cast<std::size_t>(p.entries / p.ways)),
      keys_(static_cast<std::size_t>(p.entries), kEmpty),
      used_(static_cast<std::size_t>(p.entries), 0) {}

// Hashed, since the pages that many peers use at one time have the same low bits.
std::size_t TranslationCache::set(std::uint64_t key) const {
  return static_cast<std::size_t>(mix(key) % sets_) * ways_;
}

bool TranslationCache::lookup(std::uint64_t key) {
  ++clock_;
  const std::size_t first = set(key);
  for (std::size_t i = first; i < first + ways_; ++i) {
    if (keys_[i] == key) {
      used_[i] = clock_;
      ++hits_;
      return true;
    }
  }
  ++misses_;
  return false;
}

void TranslationCache::insert(std::uint64_t key) {
  const std::size_t first = set(key);
  std::size_t victim = first;
  for (std::size_t i = first; i < first + ways_; ++i) {
    if (used_[i] < used_[victim]) victim = i;
  }
  keys_[victim] = key;
  used_[victim] = ++clock_;
}

}  // namespace cm384::ub
