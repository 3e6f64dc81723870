// A die's network interface on the RDMA plane: the initiator and target end of remote reads, writes and
// atomics.
//
// It lives in the die's module. Requests wait in a queue per destination; send_latency after a request came
// it may leave. When the link is free and not paused, the next answer, or in turn the next destination whose
// window has room, makes a packet: its first request, and as many behind it as have come, belong to the same
// transaction, lie one behind the other and fit the MTU. Answers and requests take turns. The target performs
// all requests of a packet when it has come in and answers with one packet, which acknowledges them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/fabric.h"
#include "base/engine/payload.h"
#include "base/engine/probe.h"
#include "base/text/units.h"
#include "hw/parameters/rdma.h"
#include "ub_fabric/planes/rdma/leaf_spine.h"
#include "ub_fabric/planes/rdma/packet.h"

namespace cm384::rdma {

struct InterfaceCounters {
  std::uint64_t requests = 0;                       // taken by submit()
  std::uint64_t packets = 0;                        // sent, answers included
  std::uint64_t bytes = 0;                          // of those on the wire
  std::uint64_t bytes_read = 0, bytes_written = 0;  // of completed requests
  std::uint64_t completions = 0, faults = 0;
  std::uint64_t served = 0;     // requests of others
  std::uint64_t paused_ps = 0;  // time in which it might not send
};

class Interface final : public sim::FabricPort {
 public:
  Interface(const hw::Rdma& parameters, const sim::Fabric::Seat& seat, LeafSpine& switches, Pools& pools,
            sim::PayloadPool& payloads);
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  // Takes a request at the queue's event time request.at. Its payload moves here. address_fault comes back
  // for an address of no other die on this plane.
  void submit(const sim::Request& request) override;
  void handle(const sim::Event& event) override;
  // Whether an event's argument is a packet that the switches have sent.
  static bool brings_packet(const sim::Event& event) { return event.what == kArrived; }
  std::uint64_t packet_hops() const override { return counters_.packets; }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;

  const InterfaceCounters& counters() const { return counters_; }
  // Requests not yet completed.
  std::uint64_t pending() const { return pending_; }
  // The first byte of a packet of requests goes onto the link.
  sim::Probe<Time> request_sent;

 private:
  enum What : std::uint32_t {
    kReady,    // destination: its first request may leave
    kFree,     // the link
    kArrived,  // packet
    kPaused,   // 1 or 0
    kRespond,  // packet
    kFault,    // piece
  };
  struct Destination {
    sim::SlabQueue<Piece> waiting;
    std::int64_t open = 0;  // payload without an answer
    bool in_turn = false;   // stands in turns_, or will by an event
    bool blocked = false;   // by its window
  };

  void ready(std::uint16_t destination);
  void serve(Time now);
  bool send_request(Time now);
  void send(std::uint32_t packet, Time now);
  std::uint32_t make_packet(Destination& to, std::uint16_t number, Time now);
  void arrive(std::uint32_t packet, Time now);
  void perform(std::uint32_t packet, Time now);
  void complete(std::uint32_t packet, Time now);
  void complete_piece(std::uint32_t piece, Time now);
  void pause(bool on, Time now);

  hw::Rdma parameters_;
  Clock byte_;
  std::uint16_t self_;
  sim::EventQueue& queue_;
  std::uint32_t unit_;
  sim::RemoteTarget& target_;
  sim::RemoteClient* client_;
  LeafSpine& switches_;
  Pools& pools_;
  sim::PayloadPool& payloads_;
  std::vector<Destination> destinations_;  // by die, grown as they are asked for
  std::deque<std::uint16_t> turns_;
  sim::SlabQueue<Packet> responses_;
  bool response_first_ = true;
  struct Link {
    bool sending = false, paused = false;
    Time paused_at;
  };
  Link link_;  // to its leaf
  InterfaceCounters counters_;
  std::uint64_t pending_ = 0;
};

}  // namespace cm384::rdma
