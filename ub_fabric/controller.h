// The Unified Bus controller of a die or a CPU socket: the initiator and target end of remote reads, writes
// and atomics.
//
// It lives in its owner's module: its events stand in the owner's queue under one `unit` and come back by
// handle(). A request passes, in order: the queue of its direction (order of arrival, or by service class;
// reads, or writes and atomics), the bound on outstanding requests and the service interval, address
// translation, a port's lane queue. At the target: service interval, inbound latency (in the delivery, where
// there is no interval), RemoteTarget::access, response.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/fabric.h"
#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"
#include "ub_fabric/link.h"
#include "ub_fabric/package_link.h"
#include "ub_fabric/packet.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/service_classes.h"
#include "ub_fabric/sub_plane.h"
#include "ub_fabric/translation_cache.h"
#include "ub_fabric/virtual_output_queues.h"

namespace cm384::ub {

struct ControllerCounters {
  std::uint64_t reads = 0;    // requests taken by submit()
  std::uint64_t writes = 0;   // as above, atomics included
  std::uint64_t atomics = 0;  // part of writes
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t completions = 0;
  std::uint64_t faults = 0;  // completions with address_fault
  std::uint64_t served = 0;  // requests served as target
  std::uint64_t translation_misses = 0;
  std::uint64_t package_requests = 0;  // by the package link
  std::uint64_t resent = 0;            // requests sent again, as they or their responses were lost
  std::uint64_t repeated = 0;          // as target: requests answered again
  std::uint64_t late = 0;              // completed later than the timeout after they were sent, but not lost
};

// Time between two writes or atomics that a controller with these limits issues, and that it serves.
inline Time write_issue_interval(const hw::UbController& limits) {
  return limits.write_limit == "target" ? Time{} : limits.write_interval;
}
inline Time write_service_interval(const hw::UbController& limits) {
  const Time own = limits.target_write_interval;
  return limits.write_limit == "initiator" ? own : std::max(own, limits.write_interval);
}
// Whether requests may wait in the receive buffer for their service. If not, each is served as it is
// delivered.
inline bool holds_requests(const hw::UbController& limits) {
  return limits.target_read_interval > Time{} || write_service_interval(limits) > Time{};
}

class UbController final : public sim::FabricPort {
 public:
  // Sits at `self` in the queue `queue` with events of `unit`. `target` performs what others ask of its
  // memory, `client` receives completions; both may be set later, before the first event.
  UbController(const Parameters& parameters, Endpoint self, sim::EventQueue& queue, std::uint32_t unit,
               PacketPool& packets, sim::PayloadPool& payloads);
  UbController(const UbController&) = delete;
  UbController& operator=(const UbController&) = delete;

  void set_target(sim::RemoteTarget& target) { target_ = &target; }
  void set_client(sim::RemoteClient& client) { client_ = &client; }
  // Connects port plane.index(); every sub-plane once, before the first request.
  void attach(SubPlane& plane);
  // Rereads the networks of its sub-planes and the lanes of its ports, which have changed; before the first
  // request.
  void networks_changed();
  void narrow(unsigned port, double width);
  // Schedules such a change while the machine runs; after all networks_changed(), changes of a port in the
  // order of their times.
  void change_at(unsigned port, const NetworkChange& change);
  void narrow_at(Time at, unsigned port, double width);
  // Connects the controllers of a package's two dies, both ways.
  void join(UbController& sibling);

  // FabricPort: takes a request at the queue's event time request.at. Its payload moves here.
  // address_fault comes back for an address of no die or socket of this machine, or of the own die. Throws
  // MachineError for one of another supernode.
  void submit(const sim::Request& request) override;
  // An event of `unit`.
  void handle(const sim::Event& event) override;
  // Whether the event's argument is the Hop of a packet that another module has sent.
  static bool brings_packet(const sim::Event& event) { return event.what == kArrival || event.what == kLost; }

  // For a target that answers later. Within RemoteTarget::access, which then returns anything: takes the
  // payload away from the request and gives the number by which answer() knows it. `at`: not before the
  // queue's present; `payload` as access() leaves it.
  std::uint32_t defer();
  void answer(std::uint32_t request, const sim::Payload& payload, sim::Outcome outcome, Time at);

  // Fills the translation cache with a remote address, as an earlier request would have done.
  void warm_translation(std::uint64_t address);

  // Asks the host's cache for what handle() will touch, in stages of which each follows what the one before
  // has asked for: 0 the packet; 1 what its target touches, or nothing yet for a completion, which is
  // returned; 2 what that touches.
  struct Expected {
    std::uint32_t core = kNobody;
    std::uint32_t tag = 0;
  };
  static constexpr std::uint32_t kNobody = 0xffffffff;
  Expected prefetch(const sim::Event& event, int stage) const;

  // Its endpoint within its supernode.
  Endpoint endpoint() const { return self_; }
  const ControllerCounters& counters() const { return counters_; }
  // Requests not yet completed, in queues included.
  std::uint64_t pending() const { return pending_; }
  // Packets sent by its ports and, where there is one, its half of the package link.
  std::uint64_t packet_hops() const override { return ports_.packets() + package_.packets(); }
  // Sending ends of its ports, one per sub-plane: counters, busy time, faults, observers.
  LinkBank& ports() { return ports_; }
  const LinkBank& ports() const { return ports_; }
  const PackageLink& package_link() const { return package_; }
  // Declares its counters and those of its ports.
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;

 private:
  enum What : std::uint32_t {
    kArrival,      // Hop: a packet from a port; its inbound latency is over, or follows its service
    kPort,         // link: a port may send again
    kIssue,        // direction
    kTranslated,   // walk
    kServe,        // direction, as target
    kRespond,      // packet: the target's answer may leave
    kAccess,       // packet: served, its inbound latency over
    kPackage,      // packet: from the sibling
    kUnreachable,  // packet: no such address
    kLost,         // Hop: a packet that is to be sent again
    kChange,       // port << 32 | number: its sub-plane has another table
    kNarrow,       // number
  };
  enum Direction : unsigned { kRead, kWrite };
  enum class Spreading : std::uint8_t { round_robin, least_loaded, flow };

  struct Initiator {  // a direction
    PacketQueue waiting;
    int free_slots = 0;
    Time interval;
    Time next;  // earliest issue
    bool armed = false;
  };
  struct Target {  // a direction
    PacketQueue waiting;
    Time interval;
    Time inbound;  // from service to access, where requests wait for their service in the receive buffer
    Time next;
    bool armed = false;
  };
  struct Walk {
    std::uint64_t key = 0;
    PacketQueue waiting;
    bool busy = false;
  };
  static constexpr std::uint8_t kPackagePlane = 0xff;  // Packet::plane of what takes the package link
  static constexpr std::uint8_t kNowhere = 0xfe;       // ... of what has no destination

  static Direction direction(PacketKind kind);
  bool reaches(std::uint64_t address, Endpoint& endpoint) const;
  [[noreturn]] void refuse(std::uint64_t address) const;
  bool by_package(Endpoint destination, std::uint64_t address) const;
  void start(PacketIndex index, Time now);
  void issue(Direction d, Time now);
  void issue_by_class(Direction d, Time now);
  PacketIndex next_served(Direction d);
  bool translate(PacketIndex index, Time now);
  void translated(unsigned walk, Time now);
  void choose_port(PacketIndex index, Time now);
  // The first port from `port` on that leads to an endpoint and back.
  unsigned usable_port(unsigned port, Endpoint destination) const;
  void change(unsigned port, unsigned number, Time now);
  void resend(PacketIndex index, Time now);
  void enqueue_elsewhere(PacketIndex index, Time now);
  unsigned least_loaded_port(Time now, Endpoint destination) const;
  // Whether packets reach an endpoint and come back through a port; used only where something is out of
  // order.
  bool reaches_by(unsigned port, Endpoint destination) const;
  bool usable(unsigned port, Endpoint destination) const { return whole_ || reaches_by(port, destination); }
  void enqueue(unsigned port, PacketIndex index, Time now);
  void compare_rate(unsigned port);
  void serve_port(unsigned port, Time now);
  void send(unsigned port, Hop hop, Time now);
  void arrive(Hop hop, Time now);
  void serve_waiting(Direction d, Time now);
  void serve(Direction d, PacketIndex index, Time now);
  void access(PacketIndex index, Time now);
  void performed(PacketIndex index, const sim::Payload& payload, sim::Outcome outcome);
  void make_response(Packet& p) const;
  void respond(PacketIndex index, Time now);
  void over_package(PacketIndex index, Time now);
  void complete(PacketIndex index, Time now);

  Parameters parameters_;
  hw::UbController limits_;
  Time miss_latency_;
  Endpoint self_;
  sim::EventQueue& queue_;
  std::uint32_t unit_;
  PacketPool& packets_;
  sim::PayloadPool& payloads_;
  sim::RemoteTarget* target_ = nullptr;
  sim::RemoteClient* client_ = nullptr;
  std::vector<SubPlane*> planes_;
  std::vector<std::shared_ptr<const Network>> networks_;  // of the sub-planes, as known here now
  LinkBank ports_;
  // By port: flits of the links to dies and between chips that a packet may take next.
  struct NextLinks {
    Clock die, trunk;
    bool die_faster = false, trunk_faster = false;  // than the port
    bool differ = false;                            // from link to link: the sub-plane knows
  };
  std::vector<NextLinks> next_links_;
  bool any_faster_ = false;
  unsigned lane_pairs_ = 1;  // of a lane class: the fewest of all sub-planes
  bool whole_ = true;        // nothing is out of order
  enum class Reach : std::uint8_t { unknown, yes, no };
  mutable std::vector<Reach> reach_;  // by port and endpoint
  bool holds_requests_ = true;
  bool store_ = false;
  Spreading spreading_;
  unsigned turn_ = 0;
  std::array<Initiator, 2> initiator_;
  std::array<Target, 2> serving_;
  VirtualOutputQueues waiting_;  // one input a port
  TranslationCache translation_;
  std::vector<Walk> walks_;
  PacketQueue unwalked_;  // misses that wait for a free walk
  PackageLink package_;
  UbController* sibling_ = nullptr;
  ControllerCounters counters_;
  std::uint64_t pending_ = 0;
  struct Breaks {                                     // what breaks while the machine runs
    std::vector<std::vector<NetworkChange>> changes;  // by port
    std::vector<std::pair<unsigned, double>> narrowings;
  };
  // Where there are service classes, or rates: nullptr where all requests are alike.
  struct ByClass {
    ByClass(const hw::UbQos& qos, unsigned ports, unsigned die_level);
    ServiceClasses classes;
    unsigned level;                                   // of requests that say nothing
    ClassTurns ports;                                 // at its ports
    std::array<ClassQueues, 2> issuing, serving;      // by direction
    std::array<Time, 2> wake{};                       // next event of kIssue
    std::array<std::vector<TokenBucket>, 2> buckets;  // by direction and class
    unsigned class_of(const sim::Request& request) const {
      return classes.of_level(request.lane != 0 ? request.lane : level);
    }
  };
  std::unique_ptr<ByClass> by_class_;
  Breaks& breaks();  // made at first use
  std::unique_ptr<Breaks> breaks_;
  PacketIndex served_ = 0;  // by access() now
  bool deferred_ = false;
};

}  // namespace cm384::ub
