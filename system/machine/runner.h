// Runs the modules of a machine, with accelerators or without: windows of two phases on the threads of the
// host, in one process or several.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/engine/payload.h"
#include "system/machine/peer_exchange.h"
#include "system/machine/simulation.h"
#include "system/machine/window_process.h"
#include "ub_fabric/packet.h"

namespace cm384::supernode {

class Runner {
 public:
  enum class Phase : std::uint8_t { outer, inner };  // accelerators and sockets; sub-planes

  Runner(unsigned workers, unsigned threads, std::string threads_why, unsigned what_if_threads);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  RunControl& control() { return control_; }
  const RunControl& control() const { return control_; }
  unsigned workers() const { return control_.workers.count(); }
  // Modules run in windows of this length; those of the inner phase begin so much later.
  void set_window(Time window, Time plane_phase);

  // In the order in which one thread runs them. Of several processes `owner` runs its events.
  void add(Phase phase, std::unique_ptr<WindowModule> module, unsigned owner);
  const std::vector<std::unique_ptr<WindowModule>>& modules() const { return modules_; }
  // Of several processes, once all modules are there: a process alone does nothing. `unfinished`: what this
  // one waits for. `others`: packets of another fabric go along.
  void join_peers(const std::atomic<std::size_t>& unfinished, ub::PacketPool& packets,
                  sim::PayloadPool& payloads, sim::PacketPacker* others = nullptr);
  // nullptr: a process alone.
  const PeerExchange* peers() const { return peers_.get(); }

  // SystemC's present time.
  Time now() const;
  // Called before a run. Rethrows an earlier error.
  void begin();
  // Runs modules for `length`, or less when one fails or hangs. Throws MachineError for what SystemC reports
  // of a foreign model.
  void advance(Time length);
  // Called after advance(): rethrows what a module threw; false when interrupted.
  bool may_go_on();
  void rethrow_failure();
  // Ends all running of modules; called before the parts that they run are destroyed.
  void stop();

 private:
  Simulation simulation_;
  RunControl control_;
  std::vector<std::unique_ptr<WindowModule>> modules_;
  std::vector<unsigned> owners_;
  std::unique_ptr<WindowProcess> outer_, inner_;
  std::unique_ptr<PeerExchange> peers_;
};

}  // namespace cm384::supernode
