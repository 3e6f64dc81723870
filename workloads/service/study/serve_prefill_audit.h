// Batches of prompts of a service held against the machine: each drawn batch is simulated with the new tokens
// of each of its prompts and those that stand before them, part by part as `run prefill` does.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "workloads/prefill/prefill_options.h"
#include "workloads/service/deployment.h"
#include "workloads/service/library.h"
#include "workloads/service/prefill_times.h"
#include "workloads/service/step_samples.h"

namespace cm384::studies {

inline constexpr std::array kPrefillAuditFields{
    Field{"name", FieldType::text, "batch and its number among all"},
    Field{"at_s", FieldType::number, "its begin, from the first arrival"},
    Field{"prompts", FieldType::integer, "of the batch"},
    Field{"tokens", FieldType::integer, "that it computes"},
    Field{"before", FieldType::integer, "tokens that stand before these, cached or computed earlier"},
    Field{"longest", FieldType::integer, "tokens of its longest prompt, up to the end of its chunk"},
    Field{"microbatches", FieldType::integer, "that share the dies"},
    Field{"used_ms", FieldType::number, "that the service used, what is cached already read"},
    Field{"machine_ms", FieldType::number, "on the machine"},
    Field{"difference", FieldType::ratio, "of what was used, as a share of the machine's"},
    Field{"evidence", FieldType::text, "MEASURED, INTERPOLATED or EXTRAPOLATED: what was used"},
};

class PrefillAudit {
 public:
  // Batches are measured as those of the library, by their commands. Throws InputError where it has none for
  // this deployment, a command is not one of `run prefill`, or layers have a window.
  PrefillAudit(const StudyContext& context, const service::Library& library,
               const service::Deployment& deployment);

  // What it will take, for people.
  std::string cost(std::span<const service::BatchSample> samples) const;
  // Sets `audit_prefill` of the service's row, and adds a line for each batch. False: interrupted.
  bool add_to(Row& row, const StudyContext& context, std::span<const service::BatchSample> samples,
              StudyResult& result) const;

 private:
  // A row for each batch; empty: interrupted.
  std::optional<Rows> run(const StudyContext& context, std::span<const service::BatchSample> samples,
                          StudyResult& result) const;

  struct Recorded {  // a batch of the library
    double tokens, pairs;
    int microbatches;
    double seconds;
  };
  static service::PrefillWork work_of(const service::BatchSample& sample);
  int microbatches_of(const service::BatchSample& sample) const;

  service::PrefillTimes times_;
  PrefillOptions options_;
  std::vector<Recorded> recorded_;
};

}  // namespace cm384::studies
