#include "system/machine/socket_module.h"

#include <algorithm>

#include "npu_core/memory/perform_request.h"

namespace cm384::supernode {

Time SocketMemory::access(sim::Request& request, sim::Outcome& outcome) {
  if (!npu::perform(store_, payloads_, request, outcome)) return request.at;
  if (request.operation == sim::Operation::read) return dram_.access(false, request.bytes, request.at);
  last_progress_ = std::max(last_progress_, request.at);
  return dram_.access(true, request.bytes, request.at);
}

SocketModule::SocketModule(const ub::Parameters& parameters, const std::vector<int>& sockets,
                           std::uint32_t source, ub::UnifiedBus& bus, sim::PayloadPool& payloads,
                           Time& last_progress)
    : queue_(source), numbers_(sockets) {
  for (std::size_t n = 0; n < sockets.size(); ++n) {
    const auto endpoint = static_cast<unsigned>(parameters.topology.socket_endpoint(sockets[n]));
    memories_.push_back(std::make_unique<SocketMemory>(parameters.cpu, payloads, last_progress));
    controllers_.push_back(&bus.attach({endpoint, queue_, static_cast<std::uint32_t>(n), *memories_.back()}));
  }
}

npu::BackingStore* SocketModule::store(int socket) {
  const auto found = std::find(numbers_.begin(), numbers_.end(), socket);
  if (found == numbers_.end()) return nullptr;
  return &memories_[static_cast<std::size_t>(found - numbers_.begin())]->store();
}

void SocketMemory::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  to.declare(at.part("dram"), "accesses", "requests", "to the socket's DRAM",
             [this] { return dram_.accesses(); });
  to.declare(at.part("dram"), "bytes", "B", "read from or written to the socket's DRAM",
             [this] { return dram_.bytes(); });
}

void SocketModule::declare_statistics(sim::Statistics& to) const {
  for (std::size_t n = 0; n < numbers_.size(); ++n) {
    const auto at = sim::StatisticPath{}.part("socket", static_cast<std::uint64_t>(numbers_[n]));
    memories_[n]->declare_statistics(to, at);
    controllers_[n]->declare_statistics(to, at);
  }
}

}  // namespace cm384::supernode
