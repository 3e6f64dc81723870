#include "testbenches/firmware/run_dispatch.h"

#include <fmt/format.h>

#include "firmware/embedded.h"
#include "hw/machine.h"
#include "system/host/runtime.h"
#include "system/machine/supernode.h"
#include "workloads/operators/reference/tokens.h"

namespace cm384::firmware {

namespace {

// A rank's memory.
struct Rank {
  cm384_dispatch arguments;
  reference::DispatchSizes sizes;
  std::uint64_t block;
  cm384_peer windows;
};

Rank set_up(host::Runtime& runtime, const reference::DispatchCase& dispatch, int rank,
            const DispatchRunOptions& options) {
  Rank made{reference::dispatch_arguments(dispatch, rank),
            reference::dispatch_sizes(dispatch, rank, options.blocks),
            0,
            {}};
  cm384_dispatch& a = made.arguments;
  const reference::DispatchSizes& s = made.sizes;
  const auto allocate = [&](std::uint64_t bytes) { return runtime.allocate(rank, bytes == 0 ? 32 : bytes); };
  a.x = allocate(s.x);
  a.expert_ids = allocate(s.expert_ids);
  a.expert_copies = allocate(s.expert_copies);
  a.expert_slots = allocate(s.expert_slots);
  a.peers = allocate(s.peers);
  a.workspace = allocate(s.workspace);
  a.expand_x = allocate(s.expand_x);
  a.expand_scales = allocate(s.expand_scales);
  a.expand_triples = allocate(s.expand_triples);
  a.send_counts = allocate(s.send_counts);
  a.expert_token_nums = allocate(s.expert_token_nums);
  made.windows = {allocate(s.window), allocate(CM384_STATUS_BYTES)};
  made.block = allocate(sizeof a);
  runtime.put(made.block, a);

  const auto x = reference::make_tokens(dispatch.seed, rank, dispatch.batch, dispatch.hidden);
  if (options.control) {
    runtime.mark_payload(a.x, s.x);
  } else {
    runtime.put(a.x, std::span<const std::uint16_t>(x));
  }
  runtime.put(a.expert_ids,
              std::span<const std::int32_t>(dispatch.expert_ids[static_cast<std::size_t>(rank)]));
  runtime.put(a.expert_copies, std::span<const cm384_expert_copies>(dispatch.placement.copies));
  runtime.put(a.expert_slots, std::span<const cm384_expert_slot>(dispatch.placement.slots));
  return made;
}

std::string compare(const host::Runtime& runtime, const reference::DispatchReference& reference, int number,
                    const Rank& rank, bool control) {
  const cm384_dispatch& a = rank.arguments;
  const auto triples = runtime.get<std::int32_t>(a.expand_triples, rank.sizes.expand_triples / 4);
  const auto counts = runtime.get<std::int32_t>(a.send_counts, rank.sizes.send_counts / 4);
  const auto nums = runtime.get<std::int64_t>(a.expert_token_nums, rank.sizes.expert_token_nums / 8);
  if (control) return reference.compare_plain(number, triples, counts, nums);
  const auto x = runtime.get<std::int8_t>(a.expand_x, rank.sizes.expand_x);
  const auto scales = runtime.get<float>(a.expand_scales, rank.sizes.expand_scales / 4);
  return reference.compare(number, x, scales, triples, counts, nums);
}

// What stands in a half of a rank's window, at the places that the reference computes: triple, row and scale
// of every row that it received.
std::string compare_window(const host::Runtime& runtime, const reference::DispatchCase& dispatch,
                           const reference::DispatchReference& reference, int number, const Rank& rank,
                           int half) {
  const reference::DataWindow window = reference::data_window(dispatch);
  const auto hidden = static_cast<std::size_t>(dispatch.hidden);
  const reference::DispatchSlot slot{hidden};
  const reference::ExpectedRank& expected = reference.rank(number);
  std::vector<std::int8_t> values(hidden);
  std::size_t row = 0;
  for (std::size_t entry = 0; entry < expected.send_counts.size(); ++entry) {
    const std::size_t local = entry / window.ranks, source = entry % window.ranks;
    for (std::size_t position = 0; row < static_cast<std::size_t>(expected.send_counts[entry]); ++row) {
      const std::uint64_t at = rank.windows.window + static_cast<std::uint64_t>(half) * window.bytes() +
                               window.dispatch(source, local, position++);
      const auto triple = runtime.get<std::int32_t>(at + slot.triple(), 3);
      const reference::ArrivedRow found{triple[0], triple[1], triple[2]};
      const float scale = reference.expected_row(number, row, values);
      if (!(found == expected.rows[row]) || runtime.get<std::int8_t>(at, hidden) != values ||
          runtime.get<float>(at + slot.scale(), 1).front() != scale)
        return fmt::format("rank {}: row {} is not in its slot of the window", number, row);
    }
  }
  return {};
}

}  // namespace

DispatchRun run_dispatch(const reference::DispatchCase& dispatch, const DispatchRunOptions& options) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  supernode::SupernodeOptions supernode_options;
  const int ranks = dispatch.placement.ranks;
  for (int r = 0; r < ranks; ++r) supernode_options.dies.push_back(r);
  supernode_options.die.aiv.check_hazards = true;
  supernode_options.die.aiv.elide_polls = options.elide_polls;
  supernode::Supernode supernode(machine, supernode_options);
  host::Runtime runtime(supernode);

  std::vector<Rank> state;
  std::vector<cm384_peer> peers;
  for (int r = 0; r < ranks; ++r) {
    state.push_back(set_up(runtime, dispatch, r, options));
    peers.push_back(state.back().windows);
  }
  for (const Rank& rank : state) runtime.put(rank.arguments.peers, std::span<const cm384_peer>(peers));

  const auto program = runtime.load(npu::ElfImage::from_memory(kernel_image("dispatch"), "dispatch.elf"));
  DispatchRun result;
  for (int call = 0; call < options.calls; ++call) {
    std::vector<host::LaunchHandle> launches;
    const Time start = runtime.earliest_start();
    for (int r = 0; r < ranks; ++r) {
      launches.push_back(runtime.launch(r, program, state[static_cast<std::size_t>(r)].block,
                                        runtime.first_cores(options.blocks), start));
    }
    runtime.wait();
    for (const auto& launch : launches) result.kernel_ends.push_back(runtime.record(launch).last_retired);
  }
  const reference::DispatchReference reference(dispatch);
  for (int r = 0; r < ranks && result.difference.empty(); ++r) {
    const Rank& rank = state[static_cast<std::size_t>(r)];
    result.difference = compare(runtime, reference, r, rank, options.control);
    if (result.difference.empty() && !options.control)
      result.difference = compare_window(runtime, dispatch, reference, r, rank, (options.calls - 1) % 2);
  }
  return result;
}

}  // namespace cm384::firmware
