#include "workloads/kernels/communication_group.h"

#include "firmware/abi/communication.h"

namespace cm384::studies {

std::vector<std::uint64_t> lay_out_group(host::Runtime& runtime, std::span<const GroupMember> members) {
  std::vector<std::uint64_t> places;
  for (const GroupMember& member : members) {
    const std::uint64_t at = runtime.allocate(member.die, CM384_GROUP_BYTES);
    const std::uint64_t entries = runtime.allocate(member.die, members.size() * sizeof(cm384_group_rank));
    cm384_group_head head{};
    head.rank = static_cast<std::uint32_t>(places.size());
    head.ranks = static_cast<std::uint32_t>(members.size());
    head.window_bytes = member.window_bytes;
    head.window_in = member.window_in;
    head.window_out = member.window_out;
    head.window_exp_bytes = member.window_exp_bytes;
    head.window_exp = member.window_exp;
    runtime.put(at, head);
    std::vector<cm384_group_rank> others(members.size());
    std::vector<cm384_group_entry> table(members.size());
    for (std::size_t n = 0; n < members.size(); ++n) {
      others[n].rank = static_cast<std::uint32_t>(n);
      others[n].world_rank = members[n].world_rank;
      others[n].window_in = members[n].window_in;
      others[n].window_out = members[n].window_out;
      others[n].window_exp = members[n].window_exp;
      table[n].device = entries + n * sizeof others[n];
    }
    runtime.put(entries, std::span<const cm384_group_rank>(others));
    runtime.put(at + CM384_GROUP_TABLE, std::span<const cm384_group_entry>(table));
    places.push_back(at);
  }
  return places;
}

void lay_out_group_server(host::Runtime& runtime, std::span<const GroupMember> members,
                          std::span<const std::uint64_t> places, std::uint16_t number) {
  std::vector<std::uint64_t> boxes;
  for (const GroupMember& member : members)
    boxes.push_back(runtime.allocate(member.die, CM384_GROUP_BOX_BYTES(members.size())));
  for (std::size_t n = 0; n < members.size(); ++n) {
    const int die = members[n].die;
    cm384_group_server server{};
    server.queue = runtime.create_sdma_queue(die, number);
    server.boxes = runtime.allocate(die, boxes.size() * sizeof(std::uint64_t));
    runtime.put(server.boxes, std::span<const std::uint64_t>(boxes));
    const std::uint64_t at = runtime.allocate(die, sizeof server);
    runtime.put(at, server);
    runtime.put(places[n] + CM384_GROUP_SERVER, at);
  }
}

}  // namespace cm384::studies
