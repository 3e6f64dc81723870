#include "workloads/contexts/transfer_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text/error.h"
#include "system/host/placement.h"
#include "workloads/service/context_links.h"
#include "workloads/service/decode_instance.h"

namespace cm384::studies {
namespace {

// Prefill instances one after another, then decode.
std::vector<int> place(const hw::Topology& topology, const TransferSetting& setting, std::uint64_t seed) {
  const int dies = topology.dies(), prefill = setting.prefill * setting.prefill_ranks;
  if (prefill + setting.decode_ranks > dies)
    throw InputError(fmt::format(
        "run transfer: {} prefill instances of {} dies and one decode instance of {} take {} dies; "
        "the machine has {}",
        setting.prefill, setting.prefill_ranks, setting.decode_ranks, prefill + setting.decode_ranks, dies));
  return host::place_ranks(setting.placement, prefill + setting.decode_ranks, topology, seed);
}

// Ranks of decode whose contexts leave by other links in turn: the first of each group, the second, ...
std::vector<int> ranks_in_turn(const service::ContextMapping& mapping) {
  std::vector<int> of_group(static_cast<std::size_t>(mapping.prefill_tp)), order, place;
  for (int rank = 0; rank < mapping.decode_dp; ++rank) {
    place.push_back(of_group[static_cast<std::size_t>(mapping.prefill_rank(rank))]++);
    order.push_back(rank);
  }
  std::ranges::stable_sort(order, {}, [&](int rank) { return place[static_cast<std::size_t>(rank)]; });
  return order;
}

service::DecodeInstance decode_instance(const TransferSetting& setting, std::int64_t room) {
  service::DecodeSpec spec;
  spec.npus = setting.decode_ranks / 2;
  spec.batch = 1 << 20;  // memory alone is a limit
  spec.kv_room = Bytes{room};
  return {spec, 0, 0};
}

void check_memory(const std::map<int, std::int64_t>& bytes_of, std::int64_t room, const char* side) {
  for (const auto& [die, bytes] : bytes_of) {
    if (bytes > room)
      throw InputError(
          fmt::format("run transfer: contexts of {:.1f} GB on die {}, which {}; its memory has "
                      "{:.1f} GB: fewer --requests or a shorter --prompt",
                      static_cast<double>(bytes) * 1e-9, die, side, static_cast<double>(room) * 1e-9));
  }
}

void set_closed_times(const hw::Rdma& rdma, std::vector<PlannedContext>& contexts) {
  std::map<int, Time> free;  // links, by die
  for (PlannedContext& context : contexts)
    context.closed =
        service::reserve_links(Time{}, static_cast<double>(context.bytes), service::payload_rate(rdma),
                               free[context.sender], free[context.receiver])
            .end +
        service::write_latency(rdma);
}

}  // namespace

std::vector<PlannedContext> plan_contexts(const hw::Machine& machine, const TransferSetting& setting,
                                          std::uint64_t seed) {
  const std::vector<int> dies = place(machine.topology, setting, seed);
  const service::ContextMapping mapping{setting.prefill_ranks, 1, setting.decode_ranks};
  const service::LengthDistribution lengths(setting.prompt);
  const std::vector<int> in_turn = ranks_in_turn(mapping);
  service::DecodeInstance decode = decode_instance(setting, machine.memory.hbm.capacity.count);
  traces::Random random(seed, 77);
  std::vector<PlannedContext> contexts;
  std::map<int, std::int64_t> sent, received;
  for (int n = 0; n < setting.prefill * setting.requests; ++n) {
    PlannedContext context;
    context.instance = n / setting.requests;
    context.bytes = lengths.draw(random) * setting.token.count;
    context.decode_rank = setting.spread ? in_turn[static_cast<std::size_t>(n) % in_turn.size()]
                                         : std::max(0, decode.best_die(context.bytes).first);
    decode.reserve(context.decode_rank, context.bytes);
    const int sender = context.instance * setting.prefill_ranks + mapping.prefill_rank(context.decode_rank),
              receiver = setting.prefill * setting.prefill_ranks + context.decode_rank;
    context.sender = dies[static_cast<std::size_t>(sender)];
    context.receiver = dies[static_cast<std::size_t>(receiver)];
    sent[context.sender] += context.bytes;
    received[context.receiver] += context.bytes;
    contexts.push_back(context);
  }
  check_memory(sent, machine.memory.hbm.capacity.count, "sends them");
  check_memory(received, machine.memory.hbm.capacity.count, "receives them");
  set_closed_times(machine.rdma, contexts);
  return contexts;
}

}  // namespace cm384::studies
