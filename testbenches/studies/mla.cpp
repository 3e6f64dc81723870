#include "testbenches/studies/mla.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/error.h"
#include "testbenches/reference/mla_reference.h"
#include "testbenches/studies/options.h"
#include "testbenches/studies/session.h"
#include "testbenches/studies/studies.h"

namespace cm384::studies {
namespace {

constexpr std::uint32_t kL1 = 512 * 1024;

struct MlaMemory {
  MlaMemory(supernode::Runtime& runtime, const reference::MlaCase& mla, const MlaSetting& setting,
            MlaReading& reading);

  cm384_mla arguments{};
  std::uint64_t block = 0;
};

MlaMemory::MlaMemory(supernode::Runtime& runtime, const reference::MlaCase& mla, const MlaSetting& setting,
                     MlaReading& reading) {
  const auto allocate = [&runtime](std::uint64_t bytes) { return runtime.allocate(0, bytes, 4096); };
  cm384_mla& a = arguments;
  a.batch = mla.batch();
  a.queries = mla.queries;
  a.heads = mla.heads;
  a.table_width = mla.table_width();
  a.scale = mla.scale;
  a.block_tokens = reading.block_tokens = choose_block_tokens(mla.heads);
  const std::uint32_t shortest = *std::min_element(mla.kv_lens.begin(), mla.kv_lens.end());
  a.splits = reading.splits = choose_splits(a.batch * a.queries, static_cast<std::uint32_t>(setting.blocks),
                                            std::min(32u, (shortest + a.block_tokens - 1) / a.block_tokens));
  const std::uint64_t rows = std::uint64_t{a.batch} * a.queries * a.heads;
  const std::vector<std::uint32_t> table = reference::make_page_table(mla);
  a.q = allocate(rows * CM384_MLA_WIDTH * 2);
  a.kv = allocate(table.size() * CM384_MLA_PAGE_BYTES);
  a.page_table = allocate(table.size() * 4);
  a.kv_lens = allocate(mla.kv_lens.size() * 4);
  a.out = allocate(rows * CM384_MLA_LATENT * 2);
  a.workspace = allocate(CM384_MLA_WORKSPACE(a) * static_cast<std::uint64_t>(setting.blocks));
  a.partial_o = allocate(rows * a.splits * CM384_MLA_LATENT * 4);
  a.partial_m = allocate(rows * a.splits * 4);
  a.partial_l = allocate(rows * a.splits * 4);
  block = allocate(sizeof a);
  runtime.put(block, a);
  runtime.put(a.page_table, std::span<const std::uint32_t>(table));
  runtime.put(a.kv_lens, std::span<const std::uint32_t>(mla.kv_lens));
  if (setting.full) return;
  runtime.mark_payload(a.q, rows * CM384_MLA_WIDTH * 2);
  runtime.mark_payload(a.kv, table.size() * CM384_MLA_PAGE_BYTES);
}

}  // namespace

std::uint32_t choose_block_tokens(std::uint32_t heads) {
  cm384_mla a{};
  a.heads = heads;
  a.block_tokens = CM384_MLA_PAGE_TOKENS;
  while (a.block_tokens > 16 && CM384_MLA_L1(a) > kL1) a.block_tokens -= 16;
  return a.block_tokens;
}

std::uint32_t choose_splits(std::uint32_t pairs, std::uint32_t blocks, std::uint32_t most) {
  // In whole sequences of the busiest block; to combine costs a thousandth of one a split.
  const auto cost = [&](std::uint32_t splits) {
    const std::uint32_t turns = (pairs * splits + blocks - 1) / blocks;
    return static_cast<double>(turns) / splits + splits / 1000.0;
  };
  std::uint32_t best = 1;
  for (std::uint32_t splits = 2; splits <= most; ++splits) {
    if (cost(splits) < cost(best)) best = splits;
  }
  return best;
}

MlaReading measure_mla(const StudyContext& context, const MlaSetting& setting, SimulatorCounts& counts) {
  // Scores of inputs of magnitude 1 stay within a few units.
  const reference::MlaCase mla{context.seed, setting.kv_lens, setting.queries, setting.heads,
                               static_cast<float>(1.0 / std::sqrt(192.0) / 4)};
  MlaReading reading;
  SessionOptions options;
  options.dies = {0};
  options.what = fmt::format("mla, {} sequences", setting.kv_lens.size());
  Session session(context, options);
  auto& runtime = session.runtime();
  const MlaMemory memory(runtime, mla, setting, reading);
  std::optional<reference::MlaInputs> inputs;
  if (setting.full) {
    inputs = reference::make_mla_inputs(mla);
    runtime.put(memory.arguments.q, std::span<const std::uint16_t>(inputs->q));
    runtime.put(memory.arguments.kv, std::span<const std::uint16_t>(inputs->pages));
  }
  std::vector<std::uint16_t> blocks(static_cast<std::size_t>(setting.blocks));
  std::iota(blocks.begin(), blocks.end(), std::uint16_t{0});
  npu::Die& die = session.machine().die(0);
  const auto launch = runtime.launch(0, session.built_in("mla"), memory.block, blocks,
                                     runtime.earliest_start(), npu::KernelType::mix);
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return reading;
  const npu::LaunchRecord& record = runtime.record(launch);
  reading.task_us = (record.task_end - record.task_start).us();
  reading.kernel_us = (record.last_retired - record.first_instruction).us();
  for (const std::uint32_t tokens : setting.kv_lens) {
    reading.kv_bytes += (tokens + setting.queries - 1) * double{CM384_MLA_WIDTH} * 2;
    for (std::uint32_t query = 0; query < setting.queries; ++query)
      reading.operations += 2.0 * (tokens + query) * setting.heads * (CM384_MLA_WIDTH + CM384_MLA_LATENT);
  }
  reading.hbm_bytes = static_cast<double>(die.memory().hbm_traffic());
  const npu::MemoryStatistics& s = die.memory().statistics();
  reading.l2_hit_rate = static_cast<double>(s.l2_hits) /
                        static_cast<double>(std::max<std::uint64_t>(1, s.l2_hits + s.l2_misses));
  reading.pipes = pipe_shares(die, setting.blocks, reading.kernel_us);
  if (inputs) {
    const std::size_t elements = inputs->q.size() / CM384_MLA_WIDTH * CM384_MLA_LATENT;
    reading.first_difference =
        compare_mla(mla, *inputs, runtime.get<std::uint16_t>(memory.arguments.out, elements));
    reading.correct = reading.first_difference.empty();
  }
  return reading;
}

namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("batch", integer_option(96, 1, 4096), "sequences")(
      "kv-len", integer_option(4096, 1, 1'000'000), "tokens of a sequence in the cache")(
      "mtp", integer_option(0, 0, 1), "tokens predicted beyond the next one: each is a further query")(
      "heads", integer_option(128, 16, 128), "query heads, a multiple of 16")(
      "cores", integer_option(24, 1, 64), "AICs, each with its two AIVs")(
      "payload", choice_option("control", {"full", "control"}),
      "full computes every value and compares it with the host's; control moves tags of payload")(
      "measure", choice_option("task", {"task", "kernel"}),
      "latency_us of the whole task as the vendor's profiler reads it, or from first to last instruction");
}

StudyResult run(const StudyContext& context) {
  StudyResult result;
  MlaSetting setting;
  setting.kv_lens.assign(static_cast<std::size_t>(context.option<int>("batch")),
                         static_cast<std::uint32_t>(context.option<int>("kv-len")));
  setting.queries = static_cast<std::uint32_t>(1 + context.option<int>("mtp"));
  setting.heads = static_cast<std::uint32_t>(context.option<int>("heads"));
  setting.blocks = context.option<int>("cores");
  setting.full = context.option<std::string>("payload") == "full";
  if (setting.heads % 16 != 0)
    throw InputError(fmt::format("run mla: --heads {}: allowed: multiples of 16", setting.heads));
  if (setting.blocks > context.machine.die.aic)
    throw InputError(
        fmt::format("run mla: --cores {}: a die has {} AICs", setting.blocks, context.machine.die.aic));
  const MlaReading reading = measure_mla(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  const double latency =
      context.option<std::string>("measure") == "task" ? reading.task_us : reading.kernel_us;
  Json row;
  row["batch"] = setting.kv_lens.size();
  row["kv_len"] = context.option<int>("kv-len");
  row["mtp"] = context.option<int>("mtp");
  row["heads"] = setting.heads;
  row["latency_us"] = latency;
  row["compute_utilisation"] =
      reading.operations / (latency * 1e-6) / cube_peak(context.machine, CM384_GEMM_BF16);
  row["hbm_GBps"] = reading.hbm_bytes / (latency * 1e3);
  row["kv_GBps"] = reading.kv_bytes / (latency * 1e3);
  row["l2_hit_rate"] = reading.l2_hit_rate;
  row["bottleneck"] = bottleneck(reading.pipes);
  row["block_tokens"] = reading.block_tokens;
  row["splits"] = reading.splits;
  row["task_us"] = reading.task_us;
  row["kernel_us"] = reading.kernel_us;
  row["correct"] = reading.correct ? Json(*reading.correct) : Json();
  row["pipes"] = to_json(reading.pipes);
  result.rows.push_back(row);
  if (reading.correct && !*reading.correct) {
    result.passed = false;
    result.notes.push_back(reading.first_difference);
  }
  return result;
}

}  // namespace

const Study kMlaStudy{"mla", "decode attention over the compressed KV cache, on the cores of a die",
                      add_options, run};

}  // namespace cm384::studies
