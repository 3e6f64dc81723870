#include "npu_core/vector/aiv.h"

#include <utility>

#include "firmware/abi/isa.h"

namespace cm384::npu {
namespace {

constexpr PipeDescription kDescriptions[kPipes] = {
    {"S", CM384_PIPE_S}, {"V", CM384_PIPE_V}, {"MTE2", CM384_PIPE_MTE2}, {"MTE3", CM384_PIPE_MTE3}};
// The counts of a merge as one more block.
constexpr HazardSpace::Buffer kBuffers[] = {{"the UBuffer", 0}, {"the counts of a merge", kUBufferBytes}};
constexpr HazardSpace kSpace{kDescriptions, kBuffers, kUBufferBytes + sim::kBlockBytes, sim::kBlockBytes,
                             kPipeV};

}  // namespace

const char* pipe_name(int pipe) {
  return pipe >= 0 && pipe < kPipes ? kDescriptions[pipe].name : "?";
}

AivTables::AivTables(const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock)
    : costs(vector),
      read(mte_timing(core_clock, mte.read_instruction_overhead, mte.read_request_interval,
                      mte.local_read_window, mte.remote_reads)),
      write(mte_timing(core_clock, mte.write_instruction_overhead, mte.write_request_interval,
                       mte.local_write_window, mte.remote_writes, mte.remote_partial_write)) {}

Aiv::Aiv(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
         CoreSocket& die, std::shared_ptr<const AivTables> tables)
    : PipeSet(core_number, "a vector core", kSpace, static_cast<std::uint32_t>(vector.queue_depth),
              core_clock, die, statistics_),
      tables_(std::move(tables)),
      mte2_(true, core_number, kEngine0, 0, tables_->read, die, ubuffer_,
            {statistics_.mte2_busy_ps, statistics_.local_read_requests, statistics_.remote_read_requests,
             statistics_.read_bytes, statistics_.window_full, statistics_.merged_writes}),
      mte3_(false, core_number, kEngine1, kEngineTags, tables_->write, die, ubuffer_,
            {statistics_.mte3_busy_ps, statistics_.local_write_requests, statistics_.remote_write_requests,
             statistics_.written_bytes, statistics_.window_full, statistics_.merged_writes}) {
  add_engine(kPipeMte2, mte2_, kEngine0);
  add_engine(kPipeMte3, mte3_, kEngine1);
  setup[kPipeMte2] = mte.read_setup;
  setup[kPipeMte3] = mte.write_setup;
  wait_cycles = {nullptr, &statistics_.vector_wait_cycles, &statistics_.mte2_wait_cycles,
                 &statistics_.mte3_wait_cycles};
}

void Aiv::set_options(const AivOptions& options) {
  elide_polls = options.elide_polls;
  set_hazards(options.check_hazards);
}

IssueAnswer Aiv::issue(const PipeInstruction& in, std::int64_t cycle) {
  unpark();
  switch (in.instruction_class) {
    case CM384_CLASS_SYNC:
      return issue_sync(in, cycle);
    case CM384_CLASS_MTE:
      if (in.operation > CM384_MTE_UB_TO_GM_ADD_F32) fault(in.pc, "no such MTE operation on a vector core");
      if (copies_nothing(in)) return IssueAnswer::at(cycle + 1);
      if (in.operation == CM384_MTE_GM_TO_UB) return push(kPipeMte2, in, cycle);
      if (atomic_mode() != CM384_ATOMIC_NONE) [[unlikely]] {
        PipeInstruction adds = in;
        if (in.operation == CM384_MTE_UB_TO_GM)
          adds.operation = static_cast<std::uint8_t>(CM384_MTE_UB_TO_GM + atomic_mode());
        return push(kPipeMte3, adds, cycle);
      }
      return push(kPipeMte3, in, cycle);
    case CM384_CLASS_VECTOR:
    case CM384_CLASS_REDUCE:
    case CM384_CLASS_CONVERT:
      // No repeats: nothing to do.
      if ((in.c & 0xff) == 0 && !(in.instruction_class == CM384_CLASS_REDUCE && in.operation == CM384_VMERGE))
        return IssueAnswer::at(cycle + 1);
      return push(kPipeV, in, cycle);
    default:
      fault(in.pc, "a vector core has no such class of pipe instructions");
  }
}

Aiv::Places Aiv::places() const {
  Places at = PipeSet::places();
  // What stands before the engines.
  at.bytes =
      static_cast<std::size_t>(reinterpret_cast<const char*>(&mte2_) - reinterpret_cast<const char*>(this));
  return at;
}

std::uint64_t Aiv::merged(std::uint64_t pc) {
  check_scalar_access(kUBufferBytes, sim::kBlockBytes, false, pc);
  return merged_;
}

void Aiv::check_scalar_access(std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc) {
  for (PipeObserver* o : observers) o->scalar_access(offset, bytes, write, pc);
  if (!hazards) return;
  hazards->begin_access(kPipeS);
  hazards->access(kPipeS, offset, bytes, write, pc);
}

}  // namespace cm384::npu
