// The VPC plane, packet by packet: one card per node, whose two directions all dies and sockets of the node
// share, a switch between the cards, and storage behind it.
//
// A reader asks for its block packet by packet, with at most `window` bytes under way; a request takes the
// outward direction of the reader's card, packet_latency, and the inward direction of the server's. The
// server's socket reads its DRAM and the data goes the same way back. The switch stores packets whole and has
// a link of the card's rate to each card, which is the card's inward direction; it has room for what the
// windows let under way, so nothing is dropped. A block of the reader's own node takes both directions of the
// one card.
//
// A block on storage comes to its server first: a request outward, the volume's (or the store's) latency once
// per block, its rate, and the inward direction into DRAM.
#pragma once

#include <cstdint>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/slab.h"
#include "base/text/units.h"
#include "hw/parameters/ub.h"
#include "ub_fabric/planes/vpc/link.h"
#include "ub_fabric/planes/vpc/parameters.h"
#include "ub_fabric/socket_dram.h"

namespace cm384::vpc {

// Throws InputError where the window holds no packet.
void check(const Parameters& parameters);

class VpcPlane {
 public:
  // Throws as check() does.
  VpcPlane(const Parameters& parameters, const hw::CpuSocket& socket, int nodes, int sockets_per_node);
  VpcPlane(const VpcPlane&) = delete;
  VpcPlane& operator=(const VpcPlane&) = delete;

  // Begins at time 0 a read of a block that `socket` (of the machine) serves, by a die of `node`; returns its
  // number, from 0 on. Before the plane runs.
  std::size_t read(int node, int socket, Bytes block);
  // Handles all events before `end`.
  void run_until(Time end);

  bool finished() const { return unfinished_ == 0; }
  // Share of what is to be read that has arrived.
  double done() const { return static_cast<double>(arrived_) / static_cast<double>(asked_); }
  // Time from 0 until the block's last byte has arrived.
  Time latency(std::size_t read) const { return reads_[read].end; }
  Bytes arrived(std::size_t read) const { return {reads_[read].arrived}; }
  // The end of the last read.
  Time end() const { return end_; }
  const Link& outward(int node) const { return links_[static_cast<std::size_t>(node) * 2]; }
  const Link& inward(int node) const { return links_[static_cast<std::size_t>(node) * 2 + 1]; }
  std::uint64_t packet_hops() const;
  std::uint64_t events() const { return queue_.handled(); }

 private:
  // Events of links, by number; the others' unit is 0.
  enum What : std::uint32_t {
    kStart,    // read
    kWait,     // packet: comes to a link
    kSent,     // packet: its last byte has left a link
    kFetch,    // packet: has come to storage
    kRead,     // packet: storage has its data
    kServe,    // packet: the server reads its DRAM
    kRespond,  // packet: the server has its data
  };
  struct Read {
    int node = 0, server = 0, socket = 0;
    std::int64_t block = 0, asked = 0, arrived = 0;
    bool fetching = false;
    Time stored;  // storage has the block's first byte
    Time end;
  };

  void handle(const sim::Event& event);
  void ask(std::uint32_t read);
  void wait(std::size_t link, std::uint32_t packet);
  void start(std::size_t link);
  void sent(std::size_t link, std::uint32_t packet);
  void arrive(std::uint32_t packet);
  void fetch(std::uint32_t packet);
  void complete(std::uint32_t packet);
  static std::size_t out_of(int node) { return static_cast<std::size_t>(node) * 2; }
  static std::size_t into(int node) { return static_cast<std::size_t>(node) * 2 + 1; }
  std::size_t storage_of(int node) const {
    return first_storage_ + (tier_ == Tier::evs ? static_cast<std::size_t>(node) : 0);
  }

  Parameters parameters_;
  Tier tier_;
  int sockets_per_node_;
  std::size_t first_storage_;  // number of a link
  sim::EventQueue queue_;
  sim::Slab<Packet> packets_;
  std::vector<Link> links_;  // a card's outward and inward one, node by node; then those of storage
  std::vector<ub::SocketDram> dram_;
  std::vector<Read> reads_;
  std::size_t unfinished_ = 0;
  std::int64_t asked_ = 0, arrived_ = 0;  // bytes of all reads
  Time end_;
};

}  // namespace cm384::vpc
