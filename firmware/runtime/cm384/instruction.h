// The custom instructions as functions: the lowest layer of the runtime (firmware/abi/isa.h has the
// operands).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"

// A build may have functions of its own made of the calls: smaller, and not what is measured.
#ifndef CM384_INLINE
#define CM384_INLINE inline __attribute__((always_inline))
#endif

namespace cm384 {

// One pipe instruction. The compiler moves no access to memory across it: pipes and scalar unit share the
// UBuffer.
template <int Class, int Operation, int Type = 0>
CM384_INLINE void pipe_instruction(uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
  static_assert(Operation >= 0 && Operation < 32 && Type >= 0 && Type < 4);
  asm volatile(".insn r4 0x2b, %0, %1, x%2, %z3, %z4, %z5"
               :
               : "i"(Class), "i"(Type), "i"(Operation), "rJ"(a), "rJ"(b), "rJ"(c)
               : "memory");
}

template <int Call>
CM384_INLINE uint64_t host_call(uint64_t a, uint64_t b) {
  uint64_t result;
  asm volatile(".insn r 0x0b, 0, %1, %0, %z2, %z3" : "=r"(result) : "i"(Call), "rJ"(a), "rJ"(b) : "memory");
  return result;
}

template <int Csr>
CM384_INLINE uint64_t read_csr() {
  uint64_t value;
  asm volatile("csrr %0, %1" : "=r"(value) : "i"(Csr) : "memory");
  return value;
}

}  // namespace cm384
