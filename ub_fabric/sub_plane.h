// One of the independent sub-planes of the Unified Bus: the switch chips of a topology and the links between,
// as one module with its own event queue. Links share nothing between sub-planes. It walks the topology's
// table (topology/network.h) and knows no kind of topology.
//
// Transaction-level switch chip: input buffers a (port, virtual lane) with credits, virtual output queues,
// cut-through or packet-store forwarding, a pipeline latency, and at each output round robin over lanes and
// over the inputs of a lane (or ub.qos.arbitration), with one packet between arbiter and wire. A packet is
// one event a link; an output has events of its own only while packets wait for it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/fabric.h"
#include "base/text/units.h"
#include "ub_fabric/breaks.h"
#include "ub_fabric/crossing.h"
#include "ub_fabric/link.h"
#include "ub_fabric/link_timing.h"
#include "ub_fabric/packet.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/routing.h"
#include "ub_fabric/service_classes.h"
#include "ub_fabric/switch_chip.h"
#include "ub_fabric/topology/network.h"
#include "ub_fabric/virtual_output_queues.h"

namespace cm384::ub {

// Where a sub-plane delivers: events {unit, what, Hop bits} of the endpoint's queue at the packet's last
// flit plus the latency of its class.
struct Attachment {
  sim::EventQueue* queue = nullptr;
  std::uint32_t unit = 0;
  std::uint32_t what = 0;
  Time read_latency;
  Time write_latency;
  Time response_latency;
  LinkBank* uplinks = nullptr;  // the endpoint's sending ends: credits come back there
  unsigned uplink = 0;
  // Whether requests, responses stay in the receive buffer after their delivery, until the endpoint calls
  // free_cells(). What does not stay gives its cells back when its last flit is there.
  bool holds_requests = true;
  bool holds_responses = true;
  // Lost packets are reported to their initiator by events {unit, lost, Hop bits}, this long after they were
  // sent.
  std::uint32_t lost = 0;
  Time resend_timeout;
};

class SubPlane final : public sim::FabricModule {
 public:
  // `source` numbers its event queue (unique in the machine); `seed` places the turns of the spraying. Planes
  // may share a network; without one it is that of parameters.topology. Throws InputError where the lanes do
  // not suffice for the topology and the routing.
  SubPlane(unsigned index, const Parameters& parameters, PacketPool& packets, std::uint32_t source,
           std::uint64_t seed, std::shared_ptr<const Network> network = nullptr);
  SubPlane(const SubPlane&) = delete;
  SubPlane& operator=(const SubPlane&) = delete;

  unsigned index() const { return index_; }
  sim::EventQueue& queue() override { return queue_; }
  void run_until(Time end) override;

  // Connects an endpoint; called by its controller. Endpoints without one must not be addressed.
  void attach(Endpoint endpoint, const Attachment& attachment);
  bool attached(Endpoint endpoint) const { return attached_[endpoint].queue != nullptr; }
  // A packet whose head (packet-store: tail) reaches the endpoint's L1 chip at `arrival`, at least one link
  // latency after `from`'s now. Its credits must be taken.
  void inject(sim::EventQueue& from, Endpoint endpoint, Hop hop, Time arrival);
  // Cells that the endpoint holds in its receive buffer come free at `at`; the L1 chip knows a link latency
  // later.
  void free_cells(Endpoint endpoint, unsigned lane, int cells, Time at);

  const Network& network() const { return *network_; }
  // Rates and latencies of its links, those of endpoints to it included, as they are now.
  const LinkTimings& timings() const { return timings_; }
  const std::shared_ptr<const Network>& shared_network() const { return network_; }
  // Sending ends of all chips, numbered as the network does.
  const LinkBank& links() const { return links_; }
  unsigned link_to_endpoint(Endpoint endpoint) const { return network_->link_to(endpoint); }
  // Lanes of a lane class in pairs, one for requests and one for responses, as many for each service class: a
  // packet enters by one of the first lane class, its response by the next lane.
  unsigned lane_pairs() const { return lane_pairs_; }
  void attach_fault(unsigned link, LinkFault* fault) { links_.attach_fault(link, fault); }
  void attach_observer(unsigned link, LinkObserver* observer) { links_.attach_observer(link, observer); }
  // Replaces the table by another one of the same chips and links, with other parts out of order; before the
  // first packet. Throws InputError where its detours take more lanes than there are.
  void set_network(std::shared_ptr<const Network> network);
  // Reduces a link, both ways, to part of its physical lanes; before the first packet. The endpoint's own
  // sending end is its controller's, which learns its flits from narrow_port().
  void narrow(unsigned link, double width);
  const Clock& narrow_port(Endpoint endpoint, double width) {
    timings_.narrow_port(endpoint, width);
    return timings_.of_port(endpoint).flit;
  }
  // The fastest flits that a packet for `destination` may go on with from a chip: of all its links between
  // chips where a detour is not ruled out.
  const Clock& next_flit(unsigned chip, Endpoint destination) const;
  // Schedules another table while it runs; called before the first packet, changes in the order of their
  // times. Throws InputError also where a chip is another model.
  void change_at(const NetworkChange& change);
  void narrow_at(const Narrowing& narrowing);
  // Puts another model in the place of a chip, before the first packet. Throws InputError where packets
  // change lanes, which such a chip does not.
  void install(unsigned chip, SwitchChip* model);

  // Packets lost in what went out of order while it ran.
  std::uint64_t lost() const { return breaks_ == nullptr ? 0 : breaks_->lost; }
  // Packets that waited for an output which went out of order, and took another.
  std::uint64_t rerouted() const { return breaks_ == nullptr ? 0 : breaks_->rerouted; }
  // Packets sent by its chips, each link counted (the endpoints' own links: UbController::packet_hops).
  std::uint64_t packet_hops() const override { return links_.packets(); }
  // Declares the counters of links whose ends take part.
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  // From hold_credits() on, what other modules post for it goes through `crossings`.
  void hold_credits() { links_.hold_credits(); }
  void exchange(Crossings& crossings);

  // Before workers beyond 0 inject or deliver.
  void set_workers(unsigned workers) {
    queue_.set_workers(workers);
    links_.set_workers(workers);
    injected_.set_workers(workers);
  }

 private:
  friend class SubPlaneChipHost;
  enum What : std::uint32_t { kArrival, kOutput, kChange, kNarrow };
  static constexpr std::uint32_t kToEndpoint = 0x80000000;

  std::uint64_t injected() const {
    std::uint64_t sum = 0;
    injected_.each([&](std::uint64_t by_worker) { sum += by_worker; });
    return sum;
  }
  void handle(const sim::Event& event);
  void prefetch(const sim::Event& event) const;
  // The output for a packet at its input, and the lane there; may start or end a detour.
  struct Way {
    unsigned output = 0;
    unsigned lane = 0;
  };
  Way route(unsigned chip, unsigned input, Hop& hop);
  Way route_with_classes(unsigned chip, unsigned input, Hop& hop);
  unsigned choose(unsigned chip, unsigned input, Hop hop, std::span<const std::uint16_t> ways);
  unsigned least_occupied(unsigned first, std::span<const std::uint16_t> ways, unsigned turn, unsigned lane);
  unsigned detour(unsigned chip, unsigned input, Hop hop);
  void compare_rate(unsigned link);
  Time departure_time(unsigned output, Hop hop, const Transmission& t, Time at) const;
  int queue_towards(unsigned chip, unsigned destination, unsigned lane);
  void arrive(unsigned input, Hop hop);
  void accept(unsigned input, Hop hop);
  void serve_output(unsigned output);
  void send(unsigned input, unsigned output, unsigned lane, Hop hop);
  void deliver(Endpoint endpoint, unsigned output, Hop hop, Time tail);
  // Cells of an input buffer become free at `at`.
  void free_input(unsigned input, unsigned lane, int cells, Time at);
  // Checks that lanes and classes suffice for a table.
  void allow_for(const Network& network);
  Breaks& breaks();
  void change(const NetworkChange& change);
  bool cut_off(unsigned input, Hop hop);
  bool lacks_way(unsigned input, Hop hop);
  bool misses(unsigned output, Hop hop, Time tail);
  void drop(unsigned input, Hop hop);
  void lose(Hop hop, Time at);

  unsigned index_;
  std::shared_ptr<const Network> network_;
  LinkTimings timings_;
  PacketPool& packets_;
  sim::EventQueue queue_;
  LinkBank links_;
  VirtualOutputQueues waiting_;
  RoutingPolicy routing_;
  std::unique_ptr<ClassTurns> turns_;  // where service classes arbitrate, by output
  unsigned lane_pairs_ = 1;
  bool two_parts_ = false;     // there are detours
  bool with_classes_ = false;  // packets change lanes
  bool store_;
  std::uint64_t seed_;
  Time endpoint_latency_;
  Time trunk_latency_;
  // The other end of output number n: an input number, or kToEndpoint | endpoint.
  std::vector<std::uint32_t> peer_;
  // The sending end that fills input number n.
  struct Upstream {
    LinkBank* bank = nullptr;
    std::uint32_t link = 0;
  };
  std::vector<Upstream> upstream_;
  std::vector<std::uint32_t> chip_of_;  // by input or output number
  std::vector<Time> pipeline_;          // by chip; none of a chip of another model
  bool uneven_ = false;                 // links or chips differ from others of their kind
  std::vector<std::uint64_t> turn_;     // by input: next among several ways
  std::vector<std::uint32_t> draws_;    // by input: chips drawn
  std::vector<unsigned> drawn_from_;    // chips that a detour may go by
  std::vector<Attachment> attached_;
  std::vector<SwitchChip*> foreign_;  // per chip; nullptr: built in
  Parameters parameters_;
  // Whether a link is slower than those to dies, and than those between chips.
  enum Slower : std::uint8_t { kThanDies = 1, kThanTrunks = 2 };
  std::vector<std::uint8_t> slower_;
  bool any_slower_ = false;
  sim::PerWorker<std::uint64_t> injected_;
  std::uint64_t delivered_ = 0;
  std::unique_ptr<Breaks> breaks_;  // where something goes out of order while it runs
};

}  // namespace cm384::ub
