// What the compiler calls by itself for large copies and fills of private memory.
#include <stddef.h>
#include <stdint.h>

extern "C" {

void* memcpy(void* __restrict destination, const void* __restrict source, size_t bytes) {
  auto* d = static_cast<uint8_t*>(destination);
  const auto* s = static_cast<const uint8_t*>(source);
  if (((reinterpret_cast<uintptr_t>(d) | reinterpret_cast<uintptr_t>(s)) & 7) == 0) {
    for (; bytes >= 8; bytes -= 8, d += 8, s += 8) {
      *reinterpret_cast<uint64_t*>(d) = *reinterpret_cast<const uint64_t*>(s);
    }
  }
  for (size_t i = 0; i < bytes; ++i) d[i] = s[i];
  return destination;
}

void* memset(void* destination, int value, size_t bytes) {
  auto* d = static_cast<uint8_t*>(destination);
  for (size_t i = 0; i < bytes; ++i) d[i] = static_cast<uint8_t>(value);
  return destination;
}

}  // extern "C"
