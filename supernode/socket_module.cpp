#include "supernode/socket_module.h"

#include <algorithm>

namespace cm384::supernode {

Time SocketMemory::access(sim::Request& request, sim::Outcome& outcome) {
  if (!store_.contains(request.address, request.bytes)) {
    payloads_.release(request.payload);
    outcome = sim::Outcome::address_fault;
    return request.at;
  }
  outcome = sim::Outcome::done;
  if (request.operation == sim::Operation::read) {
    request.payload.chunk = payloads_.allocate();
    request.payload.tags =
        store_.read(request.address, payloads_.bytes(request.payload.chunk), request.bytes);
    if (request.payload.tags == sim::all_tags(request.bytes)) payloads_.release(request.payload);
    return dram_.access(false, request.bytes, request.at);
  }
  const std::byte* bytes =
      request.payload.chunk == sim::kNoChunk ? nullptr : payloads_.bytes(request.payload.chunk);
  if (request.operation == sim::Operation::write) {
    store_.write(request.address, bytes, request.bytes, request.payload.tags);
  } else {
    store_.atomic_add(request.address, bytes, request.bytes, request.payload.tags,
                      request.operation == sim::Operation::atomic_add_f32, nullptr);
  }
  payloads_.release(request.payload);
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
