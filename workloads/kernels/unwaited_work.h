// What a program of the host has put into streams and not waited for, as far as its own calls say: a copy
// that does not wait for streams may come before it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cm384::studies {

// Streams and events have numbers of the caller's.
class UnwaitedWork {
 public:
  struct Work {
    std::string what;                   // "launch of add"
    std::vector<std::uint64_t> reads;   // addresses; what stands at one is all of its allocation
    std::vector<std::uint64_t> writes;  // of a launch all its arguments, both ways
  };

  void allocated(std::uint64_t address, std::uint64_t bytes) { allocations_[address] = bytes; }
  void freed(std::uint64_t address) { allocations_.erase(address); }

  void started(std::uint64_t stream, Work work);
  void recorded(std::uint64_t event, std::uint64_t stream) { events_[event] = after(stream); }
  void awaits(std::uint64_t stream, std::uint64_t event) { join(streams_[stream].before, events_[event]); }
  // The host has waited.
  void waited_for_stream(std::uint64_t stream) { complete(after(stream)); }
  void waited_for_event(std::uint64_t event) { complete(events_[event]); }

  // The first work that may still write, or where `write` also read, the allocation that holds the address.
  std::optional<std::string> meets(std::uint64_t address, bool write) const;

 private:
  using Clock = std::map<std::uint64_t, std::size_t>;  // by stream, how many works

  static void join(Clock& into, const Clock& other);
  // What is complete when all that the stream has now is.
  Clock after(std::uint64_t stream);
  void complete(const Clock& done);

  struct Stream {
    std::size_t complete = 0;  // works that are, which are forgotten
    std::deque<Work> works;
    Clock before;  // what it waits for
  };
  std::map<std::uint64_t, std::uint64_t> allocations_;
  std::map<std::uint64_t, Stream> streams_;
  std::map<std::uint64_t, Clock> events_;
};

}  // namespace cm384::studies
