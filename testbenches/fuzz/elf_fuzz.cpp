// Kernels: anything ends in an image or an InputError.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/text/error.h"
#include "npu_core/scalar/elf_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  try {
    const auto image = npu::ElfImage::from_memory(std::as_bytes(std::span(data, size)), "fuzz.elf");
    for (const auto& segment : image->segments()) image->symbol_at(segment.address + segment.bytes / 2);
  } catch (const InputError&) {
  }
  return 0;
}
