// The seam between a machine and the networks that join its accelerators. The Unified Bus is one such
// network; docs/planes.md says how another one comes in.
//
// A fabric has ports, which live in the modules of those who own them, and modules of its own, whose queues
// hold what is on its links and in its chips. Ports and modules reach each other only by events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/statistics.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

namespace cm384::sim {

// One endpoint's way into a fabric: takes requests of the own side, has those of others performed.
class FabricPort : public RemotePort {
 public:
  // An event of its unit in its owner's queue.
  virtual void handle(const Event& event) = 0;
  // Packets that it has sent.
  virtual std::uint64_t packet_hops() const = 0;
  virtual void declare_statistics(Statistics& to, const StatisticPath& at) const = 0;

 protected:
  ~FabricPort() = default;
};

// What runs as one module in windows (docs/time.md).
class FabricModule {
 public:
  virtual EventQueue& queue() = 0;
  // Handles every event before `end`.
  virtual void run_until(Time end) = 0;
  virtual std::uint64_t packet_hops() const = 0;

 protected:
  ~FabricModule() = default;
};

// Packets that go into bytes and back, as they do between processes that simulate one machine.
class PacketPacker {
 public:
  // Appends the packet that an event's argument names, with its payload; it leaves its pool.
  virtual void pack(std::uint64_t argument, std::vector<std::byte>& to) = 0;
  // Takes off what pack() has put in front, and returns what names the packet here. Throws MachineError where
  // too little is left.
  virtual std::uint64_t unpack(std::span<const std::byte>& from) = 0;

 protected:
  ~PacketPacker() = default;
};

class Fabric {
 public:
  // What is attached at an endpoint: the queue for its port's events, the memory that others read and write
  // there, and the client that receives completions (nullptr: it sends no requests).
  struct Seat {
    unsigned endpoint = 0;
    EventQueue& queue;
    std::uint32_t unit = 0;
    RemoteTarget& target;
    RemoteClient* client = nullptr;
  };
  // The least that lies between a cause in a port and its effect in a module, and the other way.
  struct Lookahead {
    Time to_module, from_module;
  };

  virtual ~Fabric() = default;
  // Each endpoint at most once, before the machine runs.
  virtual FabricPort& attach(const Seat& seat) = 0;
  // Over everything that is attached.
  virtual Lookahead lookahead() const = 0;
  virtual std::span<FabricModule* const> modules() const = 0;
  virtual void declare_statistics(std::size_t module, Statistics& to) const = 0;
};

}  // namespace cm384::sim
