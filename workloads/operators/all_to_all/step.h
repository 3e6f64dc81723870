// A step of what a die computes around an exchange of rows by SDMA, for one rank by itself: the tables are
// those of all ranks' routing, nobody sends anything.
#pragma once

#include <string>

#include "firmware/abi/all_to_all.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::operators {

class AllToAllStep final : public KernelWith<cm384_all_to_all> {
 public:
  // `hidden` of `layer`: elements of BF16 of the rows that are moved. Throws InputError at placement where
  // the batch does not fit a core.
  AllToAllStep(cm384_all_to_all_step step, const reference::DispatchCase& layer, int rank)
      : step_(step), layer_(layer), rank_(rank) {}

  const char* kernel() const override { return "all_to_all"; }
  npu::KernelType type() const override { return npu::KernelType::aiv; }
  Work work() const override;
  std::string size() const override;
  // Of pack alone where rows go and how many; rows themselves are compared by `run moe --flow basic`.
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  void write_tables(const Site& site);
  std::vector<std::int32_t> received_counts() const;
  std::vector<std::int32_t> sent_counts() const;
  void count(std::vector<std::int32_t>& message, int source, std::uint32_t target, std::size_t first) const;
  std::vector<std::uint32_t> order() const;
  std::uint64_t pairs() const { return std::uint64_t(layer_.batch) * std::uint64_t(layer_.top_k); }

  cm384_all_to_all_step step_;
  reference::DispatchCase layer_;
  int rank_;
};

}  // namespace cm384::operators
