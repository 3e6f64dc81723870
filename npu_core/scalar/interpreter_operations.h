// The shapes that operations of the interpreter share. Included by interpreter.cpp alone, whose labels and
// variables they use.
#pragma once

#include <cstdint>
#include <cstring>

#include "npu_core/scalar/core_caches.h"

namespace cm384::npu {

template <class T>
inline T read_as(const Shortcut& entry, std::uint64_t address) {
  T value;
  std::memcpy(&value, entry.host + (address & (Shortcut::kBytes - 1)), sizeof value);
  return value;
}

}  // namespace cm384::npu

#define OP(name) do_##name:
// Every operation ends in a dispatch of its own where nothing is checked: branch predictors like it.
#define DISPATCH_NEXT                                  \
  do {                                                 \
    ++op;                                              \
    if constexpr (kChecked) goto dispatch;             \
    goto* kLabels[static_cast<std::size_t>(op->kind)]; \
  } while (0)
#define BINARY(name, expression)              \
  OP(name) {                                  \
    const U64 a = x[op->rs1], b = x[op->rs2]; \
    x[op->rd] = (expression);                 \
    DISPATCH_NEXT;                            \
  }
#define IMMEDIATE(name, expression)                                \
  OP(name) {                                                       \
    const U64 a = x[op->rs1], b = static_cast<U64>(op->immediate); \
    x[op->rd] = (expression);                                      \
    DISPATCH_NEXT;                                                 \
  }
#define LOAD(name, type, destination, convert)                                              \
  OP(name) {                                                                                \
    const U64 address = x[op->rs1] + static_cast<U64>(op->immediate);                       \
    const Shortcut& entry = shortcuts[address / Shortcut::kBytes % CoreCaches::kShortcuts]; \
    if (entry.load_tag != (address & ~(Shortcut::kBytes - sizeof(type)))) [[unlikely]]      \
      goto slow_load;                                                                       \
    destination = convert(read_as<type>(entry, address));                                   \
    DISPATCH_NEXT;                                                                          \
  }
#define STORE(name, type, source)                                                           \
  OP(name) {                                                                                \
    const U64 address = x[op->rs1] + static_cast<U64>(op->immediate);                       \
    const Shortcut& entry = shortcuts[address / Shortcut::kBytes % CoreCaches::kShortcuts]; \
    if (entry.store_tag != (address & ~(Shortcut::kBytes - sizeof(type)))) [[unlikely]]     \
      goto slow_store;                                                                      \
    if constexpr (kChecked) {                                                               \
      if (value_is_tainted(*op)) goto slow_store;                                           \
    }                                                                                       \
    const auto value = static_cast<type>(source);                                           \
    std::memcpy(entry.host + (address & (Shortcut::kBytes - 1)), &value, sizeof value);     \
    DISPATCH_NEXT;                                                                          \
  }
#define BRANCH(name, condition)               \
  OP(name) {                                  \
    const U64 a = x[op->rs1], b = x[op->rs2]; \
    if (condition) goto taken;                \
    goto not_taken;                           \
  }
#define NEAREST_EVEN ((state_.rounding | static_cast<std::uint8_t>(op->immediate)) == 0)
#define FLOAT(name, expression)                                                               \
  OP(name) {                                                                                  \
    if (!NEAREST_EVEN) [[unlikely]]                                                           \
      goto slow_float;                                                                        \
    const float a = to_float(f[op->rs1]), b = to_float(f[op->rs2]), c = to_float(f[op->rs3]); \
    (void)b, (void)c;                                                                         \
    f[op->rd] = to_bits(expression);                                                          \
    DISPATCH_NEXT;                                                                            \
  }
#define SIGN(name, expression)                \
  OP(name) {                                  \
    const U32 a = f[op->rs1], b = f[op->rs2]; \
    f[op->rd] = (expression);                 \
    DISPATCH_NEXT;                            \
  }
// State that the slow paths see and may change.
#define SYNCHRONISE                       \
  cycle_ = base + op->offset;             \
  pc_ = block->pc + 2 * op->pc_halfwords; \
  instructions_ = retired + static_cast<U64>(op - block->operations)
#define PARK                                                  \
  do {                                                        \
    parked_block_ = block;                                    \
    retrying_ = true;                                         \
    parked_index_ = static_cast<U32>(op - block->operations); \
    if constexpr (kProfiled) PROFILE_PARK;                    \
    return Stop::parked;                                      \
  } while (0)
// For a profile: what an operation took beyond what its block knows, before `base` moves; a block that ends.
#define COUNT_SLOW(why) \
  if constexpr (kProfiled) profile_->slow(pc_, why, cycle_ - (base + op->offset))
#define COUNT_BLOCK(edge) \
  if constexpr (kProfiled) profile_->ran(*block, edge)
#define PROFILE_PARK                                                                                        \
  profile_->parked(                                                                                         \
      pc_,                                                                                                  \
      access_bytes(op->kind) != 0 ? stall_at(x[op->rs1] + static_cast<U64>(op->immediate)) : stall_of(*op), \
      cycle_)
