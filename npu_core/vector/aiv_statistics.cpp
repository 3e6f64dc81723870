// Declares the counters of a vector core.
#include "npu_core/vector/aiv.h"

namespace cm384::npu {

void Aiv::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const AivStatistics& s = statistics_;
  const auto vector = at.part("vector"), mte2 = at.part("mte2"), mte3 = at.part("mte3");
  to.declare(vector, "instructions", "instructions", "started by pipe V", s.vector_instructions);
  to.declare(vector, "repeats", "repeats", "of 256 B that those instructions made", s.vector_repeats);
  to.declare(vector, "busy_cycles", "cycles", "in which the vector unit took repeats", s.vector_busy_cycles);
  to.declare(vector, "bank_conflict_cycles", "cycles", "that operands in one bank of the UBuffer cost",
             s.bank_conflict_cycles);
  to.declare(vector, "wait_cycles", "cycles", "pipe V stood at a wait_flag whose flag was not set",
             s.vector_wait_cycles);
  to.declare(mte2, "instructions", "instructions", "copies started by MTE2, memory to UBuffer",
             s.mte2_instructions);
  to.declare(mte2, "busy_ps", "ps", "from an instruction's turn to issue to its last request",
             s.mte2_busy_ps);
  to.declare(mte2, "wait_cycles", "cycles", "MTE2 stood at a wait_flag whose flag was not set",
             s.mte2_wait_cycles);
  to.declare(mte2, "local_requests", "requests", "reads of the own die's memory, at most 512 B each",
             s.local_read_requests);
  to.declare(mte2, "remote_requests", "requests", "reads of other memory, at most 512 B each",
             s.remote_read_requests);
  to.declare(mte2, "bytes", "B", "read, without padding and rounding to sectors", s.read_bytes);
  to.declare(mte3, "instructions", "instructions", "copies started by MTE3, UBuffer to memory",
             s.mte3_instructions);
  to.declare(mte3, "busy_ps", "ps", "from an instruction's turn to issue to its last request",
             s.mte3_busy_ps);
  to.declare(mte3, "wait_cycles", "cycles", "MTE3 stood at a wait_flag whose flag was not set",
             s.mte3_wait_cycles);
  to.declare(mte3, "local_requests", "requests", "writes and atomic adds to the own die's memory",
             s.local_write_requests);
  to.declare(mte3, "remote_requests", "requests", "writes and atomic adds to other memory",
             s.remote_write_requests);
  to.declare(mte3, "bytes", "B", "written or added, without rounding to sectors", s.written_bytes);
  declare_pipe_statistics(to, at, s);
}

}  // namespace cm384::npu
