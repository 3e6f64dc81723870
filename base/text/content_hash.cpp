#include "base/text/content_hash.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "base/text/error.h"

namespace cm384 {
namespace {

std::string text_of(XXH128_hash_t hash) {
  return fmt::format("xxh3:{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string hash_of(std::string_view bytes) {
  return text_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hash_of_file(const std::string& path) {
  // A pipe gives its content once, and who reads it first has it.
  std::error_code none;
  if (const auto type = std::filesystem::status(path, none).type();
      type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character)
    return "none: not a file";
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  const auto block = std::make_unique<std::array<char, 1 << 16>>();
  while (stream.read(block->data(), block->size()) || stream.gcount() > 0)
    XXH3_128bits_update(state.get(), block->data(), static_cast<std::size_t>(stream.gcount()));
  if (!stream.eof())
    throw InputError(fmt::format("{}: cannot be read: {}", path, std::generic_category().message(errno)));
  return text_of(XXH3_128bits_digest(state.get()));
}

}  // namespace cm384
