#include "workloads/service/step_samples.h"

namespace cm384::service {

void StepSamples::see(Time at, int instance, const DecodeInstance& decode, const DecodeInstance::Load& load) {
  if (StepSample* sample = drawn_.draw()) *sample = {sample->number, at, instance, load, decode.lengths()};
}

}  // namespace cm384::service
