// What kernels write to global memory, against what was allocated and against what other cores have written;
// what they read of it that another core of the die has written in the launch, with nothing between that
// could order them; what they read of their UBuffer, against what their launch has written there; scalar
// accesses to it that are not aligned: findings with the places in the program. An observer of pipes, at no
// cost where it is not asked for; it changes nothing that is simulated.
//
// Looked at are copies of the MTE and FIX pipes, also to other dies; stores of the scalar unit are not. Two
// cores that write the same bytes in one launch are a finding also where flags order them: the later one
// wins, whichever that is. Atomic operations are meant for that and are none. A core that waits for a flag of
// cores, reads memory by its scalar unit, or a piece of at most 64 B that another one has written, may have
// been told that all before is there: reads after that are none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "system/machine/supernode.h"

namespace cm384::observe {

class MemoryCheck {
 public:
  // Whether all of a range of global memory was allocated.
  using Allocated = std::function<bool(std::uint64_t address, std::uint64_t bytes)>;

  // Looks at all cores that the machine's dies have by now. `machine` must outlive its last run with it.
  MemoryCheck(supernode::Supernode& machine, Allocated allocated);
  ~MemoryCheck();
  MemoryCheck(const MemoryCheck&) = delete;
  MemoryCheck& operator=(const MemoryCheck&) = delete;

  // One line each, the first of each place of the program, in the order in which they were found; at most 50.
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  class CoreWatch;
  // Who has written [begin, end) last.
  struct Writer {
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;  // that were written at once
    std::int64_t cycle = 0;   // of the core, when it began
    int die = 0, core = 0;
    std::uint32_t launch = 0;
    std::uint64_t pc = 0;
    std::string place;
  };

  // The scalar unit or a pipe reads the UBuffer.
  void read_unwritten(const Writer& reader, std::uint32_t offset, std::uint32_t bytes);
  void unaligned(const Writer& by, std::uint32_t offset, std::uint32_t bytes);
  void wrote(const Writer& writer, std::uint64_t begin);
  // Of global memory, up to reader.end, by a core that nothing tells of what was written after `told`.
  // Whether it may be told by what it reads.
  bool read(const Writer& reader, std::uint64_t begin, std::int64_t told);
  void find(const Writer& writer, std::uint64_t other_pc, std::string text);
  void note(const Writer& writer, std::uint64_t begin);

  Allocated allocated_;
  std::vector<std::unique_ptr<CoreWatch>> watches_;
  std::map<std::uint64_t, Writer> written_;                   // by begin; ranges do not overlap
  std::set<std::tuple<std::uint64_t, std::uint64_t>> found_;  // places of the program
  std::vector<std::string> findings_;
};

}  // namespace cm384::observe
