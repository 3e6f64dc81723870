// What stands before and behind decode attention in a layer: their memory on die 0, and their comparison with
// the host's reference.
#pragma once

#include <optional>
#include <string>

#include "firmware/abi/mla_output.h"
#include "firmware/abi/mla_prolog.h"
#include "operators/reference/mla_projections.h"
#include "studies/mla.h"

namespace cm384::studies {

reference::ProjectionCase projections_of(std::uint64_t seed, const MlaSetting& setting);

// Writes the queries and the newest tokens of the cache of an attention.
class MlaProlog {
 public:
  MlaProlog(host::Runtime& runtime, const MlaSetting& setting, std::uint64_t seed, const cm384_mla& attention,
            std::span<const std::uint32_t> page_table);

  const cm384_mla_prolog& arguments() const { return arguments_; }
  double operations() const;
  // Of what the kernel delivered, in payload mode full: the first and last token and some between.
  std::string compare() const;

 private:
  void place(const MlaSetting& setting, std::uint64_t queries);
  std::vector<std::uint16_t> cached(std::uint32_t token) const;

  host::Runtime& runtime_;
  const reference::ProjectionCase case_;
  std::vector<std::uint32_t> slots_;  // of each token
  std::optional<reference::PrologInputs> inputs_;
  cm384_mla_prolog arguments_{};
};

// Reads what an attention put out.
class MlaOutput {
 public:
  MlaOutput(host::Runtime& runtime, const MlaSetting& setting, std::uint64_t seed,
            const cm384_mla& attention);

  const cm384_mla_output& arguments() const { return arguments_; }
  double operations() const;
  std::string compare() const;

 private:
  host::Runtime& runtime_;
  const reference::ProjectionCase case_;
  std::optional<reference::OutputWeights> weights_;
  cm384_mla_output arguments_{};
};

}  // namespace cm384::studies
