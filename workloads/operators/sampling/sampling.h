// Choosing a word for each row of shares, on a die's vector cores: top-k, top-p, a draw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/sample.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/sampling_reference.h"

namespace cm384::operators {

class Sampling final : public KernelWith<cm384_sample> {
 public:
  explicit Sampling(const reference::SampleCase& sample) : case_(sample) {}

  const char* kernel() const override { return "sample"; }
  npu::KernelType type() const override { return npu::KernelType::aiv; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  std::vector<std::uint16_t> cores() const override;
  std::uint32_t parts(std::size_t cores) const;

  reference::SampleCase case_;
  std::optional<reference::SampleInputs> inputs_;
};

}  // namespace cm384::operators
