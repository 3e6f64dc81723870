// The switches of the RDMA plane, leaves and spines, and where there are several supernodes the core switches
// that join them: one module. A leaf and a spine belong to a supernode; a core switch has a link to the spine
// of one number of each of them. Wired in rails, a leaf has the dies of one number of several supernodes,
// spines join all leaves, and there are no core switches.
//
// A packet is stored whole at each chip; switch_latency later it stands in the queue of its output for its
// input. An output takes its inputs in turn. Bytes that came in by a port and have not left the chip are
// counted there: above pause_on the port pauses whoever sends to it, at pause_off it lets it go on; a pause
// takes link_latency to get there and waits for the packet that is being sent. The buffer holds what comes
// until then, so nothing is ever dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/fabric.h"
#include "base/text/units.h"
#include "hw/parameters/rdma.h"
#include "ub_fabric/planes/rdma/packet.h"

namespace cm384::rdma {

// Throws InputError where thresholds, buffer and links do not fit together; `core`: those to core switches
// too.
void check(const hw::Rdma& parameters, bool core);

class LeafSpine final : public sim::FabricModule {
 public:
  // Where packets for a die and pauses of its interface go: events {unit, arrived | paused, packet | 0 or 1}.
  struct Attachment {
    sim::EventQueue* queue = nullptr;
    std::uint32_t unit = 0, arrived = 0, paused = 0;
  };

  // `dies`: of all supernodes.
  LeafSpine(const hw::Rdma& parameters, unsigned dies, unsigned supernodes, Pools& pools,
            std::uint32_t source);
  LeafSpine(const LeafSpine&) = delete;
  LeafSpine& operator=(const LeafSpine&) = delete;

  void attach(unsigned die, const Attachment& attachment) { attached_[die] = attachment; }
  bool attached(unsigned die) const { return die < attached_.size() && attached_[die].queue != nullptr; }
  // A packet whose last byte reaches the die's leaf at `arrival`, at least a link's latency after `from`'s
  // now.
  void inject(sim::EventQueue& from, unsigned die, std::uint32_t packet, Time arrival);

  sim::EventQueue& queue() override { return queue_; }
  void run_until(Time end) override;
  std::uint64_t packet_hops() const override { return counters_.packets; }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;

  // Numbers of switches, over all supernodes.
  unsigned leaves() const { return supernodes_ * leaves_; }
  unsigned spines() const { return supernodes_ * spines_; }
  unsigned cores() const { return spines_ * cores_; }
  // Whether an event's argument is a packet that an interface has sent.
  static bool brings_packet(const sim::Event& event) { return event.what == kArrive; }
  // Most bytes that any port's buffer has held.
  std::uint64_t deepest() const { return counters_.deepest; }
  std::uint64_t pauses() const { return counters_.pauses; }

 private:
  enum What : std::uint32_t { kArrive, kForward, kSent, kPause };
  static constexpr std::uint32_t kToDie = 0x80000000;
  using PacketQueue = sim::SlabQueue<Packet>;

  // Both directions of a port have its number.
  struct Port {
    Clock byte;               // of the link
    Time latency;             // of the link
    std::uint32_t chip = 0;   // leaves, spines, core switches
    std::uint32_t local = 0;  // number on its chip
    std::uint32_t peer = 0;   // the other end's port, or kToDie | die
    bool sending = false, paused = false;
    std::uint32_t turn = 0;     // input that is looked at first
    std::uint32_t waiting = 0;  // packets for it
    std::int64_t held = 0;      // bytes that came in by it
    bool pausing = false;       // has paused its sender
    std::uint32_t next_up = 0;  // way of packets that came in by it, when they are sprayed
  };
  struct Chip {
    std::uint32_t first = 0, ports = 0;
    std::size_t queues = 0;  // output after output, a queue per input
  };
  struct Counters {
    std::uint64_t packets = 0, bytes = 0, pauses = 0, deepest = 0;
  };

  void add_chip(unsigned ports);
  void join(std::uint32_t port, std::uint32_t other, const Clock& byte, Time latency);
  void wire();
  // Where a die of a supernode is: its leaf there, and its port of that.
  struct Place {
    unsigned leaf = 0, port = 0;
  };
  Place place_of(unsigned die) const;
  unsigned total_leaves() const;
  std::uint32_t port_of_die(unsigned die) const;
  void arrive(std::uint32_t input, std::uint32_t packet);
  void forward(std::uint32_t input, std::uint32_t packet);
  void start(std::uint32_t output);
  void sent(std::uint32_t output, std::uint32_t input, std::uint32_t bytes);
  void pause(std::uint32_t input, bool on);
  std::uint32_t output_for(std::uint32_t input, const Packet& packet);
  std::uint32_t way_up(Port& input, const Packet& packet, unsigned ways, unsigned level) const;
  PacketQueue& waiting(const Port& output, std::uint32_t local_input) {
    const Chip& chip = chips_[output.chip];
    return queues_[chip.queues + std::size_t{output.local} * chip.ports + local_input];
  }

  hw::Rdma parameters_;
  Pools& pools_;
  sim::EventQueue queue_;
  unsigned rails_;  // dies of a supernode, each at a leaf of its own; 0: consecutive dies share one
  unsigned supernodes_, dies_;  // of a supernode; of rails all dies are one's
  unsigned leaves_, spines_;    // of a supernode
  unsigned cores_;              // of each number of spine
  bool spray_;
  std::vector<Chip> chips_;
  std::size_t queue_count_ = 0;
  std::vector<Port> ports_;
  std::vector<PacketQueue> queues_;
  std::vector<Attachment> attached_;  // by die
  Counters counters_;
};

}  // namespace cm384::rdma
