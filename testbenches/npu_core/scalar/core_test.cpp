// Traps, CSRs, host calls, the data cache beside GM, payload.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/text/error.h"
#include "npu_core/scalar/hart.h"
#include "testbenches/npu_core/scalar/surroundings.h"

namespace cm384::npu::testing::core_test {
namespace {

std::string error_of(Bench& bench, const std::string& snippet) {
  try {
    bench.run(snippet);
  } catch (const MachineError& e) {
    return e.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Trap, WithoutAHandlerNamesCauseCoreAndSymbol) {
  Bench bench("snippets");
  const std::string illegal = error_of(bench, "illegal_trap");
  EXPECT_TRUE(has(illegal, "die 0 core 7: ")) << illegal;
  EXPECT_EQ(hart_name(3 * 128 + 127), "die 3 core 127");
  EXPECT_TRUE(has(illegal, "illegal instruction")) << illegal;
  EXPECT_TRUE(has(illegal, "illegal_trap+0x4")) << illegal;
  EXPECT_TRUE(has(illegal, "0xffffffff")) << illegal;
  const std::string outside = error_of(bench, "load_outside");
  EXPECT_TRUE(has(outside, "load outside memory")) << outside;
  EXPECT_TRUE(has(outside, "snippets.elf: load_outside+0x4")) << outside;
  EXPECT_TRUE(has(outside, "0x1008")) << outside;
  const std::string jump = error_of(bench, "jump_outside");
  EXPECT_TRUE(has(jump, "fetch outside memory")) << jump;
  EXPECT_TRUE(has(jump, "0x2000")) << jump;
}

TEST(Trap, GoesToTheHandler) {
  Bench bench("snippets");
  bench.run("handled_trap");
  EXPECT_EQ(bench.core().x(10), 2u);
  EXPECT_EQ(bench.core().x(11), bench.address("handled_trap") + 12);
  EXPECT_EQ(bench.core().counters().traps, 1u);
}

TEST(Csr, CountersAndTheDiesOwn) {
  Bench bench("snippets");
  bench.run("read_cycle");
  const std::int64_t begin = bench.core().cycle();
  const std::uint64_t instructions = bench.core().instructions();
  bench.run("read_cycle");
  EXPECT_EQ(bench.core().x(10), static_cast<std::uint64_t>(begin + 2));
  EXPECT_EQ(bench.core().x(11), instructions + 3);
  EXPECT_EQ(bench.core().x(12), static_cast<std::uint64_t>(begin + 4));
  EXPECT_EQ(bench.core().x(13), static_cast<std::uint64_t>(CM384_CSR_SYS_COUNT));
}

TEST(HostCall, ExitEndsAndWriteReadsPrivateMemory) {
  Bench bench("snippets");
  bench.run("hello");
  EXPECT_EQ(bench.surroundings().written, "hello\n");
  bench.run("exit_three");
  EXPECT_EQ(bench.surroundings().exit_status, 3u);
  EXPECT_FALSE(bench.core().running());
}

TEST(Pipe, HandsOverFieldsAndOperands) {
  Bench bench("snippets");
  bench.core().set_x(10, 11);
  bench.core().set_x(11, 22);
  bench.core().set_x(12, 33);
  bench.run("two_pipes");
  ASSERT_EQ(bench.surroundings().pipes.size(), 2u);
  const PipeInstruction& p = bench.surroundings().pipes[1];
  EXPECT_EQ(p.instruction_class, CM384_CLASS_VECTOR);
  EXPECT_EQ(p.operation, 1);
  EXPECT_EQ(p.a, 11u);
  EXPECT_EQ(p.b, 22u);
  EXPECT_EQ(p.c, 33u);
  EXPECT_EQ(p.pc, bench.address("two_pipes") + 4);
  EXPECT_FALSE(p.tainted_scalar);
}

// The data cache is not coherent with what the pipes do to GM.
TEST(DataCache, ReadsStaleGlobalMemoryUntilItIsCleaned) {
  Bench bench("snippets");
  const std::uint64_t address = cm384_gm_die(3, 0x10000);
  auto& line = bench.surroundings().gm[address].bytes;
  line[0] = std::byte{1};
  bench.core().set_x(11, address);
  bench.run("load_word");
  EXPECT_EQ(bench.core().x(10), 1u);
  line[0] = std::byte{2};  // a pipe writes GM
  bench.run("load_word");
  EXPECT_EQ(bench.core().x(10), 1u) << "the stale value is in the cache";
  bench.core().set_x(12, 8);
  bench.run("clean_range");
  bench.run("load_word");
  EXPECT_EQ(bench.core().x(10), 2u);
}

TEST(DataCache, StoresReachGlobalMemoryWhenCleanedOrEvicted) {
  for (const bool whole : {false, true}) {
    for (const bool park : {false, true}) {
      Bench bench("snippets");
      bench.surroundings().park_fills = park;
      const std::uint64_t address = cm384_gm_die(3, 0x10000);
      bench.core().set_x(11, address + 8);
      bench.core().set_x(10, 0x5a);
      bench.run("store_word");
      EXPECT_EQ(bench.surroundings().gm[address].bytes[8], std::byte{0});
      bench.core().set_x(12, whole ? 0 : 8);
      bench.run("clean_range");
      EXPECT_EQ(bench.surroundings().gm[address].bytes[8], std::byte{0x5a});
      EXPECT_EQ(bench.core().counters().write_backs, 1u);
    }
  }
  Bench bench("snippets");
  bench.surroundings().park_fills = true;
  const std::uint64_t address = cm384_gm_cpu(1, 0x40);
  for (std::uint64_t i = 0; i < 5; ++i) {
    bench.core().set_x(11, address + i * 8192);
    bench.core().set_x(10, i + 1);
    bench.run("store_word");
  }
  EXPECT_EQ(bench.surroundings().gm[address].bytes[0], std::byte{1});
  bench.core().set_x(11, address);
  bench.run("load_word");
  EXPECT_EQ(bench.core().x(10), 1u);
}

// AMOs on GM act where all can see it, on what is there by then.
TEST(Atomic, ActsInMemory) {
  for (const bool park : {false, true}) {
    Bench bench("snippets");
    bench.surroundings().park_fills = park;
    const std::uint64_t address = cm384_gm_die(3, 0x10000);
    auto& line = bench.surroundings().gm[address].bytes;
    const auto run = [&](const char* snippet, std::uint64_t at, std::uint64_t operand) {
      bench.core().set_x(11, at);
      bench.core().set_x(10, operand);
      bench.core().set_x(12, operand);
      const std::int64_t cycles = bench.run(snippet);
      return std::pair{bench.core().x(10), cycles};
    };
    line[8] = std::byte{5};
    EXPECT_EQ(run("load_word", address + 8, 0).first, 5u);  // now in the cache
    line[8] = std::byte{7};                                 // another core, or a pipe
    EXPECT_EQ(run("store_word", address + 16, 0x20).first, 0x20u);
    EXPECT_EQ(run("add_to_double", address + 8, 10).first, 5u) << "what the own line had was cleaned first";
    EXPECT_EQ(line[8], std::byte{15});
    EXPECT_EQ(line[16], std::byte{0x20});
    line[8] = std::byte{40};
    const auto [old, cycles] = run("add_to_double", address + 8, 2);
    EXPECT_EQ(old, 40u);
    EXPECT_EQ(cycles, 1 + bench.surroundings().fill_cycles);
    EXPECT_EQ(line[8], std::byte{42});
    EXPECT_EQ(run("load_word", address + 8, 0).first, 42u);
    // The upper half of the double word stays; the word is sign-extended.
    std::fill_n(&line[24], 8, std::byte{0xff});
    EXPECT_EQ(run("largest_of_word", address + 24, 3).first, ~std::uint64_t{0});
    EXPECT_EQ(line[24], std::byte{3});
    EXPECT_EQ(line[28], std::byte{0xff});
    EXPECT_EQ(bench.core().counters().atomics, 3u);
  }
}

TEST(DataCache, CountsLinesThatAProgramEndsWithDirty) {
  for (const bool clean : {false, true}) {
    Bench bench("snippets");
    bench.core().set_x(10, 1);
    for (const std::uint64_t address :
         {cm384_gm_die(3, 0x10000), cm384_gm_die(3, 0x20000), bench.address("buffer")}) {
      bench.core().set_x(11, address);
      bench.run("store_word");
    }
    bench.core().set_x(11, cm384_gm_die(3, 0x10000));
    bench.core().set_x(12, clean ? 0 : 8);
    bench.run("clean_range");
    bench.run("exit_three");
    EXPECT_EQ(bench.core().counters().dirty_at_end, clean ? 0u : 1u);
  }
}

TEST(PrivateMemory, IsEachCoresOwnAndCopiedWhenWritten) {
  Bench bench("snippets");
  Surroundings other_surroundings;
  const hw::ScalarCoreParameters p = small_core();
  ScalarCore other(p, other_surroundings, 1);
  other.start(bench.program(), 0);
  EXPECT_LE(other.footprint(), 1024u);
  const std::uint64_t buffer = bench.address("buffer");
  bench.core().set_x(11, buffer);
  bench.core().set_x(10, 99);
  bench.run("load_word");  // a shortcut to the shared page
  bench.core().set_x(10, 99);
  bench.run("store_word");
  bench.core().set_x(10, 0);
  bench.run("load_word");
  EXPECT_EQ(bench.core().x(10), 99u);
  std::byte value{7};
  ASSERT_TRUE(other.read_memory(buffer, std::span(&value, 1)));
  EXPECT_EQ(value, std::byte{0});
}

// Payload, in private memory by way of the UBuffer's tags, and in GM.
class Payload : public ::testing::TestWithParam<bool> {
 protected:
  Payload() : bench_("snippets") {
    const bool in_gm = GetParam();
    const std::uint64_t payload = in_gm ? cm384_gm_die(1, 0x400) : CM384_UBUFFER_BASE + 0x400;
    if (in_gm) {
      bench_.surroundings().gm[payload].tags = 1;
    } else {
      bench_.surroundings().ubuffer_tags.insert(0x400 / 32);
    }
    bench_.core().set_x(8, payload);
    bench_.core().set_x(9, bench_.address("buffer"));
  }
  Bench bench_;
};

TEST_P(Payload, MayNotSteerTheProgram) {
  const std::pair<const char*, const char*> cases[] = {{"taint_branch", "a branch"},
                                                       {"taint_address", "a load's address"},
                                                       {"taint_store_address", "a store's address"},
                                                       {"taint_jump", "a jump target"},
                                                       {"taint_csr", "a CSR write"},
                                                       {"taint_float_flags", "a branch"},
                                                       {"taint_pipe_address", "a pipe instruction"},
                                                       {"taint_pipe_source", "a pipe instruction"}};
  for (const auto& [snippet, what] : cases) {
    const std::string error = error_of(bench_, snippet);
    EXPECT_TRUE(has(error, what)) << error;
    EXPECT_TRUE(has(error, std::string("snippets.elf: ") + snippet)) << error;
  }
}

TEST_P(Payload, GivesStandInsAndTagsWhatItIsStoredTo) {
  bench_.core().set_x(9, CM384_UBUFFER_BASE + 0x800);
  bench_.run("taint_move");
  EXPECT_TRUE(bench_.surroundings().ubuffer_tags.contains(0x800 / 32));
  EXPECT_TRUE(bench_.core().tainted());
  const std::uint64_t line = cm384_gm_die(1, 0x1000);
  bench_.core().set_x(9, line + 32);
  bench_.run("taint_move");
  bench_.core().set_x(11, line);
  bench_.core().set_x(12, 64);
  bench_.run("clean_range");
  EXPECT_EQ(bench_.surroundings().gm[line].tags, 2u);
}

TEST_P(Payload, MayBeAScalarOfAVectorInstruction) {
  bench_.run("taint_pipe_scalar");
  ASSERT_EQ(bench_.surroundings().pipes.size(), 1u);
  EXPECT_TRUE(bench_.surroundings().pipes[0].tainted_scalar);
}

TEST_P(Payload, IsFollowedThroughSpillsToTheByte) {
  EXPECT_EQ(error_of(bench_, "taint_spill"), "no error");
  EXPECT_TRUE(bench_.core().tainted());
  EXPECT_EQ(bench_.core().x(12), 5u);
  EXPECT_EQ(error_of(bench_, "taint_clear"), "no error");
}

TEST_P(Payload, TakesTheTimePlainValuesTake) {
  const std::int64_t tainted = bench_.run("taint_timing");
  const std::uint64_t instructions = bench_.core().instructions();
  Bench plain("snippets");
  plain.core().set_x(8, bench_.core().x(8));
  plain.core().set_x(9, bench_.core().x(9));
  EXPECT_EQ(plain.run("taint_timing"), tainted);
  EXPECT_EQ(plain.core().instructions(), instructions);
  EXPECT_TRUE(bench_.core().tainted());
  EXPECT_FALSE(plain.core().tainted());
}

INSTANTIATE_TEST_SUITE_P(In, Payload, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "GlobalMemory" : "Ubuffer"; });

TEST(Trace, GivesALineAnInstructionAndTheSameTime) {
  Bench plain("snippets"), traced("snippets");
  std::FILE* file = std::tmpfile();
  traced.core().set_trace(file);
  traced.surroundings().park_fills = true;
  EXPECT_EQ(plain.run("load_use"), traced.run("load_use"));
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_TRUE(has(text, "load_use+0x8")) << text;
  EXPECT_TRUE(has(text, "ld a0,0(a1)")) << text;
  EXPECT_TRUE(has(text, "addi a0,a0,1")) << text;
}

TEST(Debug, BreakpointsStopAndAreSteppedOver) {
  Bench bench("snippets");
  ScalarCore& core = bench.core();
  bench.run("eight_adds");
  const std::uint64_t at = bench.address("eight_adds");
  core.set_breakpoints({at + 8, at + 20});
  core.set_pc(at);
  core.set_x(10, 0);
  ASSERT_EQ(core.run(1'000'000), Stop::breakpoint);
  EXPECT_EQ(core.pc(), at + 8);
  EXPECT_EQ(core.x(10), 2u);
  ASSERT_EQ(core.step(), Stop::limit);
  EXPECT_EQ(core.pc(), at + 12);
  ASSERT_EQ(core.run(1'000'000), Stop::breakpoint);
  EXPECT_EQ(core.pc(), at + 20);
  EXPECT_EQ(core.x(10), 5u);
  ASSERT_EQ(core.run(1'000'000), Stop::breakpoint);  // the ebreak
  EXPECT_EQ(core.x(10), 8u);
  core.set_breakpoints({});
  core.set_x(10, 0);
  EXPECT_EQ(bench.run("eight_adds"), 8);
}

}  // namespace
}  // namespace cm384::npu::testing::core_test
