#include "firmware/embedded.h"

// The assembler copies each image between two symbols.
#define CM384_EMBED(name, path)                       \
  asm(".section .rodata\n"                            \
      ".balign 16\n"                                  \
      "cm384_embedded_" #name                         \
      ":\n"                                           \
      ".incbin \"" path                               \
      "\"\n"                                          \
      "cm384_embedded_" #name                         \
      "_end:\n"                                       \
      ".text\n");                                     \
  extern "C" const std::byte cm384_embedded_##name[]; \
  extern "C" const std::byte cm384_embedded_##name##_end[];
#include "embedded_list.h"
#undef CM384_EMBED

namespace cm384::firmware {

namespace {
constexpr std::string_view kNames[] = {
#define CM384_EMBED(name, path) #name,
#include "embedded_list.h"
#undef CM384_EMBED
};
}  // namespace

std::span<const std::string_view> kernel_names() {
  return kNames;
}

std::span<const std::byte> kernel_image(std::string_view name) {
#define CM384_EMBED(kernel, path) \
  if (name == #kernel) return {cm384_embedded_##kernel, cm384_embedded_##kernel##_end};
#include "embedded_list.h"
#undef CM384_EMBED
  return {};
}

}  // namespace cm384::firmware
