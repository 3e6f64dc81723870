#include "system/doors/doors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"

namespace cm384::doors {

Doors::~Doors() = default;

int Doors::die(int number) const {
  const int dies = machine_.parameters().topology.dies();
  if (number < 0 || number >= dies)
    throw InputError(fmt::format("die {} does not exist; allowed: 0 to {}", number, dies - 1));
  return number;
}

int Doors::socket(int number) const {
  const hw::Topology& topology = machine_.parameters().topology;
  if (number < 0 || number >= topology.sockets())
    throw InputError(
        fmt::format("CPU socket {} does not exist; allowed: 0 to {}", number, topology.sockets() - 1));
  return topology.socket_endpoint(number);
}

std::uint64_t Doors::address(int endpoint, std::uint64_t offset) const {
  const int dies = machine_.parameters().topology.dies();
  return endpoint < dies ? cm384_gm_die(static_cast<std::uint64_t>(endpoint), offset)
                         : cm384_gm_cpu(static_cast<std::uint64_t>(endpoint - dies), offset);
}

ForeignEndpoint& Doors::endpoint(int number) {
  auto& found = endpoints_[number];
  if (!found) {
    try {
      const std::string name = fmt::format("endpoint_{}", number);
      found = std::make_unique<ForeignEndpoint>(name.c_str(), machine_, number);
    } catch (...) {
      endpoints_.erase(number);
      throw;
    }
    found->set_patience(patience_);
    found->set_invalidate_pointers([this] { memory_.invalidate_pointers(); });
  }
  return *found;
}

InitiatorDoor& Doors::open_initiator(int number) {
  ForeignEndpoint& at = endpoint(number);
  auto& door = initiators_[number];
  if (door) throw InputError(fmt::format("{} has an initiator's door", at.place()));
  const std::string name = fmt::format("initiator_door_{}", number);
  door = std::make_unique<InitiatorDoor>(name.c_str(), at, memory_);
  memory_.add(*door);
  set_lookahead();
  return *door;
}

TargetDoor& Doors::open_target(int number, const TargetOptions& options) {
  ForeignEndpoint& at = endpoint(number);
  auto& door = targets_[number];
  if (door) throw InputError(fmt::format("{} has a target's door", at.place()));
  const std::string name = fmt::format("target_door_{}", number);
  door = std::make_unique<TargetDoor>(name.c_str(), at, options);
  memory_.add(number, *door);
  set_lookahead();
  return *door;
}

MemoryDoor& Doors::replace_memory(int die, const MemoryOptions& options) {
  machine_.die(die);
  auto& door = memories_[die];
  if (door) throw InputError(fmt::format("the memory of die {} was replaced", die));
  const std::string name = fmt::format("memory_door_{}", die);
  door = std::make_unique<MemoryDoor>(name.c_str(), machine_, die, options);
  return *door;
}

void Doors::set_patience(Time patience) {
  patience_ = patience;
  for (auto& [number, at] : endpoints_) at->set_patience(patience);
}

// An initiator may ask for something to happen now.
void Doors::set_lookahead() {
  Time ahead = initiators_.empty() ? machine_.foreign().link_lookahead() - Time{1} : Time{};
  for (const auto& [number, door] : targets_) ahead = std::min(ahead, door->options().latency);
  for (auto& [number, at] : endpoints_) at->set_ahead(ahead);
  machine_.foreign().set_lookahead(ahead);
}

}  // namespace cm384::doors
