#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "firmware/embedded.h"

namespace cm384::firmware::images_test {
namespace {

template <class T>
T at(std::span<const std::byte> image, std::uint64_t offset) {
  T value;
  EXPECT_LE(offset + sizeof value, image.size());
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

TEST(Images, AreNamed) {
  EXPECT_THAT(
      std::vector<std::string_view>(kernel_names().begin(), kernel_names().end()),
      ::testing::ElementsAre(
          "add", "add_rms_norm", "all_to_all", "collective", "collective_clear", "collective_paired",
          "collective_rounds", "collective_rounds_clear", "combine", "dispatch", "dispatch_full_mesh",
          "experts", "ffn", "ffn_bf16", "flash_attention", "flash_backward", "flash_full", "flash_grouped",
          "flash_ragged", "gate", "gate_any", "gemm", "gqa", "gqa_output", "gqa_prolog", "hello",
          "index_prolog", "indexer", "interleave_rope", "kv_norm_rope", "mla", "mla_output", "mla_prolog",
          "p2p", "quantise_rows", "quantise_tiles", "rope_tiles", "sample", "sdma", "softmax", "sort_rows",
          "sparse_mla", "sparse_prolog", "split_gemm", "stream", "sum_parts", "swiglu_rows", "top_k"));
  EXPECT_TRUE(kernel_image("dispach").empty());
}

class EveryImage : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EveryImage, IsARiscvProgramAtTheStartOfPrivateMemory) {
  const auto image = kernel_image(GetParam());
  const auto header = at<Elf64_Ehdr>(image, 0);
  ASSERT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
  EXPECT_EQ(header.e_machine, EM_RISCV);
  EXPECT_EQ(header.e_entry, CM384_PRIVATE_BASE);
  EXPECT_EQ(header.e_flags & EF_RISCV_FLOAT_ABI, static_cast<unsigned>(EF_RISCV_FLOAT_ABI_SINGLE));
  int loads = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment =
        at<Elf64_Phdr>(image, header.e_phoff + static_cast<unsigned>(i) * header.e_phentsize);
    if (segment.p_type != PT_LOAD) continue;
    ++loads;
    EXPECT_GE(segment.p_vaddr, CM384_PRIVATE_BASE);
    EXPECT_LT(segment.p_vaddr + segment.p_memsz, CM384_PRIVATE_BASE + CM384_PRIVATE_BYTES);
    EXPECT_LE(segment.p_offset + segment.p_filesz, image.size());
  }
  EXPECT_GE(loads, 1);
}

// Symbols and line tables are there: reports name a kernel's function and line.
TEST_P(EveryImage, HasSymbolsAndLines) {
  const auto image = kernel_image(GetParam());
  const auto header = at<Elf64_Ehdr>(image, 0);
  const auto section = [&](unsigned i) {
    return at<Elf64_Shdr>(image, header.e_shoff + i * header.e_shentsize);
  };
  const auto names = section(header.e_shstrndx);
  bool lines = false, found_main = false;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto s = section(i);
    const auto* name = reinterpret_cast<const char*>(image.data()) + names.sh_offset + s.sh_name;
    lines = lines || std::string(name) == ".debug_line";
    if (s.sh_type != SHT_SYMTAB) continue;
    const auto strings = section(s.sh_link);
    for (std::uint64_t k = 0; k < s.sh_size / sizeof(Elf64_Sym); ++k) {
      const auto symbol = at<Elf64_Sym>(image, s.sh_offset + k * sizeof(Elf64_Sym));
      const auto* text = reinterpret_cast<const char*>(image.data()) + strings.sh_offset + symbol.st_name;
      found_main = found_main || std::string(text) == "kernel_main";
    }
  }
  EXPECT_TRUE(lines);
  EXPECT_TRUE(found_main);
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryImage,
                         ::testing::Values("all_to_all", "combine", "dispatch", "dispatch_full_mesh",
                                           "experts", "hello", "p2p", "sdma", "stream"),
                         [](const auto& name) { return std::string(name.param); });

// The start-up code word by word: sets gp and sp, turns floating point on, cleans the data cache, calls
// kernel_main.
TEST(StartUp, IssuesTheCacheCleanAsTheInstructionSetSays) {
  const auto image = kernel_image("hello");
  const auto header = at<Elf64_Ehdr>(image, 0);
  const auto segment = at<Elf64_Phdr>(image, header.e_phoff);
  constexpr std::uint32_t kDcci = CM384_OPCODE_PIPE | CM384_DCCI << 7 | CM384_CLASS_SYNC << 12;
  bool found = false;
  for (std::uint64_t offset = 0; offset < 0x28; offset += 2) {
    found = found || at<std::uint32_t>(image, segment.p_offset + offset) == kDcci;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace cm384::firmware::images_test
