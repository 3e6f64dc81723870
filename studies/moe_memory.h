// What dispatch and combine have in the memories of all ranks: inputs, windows, tables, outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "firmware/abi/combine.h"
#include "firmware/abi/dispatch.h"
#include "host/runtime.h"
#include "operators/reference/combine_reference.h"
#include "operators/reference/dispatch_reference.h"
#include "studies/combine.h"

namespace cm384::studies {

// Tokens, experts and routing of a setting. Reads the trace where it names one.
reference::DispatchCase make_moe_case(std::uint64_t seed, const DispatchCase& setting);

// An operator on one rank: the die and the block of arguments.
struct RankTask {
  int die = 0;
  std::uint64_t arguments = 0;
};

class DispatchMemory {
 public:
  // `dies`: of each rank. `windows`: those of an earlier call with the same sizes, to be used again; empty:
  // new ones. Throws InputError where the kernel's buffers do not fit. `dispatch` must outlive this.
  DispatchMemory(host::Runtime& runtime, const reference::DispatchCase& dispatch,
                 const std::vector<int>& dies, const DispatchCase& setting,
                 std::vector<cm384_peer> windows = {});

  const std::vector<RankTask>& tasks() const { return tasks_; }
  const cm384_dispatch& arguments(int rank) const { return arguments_[static_cast<std::size_t>(rank)]; }
  const std::vector<cm384_peer>& windows() const { return windows_; }
  // Compares what all ranks hold with the reference; empty when equal.
  std::string compare(const reference::DispatchReference& reference) const;
  // Rows and scales alone.
  std::string compare_rows(const reference::DispatchReference& reference) const;
  // Of the rows, scales and triples that all ranks hold, 64-bit FNV-1a.
  std::uint64_t digest(const reference::DispatchReference& reference) const;

 private:
  void allocate(int rank, int die, int cores);
  void fill(int rank, bool full) const;

  host::Runtime& runtime_;
  const reference::DispatchCase& case_;
  std::vector<RankTask> tasks_;
  std::vector<cm384_dispatch> arguments_;
  std::vector<cm384_peer> windows_;
};

// Combine's own, beside the windows, triples and counts of a dispatch. Experts' outputs are put where
// dispatch delivers the rows, before it has run: the reference knows the order.
class CombineMemory {
 public:
  // Throws InputError where the kernel's buffers do not fit. `dispatch` must outlive this.
  CombineMemory(host::Runtime& runtime, const reference::DispatchCase& dispatch, const DispatchMemory& memory,
                const CombineCase& setting);

  const std::vector<RankTask>& tasks() const { return tasks_; }
  const cm384_combine& arguments(int rank) const { return arguments_[static_cast<std::size_t>(rank)]; }
  // The rows that are summed are what these experts make of what dispatch delivers.
  void set_experts(reference::ExpertOutput experts) { reference_.set_experts(std::move(experts)); }
  // Compares what all ranks hold with the reference; empty when equal.
  std::string compare() const;
  // Overwrites the outputs, so that a later comparison sees what the next call wrote.
  void spoil() const;
  // Overwrites the experts' outputs: whoever computes them has to write them again. Payload mode full.
  void spoil_experts() const;

 private:
  void fill(int rank, const reference::DispatchReference* delivered) const;

  host::Runtime& runtime_;
  const reference::DispatchCase& case_;
  std::vector<std::size_t> arrived_;  // rows at each rank, payload mode full
  reference::CombineReference reference_;
  std::vector<RankTask> tasks_;
  std::vector<cm384_combine> arguments_;
};

}  // namespace cm384::studies
