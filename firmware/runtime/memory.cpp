// What the compiler calls by itself for large copies and fills of private memory.
#include <stddef.h>
#include <stdint.h>

extern "C" {

void* memcpy(void* __restrict destination, const void* __restrict source, size_t bytes) {
  auto* d = static_cast<uint8_t*>(destination);
  const auto* s = static_cast<const uint8_t*>(source);
  for (size_t i = 0; i < bytes; ++i) d[i] = s[i];
  return destination;
}

void* memset(void* destination, int value, size_t bytes) {
  auto* d = static_cast<uint8_t*>(destination);
  for (size_t i = 0; i < bytes; ++i) d[i] = static_cast<uint8_t>(value);
  return destination;
}

}  // extern "C"
