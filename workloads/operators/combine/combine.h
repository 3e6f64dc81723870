// Combine of what experts made of dispatched rows, beside the windows, triples and counts of a dispatch.
// Experts' outputs are put where dispatch delivers the rows, before it has run: the reference knows the
// order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "firmware/abi/combine.h"
#include "workloads/operators/dispatch/dispatch.h"
#include "workloads/operators/reference/combine_reference.h"

namespace cm384::operators {

struct CombineSetting {
  bool atomic = false;        // a row says that it has arrived by an atomic add, not by a flag of its own
  bool shared_output = true;  // that of a shared expert, made on the token's own rank, is added
};

class Combine final : public Collective {
 public:
  // Placed after the dispatch, which must outlive this.
  Combine(const Dispatch& dispatch, const CombineSetting& setting)
      : dispatch_(dispatch),
        case_(dispatch.layer()),
        setting_(setting),
        reference_(case_, setting.shared_output) {}

  void place(RankMemory& memory) override;
  std::string check() const override;
  void spoil() const override;
  const char* kernel() const override { return case_.relays != 0 ? "combine_relay" : "combine"; }

  const cm384_combine& arguments(int rank) const { return arguments_[static_cast<std::size_t>(rank)]; }
  // The rows that are summed are what these experts make of what dispatch delivers.
  void set_experts(reference::ExpertOutput experts) { reference_.set_experts(std::move(experts)); }
  // Overwrites the experts' outputs: whoever computes them has to write them again. Payload mode full.
  void spoil_experts() const;

 private:
  void fill(int rank) const;
  // Where the case has relays.
  cm384_combine_relay with_relays(int rank, const cm384_combine& a) const;
  bool fits(int rank, const cm384_combine& a) const;

  const Dispatch& dispatch_;
  const reference::DispatchCase& case_;
  CombineSetting setting_;
  host::Runtime* runtime_ = nullptr;
  reference::CombineReference reference_;
  std::vector<cm384_combine> arguments_;
};

}  // namespace cm384::operators
