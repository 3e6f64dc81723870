// MTE engines: how copies are cut, when requests leave, what the windows allow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/text/error.h"
#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::mte_test {
namespace {

std::uint64_t here(std::uint64_t offset) {
  return cm384_gm_die(kLocal, offset);
}
std::uint64_t there(std::uint64_t offset) {
  return cm384_gm_die(kRemote, offset);
}
void number(std::vector<std::byte>& memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 251);
}
std::vector<std::byte> ubuffer_of(StandIn& die, std::uint32_t offset, std::uint32_t bytes) {
  std::vector<std::byte> result(bytes);
  die.aiv.ubuffer().load(offset, result.data(), bytes);
  return result;
}

TEST(Mte, RequestsDoNotCross512Bytes) {
  StandIn die;
  ASSERT_TRUE(die.run({copy_in(0, here(0x1000), 1100)}));
  ASSERT_EQ(die.accesses.size(), 3u);
  EXPECT_EQ(die.accesses[2].offset, 0x1400u);
  EXPECT_EQ(die.accesses[2].bytes, 76u);
  die.accesses.clear();
  ASSERT_TRUE(die.run({copy_in(0, here(0x10fe), 516)}, 10000));
  ASSERT_EQ(die.accesses.size(), 2u);
  EXPECT_EQ(die.accesses[0].offset, 0x10feu);
  EXPECT_EQ(die.accesses[0].bytes, 258u);
  EXPECT_EQ(die.accesses[1].offset, 0x1200u);
  EXPECT_EQ(die.accesses[1].bytes, 258u);
  die.accesses.clear();
  ASSERT_TRUE(die.run({copy_out(here(0x10fe), 0, 516)}, 20000));
  ASSERT_EQ(die.accesses.size(), 2u);
  EXPECT_EQ(die.accesses[0].offset, 0x10feu);
  EXPECT_EQ(die.accesses[0].bytes, 258u);
  EXPECT_EQ(die.accesses[1].bytes, 258u);
  EXPECT_TRUE(die.accesses[1].write);
}

hw::Mte merging_mte() {
  hw::Mte parameters = mte_parameters();
  parameters.remote_partial_write = "merge";
  return parameters;
}

void check_copies(const hw::Mte& parameters) {
  for (const bool remote : {false, true}) {
    for (const std::uint32_t start : {0u, 32u, 500u, 511u, 1000u}) {
      for (const std::uint32_t bytes : {1u, 12u, 32u, 512u, 513u, 7212u}) {
        StandIn die(parameters);
        auto& memory = remote ? die.remote_memory : die.memory;
        number(memory);
        const auto original = memory;
        const auto at = [remote](std::uint64_t offset) { return remote ? there(offset) : here(offset); };
        std::vector<std::byte> ones(8192, std::byte{1});
        die.aiv.ubuffer().store(0x40, ones.data(), 8192);
        ASSERT_TRUE(die.run({copy_in(0x40, at(start), bytes), barrier(CM384_PIPE_ALL),
                             copy_out(at(0x10000 + 3 * start), 0x40, bytes)}));
        std::vector<std::byte> expected(original.begin() + start, original.begin() + start + bytes);
        auto padded = expected;
        padded.resize((bytes + 31) / 32 * 32);  // zeros
        ASSERT_EQ(ubuffer_of(die, 0x40, static_cast<std::uint32_t>(padded.size())), padded);
        ASSERT_EQ(ubuffer_of(die, 0x40 + static_cast<std::uint32_t>(padded.size()), 32),
                  std::vector<std::byte>(32, std::byte{1}));
        auto after = original;
        std::copy(expected.begin(), expected.end(), after.begin() + 0x10000 + 3 * start);
        ASSERT_TRUE(memory == after) << start << " " << bytes << " " << remote;
        EXPECT_EQ(die.payloads().in_use(), 0u);
      }
    }
  }
}
TEST(Mte, DataArrivesWhereItBelongs) {
  check_copies(mte_parameters());
  check_copies(merging_mte());
}

TEST(Mte, PartOfABlockElsewhereIsReadAndWrittenWhole) {
  StandIn die(merging_mte());
  ASSERT_TRUE(die.run({copy_out(there(0x2000), 0, 7212)}));
  ASSERT_EQ(die.requests.size(), 16u);  // 14 of 512 B; 44 B: the two blocks read, then written
  for (std::size_t i = 0; i < 14; ++i) EXPECT_EQ(die.requests[i].operation, sim::Operation::write) << i;
  const sim::Request &read = die.requests[14], &write = die.requests[15];
  EXPECT_EQ(read.operation, sim::Operation::read);
  EXPECT_EQ(write.operation, sim::Operation::write);
  for (const sim::Request& r : {read, write}) {
    EXPECT_EQ(r.address, there(0x2000 + 7168));
    EXPECT_EQ(r.bytes, 64u);
    EXPECT_EQ(r.transaction, die.requests[0].transaction);
  }
  EXPECT_EQ(write.at, read.at + die.remote_latency);
  EXPECT_EQ(die.drained(), die.clock.tick_at_or_after(write.at + die.remote_latency));
  EXPECT_EQ(die.aiv.statistics().merged_writes, 1u);
  EXPECT_EQ(die.aiv.statistics().remote_write_requests, 15u);
  EXPECT_EQ(die.aiv.statistics().written_bytes, 7212u);

  // Whole blocks, the own die and atomic adds need no reading.
  die.requests.clear();
  PipeInstruction add = copy_out(there(0x204), 0, 4);
  add.operation = CM384_MTE_UB_TO_GM_ADD_S32;
  ASSERT_TRUE(die.run({copy_out(there(0x20), 0, 96), copy_out(here(0), 0, 12), add}, 20'000));
  ASSERT_EQ(die.requests.size(), 2u);
  EXPECT_EQ(die.aiv.statistics().merged_writes, 1u);
}

TEST(Mte, PartsOfOneBlockAreMergedOneAfterAnother) {
  // Bursts of 12 B, 16 B apart: two in each block. Were both read before one is written, the other were lost.
  StandIn die(merging_mte());
  number(die.remote_memory);
  const auto before = die.remote_memory;
  std::vector<std::byte> ones(1024, std::byte{1});
  die.aiv.ubuffer().store(0, ones.data(), 1024);
  ASSERT_TRUE(die.run({sync(CM384_SET_STRIDE, 64, 16), copy_out(there(0x40), 0, 12, 5)}));
  for (std::size_t i = 0; i < 80; ++i) {
    EXPECT_EQ(die.remote_memory[0x40 + i], i % 16 < 12 ? std::byte{1} : before[0x40 + i]) << i;
  }
  EXPECT_EQ(die.aiv.statistics().merged_writes, 5u);
  ASSERT_EQ(die.requests.size(), 10u);
  for (std::size_t i = 2; i < 10; ++i)
    EXPECT_EQ(die.requests[i].at, die.requests[i - 1].at + die.remote_latency) << i;
}

TEST(Mte, MergedBlocksKeepTheirTags) {
  // A block that any payload was written into is payload.
  StandIn die(merging_mte());
  number(die.remote_memory);
  const auto before = die.remote_memory;
  die.remote_tagged[0x40 / 32] = true;
  die.aiv.ubuffer().set_payload(64, 32, true);
  std::vector<std::byte> ones(32, std::byte{1});
  die.aiv.ubuffer().store(32, ones.data(), 32);
  ASSERT_TRUE(die.run({copy_out(there(0x70), 32, 44)}));  // 32 B plain, 12 B payload, from 0x70 on
  EXPECT_FALSE(die.remote_tagged[0x60 / 32]);
  EXPECT_TRUE(die.remote_tagged[0x80 / 32]);
  EXPECT_TRUE(die.remote_tagged[0x40 / 32]);
  EXPECT_EQ(die.remote_memory[0x6f], before[0x6f]);
  EXPECT_EQ(die.remote_memory[0x70], std::byte{1});
  EXPECT_EQ(die.remote_memory[0x7f], std::byte{1});
  EXPECT_EQ(die.payloads().in_use(), 0u);
}

TEST(Mte, StridedBurstsAndPadding) {
  StandIn die;
  number(die.memory);
  // 5 bursts of 12 B, 100 B apart, to every second block; and back.
  ASSERT_TRUE(
      die.run({sync(CM384_SET_STRIDE, 100, 64), copy_in(0, here(0x200), 12, 5), barrier(CM384_PIPE_ALL),
               sync(CM384_SET_STRIDE, 64, 16), copy_out(there(0x40), 0, 12, 5)}));
  for (std::uint32_t b = 0; b < 5; ++b) {
    for (std::uint32_t i = 0; i < 12; ++i) {
      EXPECT_EQ(ubuffer_of(die, b * 64 + i, 1)[0], die.memory[0x200 + b * 100 + i]);
      EXPECT_EQ(die.remote_memory[0x40 + b * 16 + i], die.memory[0x200 + b * 100 + i]);
    }
    EXPECT_EQ(ubuffer_of(die, b * 64 + 12, 20), std::vector<std::byte>(20));
  }
}

TEST(Mte, AtomicAdds) {
  StandIn die;
  const std::int32_t addend = 5, before = 37;
  const float real = 1.5f, base = 2.0f;
  die.aiv.ubuffer().store(0, reinterpret_cast<const std::byte*>(&addend), 4);
  die.aiv.ubuffer().store(32, reinterpret_cast<const std::byte*>(&real), 4);
  std::memcpy(&die.memory[0x100], &before, 4);
  std::memcpy(&die.memory[0x200], &base, 4);
  PipeInstruction integer = copy_out(here(0x100), 0, 4), floating = copy_out(here(0x200), 32, 4);
  integer.operation = CM384_MTE_UB_TO_GM_ADD_S32;
  floating.operation = CM384_MTE_UB_TO_GM_ADD_F32;
  PipeInstruction far = copy_out(there(0x200), 32, 4);
  far.operation = CM384_MTE_UB_TO_GM_ADD_F32;
  ASSERT_TRUE(die.run({integer, floating, far}));
  std::int32_t sum = 0;
  float real_sum = 0;
  std::memcpy(&sum, &die.memory[0x100], 4);
  std::memcpy(&real_sum, &die.memory[0x200], 4);
  EXPECT_EQ(sum, 42);
  EXPECT_EQ(real_sum, 3.5f);
  EXPECT_EQ(die.requests.at(0).operation, sim::Operation::atomic_add_f32);
  floating.a += 2;
  EXPECT_THROW(die.run({floating}, 10000), MachineError);
}

// Time between the first requests of instructions far from the start, in cycles.
double period(StandIn& die, const std::vector<PipeInstruction>& program, std::size_t requests_each) {
  EXPECT_TRUE(die.run(program));
  const std::size_t n = die.accesses.size() / requests_each;
  const auto first = die.accesses[n / 2 * requests_each].at.ps;
  const auto last = die.accesses[(n - 1) * requests_each].at.ps;
  return static_cast<double>(last - first) / static_cast<double>(n - 1 - n / 2) * 1.85e-3;
}

TEST(Mte, OneSmallInstructionEvery20Point6Cycles) {
  // ascend-facts A6: 1 x 128 B, one every 20.6 cycles per core; flags between them do not matter.
  StandIn die;
  std::vector<PipeInstruction> program;
  for (std::uint32_t i = 0; i < 400; ++i) {
    program.push_back(copy_in(i % 64 * 128, here(i * 128), 128));
    program.push_back(set_flag(CM384_PIPE_MTE2, CM384_PIPE_S, static_cast<int>(i % 8)));
    if (i >= 7) program.push_back(wait_flag(CM384_PIPE_MTE2, CM384_PIPE_S, static_cast<int>((i + 1) % 8)));
  }
  for (int i = 1; i < 8; ++i) program.push_back(wait_flag(CM384_PIPE_MTE2, CM384_PIPE_S, (400 + i) % 8));
  die.read_latency = Time{20'000};  // 8 ids cover it
  hw::Mte fast = mte_parameters();
  fast.read_setup = 20;
  StandIn quick(fast);
  quick.read_latency = Time{20'000};
  EXPECT_NEAR(period(quick, program, 1), 20.6, 0.05);
}

TEST(Mte, StridedBurstsAreBoundByTheRequestInterval) {
  // 64 x 128 B: 64 requests 8 cycles apart and 12.6 of overhead: 28.9 GB/s; measured 28.5.
  StandIn die;
  std::vector<PipeInstruction> program{sync(CM384_SET_STRIDE, 1024, 128)};
  for (std::uint32_t i = 0; i < 20; ++i) program.push_back(copy_in(i % 8 * 8192, here(i * 128), 128, 64));
  const double cycles = period(die, program, 64);
  EXPECT_NEAR(cycles, 64 * 8 + 12.6, 0.5);
  EXPECT_NEAR(8192 / cycles * 1.85, 28.5, 0.05 * 28.5);
}

TEST(Mte, LocalWindowBoundsBytesOutstanding) {
  // 16 KiB outstanding, 1 us of latency: 16.4 GB/s.
  StandIn die;
  die.read_latency = Time{1'000'000};
  std::vector<PipeInstruction> program;
  for (std::uint32_t i = 0; i < 4; ++i) program.push_back(copy_in(0, here(0), 128 * 1024));
  ASSERT_TRUE(die.run(program));
  for (std::size_t i = 100; i + 32 < die.accesses.size(); ++i) {
    ASSERT_EQ((die.accesses[i + 32].at - die.accesses[i].at).ps, 1'000'000) << i;
  }
  EXPECT_GT(die.aiv.statistics().window_full, 0u);
}

TEST(Mte, UnalignedRowsHoldOneMoreSectorOfTheWindow) {
  const auto rate = [](std::uint64_t start) {
    StandIn die;
    std::vector<PipeInstruction> program{sync(CM384_SET_STRIDE, 24574, 2048)};
    if (start == 0) program[0] = sync(CM384_SET_STRIDE, 24576, 2048);
    for (std::uint32_t i = 0; i < 4; ++i) program.push_back(copy_in(0, here(start + i * 2048), 2048, 64));
    EXPECT_TRUE(die.run(program));
    return 4 * 131072 / die.clock.start(die.drained()).ns();
  };
  EXPECT_NEAR(rate(0), 32.0, 2.0);                    // 32 requests in 500 ns are 32.8 GB/s
  EXPECT_NEAR(rate(2) / rate(0), 16.0 / 17.0, 0.03);  // 17 sectors of 128 B for 16
}

void check_remote_window(bool reads, std::uint32_t window) {
  hw::Mte parameters = mte_parameters();
  parameters.remote_reads = parameters.remote_writes = static_cast<int>(window);
  StandIn die(parameters);
  const std::uint32_t bytes = 64 * 512;
  ASSERT_TRUE(die.run({reads ? copy_in(0, there(0), bytes) : copy_out(there(0), 0, bytes)}));
  ASSERT_EQ(die.requests.size(), 64u);
  for (std::size_t i = 0; i + window < 64; ++i) {
    // Its place frees when the request `window` before has come back.
    EXPECT_EQ((die.requests[i + window].at - die.requests[i].at), die.remote_latency) << i;
    EXPECT_LE(die.requests[i].tag & 0xfff, window - 1);
  }
  for (std::size_t i = 0; i + 1 < window; ++i) {
    EXPECT_NEAR(static_cast<double>((die.requests[i + 1].at - die.requests[i].at).ps), 8 * 540.54, 1.0);
  }
  EXPECT_EQ(die.drained(), die.clock.tick_at_or_after(die.requests[63].at + die.remote_latency));
  const AivStatistics& counted = die.aiv.statistics();
  EXPECT_EQ(counted.window_full, 64u - window);
  EXPECT_EQ(reads ? counted.remote_read_requests : counted.remote_write_requests, 64u);
  EXPECT_EQ(reads ? counted.read_bytes : counted.written_bytes, bytes);
  EXPECT_EQ(reads ? counted.mte2_busy_ps : counted.mte3_busy_ps,
            static_cast<std::uint64_t>((die.requests[63].at - die.requests[0].at).ps + 4324));
}
TEST(Mte, RemoteWindowsBoundRequestsOutstanding) {
  for (const std::uint32_t window : {1u, 8u, 16u}) {
    check_remote_window(true, window);
    check_remote_window(false, window);
  }
}

TEST(Mte, TheNextInstructionMayStartBeforeTheOneBeforeIsComplete) {
  StandIn die;
  ASSERT_TRUE(die.run({copy_out(there(0), 0, 512), copy_out(there(512), 512, 512)}));
  ASSERT_EQ(die.requests.size(), 2u);
  EXPECT_NEAR(static_cast<double>((die.requests[1].at - die.requests[0].at).ps), 20.6 * 540.54, 2.0);
  EXPECT_NE(die.requests[0].transaction, die.requests[1].transaction);
}

TEST(Mte, EveryParameterMovesTheTime) {
  const std::vector<PipeInstruction> reads{copy_in(0, here(0), 65536), copy_in(0, there(0), 16384),
                                           copy_in(0, here(0), 65536)};
  const std::vector<PipeInstruction> writes{copy_out(here(0), 0, 65536), copy_out(there(0), 0, 16384),
                                            copy_out(here(0), 0, 65536)};
  const auto time = [](const hw::Mte& p, const std::vector<PipeInstruction>& program) {
    StandIn die(p);
    EXPECT_TRUE(die.run(program));
    return die.drained();
  };
  hw::Mte p = mte_parameters();
  p.local_write_window = {4096};
  const std::int64_t read = time(p, reads), write = time(p, writes);
  const auto with = [&p](auto field, auto value) {
    hw::Mte changed = p;
    changed.*field = value;
    return changed;
  };
  using hw::Mte;
  EXPECT_EQ(time(with(&Mte::read_setup, 400), reads), read + 200);
  EXPECT_EQ(time(with(&Mte::write_setup, 150), writes), write + 100);
  EXPECT_GT(time(with(&Mte::read_instruction_overhead, 50.0), reads), read);
  EXPECT_GT(time(with(&Mte::write_instruction_overhead, 50.0), writes), write);
  EXPECT_GT(time(with(&Mte::read_request_interval, 50.0), reads), read);
  EXPECT_GT(time(with(&Mte::write_request_interval, 70.0), writes), write);
  EXPECT_GT(time(with(&Mte::local_read_window, Bytes{8192}), reads), read);
  EXPECT_LT(time(with(&Mte::local_write_window, Bytes{8192}), writes), write);
  EXPECT_GT(time(with(&Mte::remote_reads, 4), reads), read);
  EXPECT_GT(time(with(&Mte::remote_writes, 4), writes), write);
}

TEST(Mte, AMergeThatWasGivenUpDoesNotHoldTheNext) {
  StandIn die(merging_mte());
  die.at(Time{300'000}, [&] { die.aiv.reset(); });  // the read is on its way
  EXPECT_FALSE(die.run({copy_out(there(0), 0, 12), set_flag(CM384_PIPE_MTE3, CM384_PIPE_S),
                        wait_flag(CM384_PIPE_MTE3, CM384_PIPE_S)}));
  EXPECT_EQ(die.requests.size(), 1u);
  EXPECT_TRUE(die.run({copy_out(there(0), 0, 12)}, 100'000));
  EXPECT_EQ(die.requests.size(), 3u);
  EXPECT_EQ(die.payloads().in_use(), 0u);
}

TEST(Mte, CompletionsOfARunThatWasGivenUpAreIgnored) {
  StandIn die;
  die.at(Time{300'000}, [&] { die.aiv.reset(); });  // requests are on their way
  EXPECT_FALSE(die.run({copy_in(0, there(0), 4096), set_flag(CM384_PIPE_MTE2, CM384_PIPE_S),
                        wait_flag(CM384_PIPE_MTE2, CM384_PIPE_S)}));
  EXPECT_GT(die.requests.size(), 0u);
  EXPECT_EQ(die.payloads().in_use(), 0u);
  EXPECT_TRUE(die.run({copy_in(0, there(0), 4096)}, 100'000));
}

TEST(Mte, BadCopiesNameThePc) {
  StandIn die;
  EXPECT_THAT([&] { die.run({copy_in(16, here(0), 32)}); },
              ::testing::ThrowsMessage<MachineError>(::testing::HasSubstr("pc 0x1000")));
  StandIn beyond;
  EXPECT_THROW(beyond.run({copy_in(kUBufferBytes - 32, here(0), 33)}), MachineError);
  StandIn nowhere;
  EXPECT_THROW(nowhere.run({copy_in(0, 0x1234, 32)}), MachineError);
  StandIn nothing;
  EXPECT_NO_THROW(nothing.run({copy_in(0, here(0), 0)}));  // a copy of nothing is nothing
}

}  // namespace
}  // namespace cm384::npu::testing::mte_test
