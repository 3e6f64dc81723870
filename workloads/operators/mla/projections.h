// What stands before and behind decode attention in a layer, as operators.
#pragma once

#include <optional>
#include <utility>

#include "firmware/abi/mla_output.h"
#include "firmware/abi/mla_prolog.h"
#include "workloads/operators/mla/mla.h"
#include "workloads/operators/reference/mla_projections.h"

namespace cm384::operators {

// Norms, projections, rotation: writes the queries and the newest tokens of the cache of an attention, which
// is placed before it.
class MlaProlog final : public KernelWith<cm384_mla_prolog> {
 public:
  MlaProlog(const MlaSetting& setting, std::uint64_t seed, const LatentAttention& attention);

  const char* kernel() const override { return attention_.caches_rows() ? "sparse_prolog" : "mla_prolog"; }
  Work work() const override;
  std::string size() const override {
    return attention_.size() + (setting_.int8 ? ", prolog int8" : ", prolog");
  }
  // The first and last token and some between.
  std::string check() const override;
  const cm384_mla_prolog& arguments() const { return arguments_; }
  // Before place(), in payload mode full: in place of drawn ones.
  void read(reference::PrologInputs inputs) { inputs_ = std::move(inputs); }
  const std::vector<std::uint32_t>& slots() const { return slots_; }
  const reference::ProjectionCase& projections() const { return case_; }
  // The inputs, in payload mode full.
  const reference::PrologInputs& inputs() const { return *inputs_; }

 private:
  void lay_out(const Site& site) override;
  void allocate(const Site& site);
  std::vector<std::uint16_t> cached(std::uint32_t token) const;

  MlaSetting setting_;
  const LatentAttention& attention_;
  reference::ProjectionCase case_;
  std::vector<std::uint32_t> slots_;  // of each token
  std::optional<reference::PrologInputs> inputs_;
};

// Values and output projection: reads what an attention put out, which is placed before it.
class MlaOutput final : public KernelWith<cm384_mla_output> {
 public:
  MlaOutput(const MlaSetting& setting, std::uint64_t seed, const LatentAttention& attention);

  const char* kernel() const override { return "mla_output"; }
  Work work() const override;
  std::string size() const override {
    return attention_.size() + (setting_.int8 ? ", output int8" : ", output");
  }
  std::string check() const override;
  const cm384_mla_output& arguments() const { return arguments_; }
  // Before place(), in payload mode full: in place of drawn ones.
  void read(reference::OutputWeights weights) { weights_ = std::move(weights); }

 private:
  void lay_out(const Site& site) override;

  MlaSetting setting_;
  const LatentAttention& attention_;
  reference::ProjectionCase case_;
  std::optional<reference::OutputWeights> weights_;
};

}  // namespace cm384::operators
