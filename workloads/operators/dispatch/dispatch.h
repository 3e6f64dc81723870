// Dispatch of tokens to the ranks of their experts: inputs, windows, tables, outputs in the memories of all
// ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/dispatch.h"
#include "firmware/abi/relay.h"
#include "workloads/operators/collective.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::operators {

// Throws InputError: the kernel's buffers do not fit.
[[noreturn]] void does_not_fit(const char* what, const reference::DispatchCase& dispatch);

class Dispatch final : public Collective {
 public:
  // On so many AIVs per rank. `windows`: those of an earlier call with the same sizes, to be used again;
  // empty: new ones. `dispatch` must outlive this.
  Dispatch(const reference::DispatchCase& dispatch, int cores, bool full,
           std::vector<cm384_peer> windows = {})
      : case_(dispatch), cores_(cores), full_(full), windows_(std::move(windows)) {}

  void place(RankMemory& memory) override;
  std::string check() const override;
  // Rows and scales alone.
  std::string check_rows() const;
  // Of the rows, scales and triples that all ranks hold, 64-bit FNV-1a.
  std::uint64_t digest() const;
  const char* kernel() const override {
    return case_.relays != 0 ? "dispatch_relay" : case_.full_mesh ? "dispatch_full_mesh" : "dispatch";
  }

  const cm384_dispatch& arguments(int rank) const { return arguments_[static_cast<std::size_t>(rank)]; }
  const std::vector<cm384_peer>& windows() const { return windows_; }
  // Where the case has relays.
  const cm384_relay& relay(int rank) const { return relays_[static_cast<std::size_t>(rank)]; }
  const reference::DispatchCase& layer() const { return case_; }
  // What must arrive: in payload mode full, once it is placed.
  const reference::DispatchReference& expected() const { return *expected_; }
  bool full() const { return full_; }
  int cores() const { return cores_; }

 private:
  void allocate(int rank, host::DeviceMemory& memory);
  void fill(int rank) const;
  bool fits(int rank) const;

  const reference::DispatchCase& case_;
  int cores_;
  bool full_;
  host::Runtime* runtime_ = nullptr;
  std::vector<cm384_dispatch> arguments_;
  std::vector<cm384_peer> windows_;
  std::vector<cm384_relay> relays_;  // by rank; empty: none
  std::optional<reference::DispatchReference> expected_;
};

}  // namespace cm384::operators
