#include "workloads/prefill/prefill_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/text/error.h"
#include "firmware/abi/tokens.h"
#include "workloads/collectives/exchange.h"
#include "workloads/contexts/ems_read.h"
#include "workloads/kernels/ffn.h"
#include "workloads/layer/alone.h"
#include "workloads/layer/layer_program.h"
#include "workloads/moe/combine.h"
#include "workloads/moe/moe_case.h"
#include "workloads/operators/all_to_all/step.h"
#include "workloads/operators/attention/attention.h"
#include "workloads/operators/rows/rows.h"
#include "workloads/operators/sparse/sparse.h"

namespace cm384::studies {
namespace {

using Of = PrefillPart::Of;
constexpr unsigned kAllUnits = kCubeUnit | kVectorUnit;
// Of the latents of keys and of their part that is rotated; of a head's queries, keys and values.
constexpr int kLatent = 512, kRotated = 64, kQuery = 192, kValue = 128;
constexpr int kIndexWidth = 128;    // of an index head
constexpr int kMostQueries = 1024;  // of a prompt whose sparse attention is run
// Behind a row in INT8: its scale.
constexpr int kScaleBytes = 64;

class Layer {
 public:
  Layer(const StudyContext& context, const PrefillOptions& o, const PrefillShare& share, StudyResult& result)
      : context_(context), o_(o), share_(share), result_(result) {}

  std::vector<PrefillPart> measure() {
    attention();
    if (o_.moe_layers > 0) experts();
    if (o_.dense_layers > 0) dense();
    head();
    if (o_.cached > 0) read_cached();
    return stopped() ? std::vector<PrefillPart>{} : std::move(parts_);
  }

 private:
  static constexpr int kSteps = 32;  // that the progress counts, about

  bool stopped() const { return stopped_ || context_.interrupted != 0; }
  // A part of the layer, measured by `measure(context)`.
  template <class Measure>
  double measure_part(Measure&& measure) {
    if (stopped()) return 0;
    const double from = std::min(1.0, static_cast<double>(step_) / kSteps);
    ++step_;
    PartOfProgress progress(context_.progress, from, std::min(1.0, from + 1.0 / kSteps), result_.simulator);
    const StudyContext context = context_.with(progress);
    return measure(context);
  }
  // A part of which no share is cut.
  void add(Of of, const char* name, double us, unsigned units, PartKind kind) {
    parts_.push_back({name, of, us, units, kind, 0, {}});
  }
  template <class Run>
  double alone(Run&& run) {
    return measure_part([&](const StudyContext& context) {
      Alone operators(context, result_, 0);
      const double taken = run(operators);
      stopped_ = stopped_ || operators.interrupted();
      return taken;
    });
  }
  // An operator as `run op` has it: `request` of so many of its items, in pieces of `unit`.
  // The same of what `make(some)` makes.
  template <class Make>
  void made(Of of, const char* name, PartKind kind, unsigned units, std::uint64_t items, Make&& make) {
    const double us = alone([&](Alone& a) { return a.one(name, make(items)); });
    parts_.push_back({name, of, us, units, kind, 0, [=](double share) {
                        const double some = std::ceil(share * static_cast<double>(items));
                        return Sequence{make(static_cast<std::uint64_t>(std::max(1.0, some)))};
                      }});
  }
  template <class Request>
  void one(Of of, const char* name, PartKind kind, unsigned units, std::uint64_t items, Request&& request,
           std::uint64_t unit = 1) {
    const double us = alone([&](Alone& a) { return a.one(request(items)); });
    parts_.push_back({name, of, us, units, kind, 0, [=](double share) {
                        const auto pieces =
                            std::ceil(share * static_cast<double>(items) / static_cast<double>(unit));
                        const std::uint64_t some = static_cast<std::uint64_t>(std::max(1.0, pieces)) * unit;
                        return Sequence{operator_of(request(std::min(items, some)))};
                      }});
  }
  void rows(Of of, const char* name, const char* which, std::uint64_t tokens, int width) {
    one(of, name, PartKind::rows, kVectorUnit, tokens, [=](std::uint64_t some) {
      return OpRequest{.name = which, .shape = fmt::format("{}x{}", some, width)};
    });
  }
  void product(Of of, const char* name, std::uint64_t tokens, int n, int k, const char* type = "int8") {
    const bool dequantises = std::string_view(type) == "int8";
    const auto request = [=](std::uint64_t some) {
      return OpRequest{.name = "matmul", .shape = fmt::format("{}x{}x{}", some, n, k), .type = type};
    };
    // Those of a die's own tokens stay whole: with fewer rows other parts of the operands stay in L2.
    one(of, name, PartKind::product, dequantises ? kAllUnits : unsigned{kCubeUnit}, tokens, request,
        static_cast<std::uint64_t>(share_.tokens));
  }
  // Between all ranks by SDMA, in pieces of which one stands for its like.
  void exchange(Of of, const char* name, int pieces, const ExchangeCase& piece) {
    const double us = measure_part([&](const StudyContext& context) {
      const Summary read =
          measure_exchange(context, fmt::format("{}, {} ranks", name, o_.ranks), piece, result_.simulator);
      stopped_ = stopped_ || read.count == 0;
      return read.mean;
    });
    add(of, name, pieces * us, kFabricUnit, PartKind::exchange);
  }
  std::uint64_t tokens() const { return static_cast<std::uint64_t>(share_.tokens); }
  std::uint64_t cached() const { return static_cast<std::uint64_t>(share_.cached); }
  static int pieces_of(int tokens, int most) { return (tokens + most - 1) / most; }
  // The same bytes of each token to every rank.
  void exchange_tokens(Of of, const char* name, std::uint64_t tokens, std::uint64_t bytes) {
    const int pieces = pieces_of(static_cast<int>(tokens), o_.sdma_chunk);
    const std::uint64_t piece =
        (tokens + static_cast<std::uint64_t>(pieces) - 1) / static_cast<std::uint64_t>(pieces);
    exchange(of, name, pieces, ExchangeCase::even(o_.ranks, piece * bytes));
  }

  // The tokens whose queries a die makes, those whose keys and values, and of how many heads.
  std::uint64_t spread(std::uint64_t tokens) const {
    return o_.by_heads ? tokens * static_cast<std::uint64_t>(o_.ranks) : tokens;
  }
  std::uint64_t attended() const { return spread(tokens()); }
  std::uint64_t context() const { return spread(tokens() + cached()); }
  // The last part, or so much of it, goes with cached tokens as with new ones.
  void of_context(double share = 1) {
    if (!parts_.empty()) parts_.back().context = share;
  }
  int heads() const { return o_.by_heads ? o_.heads / o_.ranks : o_.heads; }

  // Over keys and values that heads share: those of cached tokens are read, nothing is made of them.
  void grouped_attention() {
    constexpr Of of = Of::attention;
    const int width = o_.head_width, rotated = (o_.heads + o_.kv_heads) * width / kRotated;
    rows(of, "norm", "rms-norm", tokens(), o_.hidden);
    rows(of, "quantise", "quantise", tokens(), o_.hidden);
    product(of, "queries, keys and values", tokens(), (o_.heads + 2 * o_.kv_heads) * width, o_.hidden);
    if (o_.head_norms) {
      norm_of_heads("norm of queries", o_.heads);
      norm_of_heads("norm of keys", o_.kv_heads);
    }
    // In so many parts of a token as the kernel needs.
    int parts = 1;
    while (rotated % (2 * parts) != 0 || rotated / parts > int{CM384_ROPE_HEADS}) ++parts;
    one(of, "rotation of queries and keys", PartKind::rows, kVectorUnit, tokens(),
        [rotated, parts](std::uint64_t some) {
          return OpRequest{
              .name = "rope",
              .shape = fmt::format("{}x{}", some * static_cast<std::uint64_t>(parts), rotated / parts)};
        });
    if (o_.sliding_layers < o_.layers()) flash("attention", 0);
    if (o_.sliding_layers > 0) {
      parts_.back().layers = PrefillPart::Layers::full;
      flash("attention in a window", o_.window);
      parts_.back().layers = PrefillPart::Layers::sliding;
    }
    rows(of, "quantise the output", "quantise", tokens(), o_.heads * width);
    product(of, "output projection", tokens(), o_.hidden, o_.heads * width);
  }
  void norm_of_heads(const char* name, int heads) {
    made(Of::attention, name, PartKind::rows, kVectorUnit, tokens(),
         [width = o_.head_width, heads, seed = context_.seed](std::uint64_t some) -> MakeOperator {
           reference::RowCase rows{
               .operation = reference::RowOperation::head_norm,
               .rows = static_cast<std::uint32_t>(some) * static_cast<std::uint32_t>(heads),
               .width = static_cast<std::uint32_t>(width),
               .seed = seed};
           return [rows] { return std::make_unique<operators::Rows>(rows, 2); };
         });
  }
  // Of prompts of several lengths: `all` groups of query heads, each of `group` with keys and values of its
  // own.
  void ragged(int all, int group, int kv_heads) {
    operators::RaggedSetting setting{.seed = context_.seed, .prompts = share_.lengths};
    setting.width = static_cast<std::uint32_t>(o_.head_width);
    setting.sinks = kv_heads > 0 && o_.sinks;
    made(Of::attention, "attention", PartKind::attention, kAllUnits, static_cast<std::uint64_t>(all),
         [setting, group, shared = kv_heads > 0](std::uint64_t some) -> MakeOperator {
           operators::RaggedSetting own = setting;
           own.heads = static_cast<std::uint32_t>(some) * static_cast<std::uint32_t>(group);
           own.kv_heads = shared ? static_cast<std::uint32_t>(some) : 0;
           return [own] { return std::make_unique<operators::RaggedAttention>(own); };
         });
  }
  void flash(const char* name, int window) {
    if (!share_.lengths.empty()) return ragged(o_.kv_heads, o_.heads / o_.kv_heads, o_.kv_heads);
    const auto number = [](int value) { return static_cast<std::uint32_t>(value); };
    // So many KV heads with the heads that share them.
    const std::uint64_t all = static_cast<std::uint64_t>(share_.prompts) * number(o_.kv_heads);
    reference::AttentionCase attention{.seed = context_.seed,
                                       .length = number(o_.prompt),
                                       .cached = number(o_.cached),
                                       .kv_heads = number(o_.kv_heads),
                                       .width = number(o_.head_width),
                                       .window = number(window),
                                       .sinks = o_.sinks};
    made(Of::attention, name, PartKind::attention, kAllUnits, all,
         [attention, group = number(o_.heads / o_.kv_heads)](std::uint64_t some) -> MakeOperator {
           reference::AttentionCase own = attention;
           own.sequences = static_cast<std::uint32_t>((some + own.kv_heads - 1) / own.kv_heads);
           own.kv_heads = static_cast<std::uint32_t>(std::min<std::uint64_t>(some, own.kv_heads));
           own.heads = own.kv_heads * group;
           return [own] { return std::make_unique<operators::FlashAttention>(own); };
         });
  }

  // Of queries and keys, from the hidden state.
  void latents() {
    constexpr Of of = Of::attention;
    rows(of, "norm", "rms-norm", tokens(), o_.hidden);
    rows(of, "quantise", "quantise", tokens(), o_.hidden);
    product(of, "down projection", tokens(), o_.q_lora + kLatent + kRotated, o_.hidden);
    rows(of, "norm of the queries' latent", "rms-norm", tokens(), o_.q_lora);
    one(of, "norm, rotation and cache of keys", PartKind::rows, kVectorUnit, tokens(),
        [](std::uint64_t some) {
          return OpRequest{.name = "kv-norm-rope", .shape = fmt::format("{}", some)};
        });
  }
  // Products of each head, of BF16.
  void products_of_heads(const char* name, int n, int k) {
    one(Of::attention, name, PartKind::product, kCubeUnit, tokens(), [=, this](std::uint64_t some) {
      return OpRequest{.name = "batch-matmul", .shape = fmt::format("{}x{}x{}x{}", o_.heads, some, n, k)};
    });
  }
  // Of layers that choose themselves.
  void choosing() {
    if (o_.sharing_layers > 0) parts_.back().layers = PrefillPart::Layers::full;
  }
  // Over the latents of the tokens that an indexer chooses for each query, which are gathered.
  void sparse_attention() {
    constexpr Of of = Of::attention;
    latents();
    rows(of, "quantise the queries' latent", "quantise", tokens(), o_.q_lora);
    product(of, "queries", tokens(), o_.heads * o_.key_width, o_.q_lora);
    rotation("rotation of queries", tokens(), o_.heads);
    products_of_heads("queries to latents", kLatent, o_.key_width - kRotated);
    if (o_.chooses()) {
      product(of, "index queries", tokens(), o_.index_heads * kIndexWidth, o_.q_lora);
      choosing();
      product(of, "index keys and weights", tokens(), kIndexWidth + o_.index_heads, o_.hidden);
      choosing();
      rotation("rotation of index queries", tokens(), o_.index_heads);
      choosing();
      rows(of, "quantise index queries", "quantise", tokens() * static_cast<std::uint64_t>(o_.index_heads),
           kIndexWidth);
      choosing();
    }
    choose_and_attend();
    products_of_heads("values", o_.value_width, kLatent);
    rows(of, "quantise the output", "quantise", tokens(), o_.heads * o_.value_width);
    product(of, "output projection", tokens(), o_.hidden, o_.heads * o_.value_width);
  }
  void rotation(const char* name, std::uint64_t tokens, int heads) {
    one(Of::attention, name, PartKind::rows, kVectorUnit, tokens, [heads](std::uint64_t some) {
      return OpRequest{.name = "rope", .shape = fmt::format("{}x{}", some, heads)};
    });
  }
  // Prompt after prompt, each by some of its queries, evenly spread.
  void choose_and_attend() {
    SparseTimes sum;
    if (share_.lengths.empty()) {
      sum = of_prompt(o_.prompt, o_.cached, share_.prompts);
    } else {
      for (const operators::RaggedPrompt& prompt : share_.lengths)
        sum += of_prompt(static_cast<int>(prompt.length), static_cast<int>(prompt.cached), 1);
    }
    if (o_.chooses()) {
      add(Of::attention, "index scores", sum.scores, kCubeUnit, PartKind::product);
      choosing();
      add(Of::attention, "choice", sum.choice, kVectorUnit, PartKind::rows);
      choosing();
    }
    add(Of::attention, "attention", sum.attention, kAllUnits, PartKind::attention);
  }
  struct SparseTimes {
    double scores = 0, choice = 0, attention = 0;
    SparseTimes& operator+=(const SparseTimes& more) {
      scores += more.scores;
      choice += more.choice;
      attention += more.attention;
      return *this;
    }
  };
  SparseTimes of_prompt(int length, int cached, int prompts) {
    // A page of index keys is read once for so many queries, whose heads the cube core holds.
    const int heads = o_.chooses() ? o_.index_heads : 64, queries = std::min(16, 256 / heads);
    const int all = (length - cached) / queries,
              step = std::max(1, (all * queries + kMostQueries - 1) / kMostQueries);
    operators::MlaSetting attention;
    for (int n = step / 2; n < all; n += step)
      attention.kv_lens.push_back(static_cast<std::uint32_t>(cached + n * queries + 1));
    attention.queries = static_cast<std::uint32_t>(queries);
    attention.heads = static_cast<std::uint32_t>(o_.heads);
    attention.one_prompt = true;
    const operators::IndexSetting index{attention.kv_lens, attention.queries,
                                        static_cast<std::uint32_t>(heads),
                                        static_cast<std::uint32_t>(o_.chosen), true};
    const double factor = prompts * static_cast<double>(all) / static_cast<double>(attention.kv_lens.size());
    SparseTimes made;
    measure_part([&](const StudyContext& context) {
      CubeSetting cubes;
      cubes.blocks = context.machine.die.groups();
      cubes.graph = true;
      CubeRun run(context, fmt::format("sparse attention of {} tokens", length), cubes, [&] {
        Stages stages;
        auto scores = std::make_unique<operators::Indexer>(index, context.seed);
        auto choice = std::make_unique<operators::TopK>(*scores);
        auto sparse = std::make_unique<operators::SparseAttention>(attention, index, context.seed);
        if (o_.chooses()) stages.run = {scores.get(), choice.get()};
        stages.run.push_back(sparse.get());
        for (operators::KernelOperator* stage : stages.run) stage->launch_in_graph(true);
        stages.placed.push_back(std::move(scores));
        stages.placed.push_back(std::move(choice));
        stages.placed.push_back(std::move(sparse));
        return stages;
      });
      const std::vector<CubeReading> readings = run.measure(result_.simulator);
      stopped_ = stopped_ || readings.empty();
      if (readings.empty()) return 0.0;
      made.attention = factor * readings.back().task_us;
      if (readings.size() > 1) {
        made.scores = factor * readings[0].task_us;
        made.choice = factor * readings[1].task_us;
      }
      return 0.0;
    });
    return made;
  }

  void attention() {
    if (o_.kv_heads > 0) return grouped_attention();
    if (o_.chosen > 0) return sparse_attention();
    constexpr Of of = Of::attention;
    latents();
    if (o_.by_heads && !o_.int8_latents) gather();
    rows(of, "quantise the queries' latent", "quantise", o_.int8_latents ? tokens() : attended(), o_.q_lora);
    if (o_.int8_latents) {
      rows(of, "quantise the keys' latent", "quantise", tokens() + cached(), kLatent);
      of_context();
      gather();
    }
    product(of, "queries", attended(), heads() * kQuery, o_.q_lora);
    if (!o_.int8_latents) {
      rows(of, "quantise the keys' latent", "quantise", context(), kLatent);
      of_context();
    }
    product(of, "keys and values", context(), heads() * 2 * kValue, kLatent);
    of_context();
    rotation("rotation of queries", attended(), heads());
    attend();
    if (o_.by_heads)
      exchange_tokens(of, "all-to-all of outputs", tokens(), std::uint64_t(heads()) * kValue * 2);
    rows(of, "quantise the output", "quantise", tokens(), o_.heads * kValue);
    product(of, "output projection", tokens(), o_.hidden, o_.heads * kValue);
  }
  void attend() {
    if (!share_.lengths.empty()) return ragged(heads(), 1, 0);
    const auto all = static_cast<std::uint64_t>(share_.prompts) * static_cast<std::uint64_t>(heads());
    one(Of::attention, "attention", PartKind::attention, kAllUnits, all,
        [heads = static_cast<std::uint64_t>(heads()),
         tokens = o_.cached > 0 ? fmt::format("{}x{}", o_.prompt, o_.cached)
                                : fmt::format("{}", o_.prompt)](std::uint64_t some) {
          return OpRequest{
              .name = "flash-attention",
              .shape = fmt::format("{}x{}x{}", (some + heads - 1) / heads, std::min(some, heads), tokens)};
        });
  }
  // A token's latents: BF16, or INT8 with a scale each, the rotated part of the keys in BF16 anyway. Of a
  // cached one those of keys alone.
  void gather() {
    const int scale = o_.int8_latents ? 4 : 0, element = o_.int8_latents ? 1 : 2;
    const int keys = kLatent * element + scale + 2 * kRotated, bytes = o_.q_lora * element + scale + keys;
    exchange_tokens(Of::attention, "all-gather of latents", tokens(), static_cast<std::uint64_t>(bytes));
    of_context(static_cast<double>(keys) / bytes);
    if (share_.cached == 0) return;
    exchange_tokens(Of::attention, "all-gather of cached latents", cached(),
                    static_cast<std::uint64_t>(keys));
    of_context();
  }

  void experts() {
    constexpr Of of = Of::moe;
    rows(of, "norm", "rms-norm", tokens(), o_.hidden);
    product(of, "gate's product", tokens(), o_.experts, o_.hidden, "bf16");
    const int group = o_.expert_group > 0 ? o_.expert_group : o_.experts;
    const std::string choice =
        fmt::format("x{}x{}x{}x{}", o_.experts, o_.experts_per_token, group, o_.token_groups);
    one(of, "gate", PartKind::rows, kVectorUnit, tokens(),
        [name = o_.softmax_gate ? "softmax-gate" : "gate", choice](std::uint64_t some) {
          return OpRequest{.name = name, .shape = std::to_string(some) + choice};
        });
    if (o_.sdma) {
      to_experts();
      network(of, "experts", rows_of_fullest_rank(), o_.width);
      from_experts();
    } else {
      aiv_direct();
      network(of, "experts", rows_of_fullest_rank(), o_.width);
    }
  }

  DispatchCase moe_case(int batch) const {
    DispatchCase made;
    made.ranks = o_.ranks;
    made.batch = batch;
    made.experts = o_.experts;
    made.top_k = o_.experts_per_token;
    made.hidden = o_.hidden;
    made.shared_copies = 0;  // every rank has its own
    made.redundant = o_.redundant >= 0 ? o_.redundant : o_.ranks;
    made.by_load = o_.by_load;
    made.cores = context_.machine.die.aiv;
    made.routing = o_.routing;
    return made;
  }
  // The kernels of decode, which take as many tokens as fit their windows; one chunk among its like stands
  // for all.
  void aiv_direct() {
    const int chunks = pieces_of(share_.tokens, o_.chunk);
    measure_part([&](const StudyContext& context) {
      CombineCase setting;
      static_cast<DispatchCase&>(setting) = moe_case((share_.tokens + chunks - 1) / chunks);
      setting.no_shared_output = o_.shared_experts == 0;
      const CombineReading reading = measure_combine(context, setting, result_.simulator);
      stopped_ = stopped_ || reading.combine.task_us.count == 0;
      constexpr unsigned kUnits = kVectorUnit | kFabricUnit;
      add(Of::moe, "dispatch", chunks * reading.dispatch.task_us.mean, kUnits, PartKind::rows);
      add(Of::moe, "combine", chunks * reading.combine.task_us.mean, kUnits, PartKind::rows);
      return 0.0;
    });
  }

  // A step of the kernel between the copies, on the rank with most rows; rows of so many elements of BF16.
  void step(const char* name, cm384_all_to_all_step step, int elements) {
    const int chunks = pieces_of(share_.tokens, o_.chunk);
    reference::DispatchCase layer =
        make_moe_case(context_.seed, moe_case((share_.tokens + chunks - 1) / chunks));
    const auto between = routed_rows(layer).between;
    std::vector<std::uint64_t> arrived(between.size());
    for (const auto& sent : between) {
      for (std::size_t rank = 0; rank < sent.size(); ++rank) arrived[rank] += sent[rank];
    }
    const int rank = static_cast<int>(std::ranges::max_element(arrived) - arrived.begin());
    layer.hidden = elements;
    const MakeOperator make = [=] { return std::make_unique<operators::AllToAllStep>(step, layer, rank); };
    const double us = chunks * alone([&](Alone& a) { return a.one(name, make); });
    parts_.push_back({name, Of::moe, us, kVectorUnit, PartKind::rows, 0, [=](double share) {
                        return Sequence(static_cast<std::size_t>(std::max(1.0, std::round(share * chunks))),
                                        make);
                      }});
  }
  void exchange_rows(const char* name, std::uint64_t row_bytes, bool back) {
    const int pieces = pieces_of(share_.tokens, o_.sdma_chunk);
    const auto rows =
        routed_rows(make_moe_case(context_.seed, moe_case((share_.tokens + pieces - 1) / pieces))).between;
    ExchangeCase piece{rows};
    for (std::size_t source = 0; source < rows.size(); ++source) {
      for (std::size_t target = 0; target < rows.size(); ++target)
        piece.bytes[source][target] = (back ? rows[target][source] : rows[source][target]) * row_bytes;
    }
    exchange(Of::moe, name, pieces, piece);
  }
  // Rows in INT8, each behind the other with its scale. Kernels copy them as elements of BF16.
  void to_experts() {
    const int row_bytes = o_.hidden + kScaleBytes;
    rows(Of::moe, "quantise", "quantise", tokens(), o_.hidden);
    step("rows to the order of ranks", CM384_STEP_PACK, row_bytes / 2);
    const int chunks = pieces_of(share_.tokens, o_.chunk);
    exchange(Of::moe, "counts", 1,
             ExchangeCase::even(o_.ranks, std::uint64_t(chunks) * cm384_all_to_all_message_bytes(
                                                                      static_cast<std::uint64_t>(slots()))));
    exchange_rows("dispatch", static_cast<std::uint64_t>(row_bytes), false);
    step("rows to the order of experts", CM384_STEP_UNSORT, row_bytes / 2);
  }
  void from_experts() {
    step("outputs to the order of ranks", CM384_STEP_UNSORT, o_.hidden);
    exchange_rows("combine", 2 * static_cast<std::uint64_t>(o_.hidden), true);
    step("weighted sum", CM384_STEP_SUM, o_.hidden);
  }
  int slots() const { return (o_.experts + moe_case(1).redundant + o_.ranks - 1) / o_.ranks; }

  // Of each of its experts, the shared one last.
  std::vector<std::uint32_t> rows_of_fullest_rank() const {
    const auto of = routed_rows(make_moe_case(context_.seed, moe_case(share_.tokens))).of_expert;
    auto fullest = *std::ranges::max_element(of, {}, [](const std::vector<std::uint32_t>& own) {
      return std::accumulate(own.begin(), own.end(), 0u);
    });
    std::erase(fullest, 0u);
    if (o_.shared_experts > 0) fullest.push_back(static_cast<std::uint32_t>(share_.tokens));
    return fullest;
  }
  void network(Of of, const char* name, const std::vector<std::uint32_t>& expert_rows, int width) {
    const double us = measure_part([&](const StudyContext& context) {
      FfnSetting setting;
      setting.expert_rows = expert_rows;
      setting.hidden = static_cast<std::uint32_t>(o_.hidden);
      setting.width = static_cast<std::uint32_t>(width);
      setting.bf16 = o_.networks == "bf16";
      setting.int4 = o_.networks == "w4a8";
      setting.int8_rows = of == Of::moe;
      setting.blocks = context.machine.die.groups();
      setting.graph = true;
      return measure_ffn(context, setting, result_.simulator).task_us;
    });
    parts_.push_back({name, of, us, kAllUnits, PartKind::network, 0,
                      [expert = one_expert(of, expert_rows.front(), width)](double) { return expert; }});
  }

  // Fewer rows of an expert would make more of its weights.
  Sequence one_expert(Of of, std::uint32_t rows, int width) const {
    const operators::FfnSetting setting{{rows},
                                        static_cast<std::uint32_t>(o_.hidden),
                                        static_cast<std::uint32_t>(width),
                                        o_.networks == "bf16",
                                        of == Of::moe,
                                        {},
                                        o_.networks == "w4a8"};
    return {[setting, seed = context_.seed] { return std::make_unique<operators::Ffn>(setting, seed); }};
  }

  // Slices of a wide network as experts that all have every token, added to the first.
  void dense() {
    rows(Of::dense, "norm", "rms-norm", tokens(), o_.hidden);
    // Of an expert's width, where that divides it.
    const int slices = o_.moe_layers > 0 && o_.dense_width % o_.width == 0
                           ? o_.dense_width / o_.width
                           : dense_slices(static_cast<std::uint32_t>(o_.dense_width));
    network(Of::dense, "network",
            std::vector<std::uint32_t>(static_cast<std::size_t>(slices),
                                       static_cast<std::uint32_t>(share_.tokens)),
            o_.dense_width / slices);
    if (slices == 1) return;
    const double us =
        (slices - 1) * alone([&](Alone& a) { return a.row_operator("add", tokens(), o_.hidden); });
    add(Of::dense, "sum of its slices", us, kVectorUnit, PartKind::rows);
  }
  // Of each prompt's last token.
  void head() {
    const double us = measure_part([&](const StudyContext& context) {
      Alone a(context, result_);
      const auto prompts = static_cast<std::uint64_t>(share_.last);
      const int parts = (o_.vocabulary + 65535) / 65536;
      const double taken =
          a.row_operator("rms-norm", prompts, o_.hidden) +
          a.product(parts, share_.last, o_.vocabulary / parts / 8 * 8, o_.hidden, "bf16", "nd") +
          a.row_operator("softmax", prompts, o_.vocabulary);
      stopped_ = stopped_ || a.interrupted();
      return taken;
    });
    add(Of::head, "head", us, kAllUnits, PartKind::product);
  }

  // Each die reads its share of cached tokens, all layers of them, from the sockets that the ring of the
  // memory service gives it, in blocks, all dies at a time. One block stands for its like.
  void read_cached() {
    const double us = measure_part([&](const StudyContext& context) {
      constexpr int kBlock = 512;  // tokens
      const int blocks = pieces_of(share_.cached, kBlock);
      const Bytes bytes{std::int64_t{share_.cached} * o_.layers() * o_.token_bytes() / blocks};
      const int nodes = pieces_of(o_.ranks, context.machine.topology.dies_per_node);
      const std::vector<double> read =
          measure_block_reads(context, place_block_reads(context, o_.ranks, nodes), bytes, result_.simulator);
      stopped_ = stopped_ || read.empty();
      if (read.empty()) return 0.0;
      // A server that two dies ask for one block has others' turns to make up for it.
      const double mean = std::accumulate(read.begin(), read.end(), 0.0) / static_cast<double>(read.size());
      return std::max(blocks * mean, std::ranges::max(read));
    });
    add(Of::cache, o_.kv_heads > 0 ? "read of cached keys and values" : "read of cached latents", us,
        kVectorUnit | kFabricUnit, PartKind::rows);
  }

  const StudyContext& context_;
  const PrefillOptions& o_;
  const PrefillShare share_;
  StudyResult& result_;
  std::vector<PrefillPart> parts_;
  int step_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::string_view name_of(PrefillPart::Of of) {
  constexpr std::array<std::string_view, 5> kNames{"attention", "experts", "dense network", "head", "cache"};
  return kNames[static_cast<std::size_t>(of)];
}

std::vector<PrefillPart> measure_prefill(const StudyContext& context, const PrefillOptions& options,
                                         const PrefillShare& share, StudyResult& result) {
  return Layer(context, options, share, result).measure();
}

}  // namespace cm384::studies
