#include "studies/mla.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operators/reference/mla_reference.h"
#include "studies/mla_projections.h"

namespace cm384::studies {
namespace {

constexpr std::uint32_t kL1 = 512 * 1024;
// Of a core (ascend-facts A5, A6).
constexpr double kFixpipeBytesPerCycle = 64, kHbmBytesPerCycle = 32;

// The arguments of the attention, with everything they point to.
cm384_mla place_attention(host::Runtime& runtime, const reference::MlaCase& mla,
                          const std::vector<std::uint32_t>& table, const MlaSetting& setting) {
  const auto allocate = [&runtime](std::uint64_t bytes) { return runtime.allocate(0, bytes, 4096); };
  cm384_mla a{};
  a.batch = mla.batch();
  a.queries = mla.queries;
  a.heads = mla.heads;
  a.table_width = mla.table_width();
  a.scale = mla.scale;
  const KvBlocking blocking = choose_blocking(mla.heads);
  a.block_tokens = blocking.block_tokens;
  a.chunks = blocking.chunks;
  a.slots = blocking.slots;
  const std::uint32_t shortest = *std::min_element(mla.kv_lens.begin(), mla.kv_lens.end());
  a.splits = choose_splits(a.batch * a.queries, static_cast<std::uint32_t>(setting.blocks),
                           std::min(32u, (shortest + a.block_tokens - 1) / a.block_tokens));
  const std::uint64_t rows = std::uint64_t{a.batch} * a.queries * a.heads;
  a.q = allocate(rows * CM384_MLA_WIDTH * 2);
  a.kv = allocate(table.size() * CM384_MLA_PAGE_BYTES);
  a.page_table = allocate(table.size() * 4);
  a.kv_lens = allocate(mla.kv_lens.size() * 4);
  a.out = allocate(rows * CM384_MLA_LATENT * 2);
  a.workspace = allocate(CM384_MLA_WORKSPACE(a) * static_cast<std::uint64_t>(setting.blocks));
  a.partial_o = allocate(rows * a.splits * CM384_MLA_LATENT * 4);
  a.partial_m = allocate(rows * a.splits * 4);
  a.partial_l = allocate(rows * a.splits * 4);
  runtime.put(a.page_table, std::span<const std::uint32_t>(table));
  runtime.put(a.kv_lens, std::span<const std::uint32_t>(mla.kv_lens));
  if (setting.full) return a;
  runtime.mark_payload(a.q, rows * CM384_MLA_WIDTH * 2);
  runtime.mark_payload(a.kv, table.size() * CM384_MLA_PAGE_BYTES);
  // Not written where the attention does not run.
  runtime.mark_payload(a.out, rows * CM384_MLA_LATENT * 2);
  return a;
}

double attention_operations(const MlaSetting& setting) {
  double tokens = 0;
  for (const std::uint32_t length : setting.kv_lens) {
    for (std::uint32_t query = 0; query < setting.queries; ++query) tokens += length + query;
  }
  return 2.0 * tokens * setting.heads * (CM384_MLA_WIDTH + CM384_MLA_LATENT);
}

double cache_bytes(const MlaSetting& setting) {
  double tokens = 0;
  for (const std::uint32_t length : setting.kv_lens) tokens += length + setting.queries - 1;
  return tokens * CM384_MLA_WIDTH * 2;
}

}  // namespace

KvBlocking choose_blocking(std::uint32_t heads) {
  const auto largest = [heads](std::uint32_t chunks, std::uint32_t slots) {
    cm384_mla a{};
    a.heads = heads;
    a.chunks = chunks;
    a.slots = slots;
    a.block_tokens = CM384_MLA_PAGE_TOKENS;
    while (a.block_tokens > 16 && CM384_MLA_L1(a) > kL1) a.block_tokens -= 16;
    return KvBlocking{a.block_tokens, chunks, slots};
  };
  const KvBlocking three = largest(2, 6), two = largest(3, 7);
  // Cycles of a token: out of the fixpipe, scores and products, FP32; in from HBM.
  const double fixpipe =
      heads * (1.0 + double{CM384_MLA_LATENT} / three.block_tokens) * 4 / kFixpipeBytesPerCycle;
  return fixpipe < CM384_MLA_WIDTH * 2 / kHbmBytesPerCycle ? three : two;
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

namespace {

// One after another, each comparing what it made with a reference of its own inputs.
class MlaStages {
 public:
  MlaStages(const StudyContext& context, const MlaSetting& setting)
      : setting_(setting),
        // Scores of inputs of magnitude 1 stay within a few units.
        mla_{context.seed, setting.kv_lens, setting.queries, setting.heads,
             static_cast<float>(1.0 / std::sqrt(192.0) / 4)},
        table_(reference::make_page_table(mla_)),
        run_(context, fmt::format("mla, {} sequences", setting.kv_lens.size()), setting.blocks, setting.full),
        attention_(place_attention(run_.runtime(), mla_, table_, setting)) {
    if (setting.prolog) prolog_.emplace(run_.runtime(), setting, context.seed, attention_, table_);
    if (setting.output) output_.emplace(run_.runtime(), setting, context.seed, attention_);
    if (setting.full) put_inputs();
  }

  MlaReading run() {
    MlaReading reading;
    if (prolog_ && !run_prolog(reading.prolog)) return reading;
    if (setting_.attention && !run_attention(reading.attention)) return reading;
    if (output_) run_output(reading.output);
    return reading;
  }
  void count(SimulatorCounts& counts) const { run_.count(counts); }

 private:
  std::size_t rows() const { return std::size_t{setting_.tokens()} * setting_.heads; }

  // The newest tokens of the cache and the queries are the prolog's to write, where it runs.
  void put_inputs() {
    inputs_ = reference::make_mla_inputs(mla_);
    run_.runtime().put(attention_.kv, std::span<const std::uint16_t>(inputs_->pages));
    if (!setting_.prolog) run_.runtime().put(attention_.q, std::span<const std::uint16_t>(inputs_->q));
    // Something to work on where no attention runs: queries are as large as latents.
    if (!setting_.attention)
      run_.runtime().put(attention_.out,
                         std::span<const std::uint16_t>(inputs_->q).first(rows() * CM384_MLA_LATENT));
  }

  bool run_prolog(CubeReading& reading) {
    if (!run_.launch("mla_prolog", run_.put(prolog_->arguments()), npu::KernelType::mix, reading))
      return false;
    reading.operations = prolog_->operations();
    if (setting_.full) reading.compared(prolog_->compare());
    return true;
  }

  bool run_attention(AttentionReading& reading) {
    reading.block_tokens = attention_.block_tokens;
    reading.splits = attention_.splits;
    if (setting_.full && setting_.prolog) {
      inputs_->q = run_.runtime().get<std::uint16_t>(attention_.q, inputs_->q.size());
      inputs_->pages = run_.runtime().get<std::uint16_t>(attention_.kv, inputs_->pages.size());
    }
    if (!run_.launch("mla", run_.put(attention_), npu::KernelType::mix, reading)) return false;
    reading.operations = attention_operations(setting_);
    reading.kv_bytes = cache_bytes(setting_);
    if (setting_.full)
      reading.compared(compare_mla(
          mla_, *inputs_, run_.runtime().get<std::uint16_t>(attention_.out, rows() * CM384_MLA_LATENT)));
    return true;
  }

  void run_output(CubeReading& reading) {
    if (!run_.launch("mla_output", run_.put(output_->arguments()), npu::KernelType::mix, reading)) return;
    reading.operations = output_->operations();
    if (setting_.full) reading.compared(output_->compare());
  }

  const MlaSetting& setting_;
  const reference::MlaCase mla_;
  const std::vector<std::uint32_t> table_;
  CubeRun run_;
  const cm384_mla attention_;
  std::optional<MlaProlog> prolog_;
  std::optional<MlaOutput> output_;
  std::optional<reference::MlaInputs> inputs_;
};

}  // namespace

MlaReading measure_mla(const StudyContext& context, const MlaSetting& setting, SimulatorCounts& counts) {
  MlaStages stages(context, setting);
  MlaReading reading = stages.run();
  stages.count(counts);
  return reading;
}

}  // namespace cm384::studies
