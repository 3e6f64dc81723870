// The scalar unit's slow paths to memory: cache misses, UBuffer, accesses that cross a line, payload.
#include <algorithm>
#include <cstring>

#include "firmware/abi/memory_map.h"
#include "npu_core/scalar/core_caches.h"
#include "npu_core/scalar/float_environment.h"
#include "npu_core/scalar/scalar_core.h"
#include "npu_core/scalar/scalar_profile.h"

namespace cm384::npu {
namespace {

sim::TagMask blocks_of(std::uint64_t in_line, std::uint64_t bytes) {
  const std::uint64_t first = in_line / sim::kBlockBytes, last = (in_line + bytes - 1) / sim::kBlockBytes;
  return static_cast<sim::TagMask>(((std::uint64_t{2} << last) - 1) & ~((std::uint64_t{1} << first) - 1));
}

}  // namespace

std::uint64_t ScalarCore::ubuffer_offset(std::uint64_t address) const {
  const std::uint64_t offset = address - CM384_UBUFFER_BASE;
  const bool low = offset >= CM384_UBUFFER_BYTES && program_ != nullptr && program_->ubuffer_at_zero();
  return low ? address : offset;
}

void ScalarCore::collect_float_flags() {
  state_.float_flags = static_cast<std::uint8_t>(state_.float_flags | FloatEnvironment::flags());
  FloatEnvironment::clear();
}

IssueAnswer ScalarCore::ask_fill(std::uint64_t address, FillKind kind, std::byte* line, std::uint32_t bytes,
                                 sim::TagMask& tags) {
  collect_float_flags();
  const IssueAnswer answer = environment_.fill(address, kind, cycle_, line, bytes, tags);
  FloatEnvironment::clear();
  if (!answer.parked) cycle_ = std::max(cycle_, answer.release_cycle);
  return answer;
}

ScalarCore::Access ScalarCore::write_back(std::uint32_t slot) {
  CoreCaches& c = *caches_;
  const std::uint64_t address = c.data.line(slot) * c.line_bytes;
  sim::TagMask none = 0;
  const bool global = is_global(address);
  const IssueAnswer answer = ask_fill(address, FillKind::write_back, global ? c.gm_line(slot) : nullptr,
                                      c.line_bytes, global ? c.gm_tag(slot) : none);
  if (answer.parked) return Access::parked;
  ++counters_.write_backs;
  c.dirty[slot] = false;
  c.drop_shortcuts(address, c.line_bytes);
  return Access::done;
}

ScalarCore::Access ScalarCore::touch_line(std::uint64_t address, FillKind kind, std::uint32_t& slot) {
  CoreCaches& c = *caches_;
  const std::uint64_t line = address / c.line_bytes;
  slot = c.data.find(line);
  if (slot == CacheTags::kNone) {
    slot = c.data.victim(line);
    if (c.data.line(slot) != CacheTags::kInvalid) {
      if (c.dirty[slot] && write_back(slot) == Access::parked) return Access::parked;
      c.drop_shortcuts(c.data.line(slot) * c.line_bytes, c.line_bytes);
    }
    const std::uint64_t line_address = line * c.line_bytes;
    const bool global = is_global(line_address);
    sim::TagMask none = 0;
    // A fill that parks leaves the victim where it is, clean; its bytes must survive until then.
    std::byte* const to = global ? c.gm_line(slot) : nullptr;
    if (global && c.data.line(slot) != CacheTags::kInvalid) c.data.set(slot, CacheTags::kInvalid);
    if (global) c.gm_tag(slot) = 0;
    const IssueAnswer answer = ask_fill(line_address, kind, to, c.line_bytes, global ? c.gm_tag(slot) : none);
    if (answer.parked) return Access::parked;
    ++counters_.data_misses;
    c.data.set(slot, line);
    c.dirty[slot] = false;
  }
  if (kind == FillKind::store) c.dirty[slot] = true;
  return Access::done;
}

void ScalarCore::install(std::uint64_t address, std::uint32_t slot) {
  CoreCaches& c = *caches_;
  const std::uint64_t piece = address & ~(Shortcut::kBytes - 1);
  Shortcut entry;
  bool writable = c.dirty[slot];
  if (is_global(piece)) {
    const std::uint64_t in_line = piece % c.line_bytes;
    if ((c.gm_tag(slot) & blocks_of(in_line, Shortcut::kBytes)) != 0) return;
    entry.host = c.gm_line(slot) + in_line;
  } else {
    if (memory_.is_tainted(piece, Shortcut::kBytes)) return;
    entry.host =
        const_cast<std::byte*>(memory_.read(piece));  // written only where the page is the core's own
    writable = writable && memory_.is_owned(piece);
  }
  if (watched_ != 0 && (watched_ & ~(Shortcut::kBytes - 1)) == piece) writable = false;
  entry.load_tag = piece;
  if (writable) entry.store_tag = piece;
  c.shortcut(piece) = entry;
}

ScalarCore::Access ScalarCore::load_piece(std::uint64_t address, unsigned bytes, std::byte* to, bool& tainted,
                                          FillKind kind) {
  if (const std::uint64_t at = ubuffer_offset(address);
      at < CM384_UBUFFER_BYTES && at + bytes <= CM384_UBUFFER_BYTES) {
    const bool payload = environment_.ubuffer_load(static_cast<std::uint32_t>(at), bytes, cycle_, to);
    cycle_ += parameters_.ubuffer_load;
    if (payload) {
      std::fill_n(to, bytes, sim::kStandIn);
      tainted = true;
    }
    return Access::done;
  }
  const bool global = is_global(address);
  if (!global && !PrivateMemory::contains(address)) {
    fault_cause_ = kind == FillKind::load ? 5 : 7;
    fault_value_ = address;
    return Access::faulted;
  }
  std::uint32_t slot = 0;
  if (touch_line(address, kind, slot) == Access::parked) return Access::parked;
  if (global) {
    const std::uint64_t in_line = address % caches_->line_bytes;
    if ((caches_->gm_tag(slot) & blocks_of(in_line, bytes)) != 0) {
      std::fill_n(to, bytes, sim::kStandIn);
      tainted = true;
      return Access::done;
    }
    std::memcpy(to, caches_->gm_line(slot) + in_line, bytes);
  } else {
    std::memcpy(to, memory_.read(address), bytes);
    tainted = tainted || memory_.is_tainted(address, bytes);
  }
  install(address, slot);
  return Access::done;
}

ScalarCore::Access ScalarCore::store_piece(std::uint64_t address, unsigned bytes, const std::byte* from,
                                           bool tainted) {
  if (const std::uint64_t at = ubuffer_offset(address);
      at < CM384_UBUFFER_BYTES && at + bytes <= CM384_UBUFFER_BYTES) {
    environment_.ubuffer_store(static_cast<std::uint32_t>(at), bytes, cycle_, from, tainted);
    cycle_ += parameters_.ubuffer_store;
    return Access::done;
  }
  const bool global = is_global(address);
  if (!global && (!PrivateMemory::contains(address) || stack_in_program())) {
    fault_cause_ = 7;
    fault_value_ = address;
    return Access::faulted;
  }
  std::uint32_t slot = 0;
  if (touch_line(address, FillKind::store, slot) == Access::parked) return Access::parked;
  if (global) {
    const std::uint64_t in_line = address % caches_->line_bytes;
    std::memcpy(caches_->gm_line(slot) + in_line, from, bytes);
    if (tainted) {
      caches_->gm_tag(slot) |= blocks_of(in_line, bytes);
      caches_->drop_shortcuts(address & ~(Shortcut::kBytes - 1), Shortcut::kBytes);
    }
  } else {
    std::memcpy(writable(address), from, bytes);
    memory_.set_taint(address, bytes, tainted);
    if (tainted) caches_->drop_shortcuts(address & ~(Shortcut::kBytes - 1), Shortcut::kBytes);
  }
  install(address, slot);
  return Access::done;
}

std::byte* ScalarCore::writable(std::uint64_t address) {
  if (caches_ != nullptr && !memory_.is_owned(address)) {
    environment_.page_allocated();
    // The page gets bytes of its own: shortcuts to the shared ones end.
    for (Shortcut& s : caches_->shortcuts) {
      if (s.load_tag / kPageBytes == address / kPageBytes) s = Shortcut{};
    }
  }
  if (program_->is_text(PrivateMemory::page_of(address))) text_written_ = true;
  if (watched_ != 0 && address - watched_ < 8) stored_ = true;
  return memory_.write(address);
}

// Where the program's rules order it: the access waits for pipes that touch its bytes.
ScalarCore::Access ScalarCore::order_access(std::uint64_t address, unsigned bytes, bool write) {
  const std::uint64_t at = ubuffer_offset(address);
  if (at >= CM384_UBUFFER_BYTES || at + bytes > CM384_UBUFFER_BYTES) return Access::done;
  collect_float_flags();
  const IssueAnswer answer = environment_.ubuffer_order(static_cast<std::uint32_t>(at), bytes, write, cycle_);
  FloatEnvironment::clear();
  if (answer.parked) {
    if (profile_ != nullptr) profile_->parked_by_order();
    return Access::parked;
  }
  if (profile_ != nullptr) profile_->ordered(std::max<std::int64_t>(0, answer.release_cycle - cycle_));
  cycle_ = std::max(cycle_, answer.release_cycle);
  return Access::done;
}

ScalarStall ScalarCore::stall_at(std::uint64_t address) const {
  return ubuffer_offset(address) < CM384_UBUFFER_BYTES ? ScalarStall::local : ScalarStall::memory;
}

ScalarCore::Access ScalarCore::load(std::uint64_t address, unsigned bytes, std::uint64_t& value,
                                    bool& tainted, FillKind kind) {
  if (program_->rules().order && order_access(address, bytes, false) == Access::parked) return Access::parked;
  std::byte buffer[8] = {};
  const auto first = std::min(bytes, static_cast<unsigned>(Shortcut::kBytes - address % Shortcut::kBytes));
  Access access = load_piece(address, first, buffer, tainted, kind);
  if (access == Access::done && first != bytes) {
    access = load_piece(address + first, bytes - first, buffer + first, tainted, kind);
  }
  if (tainted) std::fill_n(buffer, bytes, sim::kStandIn);
  std::memcpy(&value, buffer, sizeof value);
  return access;
}

ScalarCore::Access ScalarCore::store(std::uint64_t address, unsigned bytes, std::uint64_t value,
                                     bool tainted) {
  if (program_->rules().order && order_access(address, bytes, true) == Access::parked) return Access::parked;
  std::byte buffer[8];
  std::memcpy(buffer, &value, sizeof value);
  const auto first = std::min(bytes, static_cast<unsigned>(Shortcut::kBytes - address % Shortcut::kBytes));
  Access access = store_piece(address, first, buffer, tainted);
  if (access == Access::done && first != bytes) {
    access = store_piece(address + first, bytes - first, buffer + first, tainted);
  }
  return access;
}

ScalarCore::Access ScalarCore::clean_range(std::uint64_t address, std::uint64_t bytes) {
  CoreCaches& c = *caches_;
  const bool all = bytes == 0;
  const std::uint64_t first = address / c.line_bytes;
  const std::uint64_t last = all ? 0 : (address + bytes - 1) / c.line_bytes;
  const std::uint64_t lines = all ? c.data.slots() : last - first + 1;
  const auto drop = [&](std::uint32_t slot) {
    if (c.dirty[slot] && write_back(slot) == Access::parked) return false;
    c.drop_shortcuts(c.data.line(slot) * c.line_bytes, c.line_bytes);
    c.data.set(slot, CacheTags::kInvalid);
    return true;
  };
  if (all || lines > c.data.slots()) {
    for (std::uint32_t slot = 0; slot < c.data.slots(); ++slot) {
      const std::uint64_t line = c.data.line(slot);
      if (line == CacheTags::kInvalid || (!all && (line < first || line > last))) continue;
      if (!drop(slot)) return Access::parked;
    }
  } else {
    for (std::uint64_t line = first; line <= last; ++line) {
      const std::uint32_t slot = c.data.find(line);
      if (slot != CacheTags::kNone && !drop(slot)) return Access::parked;
    }
  }
  cycle_ += static_cast<std::int64_t>(std::min<std::uint64_t>(lines, c.data.slots())) *
            parameters_.cache_clean_line;
  return Access::done;
}

// What the own cache has of the line goes to memory first, and is dropped.
ScalarCore::Access ScalarCore::amo_in_memory(std::uint64_t address, const AtomicUpdate& update,
                                             std::uint64_t& old, bool& tainted) {
  CoreCaches& c = *caches_;
  const std::uint32_t slot = c.data.find(address / c.line_bytes);
  if (slot != CacheTags::kNone) {
    if (c.dirty[slot] && write_back(slot) == Access::parked) return Access::parked;
    c.drop_shortcuts(address / c.line_bytes * c.line_bytes, c.line_bytes);
    c.data.set(slot, CacheTags::kInvalid);
  }
  collect_float_flags();
  const IssueAnswer answer = environment_.atomic(address, update, cycle_, old, tainted);
  FloatEnvironment::clear();
  if (answer.parked) return Access::parked;
  ++counters_.atomics;
  cycle_ = std::max(cycle_, answer.release_cycle);
  if (tainted) std::memset(&old, static_cast<int>(sim::kStandIn), update.bytes);
  return Access::done;
}

// At the program's end. A line that is parked on is asked for again; those before it are clean by then.
ScalarCore::Access ScalarCore::write_back_all() {
  CoreCaches& c = *caches_;
  for (std::uint32_t slot = 0; slot < c.data.slots(); ++slot) {
    if (!c.dirty[slot] || c.data.line(slot) == CacheTags::kInvalid ||
        !is_global(c.data.line(slot) * c.line_bytes))
      continue;
    if (write_back(slot) == Access::parked) return Access::parked;
    ++counters_.written_at_end;
  }
  return Access::done;
}

std::uint64_t ScalarCore::dirty_global_lines() const {
  std::uint64_t lines = 0;
  const CoreCaches& c = *caches_;
  for (std::uint32_t slot = 0; slot < c.data.slots(); ++slot)
    lines += c.dirty[slot] && c.data.line(slot) != CacheTags::kInvalid &&
             is_global(c.data.line(slot) * c.line_bytes);
  return lines;
}

bool ScalarCore::fetch_lines(std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t line = first; line <= last; ++line) {
    std::uint64_t& shortcut = caches_->fetched[line % CoreCaches::kFetchShortcuts];
    if (shortcut == line) continue;
    if (parameters_.instruction_fetch == "charged" && !fetch_line(line)) return false;
    shortcut = line;
  }
  return true;
}

// Waits until the line is in the instruction cache; false: parked.
bool ScalarCore::fetch_line(std::uint64_t line) {
  CoreCaches& c = *caches_;
  const std::int64_t asked = cycle_;
  if (c.instruction.find(line) == CacheTags::kNone) {
    const auto bytes = static_cast<std::uint32_t>(parameters_.instruction_cache_line.count);
    sim::TagMask none = 0;
    if (ask_fill(line * bytes, FillKind::instruction, nullptr, bytes, none).parked) return false;
    ++counters_.instruction_misses;
    hold_line(line);
    prefetch_lines(line, asked);
  } else if (const auto way =
                 std::ranges::find(c.under_way, line, &std::pair<std::uint64_t, std::int64_t>::first);
             way != c.under_way.end()) {
    cycle_ = std::max(cycle_, way->second);
    c.under_way.erase(way);
  }
  counters_.instruction_stall_cycles += static_cast<std::uint64_t>(cycle_ - asked);
  return true;
}

// Asks for the lines after a missing one in the cycle in which it was asked for.
void ScalarCore::prefetch_lines(std::uint64_t after, std::int64_t asked) {
  CoreCaches& c = *caches_;
  const auto bytes = static_cast<std::uint32_t>(parameters_.instruction_cache_line.count);
  const std::uint64_t last = (program_->text_high() - 1) / bytes;
  for (std::uint64_t line = after + 1; line <= after + parameters_.instruction_prefetch && line <= last;
       ++line) {
    if (c.instruction.find(line) != CacheTags::kNone) continue;
    sim::TagMask none = 0;
    const IssueAnswer answer =
        environment_.fill(line * bytes, FillKind::instruction, asked, nullptr, bytes, none);
    if (answer.parked) return;
    ++counters_.instruction_prefetches;
    hold_line(line);
    c.under_way.emplace_back(line, answer.release_cycle);
  }
  FloatEnvironment::clear();
}

void ScalarCore::hold_line(std::uint64_t line) {
  CoreCaches& c = *caches_;
  const std::uint32_t slot = c.instruction.victim(line);
  const std::uint64_t old = c.instruction.line(slot);
  if (old != CacheTags::kInvalid) {
    if (c.fetched[old % CoreCaches::kFetchShortcuts] == old)
      c.fetched[old % CoreCaches::kFetchShortcuts] = CacheTags::kInvalid;
    std::erase_if(c.under_way, [old](const auto& way) { return way.first == old; });
  }
  c.instruction.set(slot, line);
}

bool ScalarCore::read_memory(std::uint64_t address, std::span<std::byte> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::uint64_t at = address + i;
    if (const std::uint64_t local = ubuffer_offset(at); local < CM384_UBUFFER_BYTES) {
      if (environment_.ubuffer_load(static_cast<std::uint32_t>(local), 1, cycle_, &to[i])) {
        to[i] = sim::kStandIn;
      }
    } else if (PrivateMemory::contains(at) && program_ != nullptr) {
      to[i] = memory_.is_tainted(at, 1) ? sim::kStandIn : *memory_.read(at);
    } else if (is_global(at)) {
      const std::uint32_t slot =
          caches_ == nullptr ? CacheTags::kNone : caches_->data.find(at / caches_->line_bytes);
      if (slot == CacheTags::kNone) {
        if (!environment_.peek(at, to[i])) return false;
        continue;
      }
      const std::uint64_t in_line = at % caches_->line_bytes;
      const bool payload = (caches_->gm_tag(slot) & blocks_of(in_line, 1)) != 0;
      to[i] = payload ? sim::kStandIn : caches_->gm_line(slot)[in_line];
    } else {
      return false;
    }
  }
  return true;
}

bool ScalarCore::write_memory(std::uint64_t address, std::span<const std::byte> from) {
  if (program_ == nullptr) return false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint64_t at = address + i;
    if (const std::uint64_t local = ubuffer_offset(at); local < CM384_UBUFFER_BYTES) {
      environment_.ubuffer_store(static_cast<std::uint32_t>(local), 1, cycle_, &from[i], false);
    } else if (PrivateMemory::contains(at)) {
      *writable(at) = from[i];
      memory_.set_taint(at, 1, false);
    } else if (is_global(at) && environment_.poke(at, from[i])) {
      // The own cache's copy too.
      const std::uint32_t slot =
          caches_ == nullptr ? CacheTags::kNone : caches_->data.find(at / caches_->line_bytes);
      if (slot != CacheTags::kNone) caches_->gm_line(slot)[at % caches_->line_bytes] = from[i];
    } else {
      return false;
    }
  }
  if (text_written_) decode_privately();
  return true;
}

}  // namespace cm384::npu
