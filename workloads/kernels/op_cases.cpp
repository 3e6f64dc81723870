#include "workloads/kernels/op_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "base/text/error.h"
#include "workloads/operators/attention/attention.h"
#include "workloads/operators/attention/backward.h"
#include "workloads/operators/collectives/collectives.h"
#include "workloads/operators/gemm/gemm.h"
#include "workloads/operators/gemm/split.h"
#include "workloads/operators/rows/rows.h"
#include "workloads/operators/sampling/sampling.h"
#include "workloads/operators/token_operators/token_operators.h"

namespace cm384::studies {
namespace {

using reference::CollectiveKind;
using reference::RowOperation;

// What the numbers of a shape are.
struct Named {
  std::string_view name;
  std::size_t sizes;
  std::string_view shape;
  std::size_t optional = 0;  // further ones
};
constexpr std::array kNamed{
    Named{"matmul", 3, "M x N x K, such as 16x3200x5120"},
    Named{"batch-matmul", 4, "groups x M x N x K, such as 16x5x512x128"},
    Named{"add", 2, "rows x columns, such as 256x7168"},
    Named{"rms-norm", 2, "rows x columns, such as 256x7168"},
    Named{"head-norm", 2, "rows x columns of 64 or 128, such as 4096x128"},
    Named{"quantise", 2, "rows x columns, such as 256x7168"},
    Named{"static-quantise", 2, "rows x columns, such as 256x7168"},
    Named{"swiglu", 2, "rows x columns, such as 256x4096"},
    Named{"softmax", 2, "rows x columns, such as 16x151936"},
    Named{"sort", 2, "rows x columns, such as 16x151936"},
    Named{"sample", 3, "rows x words x largest that are kept, such as 96x129280x50"},
    Named{"gate", 2,
          "tokens x experts, such as 1x256, or these x experts chosen x experts of a group x groups chosen, "
          "such as 1x256x8x32x4",
          3},
    Named{"softmax-gate", 2, "as of gate, such as 1x128x4x128x1", 3},
    Named{"rope", 2, "tokens x heads, such as 5x16"},
    Named{"kv-norm-rope", 1, "tokens, such as 5"},
    Named{"flash-attention", 3,
          "sequences x heads x tokens of each, such as 4x4x1024; of these cached, such as 4x4x1024x512", 1},
    Named{"grouped-attention", 5,
          "sequences x heads x KV heads x elements of a head x tokens of each, such as 4x32x4x128x1024; of "
          "these "
          "cached, such as 4x32x4x128x1024x512",
          1},
    Named{"attention-backward", 4,
          "sequences x heads of 128 elements x KV heads x tokens of each, such as 1x8x8x1024"},
    Named{"all-gather", 2, "ranks x bytes of a rank's part, such as 16x3801088"},
    Named{"reduce-scatter", 2, "ranks x bytes of a rank's part, such as 16x3801088"},
    Named{"all-reduce", 2, "ranks x bytes, such as 16x163840"},
    Named{"all-to-all", 2, "ranks x bytes of a rank for another one, such as 16x1048576"},
};
constexpr std::array<std::pair<std::string_view, RowOperation>, 8> kRows{
    {{"add", RowOperation::add},
     {"rms-norm", RowOperation::rms_norm},
     {"head-norm", RowOperation::head_norm},
     {"quantise", RowOperation::quantise},
     {"static-quantise", RowOperation::static_quantise},
     {"swiglu", RowOperation::swiglu},
     {"softmax", RowOperation::softmax},
     {"sort", RowOperation::sort}}};
constexpr std::array<std::pair<std::string_view, CollectiveKind>, 4> kCollectives{
    {{"all-gather", CollectiveKind::all_gather},
     {"reduce-scatter", CollectiveKind::reduce_scatter},
     {"all-reduce", CollectiveKind::all_reduce},
     {"all-to-all", CollectiveKind::all_to_all}}};

[[noreturn]] void refuse(const OpRequest& request, std::string_view allowed) {
  throw InputError(fmt::format("run op {}: --shape {}: allowed: {}", request.name, request.shape, allowed));
}

std::vector<std::uint32_t> shape_of(const OpRequest& request) {
  const Named& named = *std::ranges::find(kNamed, request.name, &Named::name);
  std::vector<std::uint32_t> shape = parse_shape(request.shape);
  if (shape.size() < named.sizes || shape.size() > named.sizes + named.optional) refuse(request, named.shape);
  return shape;
}

MakeOperator product(const OpRequest& request, const std::vector<std::uint32_t>& shape) {
  const std::size_t first = request.name == "batch-matmul" ? 1 : 0;
  operators::GemmSetting setting;
  setting.group_rows.assign(first == 1 ? shape[0] : 1, shape[first]);
  setting.n = shape[first + 1];
  setting.k = shape[first + 2];
  if (setting.group_rows.size() > 1024 || setting.n % 8 != 0 || setting.n > 65536 || setting.k > 65535)
    refuse(request, "up to 1024 groups; N in multiples of 8 up to 65536; K up to 65535");
  setting.type = request.type == "int8" ? CM384_GEMM_INT8 : CM384_GEMM_BF16;
  setting.b_nz = request.layout == "nz";
  setting.basic_tile = request.basic_tile;
  if (request.split_k > 1) {
    const auto parts = static_cast<std::uint32_t>(request.split_k);
    if (first == 1 || setting.type != CM384_GEMM_BF16 || !setting.b_nz || setting.k % (16 * parts) != 0)
      throw InputError(fmt::format(
          "run op {}: --split-k {}: allowed: for matmul in bf16 with b-layout nz, equal parts of K "
          "in multiples of 16",
          request.name, request.split_k));
    return [setting, parts, seed = request.seed] {
      return std::make_unique<operators::SplitGemm>(setting.group_rows[0], setting.n, setting.k, parts, seed);
    };
  }
  return [setting, seed = request.seed] { return std::make_unique<operators::Gemm>(setting, seed); };
}

}  // namespace

const std::vector<std::string_view>& op_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> made;
    for (const Named& named : kNamed) made.push_back(named.name);
    return made;
  }();
  return names;
}

const std::vector<std::string_view>& product_names() {
  static const std::vector<std::string_view> names{"matmul", "batch-matmul"};
  return names;
}

const std::vector<std::string_view>& collective_names() {
  static const std::vector<std::string_view> names{"all-gather", "reduce-scatter", "all-reduce",
                                                   "all-to-all"};
  return names;
}

// Chosen after the msm- figures of 2,048 rows and of softmax had been seen: what streams overlaps its copies.
int usual_buffers(std::string_view name) {
  return name == "head-norm" || name == "quantise" || name == "static-quantise" || name == "swiglu" ? 2 : 1;
}

std::vector<std::uint32_t> parse_shape(std::string_view text) {
  std::vector<std::uint32_t> shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::uint32_t size = 0;
    const auto read = std::from_chars(at, end, size);
    const bool last = read.ptr == end;
    if (read.ec != std::errc() || size == 0 || size > 1'000'000'000 || (!last && *read.ptr != 'x')) break;
    shape.push_back(size);
    if (last) return shape;
    at = read.ptr + 1;
  }
  throw InputError(
      fmt::format("{}: allowed: sizes from 1 to 1000000000 with x between them, such as 256x7168", text));
}

bool is_collective(std::string_view name) {
  return std::ranges::find(kCollectives, name, &decltype(kCollectives)::value_type::first) !=
         kCollectives.end();
}

int ranks_of(const OpRequest& request) {
  return static_cast<int>(std::min(shape_of(request).front(), 1'000'000U));
}

MakeOperator operator_of(const OpRequest& request) {
  const std::vector<std::uint32_t> shape = shape_of(request);
  if (request.name == "matmul" || request.name == "batch-matmul") return product(request, shape);
  if (std::ranges::any_of(shape, [](std::uint32_t size) { return size > 1'000'000; }))
    refuse(request, "sizes up to 1000000");
  if (request.name == "sample") {
    const reference::SampleCase sample{
        .rows = shape[0], .width = shape[1], .top_k = shape[2], .top_p = request.top_p, .seed = request.seed};
    return [sample] { return std::make_unique<operators::Sampling>(sample); };
  }
  if (request.name == "gate" || request.name == "softmax-gate") {
    reference::GateCase gate{.tokens = shape[0], .experts = shape[1], .seed = request.seed};
    gate.softmax = request.name == "softmax-gate";
    if (shape.size() > 2) gate.chosen = shape[2];
    if (shape.size() > 3) gate.group = shape[3] == gate.experts ? 0 : shape[3];
    if (shape.size() > 4) gate.top_groups = shape[4];
    return [gate] { return std::make_unique<operators::Gate>(gate); };
  }
  if (request.name == "rope") {
    const reference::RopeCase rope{.tokens = shape[0], .heads = shape[1], .seed = request.seed};
    return [rope] { return std::make_unique<operators::InterleaveRope>(rope); };
  }
  if (request.name == "kv-norm-rope") {
    const reference::KvCase kv{.tokens = shape[0], .slots = std::max(128U, shape[0]), .seed = request.seed};
    return [kv] { return std::make_unique<operators::KvNormRope>(kv); };
  }
  if (request.name == "flash-attention") {
    const reference::AttentionCase attention{.seed = request.seed,
                                             .sequences = shape[0],
                                             .heads = shape[1],
                                             .length = shape[2],
                                             .cached = shape.size() > 3 ? shape[3] : 0};
    return [attention, keys = request.block_keys] {
      return std::make_unique<operators::FlashAttention>(attention, keys);
    };
  }
  if (request.name == "grouped-attention") {
    const reference::AttentionCase attention{.seed = request.seed,
                                             .sequences = shape[0],
                                             .heads = shape[1],
                                             .length = shape[4],
                                             .cached = shape.size() > 5 ? shape[5] : 0,
                                             .kv_heads = shape[2],
                                             .width = shape[3],
                                             .causal = request.causal};
    return [attention, keys = request.block_keys] {
      return std::make_unique<operators::FlashAttention>(attention, keys);
    };
  }
  if (request.name == "attention-backward") {
    const reference::AttentionCase attention{.seed = request.seed,
                                             .sequences = shape[0],
                                             .heads = shape[1],
                                             .length = shape[3],
                                             .kv_heads = std::max(1U, shape[2])};
    return [attention] { return std::make_unique<operators::AttentionBackward>(attention); };
  }
  reference::RowCase rows{.rows = shape[0], .width = shape[1], .seed = request.seed};
  rows.operation = std::ranges::find(kRows, request.name, &decltype(kRows)::value_type::first)->second;
  const auto buffers = static_cast<std::uint32_t>(rows.operation == RowOperation::add ? 2 : request.buffers);
  return [rows, buffers] { return std::make_unique<operators::Rows>(rows, buffers); };
}

namespace {

operators::CollectiveAlgorithm algorithm_of(const OpRequest& request, const reference::CollectiveCase& made,
                                            int cores, const hw::Machine& machine) {
  using enum operators::CollectiveAlgorithm;
  if (request.algorithm == "best") return operators::choose_algorithm(made, cores, machine);
  if (request.algorithm == "rounds") return rounds;
  if (request.algorithm == "by-package") {
    if (!operators::can_be_paired(made, machine))
      throw InputError(fmt::format(
          "run op {} {}: --algorithm by-package takes all-gather and reduce-scatter of an even number "
          "of ranks from 4 on, on a machine with two dies per package",
          request.name, request.shape));
    return paired;
  }
  const int most = std::min(cores, int{CM384_COLLECTIVE_RANKS});
  if (made.ranks > most)
    throw InputError(
        fmt::format("run op {} {}: --algorithm direct takes 2 to {} ranks with {} vector cores of each",
                    request.name, request.shape, most, cores));
  return direct;
}

}  // namespace

namespace {

reference::CollectiveCase case_of(const OpRequest& request, int most) {
  const std::vector<std::uint32_t> shape = shape_of(request);
  reference::CollectiveCase made;
  made.kind =
      std::ranges::find(kCollectives, request.name, &decltype(kCollectives)::value_type::first)->second;
  made.ranks = ranks_of(request);
  made.bytes = shape[1];
  made.seed = request.seed;
  if (made.ranks < 2 || made.ranks > most || made.bytes % 32 != 0)
    refuse(request, fmt::format("2 to {} ranks, a die each; bytes in multiples of 32", most));
  return made;
}

// About how long copies take: bytes over the bus and over the package's link, and what a round waits for
// entries and notifies, of about five entries one behind the other.
double seconds_of(const reference::CollectiveCase& collective, operators::CopyAlgorithm algorithm, bool reads,
                  const hw::Machine& machine) {
  const hw::UbController& bus = machine.ub.controller;
  const auto interval = static_cast<double>((reads ? bus.read_interval : bus.write_interval).ps);
  const auto peak = static_cast<double>(hw::peaks_of(machine).unified_bus.bytes_per_second);
  const double rate = interval == 0 ? peak : std::min(peak, 512e12 / interval);
  const auto link = static_cast<double>(machine.package_link.bandwidth.bytes_per_second);
  const hw::Scheduler& s = machine.scheduler;
  const double round =
      5e-12 * static_cast<double>((s.entry_interval + s.entry_latency + s.completion_latency).ps);
  const auto part = static_cast<double>(collective.kind == CollectiveKind::all_reduce
                                            ? collective.bytes / static_cast<std::uint64_t>(collective.ranks)
                                            : collective.bytes);
  double seconds = 0;
  for (const operators::CopyRound& moves :
       operators::rounds_of(collective.kind, algorithm, collective.ranks, machine.topology).rounds) {
    std::vector<double> crossing(static_cast<std::size_t>(collective.ranks)), within(crossing);
    for (const operators::PartMove& move : moves) {
      const int dies = machine.topology.dies_per_package;
      const bool same = move.from / dies == move.to / dies;
      (same ? within : crossing)[static_cast<std::size_t>(move.to)] += part;
    }
    seconds += round +
               std::max(*std::ranges::max_element(crossing) / rate, *std::ranges::max_element(within) / link);
  }
  return seconds;
}

}  // namespace

CopyRun copies_of(const OpRequest& request, int cores, bool full, const hw::Machine& machine) {
  using enum operators::CopyAlgorithm;
  CopyRun made;
  made.collective = case_of(request, machine.topology.one_supernode().dies());
  operators::CopySetting& setting = made.setting;
  setting.reads = request.reads;
  setting.cores = cores;
  setting.graph = request.graph;
  setting.by_aicpu = request.by_aicpu;
  setting.full = full;
  const auto allowed = [&](operators::CopyAlgorithm algorithm) {
    const int ranks = made.collective.ranks;
    if (made.collective.kind == CollectiveKind::all_to_all) return algorithm == direct;
    if (algorithm == halving) return std::has_single_bit(static_cast<unsigned>(ranks));
    return algorithm != hierarchical || !operators::levels_of(ranks, machine.topology).empty();
  };
  double best = 0;
  for (const operators::CopyAlgorithm algorithm : {direct, ring, halving, hierarchical}) {
    if (request.algorithm == operators::name_of(algorithm)) setting.algorithm = algorithm;
    if (request.algorithm != "best" || !allowed(algorithm)) continue;
    const double seconds = seconds_of(made.collective, algorithm, setting.reads, machine);
    if (best != 0 && seconds >= best) continue;
    best = seconds;
    setting.algorithm = algorithm;
  }
  const std::size_t adds =
      operators::rounds_of(made.collective.kind, setting.algorithm, made.collective.ranks, machine.topology)
          .gathers_from;
  made.collective.roundings = adds == 0 ? 0 : static_cast<int>(adds) - 1;
  return made;
}

TransferCollectiveCase transfers_of(const OpRequest& request, const hw::Machine& machine) {
  using enum operators::CopyAlgorithm;
  TransferCollectiveCase made;
  made.collective = case_of(request, machine.topology.one_supernode().dies());
  if (request.algorithm == "best") return made;  // each to each: all have a link to every switch chip
  for (const operators::CopyAlgorithm algorithm : {direct, ring, halving}) {
    if (request.algorithm != operators::name_of(algorithm)) continue;
    made.algorithm = algorithm;
    return made;
  }
  throw InputError(
      fmt::format("run op {}: --algorithm {}: --path transfer has none; allowed: best, direct, "
                  "ring, halving",
                  request.name, request.algorithm));
}

CollectiveRun collective_of(const OpRequest& request, int cores, bool full, const hw::Machine& machine) {
  reference::CollectiveCase made =
      case_of(request, std::min(machine.topology.dies(), int{CM384_ROUNDS_RANKS}));
  const operators::CollectiveAlgorithm algorithm = algorithm_of(request, made, cores, machine);
  made.rounded_pairs = algorithm == operators::CollectiveAlgorithm::paired;
  const int used = operators::cores_of(made, algorithm, cores);
  return {made.ranks, used,
          [=] { return std::make_unique<operators::RankCollective>(made, used, full, algorithm); },
          operators::name_of(algorithm, made.kind)};
}

}  // namespace cm384::studies
