// The host's side: allocate, copy, load, launch, wait, read back; streams and events. Memory operations of
// the host (allocate, copy_in, copy_out) take no simulated time; calls about streams do (section `host` of
// the machine).
//
//     const Stream stream = runtime.create_stream(0);
//     runtime.launch_kernel(stream, program, arguments, runtime.first_cores(48));
//     const TaskHandle copy = runtime.memcpy_async(stream, on_die_7, on_die_0, 7_MiB);  // by die 0's SDMA
//     runtime.synchronize_stream(stream);                // host thread of die 0 waits
//     runtime.host_function(0, [&] { ... });             // then looks, and makes further calls
//     runtime.wait();                                    // runs it all
//     const double us = (runtime.task(copy).seen - runtime.task(copy).called).us();
//
// Each die has one host thread, as each rank has one process. Calls about a stream, an event or a die are
// that thread's: they are queued in order when they are made and executed in simulated time by wait(),
// concurrently with the threads of other dies. synchronize_stream() holds that thread, not the caller: what
// depends on values that only the run brings forth goes into host_function(). Where several processes
// simulate the machine, a function runs in that one which owns its die.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npu_core/die/launch.h"
#include "npu_core/scalar/elf_image.h"
#include "npu_core/scalar/program.h"
#include "system/host/host_thread.h"
#include "system/host/memory_ranges.h"
#include "system/machine/supernode.h"

namespace cm384::host {

// A launch that was submitted.
struct LaunchHandle {
  int die = 0;
  std::uint32_t number = 0;
};

// A stream of a die: its tasks run in order.
struct Stream {
  int die = 0;
  std::uint32_t number = 0;
};
// Streams of `die` wait for it, streams of any die record it.
struct Event {
  int die = 0;
  std::size_t number = 0;
};
// A counter in the memory of `die`: streams of any die add to it, streams of `die` wait for a count and take
// it off.
struct Notify {
  int die = 0;
  std::uint64_t address = 0;
};
// A task that was submitted to a stream.
struct TaskHandle {
  int die = 0;
  std::size_t number = 0;
};

// The plane that a copy's requests take between dies.
enum class Plane : std::uint8_t { unified_bus, rdma };

class Runtime {
 public:
  // One per machine, which outlives its use. Throws InputError where host.message_latency is less than what a
  // packet takes from die to die.
  explicit Runtime(supernode::Supernode& machine);

  // GM address of `bytes` fresh bytes (zero, plain) in the memory of a die or of a CPU socket. `alignment` is
  // a power of two. Throws InputError when the memory is full.
  std::uint64_t allocate(int die, std::uint64_t bytes, std::uint64_t alignment = 512);
  std::uint64_t allocate_on_socket(int socket, std::uint64_t bytes, std::uint64_t alignment = 512);
  // Frees memory that one of these allocated; its bytes are lost. Nothing in flight may use it. Throws
  // InputError for any other address.
  void free(std::uint64_t address);

  // Whether all of a range is allocated.
  bool is_allocated(std::uint64_t address, std::uint64_t bytes) const;

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
  // Whether a part of the range is payload.
  bool holds_payload(std::uint64_t address, std::uint64_t bytes) const;

  // A program for the cores of this machine, shared by all launches of it.
  std::shared_ptr<npu::Program> load(std::shared_ptr<const npu::ElfImage> image);

  // Starts a program on cores of a die; `at` no earlier than earliest_start(). Tasks of a die run one after
  // another.
  LaunchHandle launch(int die, const std::shared_ptr<npu::Program>& program, std::uint64_t arguments,
                      std::vector<std::uint16_t> cores, Time at, npu::KernelType type = npu::KernelType::aiv);
  // Puts a launch into a stream: a created one, by a call of the host thread, or the default stream, as
  // above.
  LaunchHandle launch(Stream stream, npu::LaunchRequest request);
  // The stream that launch(die, ...) uses.
  static Stream default_stream(int die) { return {die, 0}; }
  // The first `count` cores of a die.
  std::vector<std::uint16_t> first_cores(int count) const;
  // The earliest time at which a launch may start: after everything that was simulated.
  Time earliest_start() const { return machine_.earliest(); }

  // Runs the machine until every launch, every task and every call of the host has finished. Throws
  // MachineError with a report of who waits on what when it stops making progress, or naming the first task
  // that ended with an error; false when interrupted.
  bool wait();
  // The record of a finished launch.
  const npu::LaunchRecord& record(LaunchHandle handle) const {
    return machine_.record(handle.die, handle.number);
  }

  // --- streams (runtime_streams.cpp). All throw InputError for a die that does not take part.

  Stream create_stream(int die);
  // `cores`: of block 0, 1, ..., as for launch(). Its LaunchRecord: record(launch_of(handle)).
  TaskHandle launch_kernel(Stream stream, const std::shared_ptr<npu::Program>& program,
                           std::uint64_t arguments, std::vector<std::uint16_t> cores);
  // The same on any cores that are free, as they become free.
  TaskHandle launch_kernel(Stream stream, const std::shared_ptr<npu::Program>& program,
                           std::uint64_t arguments, std::uint32_t blocks);
  // By the SDMA engine of the stream's die, between GM addresses of any dies and sockets that take part.
  // Throws InputError for 0 bytes or 4 GiB and more.
  // `plane`: how its requests get to the other die. Throws InputError for one that does not take part or does
  // not get there: the RDMA plane to a CPU socket, the Unified Bus to another supernode.
  TaskHandle memcpy_async(Stream stream, std::uint64_t destination, std::uint64_t source, std::uint64_t bytes,
                          Plane plane = Plane::unified_bus);

  // The address that cores and engines of `die` use for `address`: by the RDMA plane where that is in another
  // supernode.
  std::uint64_t reached_from(int die, std::uint64_t address) const;

  Event create_event(int die);
  // Waiters go on when everything before this in `stream` is complete.
  TaskHandle record_event(Stream stream, Event event);
  // Later tasks of `stream` wait for the last record_event() called so far; none: for nothing. Throws
  // InputError for an event of another die.
  TaskHandle stream_wait_event(Stream stream, Event event);
  Notify create_notify(int die);
  TaskHandle record_notify(Stream stream, Notify notify, std::uint32_t count = 1);
  TaskHandle wait_notify(Stream stream, Notify notify, std::uint32_t count = 1);

  // The stream's host thread waits until all of its tasks are seen to be complete; of all its die's streams.
  void synchronize_stream(Stream stream);
  void synchronize_device(int die);
  // The host threads of these dies wait for each other.
  void host_barrier(const std::vector<int>& dies);
  // The host thread of a die is busy for so long; runs `function`, which may look at memory and call the
  // runtime about its own die only.
  void host_compute(int die, Time time);
  void host_function(int die, std::function<void()> function);

  // The times of a task; complete after wait(), or once its stream was synchronised.
  const HostTask& task(TaskHandle handle) const { return host_of(handle.die).task(handle.number); }
  LaunchHandle launch_of(TaskHandle handle) const { return {handle.die, task(handle).record.number}; }

  // Makes the SDMA queue of a core and returns the GM address of its struct cm384_queue
  // (firmware/abi/queue.h), for a kernel that submits copies itself. The part's depth is 2048.
  std::uint64_t create_sdma_queue(int die, std::uint16_t core, std::uint32_t depth = 2048);

  supernode::Supernode& machine() { return machine_; }

 private:
  struct EventState {
    std::uint64_t address = 0;
    std::uint64_t records = 0;  // calls of record_event so far
  };
  friend void unfold_on_device(Runtime& runtime, int die, const std::function<void()>& calls);

  TaskHandle submit(Stream stream, const cm384_task& entry);
  TaskHandle submit_kernel(Stream stream, npu::LaunchRequest request, std::uint32_t blocks,
                           std::uint32_t launch);
  void call(int die, HostCall call);
  // The address that an SDMA engine of `die` takes for one to be reached by `plane`.
  bool elsewhere(int die, std::uint64_t address) const;
  std::uint64_t by_plane(int die, std::uint64_t address, Plane plane) const;
  void report_errors() const;
  // Of several processes all get to know what the owners of dies know.
  void share_tasks();

  npu::BackingStore& store_of(std::uint64_t address) const;

  // Throws InputError for a die that does not take part.
  HostThread& host_of(int die) const;

  supernode::Supernode& machine_;
  std::vector<std::unique_ptr<HostThread>> hosts_;  // by die
  std::vector<MemoryRanges> given_;                 // by die
  std::vector<MemoryRanges> given_on_socket_;       // by socket
  std::vector<EventState> events_;
  int in_function_of_ = -1;        // die whose host thread runs a function
  HostCall* unfolding_ = nullptr;  // takes calls of unfold_on_device()
  int unfolding_of_ = -1;          // its die
};

// The host thread of `die` hands the tasks that `calls` submits to streams of that die over to an AICPU,
// which writes their entries in its place: section `aicpu` of the machine. `calls` is run at once, and may
// submit tasks alone. A traffic trace has no form for it (traces/traffic.h).
void unfold_on_device(Runtime& runtime, int die, const std::function<void()>& calls);

}  // namespace cm384::host
