// Where several processes simulate one machine (base/engine/peers.h): exchanges, between two windows, what
// modules have posted for modules of other processes. Then all agree on the next window that has an event,
// and run it: they stay in step and get the results of a single process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "base/engine/peers.h"
#include "ub_fabric/crossing.h"
#include "ub_fabric/crossing_carrier.h"

namespace cm384::supernode {

class WindowModule;
class WindowProcess;
struct RunControl;

class PeerExchange {
 public:
  // `unfinished`: what this process waits for.
  PeerExchange(RunControl& control, const std::atomic<std::size_t>& unfinished, ub::PacketPool& packets,
               sim::PayloadPool& payloads);
  PeerExchange(const PeerExchange&) = delete;
  PeerExchange& operator=(const PeerExchange&) = delete;

  // Packets of another fabric are exchanged too.
  void add_packer(sim::PacketPacker& others) { crossings_.add_packer(others); }
  // First the one whose modules have phase 0, then the other.
  void add(WindowProcess& process) { phases_.push_back(&process); }
  // Every module of the machine, in the same order in all processes, before the first synchronize(). What
  // others put down for one of another process leaves by synchronize(); it runs no events here.
  void add(WindowModule& module, unsigned owner);

  // Before the machine runs and after each window of a phase, while no module runs. Sets in `control` what
  // all have agreed on, and arms both phases.
  void synchronize();
  // Sum over all processes, at the last exchange.
  std::uint64_t unfinished() const { return agreed_unfinished_; }

 private:
  static constexpr std::size_t kPhases = 2;
  // Of each process; what has departed counts with its sender.
  struct Report {
    std::array<Time, kPhases> next{Time::never(), Time::never()};  // earliest event
    Time credits = Time::never();                                  // that departed
    Time progress;
    std::uint64_t unfinished = 0;
    bool interrupted = false, failed = false;
  };
  struct Entry {
    WindowModule* module = nullptr;
    unsigned owner = 0;
    std::size_t phase = 0;
  };
  // Stands before the times of events that a queue of a module gets.
  struct Head {
    std::uint32_t module = 0, queue = 0, events = 0;
  };

  void depart(unsigned peer, Report& report);
  void arrive(unsigned peer);
  void announce(std::uint32_t module, unsigned peer, Report& report);
  void cross(unsigned owner);
  void own_next(Report& report) const;
  Report agree(const Report& mine) const;
  bool credits_may_wake(const Report& agreed) const;
  void agree_on_failure();

  RunControl& control_;
  const std::atomic<std::size_t>& unfinished_;
  ub::CrossingCarrier carrier_;
  ub::Crossings crossings_;
  std::vector<WindowProcess*> phases_;
  std::vector<Entry> modules_;
  std::vector<sim::Blob> out_, in_;
  std::uint64_t agreed_unfinished_ = 0;
};

}  // namespace cm384::supernode
