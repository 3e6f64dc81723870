// Contexts that decode instances have swapped out to host memory: who waits there, in the order in which they
// came, and the copies of each die's blocks, one at a time over its way to the host.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "workloads/service/decode_instance.h"
#include "workloads/service/deployment.h"

namespace cm384::service {

class HostMemory {
 public:
  struct Context {
    std::uint32_t request = 0;
    std::int64_t bytes = 0;  // of its blocks
    Time copied{};           // when they are in host memory
  };

  explicit HostMemory(const DecodeSpec& spec) : spec_(spec) {}

  // Requests that had to leave their dies of instance `i`: each is marked as swapped out as long as host
  // memory has room for its blocks. Returns when the last of the copies has ended, which are not over before
  // the room is used again.
  Time swap_out(std::uint32_t i, std::vector<DecodeInstance::Lost>& requests, Time now);
  // The one that returns next; null: nobody waits.
  const Context* next(std::uint32_t i) const;
  // It returns to a die within the instance, where its blocks are at the time returned. It holds host memory
  // until then.
  Time begin_return(std::uint32_t i, int die, Time now);
  // False: no copy of it ends now, because it was lost on its way.
  bool end_return(std::uint32_t i, std::uint32_t request, Time now);
  std::uint32_t size() const { return static_cast<std::uint32_t>(instances_.size()); }  // instances so far

  // The die was lost: who was on the way to it waits again, ahead of others. Returns these.
  std::vector<std::uint32_t> lose_die(std::uint32_t i, int die);
  // The instance was lost with all that it had swapped out.
  std::vector<std::uint32_t> lose_all(std::uint32_t i);
  bool empty(std::uint32_t i) const { return i >= instances_.size() || instances_[i].used == 0; }

 private:
  struct Returning {
    Context context;
    int die = 0;
    Time end{};
  };
  struct Instance {
    std::int64_t used = 0;  // bytes of host memory
    std::deque<Context> waiting{};
    std::vector<Returning> returning{};
    std::vector<Time> free{};  // when each die's way to the host is
  };
  Instance& instance(std::uint32_t i);
  static Time copy(Time from, std::int64_t bytes, const Bandwidth& rate, Time& free);

  const DecodeSpec& spec_;
  std::vector<Instance> instances_;
};

}  // namespace cm384::service
