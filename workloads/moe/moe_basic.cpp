// The basic flow: three all-to-alls through SDMA, the host in between ([P] 4.2.1: metadata, tokens in BF16,
// results). Every rank is a process: it submits kernels to one stream of its die and has the copies of each
// all-to-all unfolded into others by an AICPU, as libraries' collectives are; an event holds the streams
// together. It synchronises with its own die after each all-to-all and then with the other processes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/engine/peers.h"
#include "base/text/error.h"
#include "firmware/abi/all_to_all.h"
#include "workloads/moe/moe_flow.h"
#include "workloads/moe/moe_run.h"

namespace cm384::studies {
namespace {

constexpr std::array kStepNames{"pack", "quantise", "unsort", "sum"};  // of enum cm384_all_to_all_step
constexpr int kSteps = int{kStepNames.size()};
static_assert(CM384_STEP_SUM + 1 == kSteps);
// Streams that carry counts: enough that copies of some microseconds keep up with an AICPU that submits one a
// microsecond. Each more would cost the host a call, to let it wait for the kernel before.
constexpr std::size_t kMessageStreams = 8;

// A rank's buffers, streams, and what it did in a round.
struct Rank {
  int die = 0;
  cm384_all_to_all arguments{};
  std::array<std::uint64_t, kSteps> blocks{};      // arguments of each step
  std::uint64_t host_sent = 0, host_received = 0;  // counts, in the memory of a CPU socket
  host::Stream kernels;
  std::vector<host::Stream> copies;  // side by side, as many as the engine has channels
  host::Event event;
  host::TaskHandle pack, quantise, experts, unsort, sum;
  std::vector<host::TaskHandle> metadata, tokens, results;
};

std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}

class BasicFlow {
 public:
  BasicFlow(MoeRun& run, const MoeCase& setting, const hw::Topology& topology, int channels)
      : run_(run),
        runtime_(run.session().runtime()),
        setting_(setting),
        kernel_(run.session().built_in("all_to_all")),
        experts_(run.session().built_in("experts")),
        delays_(expert_delays(runtime_, run.dispatched().tasks(), setting.expert_time)) {
    if (run.layer().placement.shared != 0)
      throw InputError(
          "run moe --flow basic: a shared expert on ranks of its own is not part of this flow; "
          "allowed: --shared-copies 0");
    for (int rank = 0; rank < setting.ranks; ++rank) ranks_.push_back(set_up(rank, topology, channels));
  }

  // Puts down one round of all ranks; each up to the setting's skew late.
  void submit(traces::Random& skew) {
    for (int number = 0; number < setting_.ranks; ++number) {
      if (setting_.start_skew.ps != 0) {
        const auto most = static_cast<std::uint64_t>(setting_.start_skew.ps) + 1;
        runtime_.host_compute(ranks_[index(number)].die, {static_cast<std::int64_t>(skew.below(most))});
      }
      submit_metadata(number);
    }
    synchronize_ranks();
    for (int number = 0; number < setting_.ranks; ++number) {
      fetch_counts(ranks_[index(number)]);
      runtime_.host_function(ranks_[index(number)].die, [this, number] { submit_tokens(number); });
    }
    synchronize_ranks();
    for (int number = 0; number < setting_.ranks; ++number) {
      submit_experts(number);
      runtime_.host_function(ranks_[index(number)].die, [this, number] { submit_results(number); });
    }
    synchronize_ranks();
    for (Rank& rank : ranks_) {
      rank.sum = launch(rank, CM384_STEP_SUM);
      runtime_.synchronize_stream(rank.kernels);
    }
  }

  // Of a round that was run.
  void add_to(FlowTally& tally) const {
    for (const Rank& rank : ranks_) {
      const auto seen = [this](host::TaskHandle task) { return runtime_.task(task).seen; };
      const auto last = [&](const std::vector<host::TaskHandle>& tasks) {
        Time end;
        for (const host::TaskHandle& task : tasks) end = std::max(end, seen(task));
        return end;
      };
      tally.add(runtime_.task(rank.pack).called,
                {seen(rank.pack), last(rank.metadata), last(rank.tokens), seen(rank.quantise),
                 delays_.empty() ? Time{} : seen(rank.experts), seen(rank.unsort), last(rank.results),
                 seen(rank.sum)});
    }
  }

 private:
  Rank set_up(int number, const hw::Topology& topology, int channels) {
    Rank rank;
    const cm384_dispatch& d = run_.dispatched().arguments(number);
    const cm384_combine& c = run_.combined().arguments(number);
    rank.die = run_.dispatched().tasks()[index(number)].die;
    cm384_all_to_all& a = rank.arguments;
    a.rank = d.rank;
    a.ranks = d.ranks;
    a.batch = d.batch;
    a.top_k = d.top_k;
    a.hidden = d.hidden;
    a.experts = d.experts;
    a.local_experts = d.local_experts;
    a.region_rows = d.max_tokens * std::min(d.top_k, d.local_experts);
    a.message_bytes = static_cast<std::uint32_t>(cm384_all_to_all_message_bytes(d.local_experts));
    if (!cm384_all_to_all_fits(&a, static_cast<std::uint64_t>(setting_.cores)))
      throw InputError(
          fmt::format("run moe: batch {}, {} ranks and hidden size {} do not fit a UBuffer of 192 KiB",
                      a.batch, a.ranks, a.hidden));
    a.x = d.x;
    a.expert_ids = d.expert_ids;
    a.expand_x = d.expand_x;
    a.expand_scales = d.expand_scales;
    a.expert_x = c.expert_x;
    a.scales = c.scales;
    a.shared_x = c.shared_x;
    a.out = c.x;
    place_tables(rank, number);
    const std::uint64_t messages = std::uint64_t{a.ranks} * a.message_bytes;
    const std::uint64_t regions = a.ranks * region_bytes(a);
    const auto allocate = [&](std::uint64_t bytes) { return runtime_.allocate(rank.die, bytes); };
    a.sent_counts = allocate(messages);
    a.received_counts = allocate(messages);
    a.order = allocate(std::uint64_t{a.batch} * a.top_k * 4);
    a.send = allocate(regions);
    a.received = allocate(regions);
    a.results = allocate(regions);
    a.returned = allocate(regions);
    const int socket = socket_of(rank.die, topology);
    rank.host_sent = runtime_.allocate_on_socket(socket, messages);
    rank.host_received = runtime_.allocate_on_socket(socket, messages);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      a.step = step;
      rank.blocks[step] = allocate(sizeof a);
      runtime_.put(rank.blocks[step], a);
      run_.session().name_stage(rank.blocks[step], kStepNames[step]);
    }
    rank.kernels = runtime_.create_stream(rank.die);
    for (int channel = 0; channel < channels; ++channel)
      rank.copies.push_back(runtime_.create_stream(rank.die));
    rank.event = runtime_.create_event(rank.die);
    return rank;
  }

  // Which cell, rank and local index, has the copy of each expert that this rank uses.
  void place_tables(Rank& rank, int number) {
    cm384_all_to_all& a = rank.arguments;
    std::vector<std::int32_t> cells, experts(std::size_t{a.ranks} * a.local_experts, -1);
    for (std::uint32_t expert = 0; expert < a.experts; ++expert) {
      const cm384_expert_slot& slot = run_.layer().placement.slot_of(static_cast<int>(expert), number);
      cells.push_back(static_cast<std::int32_t>(slot.rank * a.local_experts + slot.local));
      experts[index(cells.back())] = static_cast<std::int32_t>(expert);
    }
    a.expert_cells = runtime_.allocate(rank.die, cells.size() * 4);
    a.cell_experts = runtime_.allocate(rank.die, experts.size() * 4);
    runtime_.put(a.expert_cells, std::span<const std::int32_t>(cells));
    runtime_.put(a.cell_experts, std::span<const std::int32_t>(experts));
  }

  host::TaskHandle launch(const Rank& rank, cm384_all_to_all_step step) {
    return runtime_.launch_kernel(rank.kernels, kernel_, rank.blocks[step], run_.cores());
  }
  // The first `streams` of the copies' do.
  void copies_follow_kernels(const Rank& rank, std::size_t streams) {
    runtime_.record_event(rank.kernels, rank.event);
    for (std::size_t s = 0; s < streams; ++s) runtime_.stream_wait_event(rank.copies[s], rank.event);
  }
  // Each rank's copies are done, then everybody's.
  void synchronize_ranks() {
    for (const Rank& rank : ranks_) runtime_.synchronize_device(rank.die);
    runtime_.host_barrier(run_.dies());
  }

  static host::Stream stream_to(const Rank& rank, int peer) {
    return rank.copies[index(peer) % rank.copies.size()];
  }
  // Peers in an order that starts behind the own rank; itself last.
  template <class Visit>
  void for_each_peer(int number, Visit visit) const {
    for (int i = 1; i <= setting_.ranks; ++i) visit((number + i) % setting_.ranks);
  }

  void submit_metadata(int number) {
    Rank& rank = ranks_[index(number)];
    const cm384_all_to_all& a = rank.arguments;
    const std::uint64_t bytes = a.message_bytes;
    rank.metadata.clear();
    rank.tokens.clear();
    rank.results.clear();
    rank.pack = launch(rank, CM384_STEP_PACK);
    const std::size_t streams = std::min(rank.copies.size(), kMessageStreams);
    copies_follow_kernels(rank, streams);
    unfold_on_device(runtime_, rank.die, [&] {
      rank.metadata.push_back(
          runtime_.memcpy_async(rank.copies.front(), rank.host_sent, a.sent_counts, a.ranks * bytes));
      for_each_peer(number, [&](int peer) {
        rank.metadata.push_back(
            runtime_.memcpy_async(rank.copies[index(peer) % streams],
                                  ranks_[index(peer)].arguments.received_counts + a.rank * bytes,
                                  a.sent_counts + index(peer) * bytes, bytes));
      });
    });
  }
  // The sizes of the results to come, where the host can read them; those of the tokens came with the
  // metadata.
  void fetch_counts(Rank& rank) {
    const cm384_all_to_all& a = rank.arguments;
    const std::uint64_t bytes = std::uint64_t{a.ranks} * a.message_bytes;
    rank.metadata.push_back(
        runtime_.memcpy_async(rank.copies.front(), rank.host_received, a.received_counts, bytes));
    runtime_.synchronize_stream(rank.copies.front());
  }
  void submit_experts(int number) {
    Rank& rank = ranks_[index(number)];
    rank.quantise = launch(rank, CM384_STEP_QUANTISE);
    if (!delays_.empty())
      rank.experts = runtime_.launch_kernel(rank.kernels, experts_, delays_[index(number)].arguments,
                                            std::vector<std::uint16_t>{0});
    rank.unsort = launch(rank, CM384_STEP_UNSORT);
    copies_follow_kernels(rank, rank.copies.size());
  }

  void submit_tokens(int number) {
    Rank& rank = ranks_[index(number)];
    const cm384_all_to_all& a = rank.arguments;
    submit_regions(number, rank.host_sent, a.send, &cm384_all_to_all::received, rank.tokens);
  }
  void submit_results(int number) {
    Rank& rank = ranks_[index(number)];
    const cm384_all_to_all& a = rank.arguments;
    submit_regions(number, rank.host_received, a.results, &cm384_all_to_all::returned, rank.results);
  }
  // One copy to each peer that gets rows: from its region of `from` to the own region of the peer's buffer.
  void submit_regions(int number, std::uint64_t host_counts, std::uint64_t from,
                      std::uint64_t cm384_all_to_all::*to, std::vector<host::TaskHandle>& tasks) {
    const Rank& rank = ranks_[index(number)];
    const cm384_all_to_all& a = rank.arguments;
    const std::size_t words = a.message_bytes / 4;
    const auto counts = runtime_.get<std::uint32_t>(host_counts, a.ranks * words);
    const auto copy_to = [&](int peer) {
      std::uint64_t rows = 0;
      for (std::size_t local = 0; local < a.local_experts; ++local)
        rows += counts[index(peer) * words + local];
      if (rows == 0) return;
      tasks.push_back(runtime_.memcpy_async(stream_to(rank, peer),
                                            ranks_[index(peer)].arguments.*to + a.rank * region_bytes(a),
                                            from + index(peer) * region_bytes(a), rows * a.hidden * 2));
    };
    unfold_on_device(runtime_, rank.die, [&] { for_each_peer(number, copy_to); });
  }

  static std::uint64_t region_bytes(const cm384_all_to_all& a) {
    return std::uint64_t{a.region_rows} * a.hidden * 2;
  }

  MoeRun& run_;
  host::Runtime& runtime_;
  const MoeCase& setting_;
  std::shared_ptr<npu::Program> kernel_, experts_;
  std::vector<RankTask> delays_;
  std::vector<Rank> ranks_;
};

}  // namespace

MoeReading measure_basic_flow(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                              double progress_from, double progress_to) {
  if (context.machine.topology.supernodes > 1)
    throw InputError("run moe --flow basic: not over several supernodes; allowed: --flow fused");
  sim::peers().needs_one("run moe --flow basic");  // its host threads share what they have counted
  MoeRun run(context, setting, &setting, fmt::format("basic flow, {} ranks", setting.ranks), progress_from,
             progress_to, true);
  BasicFlow flow(run, setting, context.machine.topology, context.machine.sdma.channels);
  auto reading = run.begin_reading<MoeReading>();
  FlowTally tally({"pack", "metadata", "tokens", "quantise", "experts", "unsort", "results", "sum"});
  traces::Random skew(context.seed, 1);
  const int rounds = setting.warmup + setting.iterations;
  // Kernels and meetings, and three times as many entries of an AICPU as there are ranks.
  run.session().expect(1.0 / rounds, 300_us + context.machine.aicpu.entry * (3 * setting.ranks));
  for (int round = 0; round < rounds; ++round) {
    if (round == setting.warmup) run.session().begin_counted();
    if (setting.full) run.combined().spoil();
    flow.submit(skew);
    if (!run.session().runtime().wait()) break;
    run.session().done((round + 1.0) / rounds);
    if (round < setting.warmup) continue;
    flow.add_to(tally);
    if (setting.full && reading.first_difference.empty()) reading.first_difference = run.difference_of_rows();
  }
  if (setting.full) reading.correct = reading.first_difference.empty() && !tally.empty();
  tally.to(reading);
  run.count(counts);
  return reading;
}

}  // namespace cm384::studies
