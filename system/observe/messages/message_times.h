// Where each message's time went: the way of that request of it which was answered last, from link to link.
//
// A message is a transfer to other memory by the Unified Bus. Its time counts from when all it waited for had
// happened until its last request is answered; the parts below follow each other, so that they add up to it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "system/machine/supernode.h"

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
  // Before the machine runs; traces all its links.
  explicit MessageTimes(supernode::Supernode& machine);
  ~MessageTimes();
  MessageTimes(const MessageTimes&) = delete;
  MessageTimes& operator=(const MessageTimes&) = delete;

  // Of a transaction that has ended, and forgets it. The parts sum up to `end` - `ready`.
  MessageParts take(sim::TransactionId transaction, Time ready, Time start, Time end);

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
    MessageParts parts;
  };
  void sent(const supernode::LinkPacket& packet);
  Wire& wire(const supernode::LinkName& link);

  supernode::Supernode& machine_;
  std::unordered_map<const supernode::LinkName*, std::unique_ptr<Wire>> wires_;  // looked up only
  std::vector<Flight> flights_;                                                  // by index of the packet
  std::unordered_map<sim::TransactionId, Answered> answered_;  // the last one so far; looked up only
};

}  // namespace cm384::observe
