// Declares the counters of a core.
#include "npu_core/cluster/core.h"

namespace cm384::npu {

void Core::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  using Counters = ScalarCore::Counters;
  const auto scalar = at.part("scalar");
  to.declare(scalar, "instructions", "instructions", "retired by the scalar unit",
             [this] { return instructions(); });
  const auto declare = [&](const char* name, const char* unit, const char* sentence,
                           std::uint64_t Counters::*member) {
    to.declare(scalar, name, unit, sentence,
               [this, member] { return earlier_.*member + scalar_.counters().*member; });
  };
  declare("instruction_misses", "lines", "fetched into the instruction cache", &Counters::instruction_misses);
  declare("instruction_prefetches", "lines", "fetched into it after a missing one",
          &Counters::instruction_prefetches);
  declare("instruction_stall_cycles", "cycles", "waited for lines of it",
          &Counters::instruction_stall_cycles);
  declare("data_misses", "lines", "fetched into the data cache", &Counters::data_misses);
  declare("write_backs", "lines", "written back from the data cache", &Counters::write_backs);
  declare("traps", "traps", "taken", &Counters::traps);
  declare("atomics", "requests", "AMOs on global memory", &Counters::atomics);
  declare("dirty_at_end", "lines",
          "of global memory that blocks ended with dirty: what they stored there is lost",
          &Counters::dirty_at_end);
  pipes_->declare_statistics(to, at);
}

}  // namespace cm384::npu
