// The host's side: allocate, copy, load, launch, wait, read back. Memory operations of the host take no
// simulated time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npu_core/die/launch.h"
#include "npu_core/scalar/elf_image.h"
#include "npu_core/scalar/program.h"
#include "supernode/supernode.h"

namespace cm384::supernode {

// A launch that was given.
struct LaunchHandle {
  int die = 0;
  std::uint32_t number = 0;
};

class Runtime {
 public:
  explicit Runtime(Supernode& machine) : machine_(machine) {}

  // GM address of `bytes` fresh bytes (zero, plain) in the memory of a die or of a CPU socket. `alignment` is
  // a power of two. Throws InputError when the memory is full.
  std::uint64_t allocate(int die, std::uint64_t bytes, std::uint64_t alignment = 512);
  std::uint64_t allocate_on_socket(int socket, std::uint64_t bytes, std::uint64_t alignment = 512);

  void copy_in(std::uint64_t address, std::span<const std::byte> from);
  void copy_out(std::uint64_t address, std::span<std::byte> to) const;
  template <class T>
  void put(std::uint64_t address, std::span<const T> values) {
    copy_in(address, std::as_bytes(values));
  }
  template <class T>
  void put(std::uint64_t address, const T& value) {
    copy_in(address, std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  std::vector<T> get(std::uint64_t address, std::size_t count) const {
    std::vector<T> values(count);
    copy_out(address, std::as_writable_bytes(std::span(values)));
    return values;
  }
  // Makes the range tensor payload: its bytes are not kept (payload mode `control`).
  void mark_payload(std::uint64_t address, std::uint64_t bytes);

  // A program for the cores of this machine, shared by all launches of it.
  std::shared_ptr<npu::Program> load(std::shared_ptr<const npu::ElfImage> image);

  // Starts a program on cores of a die; `at` no earlier than earliest_start(). Tasks of a die run one after
  // another.
  LaunchHandle launch(int die, const std::shared_ptr<npu::Program>& program, std::uint64_t arguments,
                      std::vector<std::uint16_t> cores, Time at);
  // The first `count` cores of a die.
  std::vector<std::uint16_t> first_cores(int count) const;
  // From when on a launch may start: after all that was simulated.
  Time earliest_start() const { return machine_.earliest(); }

  // Runs the machine until every launch has finished. Throws MachineError with a report of who waits on what
  // when it stops making progress; false when interrupted.
  bool wait();
  // Of a finished launch.
  const npu::LaunchRecord& record(LaunchHandle handle) const {
    return machine_.record(handle.die, handle.number);
  }

  Supernode& machine() { return machine_; }

 private:
  npu::BackingStore& store_of(std::uint64_t address) const;

  Supernode& machine_;
  std::vector<std::uint64_t> used_;         // bytes given out, by die
  std::vector<std::uint64_t> used_socket_;  // by socket
};

}  // namespace cm384::supernode
