// Die 0 of a machine with its runtime, and operators on it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "system/host/launch_recorder.h"
#include "workloads/operators/ffn/ffn.h"
#include "workloads/operators/gemm/gemm.h"
#include "workloads/operators/mla/mla.h"
#include "workloads/operators/operator.h"

namespace cm384::operators {

struct DieRig {
  explicit DieRig(const std::vector<std::string>& changes = {})
      : parameters(hw::load_machine(std::string(hw::kDefaultMachine), changes)),
        machine(parameters, options()) {}
  static supernode::SupernodeOptions options() {
    supernode::SupernodeOptions made;
    made.dies = {0};
    return made;
  }
  Site site(host::DeviceMemory& memory, int first, int count, bool full = false) {
    return {memory, [this](std::string_view kernel) { return load_built_in(runtime, kernel); },
            cores_from(first, count), full};
  }

  hw::Machine parameters;
  supernode::Supernode machine;
  host::Runtime runtime{machine};
};

inline Time kernel_time(const KernelOperator& of) {
  return of.record().last_retired - of.record().first_instruction;
}

// What the firmware of an operator moves on groups 0 to count - 1 of a die alone.
template <class Made, class Setting>
std::shared_ptr<const npu::Recording> recorded(const Setting& setting, int count,
                                               const std::vector<std::string>& changes = {}) {
  DieRig rig(changes);
  host::LaunchRecorder recorder(rig.machine);
  host::DeviceMemory memory(rig.runtime, 0);
  Made made(setting, 1);
  made.place(rig.site(memory, 0, count));
  made.enqueue(host::Runtime::default_stream(0));
  rig.runtime.wait();
  return std::make_shared<npu::Recording>(recorder.recording_of(0, made.request(), memory.regions()));
}

inline GemmSetting gemm_of(std::uint32_t rows, std::uint32_t n, std::uint32_t k) {
  GemmSetting setting;
  setting.group_rows = {rows};
  setting.n = n;
  setting.k = k;
  return setting;
}
inline FfnSetting ffn_of(std::uint32_t rows, std::uint32_t hidden, std::uint32_t width) {
  return {{rows}, hidden, width};
}
inline MlaSetting mla_of(std::uint32_t batch, std::uint32_t tokens, std::uint32_t heads) {
  MlaSetting setting;
  setting.kv_lens.assign(batch, tokens);
  setting.heads = heads;
  return setting;
}

}  // namespace cm384::operators
