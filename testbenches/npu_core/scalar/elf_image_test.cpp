// Images that no linker makes: small files that ask for much.
#include "npu_core/scalar/elf_image.h"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>

#include "firmware/abi/memory_map.h"
#include "testbenches/hw/refusal.h"

namespace cm384::npu::elf_image_test {
namespace {

using ::testing::HasSubstr;

// An executable of one section of strings, symbol tables on it, and segments that map the file's first bytes.
struct Image {
  std::vector<Elf64_Phdr> segments;
  std::vector<std::vector<Elf64_Sym>> tables;
  std::string strings = std::string(1, '\0');

  void segment(std::uint64_t offset, std::uint64_t bytes) {
    segments.push_back({.p_type = PT_LOAD,
                        .p_flags = PF_R | PF_X,
                        .p_offset = 0,
                        .p_vaddr = CM384_PRIVATE_BASE + offset,
                        .p_paddr = 0,
                        .p_filesz = 64,
                        .p_memsz = bytes,
                        .p_align = 1});
  }

  std::vector<std::byte> bytes() const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_RISCV;
    header.e_version = EV_CURRENT;
    header.e_entry = CM384_PRIVATE_BASE;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(segments.size());
    header.e_phoff = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(tables.size() + 2);
    header.e_shoff = sizeof header + segments.size() * sizeof(Elf64_Phdr);
    std::vector<std::byte> all;
    const auto put = [&](const void* from, std::size_t count) {
      const auto* first = static_cast<const std::byte*>(from);
      all.insert(all.end(), first, first + count);
    };
    put(&header, sizeof header);
    for (const Elf64_Phdr& s : segments) put(&s, sizeof s);
    std::uint64_t at = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
    std::vector<Elf64_Shdr> sections(2);
    sections[1].sh_type = SHT_STRTAB;
    sections[1].sh_offset = at;
    sections[1].sh_size = strings.size();
    at += strings.size();
    for (const auto& table : tables) {
      Elf64_Shdr& section = sections.emplace_back();
      section.sh_type = SHT_SYMTAB;
      section.sh_offset = at;
      section.sh_size = table.size() * sizeof(Elf64_Sym);
      section.sh_link = 1;
      section.sh_entsize = sizeof(Elf64_Sym);
      at += section.sh_size;
    }
    for (const Elf64_Shdr& s : sections) put(&s, sizeof s);
    put(strings.data(), strings.size());
    for (const auto& table : tables) put(table.data(), table.size() * sizeof(Elf64_Sym));
    return all;
  }
};

Elf64_Sym function(std::uint32_t name, std::uint64_t offset) {
  return {.st_name = name,
          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
          .st_other = 0,
          .st_shndx = 1,
          .st_value = CM384_PRIVATE_BASE + offset,
          .st_size = 4};
}

std::string refusal_of(const Image& image) {
  const std::vector<std::byte> bytes = image.bytes();
  return refusal([&] { ElfImage::from_memory(bytes, "made.elf"); });
}

TEST(ElfImage, SegmentsDoNotOverlap) {
  Image image;
  image.segment(0, 256);
  image.segment(256, 256);
  EXPECT_EQ(refusal_of(image), "(accepted)");
  // 1,000 segments that all map the same bytes would take 1,000 times the file's size.
  image.segment(511, 256);
  EXPECT_THAT(refusal_of(image), HasSubstr("made.elf: segment 2 [0x"));
  EXPECT_THAT(refusal_of(image), HasSubstr("overlaps another one"));
}

TEST(ElfImage, NamesOfSymbolsAreCutAndOneTableIsRead) {
  Image image;
  image.segment(0, 4096);
  // 1,000 symbols on the tails of one string of 100 kB: 100 MB of names in a file of 124 kB.
  image.strings += std::string(100'000, 'n') + '\0' + "second" + '\0';
  std::vector<Elf64_Sym> first;
  for (std::uint32_t i = 0; i < 1000; ++i) first.push_back(function(1 + i, 4 * i));
  image.tables = {first, {function(100'002, 0)}};
  const std::vector<std::byte> bytes = image.bytes();
  const auto read = ElfImage::from_memory(bytes, "made.elf");
  EXPECT_EQ(read->symbol_at(CM384_PRIVATE_BASE + 400), std::string(512, 'n'));
  EXPECT_FALSE(read->symbol("second").has_value());
  image.tables = {{function(100'002, 0)}};
  EXPECT_EQ(ElfImage::from_memory(image.bytes(), "made.elf")->symbol("second"), CM384_PRIVATE_BASE);
}

// A symbol of a size ends with it; what lies behind belongs to nobody.
TEST(ElfImage, SymbolsEndWithTheirSize) {
  Image image;
  image.segment(0, 256);
  image.strings += std::string("only") + '\0';
  image.tables = {{function(1, 8)}};
  const auto read = ElfImage::from_memory(image.bytes(), "made.elf");
  EXPECT_EQ(read->symbol_at(CM384_PRIVATE_BASE + 7), "?");
  EXPECT_EQ(read->symbol_at(CM384_PRIVATE_BASE + 8), "only");
  EXPECT_EQ(read->symbol_at(CM384_PRIVATE_BASE + 11), "only+0x3");
  EXPECT_EQ(read->symbol_at(CM384_PRIVATE_BASE + 12), "?");
}

// Reports of a program without debug information name its symbols.
TEST(ElfImage, WithoutDebugInformationAPlaceIsASymbol) {
  Image image;
  image.segment(0, 4096);
  image.strings += std::string("compute") + '\0';
  image.tables = {{function(1, 0x40)}};
  const auto read = ElfImage::from_memory(image.bytes(), "made.elf");
  EXPECT_EQ(read->describe(CM384_PRIVATE_BASE + 0x42), "compute+0x2, pc 0x80000042");
  EXPECT_EQ(read->describe(CM384_PRIVATE_BASE + 0x80), "pc 0x80000080");
}

TEST(ElfImage, ProgramHeadersLieInTheFile) {
  Image image;
  image.segment(0, 256);
  std::vector<std::byte> bytes = image.bytes();
  // An offset so large that adding to it wraps round.
  const std::uint64_t far = ~std::uint64_t{0} - 8;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_phoff), &far, sizeof far);
  EXPECT_THAT(refusal([&] { ElfImage::from_memory(bytes, "made.elf"); }), HasSubstr("made.elf: "));
}

}  // namespace
}  // namespace cm384::npu::elf_image_test
