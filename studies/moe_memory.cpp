#include "studies/moe_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "firmware/abi/dispatch_full_mesh.h"
#include "hw/error.h"
#include "operators/reference/tokens.h"
#include "traces/routing.h"

namespace cm384::studies {
namespace {

// EP320 of [P] 4.2.1: 32 ranks hold the shared expert, the others 256 routed experts and 32 redundant copies.
constexpr int kDeploymentRanks = 320, kDeploymentShared = 32;

[[noreturn]] void does_not_fit(const char* what, const reference::DispatchCase& dispatch) {
  throw InputError(
      fmt::format("run {}: batch {}, {} ranks and hidden size {} do not fit a UBuffer of 192 KiB", what,
                  dispatch.batch, dispatch.placement.ranks, dispatch.hidden));
}

// Of the experts' outputs: twice the int8 rows that dispatch has room for.
std::uint64_t expert_bytes(const reference::DispatchCase& dispatch, int rank) {
  return 2 * reference::dispatch_sizes(dispatch, rank, 1).expand_x;
}

}  // namespace

reference::DispatchCase make_moe_case(std::uint64_t seed, const DispatchCase& setting) {
  const traces::RoutingSource source = traces::parse_routing_source(setting.routing);
  traces::Routing routing;
  reference::DispatchCase made;
  const std::int64_t rows = static_cast<std::int64_t>(setting.ranks) * setting.batch;
  switch (source.kind) {
    case traces::RoutingSource::Kind::kUniform:
      routing = traces::uniform_routing(rows, setting.top_k, setting.experts, seed);
      break;
    case traces::RoutingSource::Kind::kZipf:
      routing = traces::zipf_routing(rows, setting.top_k, setting.experts, source.exponent, seed);
      break;
    case traces::RoutingSource::Kind::kTrace:
      routing = traces::read_routing(source.path, {setting.drop_repeats, 0, -1});
      made.trace_rows = routing.rows();
      break;
  }
  const int shared = setting.shared_copies >= 0 ? setting.shared_copies
                     : setting.ranks == kDeploymentRanks && source.kind != traces::RoutingSource::Kind::kTrace
                         ? kDeploymentShared
                         : 0;
  made.placement = reference::place_experts(setting.ranks, routing.experts, shared);
  made.batch = setting.batch;
  made.top_k = routing.top_k;
  made.hidden = setting.hidden;
  made.seed = seed;
  made.full_mesh = setting.full_mesh;
  for (int rank = 0; rank < setting.ranks; ++rank)
    made.expert_ids.push_back(traces::take_rows(routing, rank, setting.batch));
  return made;
}

DispatchMemory::DispatchMemory(host::Runtime& runtime, const reference::DispatchCase& dispatch,
                               const std::vector<int>& dies, const DispatchCase& setting,
                               std::vector<cm384_peer> windows)
    : runtime_(runtime), case_(dispatch), windows_(std::move(windows)) {
  for (std::size_t rank = 0; rank < dies.size(); ++rank)
    allocate(static_cast<int>(rank), dies[rank], setting.cores);
  for (const cm384_dispatch& a : arguments_) {
    const auto cores = static_cast<std::uint64_t>(setting.cores);
    if (!(setting.full_mesh ? cm384_full_mesh_fits(&a, cores) : cm384_dispatch_fits(&a, cores)))
      does_not_fit("dispatch", dispatch);
  }
  for (std::size_t rank = 0; rank < dies.size(); ++rank) {
    runtime_.put(arguments_[rank].peers, std::span<const cm384_peer>(windows_));
    fill(static_cast<int>(rank), setting.full);
  }
}

std::string DispatchMemory::compare(const reference::DispatchReference& reference) const {
  for (int number = 0; number < case_.placement.ranks; ++number) {
    const cm384_dispatch& a = arguments(number);
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

std::string DispatchMemory::compare_rows(const reference::DispatchReference& reference) const {
  for (int number = 0; number < case_.placement.ranks; ++number) {
    const cm384_dispatch& a = arguments(number);
    const std::size_t rows = reference.rank(number).rows.size();
    const std::string difference =
        reference.compare_rows(number, runtime_.get<std::int8_t>(a.expand_x, rows * a.hidden),
                               runtime_.get<float>(a.expand_scales, rows));
    if (!difference.empty()) return difference;
  }
  return {};
}

std::uint64_t DispatchMemory::digest(const reference::DispatchReference& reference) const {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](std::uint64_t address, std::size_t bytes) {
    for (const std::uint8_t byte : runtime_.get<std::uint8_t>(address, bytes))
      hash = (hash ^ byte) * 0x100000001b3;
  };
  for (int number = 0; number < case_.placement.ranks; ++number) {
    const cm384_dispatch& a = arguments(number);
    const std::size_t rows = reference.rank(number).rows.size();
    take(a.expand_x, rows * a.hidden);
    take(a.expand_scales, rows * sizeof(float));
    take(a.expand_triples, rows * 3 * sizeof(std::int32_t));
  }
  return hash;
}

// The tokens stand right behind the block of arguments.
void DispatchMemory::allocate(int rank, int die, int cores) {
  const reference::DispatchSizes sizes = reference::dispatch_sizes(case_, rank, cores);
  cm384_dispatch a = reference::dispatch_arguments(case_, rank);
  const auto table = [&](std::uint64_t bytes) {
    return runtime_.allocate(die, std::max<std::uint64_t>(bytes, 32));
  };
  tasks_.push_back({die, table(sizeof a)});
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
  arguments_.push_back(a);
  if (windows_.size() > static_cast<std::size_t>(rank)) return;
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  const std::uint64_t status = runtime_.allocate(die, CM384_STATUS_BYTES, kPage);
  windows_.push_back({runtime_.allocate(die, sizes.window, kPage), status});
}

void DispatchMemory::fill(int rank, bool full) const {
  const cm384_dispatch& a = arguments(rank);
  runtime_.put(tasks_[static_cast<std::size_t>(rank)].arguments, a);
  if (full) {
    const auto x = reference::make_tokens(case_.seed, rank, case_.batch, case_.hidden);
    runtime_.put(a.x, std::span<const std::uint16_t>(x));
  } else {
    runtime_.mark_payload(a.x, std::uint64_t{a.batch} * a.hidden * 2);
  }
  runtime_.put(a.expert_ids, std::span<const std::int32_t>(case_.expert_ids[static_cast<std::size_t>(rank)]));
  runtime_.put(a.expert_copies, std::span<const cm384_expert_copies>(case_.placement.copies));
  runtime_.put(a.expert_slots, std::span<const cm384_expert_slot>(case_.placement.slots));
}

CombineMemory::CombineMemory(host::Runtime& runtime, const reference::DispatchCase& dispatch,
                             const DispatchMemory& memory, const CombineCase& setting)
    : runtime_(runtime), case_(dispatch), reference_(dispatch, !setting.no_shared_output) {
  std::optional<reference::DispatchReference> delivered;
  if (setting.full) delivered.emplace(dispatch);
  for (int rank = 0; delivered && rank < dispatch.placement.ranks; ++rank)
    arrived_.push_back(delivered->rank(rank).rows.size());
  for (int rank = 0; rank < dispatch.placement.ranks; ++rank) {
    const cm384_dispatch& from = memory.arguments(rank);
    const int die = memory.tasks()[static_cast<std::size_t>(rank)].die;
    cm384_combine a = reference::combine_arguments(dispatch, rank);
    a.completion = setting.completion == "atomic" ? CM384_COMBINE_ATOMIC : CM384_COMBINE_FLAG;
    if (!cm384_combine_fits(&a, static_cast<std::uint64_t>(setting.cores))) does_not_fit("combine", dispatch);
    a.triples = from.expand_triples;
    a.send_counts = from.send_counts;
    a.expert_ids = from.expert_ids;
    a.peers = from.peers;
    const auto allocate = [&](std::uint64_t bytes) {
      return runtime_.allocate(die, std::max<std::uint64_t>(bytes, 32));
    };
    const std::uint64_t own = std::uint64_t{a.batch} * a.hidden * 2;
    tasks_.push_back({die, allocate(sizeof a)});
    a.scales = allocate(std::uint64_t{a.batch} * a.top_k * 4);
    a.expert_x = allocate(expert_bytes(dispatch, rank));
    a.x = allocate(own);
    if (!setting.no_shared_output) a.shared_x = allocate(own);
    arguments_.push_back(a);
    fill(rank, delivered ? &*delivered : nullptr);
  }
}

void CombineMemory::fill(int rank, const reference::DispatchReference* delivered) const {
  const cm384_combine& a = arguments_[static_cast<std::size_t>(rank)];
  const std::uint64_t row_bytes = std::uint64_t{a.hidden} * 2;
  runtime_.put(tasks_[static_cast<std::size_t>(rank)].arguments, a);
  runtime_.put(a.scales, std::span<const float>(reference_.scales(rank)));
  if (delivered == nullptr) {
    runtime_.mark_payload(a.expert_x, expert_bytes(case_, rank));
    if (a.shared_x != 0) runtime_.mark_payload(a.shared_x, a.batch * row_bytes);
    return;
  }
  std::vector<std::uint16_t> row(a.hidden);
  const auto& rows = delivered->rank(rank).rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    reference_.expert_row(rows[i], row);
    runtime_.put(a.expert_x + i * row_bytes, std::span<const std::uint16_t>(row));
  }
  for (std::uint32_t token = 0; a.shared_x != 0 && token < a.batch; ++token) {
    reference_.shared_row(rank, static_cast<int>(token), row);
    runtime_.put(a.shared_x + token * row_bytes, std::span<const std::uint16_t>(row));
  }
}

std::string CombineMemory::compare() const {
  for (int rank = 0; rank < case_.placement.ranks; ++rank) {
    const cm384_combine& a = arguments_[static_cast<std::size_t>(rank)];
    const std::string difference =
        reference_.compare(rank, runtime_.get<std::uint16_t>(a.x, std::size_t{a.batch} * a.hidden));
    if (!difference.empty()) return difference;
  }
  return {};
}

void CombineMemory::spoil() const {
  for (const cm384_combine& a : arguments_) {
    const std::vector<std::uint16_t> wrong(std::size_t{a.batch} * a.hidden, 0xffff);
    runtime_.put(a.x, std::span<const std::uint16_t>(wrong));
  }
}

void CombineMemory::spoil_experts() const {
  for (std::size_t rank = 0; rank < arrived_.size(); ++rank) {
    const std::vector<std::uint16_t> wrong(arrived_[rank] * arguments_[rank].hidden, 0xffff);
    runtime_.put(arguments_[rank].expert_x, std::span<const std::uint16_t>(wrong));
  }
}

}  // namespace cm384::studies
