#include "system/host/runtime.h"

#include <fmt/format.h>

#include <numeric>

#include "base/engine/peers.h"
#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/machine/ownership.h"

namespace cm384::host {
namespace {

std::uint64_t allocate_in(std::vector<MemoryRanges>& given, int unit, std::uint64_t bytes,
                          std::uint64_t alignment, std::uint64_t capacity, const char* what) {
  if (given.size() <= static_cast<std::size_t>(unit)) given.resize(static_cast<std::size_t>(unit) + 1);
  MemoryRanges& ranges = given[static_cast<std::size_t>(unit)];
  if (const auto start = ranges.allocate(bytes, alignment, capacity)) return *start;
  throw InputError(fmt::format("memory of {} {} is full: {} B asked for, {} B of {} B in use", what, unit,
                               bytes, ranges.used(), capacity));
}

// Of several processes, the one that has its bytes. All call for a copy out of memory, and get it.
unsigned owner_of(const supernode::Ownership& owners, std::uint64_t address) {
  return cm384_gm_is_cpu(address) ? owners.of_sockets()
                                  : owners.of_die(static_cast<int>(cm384_gm_unit(address)));
}

}  // namespace

Runtime::Runtime(supernode::Supernode& machine) : machine_(machine) {
  const Time message = machine.parameters().host.message_latency;
  if (message < machine.lookahead())
    throw InputError(fmt::format(
        "host.message_latency: {} ns; allowed: at least {} ns, what a packet takes from die to die",
        message.ns(), machine.lookahead().ns()));
  for (const int die : machine.dies()) {
    if (!machine.parameters().accelerator.has_cores()) break;  // nothing to drive
    hosts_.resize(static_cast<std::size_t>(die) + 1);
    hosts_.back() = std::make_unique<HostThread>(machine, die);
  }
}

HostThread& Runtime::host_of(int die) const {
  machine_.die(die);
  return *hosts_[static_cast<std::size_t>(die)];
}

std::uint64_t Runtime::allocate(int die, std::uint64_t bytes, std::uint64_t alignment) {
  return cm384_gm_die(
      static_cast<std::uint64_t>(die),
      allocate_in(given_, die, bytes, alignment, machine_.accelerator(die).allocatable(), "die"));
}

std::uint64_t Runtime::allocate_on_socket(int socket, std::uint64_t bytes, std::uint64_t alignment) {
  return cm384_gm_cpu(static_cast<std::uint64_t>(socket),
                      allocate_in(given_on_socket_, socket, bytes, alignment,
                                  machine_.socket_store(socket).capacity(), "CPU socket"));
}

void Runtime::free(std::uint64_t address) {
  auto& given = cm384_gm_is_cpu(address) ? given_on_socket_ : given_;
  const auto unit = static_cast<std::size_t>(cm384_gm_unit(address));
  const auto range = unit < given.size() ? given[unit].release(cm384_gm_offset(address)) : std::nullopt;
  if (!range) throw InputError(fmt::format("free: {:#x} was not allocated", address));
  store_of(address).forget(range->begin, range->bytes);
}

bool Runtime::is_allocated(std::uint64_t address, std::uint64_t bytes) const {
  const auto& given = cm384_gm_is_cpu(address) ? given_on_socket_ : given_;
  const auto unit = static_cast<std::size_t>(cm384_gm_unit(address));
  return unit < given.size() && given[unit].holds(cm384_gm_offset(address), bytes);
}

npu::BackingStore& Runtime::store_of(std::uint64_t address) const {
  const int unit = static_cast<int>(cm384_gm_unit(address));
  return cm384_gm_is_cpu(address) ? machine_.socket_store(unit) : machine_.accelerator(unit).store();
}

void Runtime::copy_in(std::uint64_t address, std::span<const std::byte> from) {
  if (!machine_.owners().is_here(owner_of(machine_.owners(), address))) return;
  store_of(address).write_bytes(cm384_gm_offset(address), from.data(), from.size());
}

void Runtime::copy_out(std::uint64_t address, std::span<std::byte> to) const {
  const unsigned owner = owner_of(machine_.owners(), address);
  if (machine_.owners().is_here(owner))
    store_of(address).read_bytes(cm384_gm_offset(address), to.data(), to.size());
  sim::peers().broadcast(owner, to);
}

void Runtime::mark_payload(std::uint64_t address, std::uint64_t bytes) {
  if (!machine_.owners().is_here(owner_of(machine_.owners(), address))) return;
  store_of(address).mark_payload(cm384_gm_offset(address), bytes);
}

bool Runtime::holds_payload(std::uint64_t address, std::uint64_t bytes) const {
  std::uint8_t held = store_of(address).has_payload(cm384_gm_offset(address), bytes) ? 1 : 0;
  sim::peers().broadcast(owner_of(machine_.owners(), address), std::as_writable_bytes(std::span(&held, 1)));
  return held != 0;
}

std::shared_ptr<npu::Program> Runtime::load(std::shared_ptr<const npu::ElfImage> image) {
  return std::make_shared<npu::Program>(std::move(image), machine_.parameters().scalar_core,
                                        machine_.workers());
}

LaunchHandle Runtime::launch(int die, const std::shared_ptr<npu::Program>& program, std::uint64_t arguments,
                             std::vector<std::uint16_t> cores, Time at, npu::KernelType type) {
  return {die, machine_.launch(die, {program, arguments, std::move(cores), type}, at)};
}

LaunchHandle Runtime::launch(Stream stream, npu::LaunchRequest request) {
  if (stream.number == 0)
    return {stream.die, machine_.launch(stream.die, std::move(request), earliest_start())};
  npu::Die& die = machine_.die(stream.die);
  request.cores = die.cluster().prepare(request);
  const std::uint32_t number = die.new_launch();
  const std::uint32_t blocks = request.entry_blocks();
  submit_kernel(stream, std::move(request), blocks, number);
  return {stream.die, number};
}

std::vector<std::uint16_t> Runtime::first_cores(int count) const {
  const int available = machine_.parameters().die.aiv;
  if (count < 1 || count > available)
    throw InputError(fmt::format("--cores: {} cores, but a die has {} AIVs; allowed: 1 to {}", count,
                                 available, available));
  std::vector<std::uint16_t> cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), std::uint16_t{0});
  return cores;
}

bool Runtime::wait() {
  if (!machine_.run()) return false;
  if (sim::peers().several()) share_tasks();
  if (!hosts_.empty()) report_errors();
  return true;
}

}  // namespace cm384::host
