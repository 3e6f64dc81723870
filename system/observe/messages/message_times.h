// Where each message's time went: the way of that request of it which was answered last, from link to link.
//
// A message is a transfer to other memory by the Unified Bus. Its time counts from when all it waited for had
// happened until its last request is answered; the parts below follow each other, so that they add up to it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "system/machine/supernode.h"
#include "ub_fabric/packet.h"

namespace cm384::observe {

enum class MessageCause : std::uint8_t {
  source_queue,  // until its first request leaves: earlier transfers of its engine
  issue,   // until the last request has a port: its requests before, the controller's bounds, translation
  uplink,  // on links from dies and sockets to chips, and in those chips: waits for the wire, wire, pipeline
  trunk,   // the same of links between chips
  downlink,  // the same of links from chips to dies and sockets, with all flits of a packet
  credits,   // waits while the wire is free
  target,    // from its arrival at the target until the response is on the wire
  answer,    // from the response's arrival until the engine knows
  other,     // on the package's link or the RDMA plane, which are not followed
};
inline constexpr std::size_t kMessageCauses = 9;
std::string_view name_of(MessageCause cause);

struct MessageParts {
  std::array<std::int64_t, kMessageCauses> ps{};
  int hops = 0;  // links that the request took
  std::int64_t& operator[](MessageCause cause) { return ps[static_cast<std::size_t>(cause)]; }
  std::int64_t operator[](MessageCause cause) const { return ps[static_cast<std::size_t>(cause)]; }
};

class MessageTimes {
 public:
  // Before the machine runs; traces all its links. A packet is told by the thread that runs who sends it.
  explicit MessageTimes(supernode::Supernode& machine);
  ~MessageTimes();
  MessageTimes(const MessageTimes&) = delete;
  MessageTimes& operator=(const MessageTimes&) = delete;

  // Of a transaction that has ended, and forgets it. The parts sum up to `end` - `ready`.
  MessageParts extract(sim::TransactionId transaction, Time ready, Time start, Time end);

 private:
  struct Wire;  // one direction of a link
  // A packet under way.
  struct Flight {
    Time port;           // when it was given one
    Time start, tail;    // on the link it took last
    Time reached;        // the end of what is accounted for
    MessageParts parts;  // after `port`
    const Wire* last = nullptr;
  };
  // A request that was answered.
  struct Answered {
    Time port, reached;
    int plane = -1;
    MessageParts parts;
    // Of two at one moment that of the later sub-plane, whichever thread ran first.
    bool comes_before(const Answered& other) const {
      return reached != other.reached ? reached < other.reached : plane <= other.plane;
    }
  };
  using AnsweredRequests = std::unordered_map<sim::TransactionId, Answered>;     // looked up only
  static constexpr unsigned kPageShift = 12, kPages = (1u << 28) >> kPageShift;  // of packets' indices

  void sent(const supernode::LinkPacket& packet);
  void add_wire(const supernode::LinkName& link);
  std::size_t place_of(const supernode::LinkName& link) const;
  Flight& flight(ub::PacketIndex index);

  supernode::Supernode& machine_;
  std::vector<std::vector<std::unique_ptr<Wire>>> wires_;  // by plane; links, then sending ends of endpoints
  // By index of the packet, in pages, which never move: who has the packet has its flight.
  std::vector<std::atomic<Flight*>> pages_;
  std::vector<std::unique_ptr<Flight[]>> made_;
  std::mutex making_;
  std::vector<AnsweredRequests>
      answered_;  // the last ones so far; of each sub-plane where several threads run
};

}  // namespace cm384::observe
