#include "npu_core/memory/l2_cache.h"

#include <algorithm>
#include <string>

#include "base/engine/prefetch.h"
#include "base/text/error.h"

namespace cm384::npu {

L2Cache::L2Cache(const hw::L2& parameters)
    : ways_(static_cast<std::uint32_t>(parameters.ways)),
      sets_(
          static_cast<std::uint32_t>(parameters.capacity.count / (parameters.line.count * parameters.ways))),
      by_sets_(std::max(sets_, 1u)) {
  if (static_cast<std::int64_t>(sets_) * parameters.line.count * parameters.ways !=
      parameters.capacity.count) {
    throw InputError("l2: capacity " + std::to_string(parameters.capacity.count) +
                     " B is no whole number of sets of " + std::to_string(ways_) + " lines of " +
                     std::to_string(parameters.line.count) + " B");
  }
  for (std::uint32_t position = 0; position < kMaxWays; ++position) {
    const std::uint64_t way = position < ways_ ? ways_ - 1 - position : position;
    first_order_ |= way << (4 * position);
  }
  made_.resize((groups() + 63) / 64);
}

L2Cache::~L2Cache() {
  for (std::uint32_t group = 0; group * kSetsPerGroup < sets_; ++group) {
    if (is_made(group)) std::destroy_n(set_.get() + std::size_t{group} * kSetsPerGroup, kSetsPerGroup);
  }
}

std::uint32_t L2Cache::index_of(std::uint32_t line) const {
  // Each span of one line a set is shifted against the one before, so that regular spacings of cores' regions
  // do not meet in a few sets; neighbouring lines stay in neighbouring sets, which keeps lazy groups few.
  const std::uint32_t span = by_sets_.quotient(line);
  return by_sets_.remainder(line - span * sets_ + span * kSpanShift);
}

void L2Cache::make(std::uint32_t group) {
  if (!set_) {
    set_.reset(static_cast<Set*>(::operator new (std::size_t{groups()} * kSetsPerGroup * sizeof(Set),
                                                 std::align_val_t{alignof(Set)})));
  }
  Set* const first = set_.get() + std::size_t{group} * kSetsPerGroup;
  for (std::uint32_t k = 0; k < kSetsPerGroup; ++k) {
    Set* const set = ::new (static_cast<void*>(first + k)) Set;
    set->order = first_order_;
  }
  made_[group / 64] |= std::uint64_t{1} << (group % 64);
}

L2Cache::Set& L2Cache::set_of(std::uint32_t line) {
  const std::uint32_t index = index_of(line);
  if (!is_made(index / kSetsPerGroup)) [[unlikely]]
    make(index / kSetsPerGroup);
  return set_.get()[index];
}

void L2Cache::prefetch(std::uint32_t line) const {
  const std::uint32_t index = index_of(line);
  if (is_made(index / kSetsPerGroup)) __builtin_prefetch(set_.get() + index, 1);
}

void L2Cache::prefetch_far(std::uint32_t line) const {
  const std::uint32_t index = index_of(line);
  if (!is_made(index / kSetsPerGroup)) return;
  if (const Set& set = set_.get()[index]; set.far != 0) sim::prefetch(&far_of(set), sizeof(Far));
}

// Moves a way to the front of the order: the nibbles before its own move up by one.
void L2Cache::touch(Set& set, std::uint32_t way) const {
  constexpr std::uint64_t ones = 0x1111111111111111;
  const std::uint64_t difference = set.order ^ (ones * way);
  const std::uint64_t zeros =
      (difference - ones) & ~difference & (ones << 3);  // lowest bit: the way's nibble
  const auto position = static_cast<std::uint32_t>(std::countr_zero(zeros)) / 4;
  const std::uint64_t up_to =
      position == 15 ? ~std::uint64_t{0} : (std::uint64_t{1} << (4 * (position + 1))) - 1;
  const std::uint64_t below = up_to >> 4;
  set.order = (set.order & ~up_to) | ((set.order & below) << 4) | way;
}

L2Line& L2Cache::line_of(Set& set, std::uint32_t way) {
  if (way < kNear) return set.near[way];
  if (set.far == 0) {
    if (fars_ % kFarPerChunk == 0) far_.push_back(std::make_unique<Far[]>(kFarPerChunk));
    set.far = ++fars_;
  }
  return far_of(set)[way - kNear];
}

L2Line* L2Cache::find(std::uint32_t line) {
  Set& set = set_of(line);
  last_ = &set;
  for (std::uint32_t way = 0; way < kNear; ++way) {
    if (set.near[way].tag() != line + 1) continue;
    touch(set, way);
    return &set.near[way];
  }
  if (set.far == 0) return nullptr;
  Far& far = far_of(set);
  for (std::uint32_t way = kNear; way < kMaxWays; ++way) {
    if (far[way - kNear].tag() != line + 1) continue;
    touch(set, way);
    return &far[way - kNear];
  }
  return nullptr;
}

L2Line& L2Cache::allocate(std::uint32_t line, Victim& victim) {
  Set& set = *last_;
  const auto way = static_cast<std::uint32_t>((set.order >> (4 * (ways_ - 1))) & 15);
  L2Line& place = line_of(set, way);
  victim = {};
  if (place.tag() != 0) victim = {place.tag() - 1, place.dirty};
  place = {};
  place.set_tag(line + 1);
  touch(set, way);
  return place;
}

std::uint64_t L2Cache::dirty_sectors() const {
  std::uint64_t sum = 0;
  const auto add = [&sum](const auto& lines) {
    for (const L2Line& line : lines) sum += static_cast<std::uint64_t>(std::popcount(line.dirty));
  };
  for (std::uint32_t group = 0; group * kSetsPerGroup < sets_; ++group) {
    if (!is_made(group)) continue;
    for (std::uint32_t k = 0; k < kSetsPerGroup; ++k) {
      const Set& set = set_.get()[group * kSetsPerGroup + k];
      add(set.near);
      if (set.far != 0) add(far_of(set));
    }
  }
  return sum;
}

}  // namespace cm384::npu
