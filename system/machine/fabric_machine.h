// Sub-planes and whatever is attached to them, run in windows like a whole machine, but without dies: for
// studies of the fabric alone.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/engine/payload.h"
#include "hw/machine.h"
#include "system/machine/thread_choice.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/crossing.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::supernode {

struct FabricMachineOptions {
  unsigned threads = 1;                   // of the host; what is simulated does not depend on it
  std::string threads_why = "asked for";  // where that number is from, for the result
  unsigned what_if_threads = 0;           // so many threads are reckoned with; 0: none
  std::uint64_t seed = 1;
  const volatile std::sig_atomic_t* interrupted = nullptr;
  std::function<void(Time, std::uint64_t)> progress;  // simulated time and events so far
};

// One at a time in a process: it owns the SystemC simulation.
class FabricMachine {
 public:
  // What is attached: a queue with events of its own, run until a time. It must outlive the machine's runs.
  class Module {
   public:
    virtual sim::EventQueue& queue() = 0;
    // Handles every event before `end`.
    virtual void run_until(Time end) = 0;
    // As a WindowModule's, where the machine is simulated by several processes.
    virtual void hold_credits() {}
    virtual void exchange(ub::Crossings&) {}

   protected:
    ~Module() = default;
  };

  // Throws InputError where the machine's values do not fit together.
  FabricMachine(const hw::Machine& machine, FabricMachineOptions options);
  ~FabricMachine();
  FabricMachine(const FabricMachine&) = delete;
  FabricMachine& operator=(const FabricMachine&) = delete;

  ub::PacketPool& packets();
  sim::PayloadPool& payloads();
  int planes() const;
  ub::SubPlane& plane(int number) const;
  ub::Parameters parameters() const;
  // The number of the next module's queue, which is that of its events.
  std::uint32_t next_source();
  // Gives a controller what it needs of the machine: sub-planes and workers.
  void connect(ub::UbController& controller);
  // Adds a module; of several processes `owner` runs its events.
  void add(Module& module, unsigned owner);
  // Which of several processes simulates the n-th module that is added, of `count`; its events count there.
  static unsigned owner(std::size_t n, std::size_t count);

  // Runs until `end`; false when interrupted. Rethrows what a module threw.
  bool run_until(Time end);
  Time now() const;
  std::uint64_t events() const;  // of this process
  // How many threads run modules, and why so many.
  const ThreadChoice& thread_choice() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cm384::supernode
