#include "npu_core/die/memory_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text/error.h"
#include "npu_core/die/die.h"
#include "npu_core/memory/perform_request.h"

namespace cm384::npu {
namespace {

// The top of a die's memory holds what the cores' private memories are cached from, the shared image and one
// area per core, and after that what belongs to the devices.
constexpr std::uint64_t kPrivateArea = std::uint64_t{1} << 30;

}  // namespace

MemorySystem::MemorySystem(Die& die, const hw::Memory& parameters, int vector_cores)
    : die_(die),
      number_(static_cast<std::uint64_t>(die.number())),
      vector_cores_(vector_cores),
      external_ports_(parameters.on_die_network.external_ports),
      store_(parameters.hbm.capacity),
      timing_(parameters, vector_cores),
      watches_(static_cast<std::size_t>(vector_cores)) {}

bool MemorySystem::is_local(std::uint64_t address) const {
  return cm384_is_gm(address) && !cm384_gm_is_cpu(address) && cm384_gm_unit(address) == number_;
}

std::uint64_t MemorySystem::allocatable() const {
  return store_.capacity() - std::min(store_.capacity() / 2, kPrivateArea);
}

std::uint64_t MemorySystem::private_offset(std::uint16_t core, std::uint64_t address,
                                           bool instruction) const {
  const std::uint64_t area = store_.capacity() - Devices::kMemoryBytes - allocatable();
  // Instructions are fetched from the one image that all cores share.
  if (instruction) return allocatable() + (address - CM384_PRIVATE_BASE) % area;
  // A cube core shares the area of its group's first vector core, half an area further on.
  const bool cube = core >= vector_cores_;
  const std::uint64_t index = (cube ? 2u * (core - vector_cores_) : core) + std::uint64_t{1};
  const std::uint64_t within = address - CM384_PRIVATE_BASE + (cube ? CM384_PRIVATE_BYTES / 2 : 0);
  return allocatable() + (index * CM384_PRIVATE_BYTES + within % CM384_PRIVATE_BYTES) % area;
}

void MemorySystem::check(const LocalAccess& access) const {
  if (!store_.contains(access.offset, access.bytes))
    throw MachineError(
        fmt::format("die {} core {}: {} of {} B at offset {:#x}, outside the die's memory of {} GiB; {}",
                    number_, access.core, access.write ? "write" : "read", access.bytes, access.offset,
                    store_.capacity() >> 30, die_.cluster().core(access.core).scalar().location()));
}

void MemorySystem::written(std::uint64_t offset, std::uint64_t bytes) {
  die_.progressed();
  watches_.written(offset, bytes, [this](std::uint16_t core) {
    if (DieTracer* tracer = die_.transactions().tracer()) tracer->poll_woken(core);
    die_.cluster().core(core).pipes().watched_write(die_.now());
  });
  die_.devices().written(offset, bytes);
}

void MemorySystem::written_by_device(std::uint64_t offset, std::uint64_t bytes,
                                     sim::TransactionId transaction) {
  if (DieTracer* tracer = die_.transactions().tracer())
    tracer->written_by_device(offset, transaction, die_.now());
  written(offset, bytes);
}

Time MemorySystem::access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) {
  check(access);
  if (access.write) {
    write(access, bytes, tags);
  } else {
    tags = store_.read(access.offset, bytes, access.bytes);
    if (DieTracer* tracer = die_.transactions().tracer()) tracer->read(access.core, access.offset);
  }
  return timed(access, false);
}

Time MemorySystem::scalar_write(const LocalAccess& access, bool atomic) {
  check(access);
  return timed(access, atomic);
}

Time MemorySystem::traced(const LocalAccess& access, bool atomic) {
  const MemoryAccess asked{access.offset,   access.bytes, access.write,
                           access.allocate, access.core,  access.at};
  const std::uint64_t misses = timing_.statistics().l2_misses;
  const Time done = atomic ? timing_.atomic_add(asked) : timing_.access(asked);
  die_.transactions().tracer()->local(access, timing_.statistics().l2_misses != misses, done);
  return done;
}

void MemorySystem::expect(std::uint64_t offset) const {
  if (!store_.contains(offset, 1)) return;
  timing_.prefetch(offset);
  store_.prefetch(offset);
}

Time MemorySystem::private_access(const LocalAccess& access) {
  return timing_.access({access.offset, access.bytes, access.write, access.allocate, access.core, access.at});
}

std::uint64_t MemorySystem::atomic_update(const LocalAccess& access, const AtomicUpdate& update,
                                          bool& payload) {
  std::uint64_t old = 0;
  std::byte bytes[sizeof old] = {};
  payload = store_.read(access.offset, bytes, access.bytes) != 0;
  if (DieTracer* tracer = die_.transactions().tracer()) tracer->read(access.core, access.offset);
  if (!payload) {
    std::memcpy(&old, bytes, sizeof old);
    const std::uint64_t value = update(old);
    std::memcpy(bytes, &value, sizeof value);
    store_.write(access.offset, bytes, access.bytes, update.payload ? 1 : 0);
  }
  written_by_core(access);
  return old;
}

void MemorySystem::write(const LocalAccess& access, const std::byte* bytes, sim::TagMask tags) {
  store_.write(access.offset, bytes, access.bytes, tags);
  written_by_core(access);
}

void MemorySystem::written_by_core(const LocalAccess& access) {
  if (DieTracer* tracer = die_.transactions().tracer())
    tracer->written(access.core, access.offset, access.bytes, die_.now());
  written(access.offset, access.bytes);
}

Time MemorySystem::atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation) {
  check(access);
  store_.atomic_add(access.offset, bytes, access.bytes, 0, operation, nullptr);
  written_by_core(access);
  return timed(access, true);
}

Time MemorySystem::timed(const LocalAccess& access, bool atomic) {
  if (DieTracer* tracer = die_.transactions().tracer(); tracer != nullptr && tracer->requests()) [[unlikely]]
    return traced(access, atomic);
  const MemoryAccess asked{access.offset,   access.bytes, access.write,
                           access.allocate, access.core,  access.at};
  return atomic ? timing_.atomic_add(asked) : timing_.access(asked);
}

// Lines are spread over the ports; one line always comes by the same, which so holds it.
int MemorySystem::external_port(std::uint64_t offset) const {
  return static_cast<int>(offset / 512 % static_cast<std::uint64_t>(external_ports_));
}

Time MemorySystem::serve(sim::Request& request, sim::Outcome& outcome) {
  if (!perform(store_, die_.payloads(), request, outcome)) return request.at;
  const bool reads = request.operation == sim::Operation::read;
  const MemoryAccess access{request.address,
                            request.bytes,
                            !reads,
                            true,
                            timing_.external_requester(external_port(request.address)),
                            request.at};
  if (DieTracer* tracer = die_.transactions().tracer()) tracer->came(request);
  if (!reads) {
    die_.transactions().arrived(request);
    written(request.address, request.bytes);
  }
  const bool adds = !reads && request.operation != sim::Operation::write;
  const Time ready = adds ? timing_.atomic_add(access) : timing_.access(access);
  if (DieTracer* tracer = die_.transactions().tracer()) tracer->served(ready);
  return ready;
}

}  // namespace cm384::npu
