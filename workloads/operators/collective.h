// An operator over many dies: one launch of its kernel per rank, and ranks that wait for each other. As
// Operator, with a memory per rank.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "system/host/device_memory.h"
#include "system/host/runtime.h"

namespace cm384::operators {

// A launch on one rank: its die and the block of arguments.
struct RankTask {
  int die = 0;
  std::uint64_t arguments = 0;
};

using RankMemory = std::deque<host::DeviceMemory>;  // of rank 0, 1, ...
inline RankMemory memory_of(host::Runtime& runtime, const std::vector<int>& dies) {
  RankMemory memory;
  for (const int die : dies) memory.emplace_back(runtime, die);
  return memory;
}

class Collective {
 public:
  virtual ~Collective() = default;

  // Allocates memory on all ranks and, in payload mode full, writes inputs. Once. Throws InputError where
  // there is no room or a kernel's buffers do not fit.
  virtual void place(RankMemory& memory) = 0;
  // Compares what all ranks hold with a reference computed on the host, in payload mode full: the first
  // difference; empty: none.
  virtual std::string check() const = 0;
  // Overwrites the outputs, so that a later check() sees what the next run wrote.
  virtual void spoil() const {}
  virtual const char* kernel() const = 0;

  const std::vector<RankTask>& tasks() const { return tasks_; }

 protected:
  // The blocks of arguments, and what belongs to them.
  std::vector<RankTask> tasks_;
};

}  // namespace cm384::operators
