// The seam for a switch chip of another model (Verilated RTL, a user's own). The built-in transaction-level
// chips are part of SubPlane and use no virtual call.
#pragma once

#include "base/text/units.h"
#include "ub_fabric/packet.h"

namespace cm384::ub {

// A sub-plane as a chip in it sees it. Ports of an L1 chip: the node's dies, its sockets, then one a L2
// chip; of an L2 chip: one per node.
class ChipHost {
 public:
  virtual Time now() const = 0;
  virtual unsigned ports() const = 0;
  virtual unsigned lanes() const = 0;
  // The output port for a packet that came in by `input`. Ask once per packet: policies keep state.
  virtual unsigned route(unsigned input, Hop hop) = 0;
  // When the output's link can take the next packet.
  virtual Time free_at(unsigned output) const = 0;
  // Cells free at the other end of the output's link, as far as known here now.
  virtual int credits(unsigned output, unsigned lane) = 0;
  // Consumes the packet's credits for the other end of the output's link; false where there are too few now.
  virtual bool take_credits(unsigned output, Hop hop) = 0;
  // Puts a packet on the output's link at now() or free_at(); its credits must be taken. Its cells in the
  // input buffer go back to the sender once its tail has left.
  virtual void send(unsigned input, unsigned output, Hop hop) = 0;
  // Asks for woken(output) at `at`, or when credits of a lane come back. One wake-up an output: the earliest
  // asked for holds, later ones are void.
  virtual void wake_at(unsigned output, Time at) = 0;
  virtual void await_credits(unsigned output, unsigned lane) = 0;

 protected:
  ~ChipHost() = default;
};

class SwitchChip {
 public:
  virtual ~SwitchChip() = default;
  // The head of a packet is at input `port` (cut-through), or all of it (packet-store). Room in the input
  // buffer is guaranteed by credits.
  virtual void arrived(ChipHost& host, unsigned port, Hop hop) = 0;
  // A wake-up that was asked for.
  virtual void woken(ChipHost& host, unsigned output) = 0;
  // Whether its outputs pick among service classes as the machine says; else they take lanes in turn.
  virtual bool arbitrates() const { return false; }
};

}  // namespace cm384::ub
