// Steps of a service held against the machine: of each drawn step one decode layer is simulated, with its
// batch, the tokens of each request on each die, and a routing of its own.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "workloads/layer/layer.h"
#include "workloads/service/deployment.h"
#include "workloads/service/library.h"
#include "workloads/service/step_samples.h"

namespace cm384::studies {

inline constexpr std::array kAuditFields{
    Field{"name", FieldType::text, "step and its number among all"},
    Field{"at_s", FieldType::number, "its begin, from the first arrival"},
    Field{"requests", FieldType::integer, "that decode in it, on all dies"},
    Field{"batch", FieldType::integer, "requests per NPU that its time was asked for"},
    Field{"kv", FieldType::integer, "tokens of each that its time was asked for"},
    Field{"used_us", FieldType::number, "of a layer, that the service used"},
    Field{"machine_us", FieldType::number, "of a layer on the machine"},
    Field{"difference", FieldType::ratio, "of what was used, as a share of the machine's"},
    Field{"evidence", FieldType::text, "MEASURED, INTERPOLATED or EXTRAPOLATED: what was used"},
};

class ServeAudit {
 public:
  // Layers are those of the library's steps, by their commands. Throws InputError where it has no layers for
  // this deployment, or a command is not one of `run decode`.
  ServeAudit(const StudyContext& context, const service::Library& library,
             const service::Deployment& deployment);

  // What it will take, for people.
  std::string cost(std::span<const service::StepSample> samples) const;
  // What the machine's grade is, for people.
  std::string grade() const;
  // Sets `audit` of the service's row, and adds a line for each step. False: interrupted.
  bool add_to(Row& row, const StudyContext& context, std::span<const service::StepSample> samples,
              StudyResult& result) const;

 private:
  // A row for each step; empty: interrupted.
  std::optional<Rows> run(const StudyContext& context, std::span<const service::StepSample> samples,
                          StudyResult& result) const;

  struct Recorded {  // a step of the library
    int batch;
    double seconds;
    LayerOptions layer;
  };
  const Recorded& nearest(int batch) const;

  service::DecodeSteps steps_;
  std::vector<Recorded> recorded_;
};

}  // namespace cm384::studies
