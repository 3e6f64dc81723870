// A harness of one's own: a kernel that `cm384 kernel build` has made, on eight dies, three times in a row
// with fresh numbers, each result looked at before the next launch. What a program file cannot do, C++ can.
//
//     ring_all_reduce ring_all_reduce.elf
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "firmware/abi/program.h"
#include "hw/machine.h"
#include "npu_core/scalar/elf_image.h"
#include "system/host/runtime.h"

using namespace cm384;

namespace {

constexpr int kRanks = 8, kBlocks = 4;
constexpr std::uint32_t kCount = 65536;  // floats, of each rank

// As the kernel has it.
struct Tiling {
  std::uint32_t rank, ranks, count;
};

// Of each rank, by their addresses.
struct Buffers {
  std::vector<std::uint64_t> x, inbox, flags;
};

// Memory of a die, and the kernel's five arguments in their order. A table of all ranks' addresses is an
// array in the die's memory, too.
std::uint64_t argument_block(host::Runtime& runtime, const Buffers& buffers, int rank) {
  const auto table = [&](const std::vector<std::uint64_t>& of) {
    const std::uint64_t at = runtime.allocate(rank, of.size() * sizeof of[0]);
    runtime.put(at, std::span<const std::uint64_t>(of));
    return at;
  };
  const std::uint64_t tiling = runtime.allocate(rank, sizeof(Tiling));
  runtime.put(tiling, Tiling{static_cast<std::uint32_t>(rank), kRanks, kCount});
  cm384_program block{};
  block.argument[0] = buffers.x[static_cast<std::size_t>(rank)];
  block.argument[1] = table(buffers.x);
  block.argument[2] = table(buffers.inbox);
  block.argument[3] = table(buffers.flags);
  block.argument[4] = tiling;
  block.vector_cores = 1;
  const std::uint64_t at = runtime.allocate(rank, sizeof block);
  runtime.put(at, block);
  return at;
}

}  // namespace

int sc_main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "ring_all_reduce IMAGE\n");
    return 2;
  }
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  supernode::SupernodeOptions options;
  for (int die = 0; die < kRanks; ++die) options.dies.push_back(die);
  supernode::Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  const auto program = runtime.load(npu::ElfImage::read(arguments[1]));

  Buffers buffers;
  for (int rank = 0; rank < kRanks; ++rank) {
    buffers.x.push_back(runtime.allocate(rank, kCount * sizeof(float)));
    buffers.inbox.push_back(runtime.allocate(rank, kCount * sizeof(float)));
    buffers.flags.push_back(runtime.allocate(rank, kBlocks * 2 * (kRanks - 1) * 32));
  }
  for (int turn = 1; turn <= 3; ++turn) {
    std::vector<host::LaunchHandle> launches;
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const std::vector<float> x(kCount, static_cast<float>(turn * rank));
      const std::vector<std::byte> no_flags(kBlocks * 2 * (kRanks - 1) * 32);
      runtime.put(buffers.x[r], std::span<const float>(x));
      runtime.copy_in(buffers.flags[r], no_flags);
    }
    for (int rank = 0; rank < kRanks; ++rank)
      launches.push_back(runtime.launch(rank, program, argument_block(runtime, buffers, rank),
                                        runtime.first_cores(kBlocks), runtime.earliest_start()));
    if (!runtime.wait()) return 1;
    double longest = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const npu::LaunchRecord& record = runtime.record(launches[static_cast<std::size_t>(rank)]);
      longest = std::max(longest, (record.task_end - record.task_start).us());
      for (const float sum : runtime.get<float>(buffers.x[static_cast<std::size_t>(rank)], kCount)) {
        if (sum != static_cast<float>(turn * kRanks * (kRanks - 1) / 2)) return 1;
      }
    }
    std::printf("turn %d: %u sums right on %d dies, %.1f us\n", turn, kCount, kRanks, longest);
  }
  return 0;
}
