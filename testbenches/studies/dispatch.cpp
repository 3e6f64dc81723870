#include "testbenches/studies/dispatch.h"

#include <algorithm>
#include <cmath>

#include "firmware/abi/dispatch.h"
#include "sim/error.h"
#include "supernode/placement.h"
#include "testbenches/reference/dispatch_reference.h"
#include "testbenches/reference/tokens.h"
#include "testbenches/studies/session.h"
#include "traces/random.h"
#include "traces/routing.h"

namespace cm384::studies {
namespace {

// EP320 of [P] 4.2.1: 32 ranks hold the shared expert, the others 256 routed experts and 32 redundant copies.
constexpr int kDeploymentRanks = 320, kDeploymentShared = 32;

reference::DispatchCase make_case(const StudyContext& context, const DispatchCase& setting) {
  const traces::RoutingSource source = traces::parse_routing_source(setting.routing);
  traces::Routing routing;
  const std::int64_t rows = static_cast<std::int64_t>(setting.ranks) * setting.batch;
  switch (source.kind) {
    case traces::RoutingSource::Kind::kUniform:
      routing = traces::uniform_routing(rows, setting.top_k, setting.experts, context.seed);
      break;
    case traces::RoutingSource::Kind::kZipf:
      routing = traces::zipf_routing(rows, setting.top_k, setting.experts, source.exponent, context.seed);
      break;
    case traces::RoutingSource::Kind::kTrace:
      routing = traces::read_routing(source.path, {setting.drop_repeats, 0, -1});
      break;
  }
  const int shared = setting.shared_copies >= 0 ? setting.shared_copies
                     : setting.ranks == kDeploymentRanks && source.kind != traces::RoutingSource::Kind::kTrace
                         ? kDeploymentShared
                         : 0;
  reference::DispatchCase made;
  made.placement = reference::place_experts(setting.ranks, routing.experts, shared);
  made.batch = setting.batch;
  made.top_k = routing.top_k;
  made.hidden = setting.hidden;
  made.seed = context.seed;
  for (int rank = 0; rank < setting.ranks; ++rank)
    made.expert_ids.push_back(traces::take_rows(routing, rank, setting.batch));
  return made;
}

// What a rank has in its memory.
struct Rank {
  int die = 0;
  std::uint64_t block = 0;  // of the arguments
  cm384_dispatch arguments{};
  cm384_peer windows{};
};

// The operator's tensors, windows and tables in the memories of all ranks.
class DispatchMemory {
 public:
  DispatchMemory(supernode::Runtime& runtime, const reference::DispatchCase& dispatch,
                 const std::vector<int>& dies, int cores, bool full)
      : runtime_(runtime), case_(dispatch) {
    const auto ranks = static_cast<int>(dies.size());
    std::vector<cm384_peer> peers;
    for (int rank = 0; rank < ranks; ++rank) {
      ranks_.push_back(allocate(rank, dies[static_cast<std::size_t>(rank)], cores, full));
      peers.push_back(ranks_.back().windows);
    }
    for (Rank& rank : ranks_) {
      runtime_.put(rank.arguments.peers, std::span<const cm384_peer>(peers));
      runtime_.put(rank.block, rank.arguments);
    }
  }

  std::vector<Rank>& ranks() { return ranks_; }

  // Compares what all ranks hold with the reference; empty when equal.
  std::string compare(const reference::DispatchReference& reference) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const cm384_dispatch& a = ranks_[r].arguments;
      const auto number = static_cast<int>(r);
      const std::size_t rows = reference.rank(number).rows.size();
      const std::string difference = reference.compare(
          number, runtime_.get<std::int8_t>(a.expand_x, rows * a.hidden),
          runtime_.get<float>(a.expand_scales, rows), runtime_.get<std::int32_t>(a.expand_triples, rows * 3),
          runtime_.get<std::int32_t>(a.send_counts, std::size_t{a.own_experts} * a.ranks),
          runtime_.get<std::int64_t>(a.expert_token_nums, a.own_experts));
      if (!difference.empty()) return difference;
    }
    return {};
  }

 private:
  Rank allocate(int number, int die, int cores, bool full) {
    const reference::DispatchSizes sizes = reference::dispatch_sizes(case_, number, cores);
    Rank rank;
    rank.die = die;
    rank.arguments = reference::dispatch_arguments(case_, number);
    cm384_dispatch& a = rank.arguments;
    const auto table = [&](std::uint64_t bytes) {
      return runtime_.allocate(die, std::max<std::uint64_t>(bytes, 32));
    };
    rank.block = table(sizeof a);
    a.x = table(sizes.x);
    a.expert_ids = table(sizes.expert_ids);
    a.expert_copies = table(sizes.expert_copies);
    a.expert_slots = table(sizes.expert_slots);
    a.peers = table(sizes.peers);
    a.workspace = table(sizes.workspace);
    a.send_counts = table(sizes.send_counts);
    a.expert_token_nums = table(sizes.expert_token_nums);
    a.expand_triples = table(sizes.expand_triples);
    a.expand_scales = table(sizes.expand_scales);
    a.expand_x = table(sizes.expand_x);
    constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
    rank.windows.status = runtime_.allocate(die, CM384_STATUS_BYTES, kPage);
    rank.windows.window = runtime_.allocate(die, sizes.window, kPage);

    if (full) {
      const auto x = reference::make_tokens(case_.seed, number, case_.batch, case_.hidden);
      runtime_.put(a.x, std::span<const std::uint16_t>(x));
    } else {
      runtime_.mark_payload(a.x, sizes.x);
    }
    runtime_.put(a.expert_ids,
                 std::span<const std::int32_t>(case_.expert_ids[static_cast<std::size_t>(number)]));
    runtime_.put(a.expert_copies, std::span<const cm384_expert_copies>(case_.placement.copies));
    runtime_.put(a.expert_slots, std::span<const cm384_expert_slot>(case_.placement.slots));
    return rank;
  }

  supernode::Runtime& runtime_;
  const reference::DispatchCase& case_;
  std::vector<Rank> ranks_;
};

}  // namespace

DispatchReading measure_dispatch(const StudyContext& context, const DispatchCase& setting,
                                 SimulatorCounts& counts, double progress_from, double progress_to) {
  const hw::Topology& topology = context.machine.topology;
  SessionOptions options;
  const std::vector<int> dies = supernode::place_ranks(setting.placement, setting.ranks, topology.dies(),
                                                       topology.dies_per_node, context.seed);
  options.dies = dies;
  if (setting.reverse_modules) std::reverse(options.dies.begin(), options.dies.end());
  options.die.aiv.elide_polls = setting.elide_polls;
  options.die.aiv.check_hazards = setting.check_hazards;
  options.progress_from = progress_from;
  options.progress_to = progress_to;
  options.what = fmt::format("dispatch, {} ranks", setting.ranks);
  const reference::DispatchCase dispatch = make_case(context, setting);
  Session session(context, options);
  auto& runtime = session.runtime();
  const auto cores = runtime.first_cores(setting.cores);
  DispatchMemory memory(runtime, dispatch, dies, setting.cores, setting.full);
  if (!cm384_dispatch_fits(&memory.ranks().front().arguments, static_cast<std::uint64_t>(setting.cores)))
    throw InputError(
        fmt::format("run dispatch: batch {}, {} ranks and hidden size {} do not fit a UBuffer of 192 KiB",
                    setting.batch, setting.ranks, setting.hidden));
  const auto program = session.built_in("dispatch");
  if (setting.prepare) setting.prepare(session.machine());
  std::optional<reference::DispatchReference> reference;
  if (setting.full) reference.emplace(dispatch);

  DispatchReading reading;
  reading.batch = setting.batch;
  reading.top_k = dispatch.top_k;
  reading.experts = dispatch.placement.experts;
  if (setting.full) reading.correct = true;
  std::vector<double> tasks, kernels;
  std::vector<Time> phases(npu::kPhases);
  std::int64_t blocks = 0;
  traces::Random skew(context.seed, 1);
  const int rounds = setting.warmup + setting.iterations;
  for (int round = 0; round < rounds; ++round) {
    const Time start = runtime.earliest_start();
    std::vector<supernode::LaunchHandle> launches;
    for (const Rank& rank : memory.ranks()) {
      const Time late{
          setting.start_skew.ps == 0
              ? 0
              : static_cast<std::int64_t>(skew.below(static_cast<std::uint64_t>(setting.start_skew.ps) + 1))};
      launches.push_back(runtime.launch(rank.die, program, rank.block, cores, start + late));
    }
    if (!runtime.wait()) break;
    session.done(static_cast<double>(round + 1) / rounds);
    if (round < setting.warmup) continue;
    for (const auto& launch : launches) {
      const npu::LaunchRecord& record = runtime.record(launch);
      tasks.push_back((record.task_end - record.task_start).us());
      kernels.push_back((record.last_retired - record.first_instruction).us());
      reading.tasks.push_back(record);
      blocks += record.blocks;
      for (std::size_t p = 0; p < phases.size(); ++p) phases[p] += record.phase_total[p];
    }
    if (reference && reading.first_difference.empty()) reading.first_difference = memory.compare(*reference);
  }
  if (setting.full) reading.correct = reading.first_difference.empty() && !tasks.empty();
  reading.task_us = summarise(tasks);
  reading.kernel_us = summarise(kernels);
  for (int p = 0; p <= CM384_DISPATCH_COPY; ++p)
    reading.phase_us.push_back(
        blocks == 0 ? 0 : phases[static_cast<std::size_t>(p)].us() / static_cast<double>(blocks));
  for (const Rank& rank : memory.ranks()) {
    npu::Die& die = session.machine().die(rank.die);
    for (int core = 0; core < die.cores(); ++core)
      reading.skipped_polls += die.core(core).aiv().statistics().skipped_polls;
  }
  session.count(counts);
  return reading;
}

}  // namespace cm384::studies
