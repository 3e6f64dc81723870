#include "npu_core/memory/die_memory.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/engine/payload.h"
#include "base/text/error.h"

namespace cm384::npu {
namespace {

constexpr int kSubBits = 16;  // a SubPs is 2^-16 ps
constexpr std::int64_t kSubPerPs = std::int64_t{1} << kSubBits;

std::int64_t sub_ps(Time t) {
  return t.ps * kSubPerPs;
}
Time ceil_ps(std::int64_t sub) {
  return {(sub + kSubPerPs - 1) >> kSubBits};
}

// Time of a byte at a rate, rounded up.
std::int64_t byte_time(Bandwidth rate) {
  constexpr std::int64_t kSubPerSecond = 1'000'000'000'000 * kSubPerPs;
  return (kSubPerSecond + rate.bytes_per_second - 1) / rate.bytes_per_second;
}
std::int64_t byte_time(Frequency clock, int per_cycle) {
  return byte_time(Bandwidth{clock.hertz * per_cycle});
}

std::uint32_t slice_of(std::uint32_t line, const Divider& by_slices) {
  return by_slices.remainder(line ^ (line >> 6) ^ (line >> 13) ^ (line >> 19));
}

// Bits set in the mask of a line's sectors.
std::uint64_t count(std::uint32_t sectors) {
  static_assert(sizeof(L2Line::valid) == 1);
  sectors -= sectors >> 1 & 0x55;
  sectors = (sectors & 0x33) + (sectors >> 2 & 0x33);
  return (sectors + (sectors >> 4)) & 0xf;
}

}  // namespace

DieMemory::DieMemory(const hw::Memory& p, int vector_ports)
    : parameters_(p),
      capacity_(static_cast<std::uint64_t>(p.hbm.capacity.count)),
      core_ports_(p.on_die_network.core_ports),
      vector_ports_(vector_ports),
      sector_bytes_(static_cast<std::uint32_t>(p.l2.sector.count)),
      slice_path_{.access = static_cast<std::uint32_t>(p.l2.slice_access.count)},
      misses_(static_cast<std::uint32_t>(p.l2.misses)),
      ports_(static_cast<std::size_t>(p.on_die_network.core_ports + p.on_die_network.external_ports)),
      slices_(static_cast<std::size_t>(p.l2.slices)),
      by_slices_(static_cast<std::uint32_t>(p.l2.slices)),
      l2_(p.l2),
      hbm_(p.hbm) {
  if (!std::has_single_bit(sector_bytes_)) {
    throw InputError("l2: sector = " + std::to_string(sector_bytes_) + " B is no power of two");
  }
  sector_shift_ = std::countr_zero(sector_bytes_);
  if (p.l2.fetch.count % p.l2.sector.count != 0 || p.l2.line.count % p.l2.fetch.count != 0) {
    throw InputError("l2: fetch = " + std::to_string(p.l2.fetch.count) +
                     " B must be a multiple of sector and divide line");
  }
  const hw::OnDieNetwork& n = p.on_die_network;
  mean_way_ = Time{std::llround(static_cast<double>(n.hop_latency.ps) * mean_way())};
  if (mean_way_ > std::min(n.request_latency, n.response_latency))
    throw InputError("on_die_network: hop_latency = " + std::to_string(n.hop_latency.ps) +
                     " ps makes a mean way of " + std::to_string(mean_way_.ps) +
                     " ps, longer than request_latency or response_latency");
  rates_.hbm_read = byte_time(n.clock, n.hbm_read_bytes_per_cycle);
  rates_.l2_read = byte_time(n.clock, n.l2_read_bytes_per_cycle);
  rates_.write = byte_time(n.clock, n.write_bytes_per_cycle);
  rates_.realign = byte_time(n.clock, n.realign_bytes_per_cycle);
  rates_.cube_realign = byte_time(n.clock, n.cube_realign_bytes_per_cycle);
  rates_.external = byte_time(n.clock, n.external_bytes_per_cycle);
  slice_path_.byte = byte_time(p.l2.slice_bandwidth);
}

// Where a port stands in the row of slices.
int DieMemory::place(std::uint32_t requester) const {
  const int slices = parameters_.l2.slices;
  return requester < static_cast<std::uint32_t>(core_ports_)
             ? static_cast<int>(requester) * slices / core_ports_
             : slices - 1;
}

// Slices between cores and slices, on average.
double DieMemory::mean_way() const {
  std::int64_t all = 0;
  for (int port = 0; port < core_ports_; ++port) {
    for (int slice = 0; slice < parameters_.l2.slices; ++slice)
      all += std::abs(place(static_cast<std::uint32_t>(port)) - slice);
  }
  return static_cast<double>(all) / core_ports_ / parameters_.l2.slices;
}

Time DieMemory::way_beyond_mean(std::uint32_t requester, std::uint32_t slice) const {
  const Time hop = parameters_.on_die_network.hop_latency;
  if (hop == Time{}) return {};
  return hop * std::abs(place(requester) - static_cast<int>(slice)) - mean_way_;
}

Time DieMemory::access(const MemoryAccess& access) {
  return serve(access, false);
}

Time DieMemory::atomic_add(const MemoryAccess& access) {
  ++statistics_.atomics;
  return serve(access, true);
}

// A run of addresses, request after request, is shifted as a whole when its first byte is not the first of a
// sector: the data path into the core's buffer moves every one of its words by the same amount.
bool DieMemory::realigned(Port& port, const MemoryAccess& a) {
  const int direction = a.write ? 1 : 0;
  if (a.offset != port.run_end[direction])
    port.run_realigned[direction] = (a.offset & (sector_bytes_ - 1)) != 0;
  port.run_end[direction] = a.offset + a.bytes;
  return port.run_realigned[direction];
}

Time DieMemory::serve(const MemoryAccess& a, bool atomic) {
  assert(a.bytes > 0 && contains(a.offset, a.bytes) && a.requester < ports_.size());
  assert(a.offset / sim::kRequestBytes == (a.offset + a.bytes - 1) / sim::kRequestBytes);
#ifndef NDEBUG
  assert(a.at + calls_.look_ahead >= calls_.latest);
  calls_.latest = std::max(calls_.latest, a.at);
#endif
  const hw::OnDieNetwork& n = parameters_.on_die_network;
  Port& port = ports_[a.requester];
  const bool core = a.requester < core_ports_;

  const auto line_number = static_cast<std::uint32_t>(a.offset / sim::kRequestBytes);
  const auto begin = static_cast<std::uint32_t>(a.offset % sim::kRequestBytes);
  const std::uint32_t first = begin >> sector_shift_;
  const std::uint32_t last = (begin + a.bytes - 1) >> sector_shift_;
  const std::uint32_t moved = (last - first + 1) << sector_shift_;

  Target target{line_number, begin, first, last, slice_of(line_number, by_slices_)};
  target.line = l2_.find(line_number);
  enter(a, target, moved);
  const L2Line* const line = target.line;
  const bool hit_in_l2 = line != nullptr && (sectors(target) & ~line->valid) == 0;
  Time done{};
  if (atomic) {
    done = add(a, target);
  } else if (a.write) {
    done = write(a, target);
  } else {
    done = read(a, target);
  }

  // The port moves data at its rate over all its requests; what it moves later than the memory's answer,
  // counted from a request that met no queue, is delay.
  SubPs cost = 0;
  if (core) {
    const bool shifted = realigned(port, a);
    if (shifted) ++statistics_.realigned;
    SubPs rate = a.write ? rates_.write : hit_in_l2 ? rates_.l2_read : rates_.hbm_read;
    if (shifted) rate = std::max(rate, a.requester < vector_ports_ ? rates_.realign : rates_.cube_realign);
    cost = moved * rate;
  } else {
    cost = a.bytes * rates_.external;
  }
  SubPs& port_free = a.write ? port.write_free : port.read_free;
  port_free = std::max(port_free, sub_ps(a.at)) + cost;
  const Time away = way_beyond_mean(a.requester, target.slice);
  const Time memory = ceil_ps(sub_ps(done + n.response_latency + away) + cost);
  const Time at_slice = a.write ? parameters_.l2.write_latency : parameters_.l2.hit_latency;
  return std::max(memory,
                  ceil_ps(port_free) + n.request_latency + at_slice + n.response_latency + away + away);
}

// When the access is served. A slice serves in order of arrival: who meets a line that another requester
// holds keeps those behind waiting as well. Who meets a line on its way is set aside; such are served one
// after another once it is there.
void DieMemory::enter(const MemoryAccess& a, Target& t, std::uint32_t moved) {
  Slice& slice = slices_[t.slice];
  const Time way = parameters_.on_die_network.request_latency + way_beyond_mean(a.requester, t.slice);
  const SubPs first = std::max(slice.free, sub_ps(a.at + way));
  const SubPs cost = (a.write ? moved : std::max(moved, slice_path_.access)) * slice_path_.byte;
  slice.free = first + cost;
  t.start = ceil_ps(first);
  if (t.line == nullptr) return;

  t.hold = &held_.of(t.number, a.at - calls_.look_ahead);
  const Time there = t.hold->free - hold_time(*t.hold);
  const Time ready = t.hold->holder == a.requester ? there : t.hold->free;
  if (ready > t.start) {
    if (there > t.start) {
      ++statistics_.merged;
    } else {
      ++statistics_.line_waits;
      slice.free = sub_ps(ready) + cost;
    }
    t.start = ready;
  }
  hold_line(a, t);
  hold_until(t, t.start);
}

void DieMemory::hold_line(const MemoryAccess& a, const Target& t) {
  t.hold->holder = a.requester;
  t.hold->whole = a.bytes == sim::kRequestBytes;
}

std::uint32_t DieMemory::sectors(const Target& t) const {
  return ((1u << (t.last + 1)) - 1) & ~((1u << t.first) - 1);
}

L2Line& DieMemory::allocate(const MemoryAccess& a, Target& t) {
  if (t.line != nullptr) return *t.line;
  L2Cache::Victim victim;
  L2Line& line = l2_.allocate(t.number, victim);
  t.hold = &held_.of(t.number, a.at - calls_.look_ahead);
  hold_line(a, t);
  t.hold->free = Time{};
  if (victim.dirty != 0) {
    ++statistics_.write_backs;
    const auto low = static_cast<std::uint32_t>(std::countr_zero(victim.dirty));
    const auto count = static_cast<std::uint32_t>(std::popcount(victim.dirty));
    const Time accepted = write_hbm(std::uint64_t{victim.line} * sim::kRequestBytes + low * sector_bytes_,
                                    count * sector_bytes_, t.start + parameters_.l2.hit_latency);
    // The place is free once the victim is in the channel's write queue.
    t.start = std::max(t.start, accepted - parameters_.l2.hit_latency);
  }
  t.line = &line;
  return line;
}

// When a detected miss has its place among those of the slice, which waits for it.
Time DieMemory::place_for_miss(const Target& t) {
  Slice& slice = slices_[t.slice];
  const Time detected = t.start + parameters_.l2.hit_latency;
  const Time taken_until = places_[std::size_t{t.slice} * misses_ + slice.next_miss];
  if (taken_until <= detected) return detected;
  ++statistics_.miss_waits;
  slice.free = std::max(slice.free, sub_ps(taken_until - parameters_.l2.hit_latency));
  return taken_until;
}

// Brings the sectors `missing` into the line; returns when they are there.
Time DieMemory::fetch(const Target& t, std::uint32_t missing) {
  const auto low = static_cast<std::uint32_t>(std::countr_zero(missing));
  const auto count = static_cast<std::uint32_t>(std::popcount(missing));
  if (places_.empty()) places_.resize(slices_.size() * misses_);
  const Time from = place_for_miss(t);
  const Time filled = read_hbm(std::uint64_t{t.number} * sim::kRequestBytes + low * sector_bytes_,
                               count * sector_bytes_, from);
  std::uint32_t& place = slices_[t.slice].next_miss;
  places_[std::size_t{t.slice} * misses_ + place] = filled;
  place = place + 1 == misses_ ? 0 : place + 1;
  return filled;
}

Time DieMemory::read(const MemoryAccess& a, Target& t) {
  ++statistics_.reads;
  statistics_.read_bytes += a.bytes;
  const std::uint32_t needed = sectors(t);
  const std::uint32_t missing = needed & ~(t.line != nullptr ? t.line->valid : 0u);
  const auto misses = count(missing);
  statistics_.l2_misses += misses;
  statistics_.l2_hits += t.last - t.first + 1 - misses;
  if (missing == 0) return t.start + parameters_.l2.hit_latency;
  if (t.line == nullptr && !a.allocate) return fetch(t, missing);

  L2Line& line = allocate(a, t);
  // Whole fetch units around what is missing.
  const auto unit = static_cast<std::uint32_t>(parameters_.l2.fetch.count) >> sector_shift_;
  std::uint32_t wanted = 0;
  for (std::uint32_t s = 0; s < sim::kRequestBytes >> sector_shift_; s += unit) {
    const std::uint32_t group = ((1u << unit) - 1) << s;
    if ((missing & group) != 0) wanted |= group;
  }
  wanted &= ~std::uint32_t{line.valid};
  const Time filled = fetch(t, wanted);
  line.valid = static_cast<std::uint8_t>(line.valid | wanted);
  hold_until(t, filled - parameters_.l2.hit_latency);
  return filled;
}

Time DieMemory::write(const MemoryAccess& a, Target& t) {
  ++statistics_.writes;
  statistics_.written_bytes += a.bytes;
  const std::uint32_t touched = sectors(t);
  const std::uint32_t present = touched & (t.line != nullptr ? t.line->valid : 0u);
  const auto hits = count(present);
  statistics_.l2_hits += hits;
  statistics_.l2_misses += t.last - t.first + 1 - hits;
  if (t.line == nullptr && !a.allocate) {
    const Time accepted = write_hbm(a.offset, a.bytes, t.start + parameters_.l2.hit_latency);
    return std::max(t.start + parameters_.l2.write_latency, accepted);
  }

  // A sector written in part and not present is filled from HBM behind the acknowledgement.
  std::uint32_t partial = 0;
  if ((t.begin & (sector_bytes_ - 1)) != 0) partial |= 1u << t.first;
  if (((t.begin + a.bytes) & (sector_bytes_ - 1)) != 0) partial |= 1u << t.last;
  L2Line& line = allocate(a, t);
  hold_until(t, std::max(t.hold->free - hold_time(*t.hold), t.start));
  const std::uint32_t fill = partial & ~present;
  if (fill != 0) {
    const Time filled = fetch(t, fill);
    hold_until(t, std::max(t.start, filled - parameters_.l2.hit_latency));
  }
  line.valid = static_cast<std::uint8_t>(line.valid | touched);
  line.dirty = static_cast<std::uint8_t>(line.dirty | touched);
  return t.start + parameters_.l2.write_latency;
}

// Adds are done at the slice, in a line that is present.
Time DieMemory::add(const MemoryAccess& a, Target& t) {
  MemoryAccess whole = a;
  whole.allocate = true;
  const Time read_done = read(whole, t);
  const std::uint32_t touched = sectors(t);
  t.line->dirty = static_cast<std::uint8_t>(t.line->dirty | touched);
  // The next access of anybody finds the sum.
  hold_until(t, read_done - parameters_.l2.hit_latency + parameters_.l2.atomic_latency);
  return read_done + parameters_.l2.atomic_latency;
}

}  // namespace cm384::npu
