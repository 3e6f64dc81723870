#include "workloads/frame/input_hash.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <vector>

namespace cm384::studies {
namespace {

class Hash {
 public:
  void add(const void* bytes, std::size_t count) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < count; ++i) hash_ = (hash_ ^ at[i]) * 0x100000001b3u;
  }
  std::string text() const { return fmt::format("fnv1a64:{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

// Adds [begin, begin + bytes) of the file; false: it ends before.
bool add_range(std::ifstream& stream, std::uint64_t begin, std::uint64_t bytes, Hash& hash) {
  std::vector<char> block(std::size_t{1} << 16);
  stream.clear();
  stream.seekg(static_cast<std::streamoff>(begin));
  for (std::uint64_t at = begin, end = begin + bytes; at < end;) {
    const std::uint64_t count = std::min<std::uint64_t>(block.size(), end - at);
    if (!stream.read(block.data(), static_cast<std::streamsize>(count))) return false;
    // Where a segment holds the file's header: its table of sections is not loaded.
    for (std::uint64_t i = at; i < std::min(at + count, std::uint64_t{sizeof(Elf64_Ehdr)}); ++i) {
      if ((i >= offsetof(Elf64_Ehdr, e_shoff) && i < offsetof(Elf64_Ehdr, e_flags)) ||
          i >= offsetof(Elf64_Ehdr, e_shentsize))
        block[i - at] = 0;
    }
    hash.add(block.data(), count);
    at += count;
  }
  return true;
}

}  // namespace

std::string hash_of_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  Hash hash;
  char block[1 << 16];
  while (stream.read(block, sizeof block) || stream.gcount() > 0)
    hash.add(block, static_cast<std::size_t>(stream.gcount()));
  return hash.text();
}

std::optional<std::string> hash_of_code(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!stream.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  Hash hash;
  hash.add(&header.e_entry, sizeof header.e_entry);
  for (std::uint64_t n = 0; n < header.e_phnum; ++n) {
    Elf64_Phdr segment{};
    stream.clear();
    stream.seekg(static_cast<std::streamoff>(header.e_phoff + n * sizeof segment));
    if (!stream.read(reinterpret_cast<char*>(&segment), sizeof segment)) return std::nullopt;
    if (segment.p_type != PT_LOAD) continue;
    hash.add(&segment.p_vaddr, sizeof segment.p_vaddr);
    hash.add(&segment.p_memsz, sizeof segment.p_memsz);
    if (!add_range(stream, segment.p_offset, segment.p_filesz, hash)) return std::nullopt;
  }
  return hash.text();
}

}  // namespace cm384::studies
