// `cm384 run prefill`: a batch of prompts on an instance whose dies each have whole prompts (attention data
// parallel) and share the experts. Operators follow one another; each is measured on the machine: those of a
// die on one, dispatch and combine on all.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "hw/error.h"
#include "studies/alone.h"
#include "studies/combine.h"
#include "studies/ffn.h"
#include "studies/moe_case.h"
#include "studies/studies.h"
#include "traces/routing.h"

namespace cm384::studies {
namespace {

struct Options {
  int ranks = 32;
  int tokens = 16384;
  int prompt = 4096;
  int chunk = 256;
  std::string routing = "uniform";
  bool by_load = false;
  int redundant = -1;
  int experts = 256;
  int dense_layers = 3, moe_layers = 58;
  int hidden = 7168, q_lora = 1536, heads = 128, width = 2048, dense_width = 18432;
  int vocabulary = 129280;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("ranks", self.ranks, Range{2, 768}, "dies of the instance, one rank each");
    visit("tokens", self.tokens, Range{32, 1'000'000}, "of the batch per NPU of two dies");
    visit("prompt", self.prompt, Range{16, 1'000'000, 16}, "tokens of each prompt; a die has whole ones");
    visit("chunk", self.chunk, Range{1, 256}, "tokens that a dispatch and a combine take at most");
    visit("routing", self.routing, Form{"uniform|zipf:S|trace:FILE", check_routing},
          "which experts tokens choose");
    visit(
        "balance", self.by_load, Either{"even", "eplb"},
        "experts on ranks in order, or copied and packed by the load that another draw of the routing shows");
    visit("redundant", self.redundant, Range{-1, 1024},
          "further copies of routed experts; -1: one a rank; every rank has the shared expert besides");
    visit("experts", self.experts, Range{64, 512, 64}, "routed experts");
    visit("dense-layers", self.dense_layers, Range{0, 1000},
          "layers whose feed-forward network is not of experts");
    visit("moe-layers", self.moe_layers, Range{1, 1000}, "layers with experts");
    visit("hidden", self.hidden, Range{64, 8192, 64}, "elements of a token");
    visit("q-lora", self.q_lora, Range{64, 8192, 64}, "elements of the queries' latent");
    visit("heads", self.heads, Range{16, 128, 16}, "query heads");
    visit("width", self.width, Range{64, 4096, 64}, "elements between the products of an expert");
    visit("dense-width", self.dense_width, Range{64, 65536, 64},
          "elements between the products of a dense layer");
    visit("vocabulary", self.vocabulary, Range{64, 1'000'000, 64}, "words that the head chooses among");
  }
  std::vector<std::string> inputs() const {
    const auto source = traces::parse_routing_source(routing);
    return source.kind == traces::RoutingSource::Kind::kTrace ? std::vector<std::string>{source.path}
                                                              : std::vector<std::string>{};
  }
};

// Where a part of a layer belongs.
enum class Of : std::uint8_t { attention, moe, dense };
constexpr std::array<std::string_view, 3> kOf{"attention", "experts", "dense network"};

struct Part {
  std::string name;
  Of of;
  double us = 0;
};

// A die's tokens and prompts. Throws InputError where prompts are not whole.
struct Share {
  int tokens, prompts;
};
Share share_of(const Options& o) {
  const int tokens = o.tokens / 2;
  if (o.tokens % 2 != 0 || tokens % o.prompt != 0)
    throw InputError(fmt::format(
        "run prefill: --tokens {} of an NPU, --prompt {}: a die has whole prompts; allowed: multiples of {}",
        o.tokens, o.prompt, 2 * o.prompt));
  return {tokens, tokens / o.prompt};
}

// The bytes that a die must hold at least: weights of all layers, the cache, and the largest activations of a
// layer, queries, keys, values and output of attention or the rows of its experts.
void check_memory(const StudyContext& context, const Options& o, const Share& share) {
  const double hidden = o.hidden, heads = o.heads, layers = o.dense_layers + o.moe_layers;
  const double attention =
      hidden * (o.q_lora + 576) + o.q_lora * heads * 192 + 512 * heads * 256 + heads * 128 * hidden;
  const int redundant = o.redundant >= 0 ? o.redundant : o.ranks;
  const int slots = (o.experts + redundant + o.ranks - 1) / o.ranks + 1;
  const double weights = layers * attention + o.moe_layers * slots * 3 * hidden * o.width +
                         3.0 * o.dense_layers * hidden * o.dense_width + 2 * 2 * hidden * o.vocabulary;
  const double token = layers * 2 * 576 + std::max(heads * 2 * (192 + 192 + 128 + 128), 9 * hidden * 3);
  const double room = static_cast<double>(context.machine.memory.hbm.capacity.count);
  if (weights + token * share.tokens <= room) return;
  const auto fits = static_cast<long>(std::max(0.0, room - weights) / token) / o.prompt * o.prompt;
  throw InputError(fmt::format(
      "run prefill: --tokens {}: {:.1f} GB of weights and {:.1f} GB of cache and activations do not "
      "fit a die's {:.1f} GB; {} tokens an NPU would",
      o.tokens, weights / 1e9, token * share.tokens / 1e9, room / 1e9, 2 * fits));
}

class PrefillLayer {
 public:
  PrefillLayer(const StudyContext& context, const Options& o, const Share& share, StudyResult& result)
      : context_(context), o_(o), share_(share), result_(result) {}

  // Empty where the run was interrupted.
  std::vector<Part> measure() {
    attention();
    experts();
    if (o_.dense_layers > 0) dense();
    head();
    return stopped() ? std::vector<Part>{} : std::move(parts_);
  }
  double head_us() const { return head_us_; }

 private:
  static constexpr int kSteps = 22;  // that the progress counts

  bool stopped() const { return stopped_ || context_.interrupted != 0; }
  // A part of the layer, measured by `measure(context)`.
  template <class Measure>
  double take(Measure&& measure) {
    if (stopped()) return 0;
    const double from = std::min(1.0, static_cast<double>(step_) / kSteps);
    ++step_;
    PartOfProgress progress(context_.progress, from, std::min(1.0, from + 1.0 / kSteps), result_.simulator);
    const StudyContext context = context_.with(progress);
    return measure(context);
  }
  void add(Of of, const char* name, double us) { parts_.push_back({name, of, us}); }
  template <class Run>
  void alone(Of of, const char* name, Run&& run) {
    add(of, name, take([&](const StudyContext& context) {
          Alone operators(context, result_, 0);
          const double us = run(operators);
          stopped_ = stopped_ || operators.interrupted();
          return us;
        }));
  }
  void rows(Of of, const char* name, const char* which, int width) {
    alone(of, name, [&](Alone& a) { return a.row_operator(which, tokens(), width); });
  }
  void product(Of of, const char* name, int n, int k, const char* type = "int8") {
    alone(of, name, [&](Alone& a) { return a.product(1, share_.tokens, n, k, type, "nz"); });
  }
  std::uint64_t tokens() const { return static_cast<std::uint64_t>(share_.tokens); }

  void attention() {
    constexpr Of of = Of::attention;
    rows(of, "norm", "rms-norm", o_.hidden);
    rows(of, "quantise", "quantise", o_.hidden);
    product(of, "down projection", o_.q_lora + 576, o_.hidden);
    rows(of, "norm of the queries' latent", "rms-norm", o_.q_lora);
    alone(of, "norm, rotation and cache of keys", [&](Alone& a) {
      return a.one({.name = "kv-norm-rope", .shape = fmt::format("{}", share_.tokens)});
    });
    rows(of, "quantise the queries' latent", "quantise", o_.q_lora);
    product(of, "queries", o_.heads * 192, o_.q_lora);
    rows(of, "quantise the keys' latent", "quantise", 512);
    product(of, "keys and values", o_.heads * 256, 512);
    alone(of, "rotation of queries", [&](Alone& a) {
      return a.one({.name = "rope", .shape = fmt::format("{}x{}", share_.tokens, o_.heads)});
    });
    alone(of, "attention", [&](Alone& a) {
      return a.one(
          {.name = "flash-attention", .shape = fmt::format("{}x{}x{}", share_.prompts, o_.heads, o_.prompt)});
    });
    rows(of, "quantise the output", "quantise", o_.heads * 128);
    product(of, "output projection", o_.hidden, o_.heads * 128);
  }

  void experts() {
    constexpr Of of = Of::moe;
    rows(of, "norm", "rms-norm", o_.hidden);
    product(of, "gate's product", o_.experts, o_.hidden, "bf16");
    alone(of, "gate", [&](Alone& a) {
      return a.one({.name = "gate", .shape = fmt::format("{}x{}", share_.tokens, o_.experts)});
    });
    exchange();
    network(of, "experts", rows_of_fullest_rank());
  }

  DispatchCase moe_case(int batch) const {
    DispatchCase made;
    made.ranks = o_.ranks;
    made.batch = batch;
    made.experts = o_.experts;
    made.hidden = o_.hidden;
    made.shared_copies = 0;  // every rank has its own
    made.redundant = o_.redundant >= 0 ? o_.redundant : o_.ranks;
    made.by_load = o_.by_load;
    made.cores = context_.machine.die.aiv;
    made.routing = o_.routing;
    return made;
  }
  // Dispatch and combine take as many tokens as fit their windows; one chunk among its like stands for all.
  void exchange() {
    const int chunks = (share_.tokens + o_.chunk - 1) / o_.chunk;
    take([&](const StudyContext& context) {
      CombineCase setting;
      static_cast<DispatchCase&>(setting) = moe_case((share_.tokens + chunks - 1) / chunks);
      const CombineReading reading = measure_combine(context, setting, result_.simulator);
      if (reading.combine.task_us.count == 0) {
        stopped_ = true;
        return 0.0;
      }
      add(Of::moe, "dispatch", chunks * reading.dispatch.task_us.mean);
      add(Of::moe, "combine", chunks * reading.combine.task_us.mean);
      return 0.0;
    });
  }
  // Of each of its experts, the shared one last.
  std::vector<std::uint32_t> rows_of_fullest_rank() const {
    const reference::DispatchCase layer = make_moe_case(context_.seed, moe_case(share_.tokens));
    std::vector<std::vector<std::uint32_t>> of(static_cast<std::size_t>(o_.ranks));
    for (std::size_t rank = 0; rank < of.size(); ++rank)
      of[rank].resize(static_cast<std::size_t>(layer.placement.own_experts[rank]));
    for (std::size_t source = 0; source < of.size(); ++source) {
      for (const std::int32_t expert : layer.expert_ids[source]) {
        const cm384_expert_slot& slot = layer.placement.slot_of(expert, static_cast<int>(source));
        ++of[slot.rank][slot.local];
      }
    }
    auto fullest = *std::ranges::max_element(of, {}, [](const std::vector<std::uint32_t>& own) {
      return std::accumulate(own.begin(), own.end(), 0u);
    });
    std::erase(fullest, 0u);
    fullest.push_back(static_cast<std::uint32_t>(share_.tokens));
    return fullest;
  }
  void network(Of of, const char* name, const std::vector<std::uint32_t>& expert_rows) {
    add(of, name, take([&](const StudyContext& context) {
          FfnSetting setting;
          setting.expert_rows = expert_rows;
          setting.hidden = static_cast<std::uint32_t>(o_.hidden);
          setting.width = static_cast<std::uint32_t>(o_.width);
          setting.blocks = context.machine.die.aic;
          setting.graph = true;
          return measure_ffn(context, setting, result_.simulator).task_us;
        }));
  }

  // Slices of a wide network as experts that all have every token, added to the first.
  void dense() {
    rows(Of::dense, "norm", "rms-norm", o_.hidden);
    const int slices = std::max(1, o_.dense_width / o_.width);
    network(Of::dense, "network",
            std::vector<std::uint32_t>(static_cast<std::size_t>(slices),
                                       static_cast<std::uint32_t>(share_.tokens)));
    alone(Of::dense, "sum of its slices",
          [&](Alone& a) { return (slices - 1) * a.row_operator("add", tokens(), o_.hidden); });
  }
  // Of each prompt's last token.
  void head() {
    head_us_ = take([&](const StudyContext& context) {
      Alone a(context, result_);
      const auto prompts = static_cast<std::uint64_t>(share_.prompts);
      const int parts = (o_.vocabulary + 65535) / 65536;
      const double us =
          a.row_operator("rms-norm", prompts, o_.hidden) +
          a.product(parts, share_.prompts, o_.vocabulary / parts / 8 * 8, o_.hidden, "bf16", "nd") +
          a.row_operator("softmax", prompts, o_.vocabulary);
      stopped_ = stopped_ || a.interrupted();
      return us;
    });
  }

  const StudyContext& context_;
  const Options& o_;
  const Share share_;
  StudyResult& result_;
  std::vector<Part> parts_;
  double head_us_ = 0;
  int step_ = 0;
  bool stopped_ = false;
};

StudyResult run(const StudyContext& context, const Options& options) {
  const Share share = share_of(options);
  check_memory(context, options, share);
  StudyResult result;
  result.input_files = options.inputs();
  PrefillLayer layer(context, options, share, result);
  const std::vector<Part> parts = layer.measure();
  if (parts.empty()) {
    result.complete = false;
    return result;
  }
  std::array<double, 3> sums{};
  for (const Part& part : parts) sums[static_cast<std::size_t>(part.of)] += part.us;
  const double moe_us = sums[0] + sums[1], dense_us = options.dense_layers > 0 ? sums[0] + sums[2] : 0;
  const double all_us = options.moe_layers * moe_us + options.dense_layers * dense_us + layer.head_us();
  Rows shown;
  for (const Part& part : parts) {
    const int count = part.of == Of::dense ? options.dense_layers
                      : part.of == Of::moe ? options.moe_layers
                                           : options.moe_layers + options.dense_layers;
    shown.push_back({{"name", part.name},
                     {"of", kOf[static_cast<std::size_t>(part.of)]},
                     {"each_us", part.us},
                     {"count", count},
                     {"ms", part.us * count / 1000},
                     {"share", part.us * count / all_us}});
  }
  shown.push_back({{"name", "head"},
                   {"of", "head"},
                   {"each_us", layer.head_us()},
                   {"count", 1},
                   {"ms", layer.head_us() / 1000},
                   {"share", layer.head_us() / all_us}});
  context.finish_row(result, {{"ranks", options.ranks},
                              {"tokens", options.tokens},
                              {"prompt", options.prompt},
                              {"latency_ms", all_us / 1000},
                              {"layer_us", moe_us},
                              {"dense_layer_us", dense_us},
                              {"tokens_s_npu", options.tokens / (all_us / 1e6)},
                              {"parts", shown}});
  return result;
}

constexpr std::array kPartFields{
    Field{"name", FieldType::text, "of the part"},
    Field{"of", FieldType::text, "attention, experts, dense network or head"},
    Field{"each_us", FieldType::number, "in a layer"},
    Field{"count", FieldType::integer, "of layers that have it"},
    Field{"ms", FieldType::number, "in all of them"},
    Field{"share", FieldType::ratio, "of the batch's time"},
};
constexpr std::array kFields{
    Field{"ranks", FieldType::integer, "dies of the instance", true},
    Field{"tokens", FieldType::integer, "of the batch per NPU of two dies", true},
    Field{"prompt", FieldType::integer, "tokens of a prompt", true},
    Field{"latency_ms", FieldType::number, "of the batch: all layers and the head", true},
    Field{"layer_us", FieldType::number, "of a layer with experts", true},
    Field{"dense_layer_us", FieldType::number, "of one without", true},
    Field{"tokens_s_npu", FieldType::number, "tokens a second per NPU", true},
    Field{"parts", FieldType::list, "of the batch, in the order of a layer", false, kPartFields},
};

}  // namespace

const Study kPrefillStudy{"prefill", "a batch of prompts: its layers, operator by operator", kFields,
                          options_of<Options, run>};

}  // namespace cm384::studies
