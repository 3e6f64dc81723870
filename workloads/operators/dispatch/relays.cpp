#include "workloads/operators/dispatch/relays.h"

#include <span>

namespace cm384::operators {

std::vector<cm384_relay> place_relays(const reference::DispatchCase& dispatch, RankMemory& memory) {
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  host::Runtime& runtime = memory.front().runtime();
  const auto supernodes = static_cast<std::size_t>(dispatch.relays);
  const std::size_t each = memory.size() / supernodes;
  std::vector<cm384_relay> relays;
  std::vector<std::uint64_t> windows;
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    cm384_relay relay{};
    relay.supernodes = static_cast<std::uint32_t>(supernodes);
    relay.each = static_cast<std::uint32_t>(each);
    relay.own = static_cast<std::uint32_t>(rank / each);
    relay.max_tokens = static_cast<std::uint32_t>(dispatch.batch);
    const cm384_relay_window window = cm384_relay_window_of(
        &relay, static_cast<std::uint64_t>(dispatch.top_k), static_cast<std::uint64_t>(dispatch.hidden));
    windows.push_back(memory[rank].allocate(2 * window.bytes, kPage));
    relay.across = memory[rank].allocate(supernodes * sizeof(cm384_relay_peer));
    relay.inside = memory[rank].allocate(each * sizeof(std::uint64_t));
    relays.push_back(relay);
  }
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    const std::size_t own = rank / each, number = rank % each;
    std::vector<cm384_relay_peer> across;
    for (std::size_t supernode = 0; supernode < supernodes; ++supernode) {
      const std::size_t peer = supernode * each + number;
      across.push_back({runtime.reached_from(memory[rank].die(), windows[peer]),
                        static_cast<std::uint32_t>(peer),
                        static_cast<std::uint32_t>(dispatch.tokens_of(static_cast<int>(peer)))});
    }
    std::vector<std::uint64_t> inside;
    for (std::size_t peer = own * each; peer < (own + 1) * each; ++peer)
      inside.push_back(runtime.reached_from(memory[rank].die(), windows[peer]));
    runtime.put(relays[rank].across, std::span<const cm384_relay_peer>(across));
    runtime.put(relays[rank].inside, std::span<const std::uint64_t>(inside));
  }
  return relays;
}

}  // namespace cm384::operators
