#include "npu_core/vector/aiv.h"

#include <utility>

#include "firmware/abi/isa.h"
#include "npu_core/vector/aiv_state.h"

namespace cm384::npu {
namespace {

constexpr PipeDescription kDescriptions[kPipes] = {
    {"S", CM384_PIPE_S}, {"V", CM384_PIPE_V}, {"MTE2", CM384_PIPE_MTE2}, {"MTE3", CM384_PIPE_MTE3}};
constexpr HazardSpace::Buffer kBuffers[] = {{"the UBuffer", 0}};
constexpr HazardSpace kSpace{kDescriptions, kBuffers, kUBufferBytes, sim::kBlockBytes};

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

Aiv::State::State(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte,
                  const Clock& core_clock, CoreSocket& die, std::shared_ptr<const AivTables> shared)
    : PipeSet(core_number, "a vector core", kSpace, static_cast<std::uint32_t>(vector.queue_depth),
              core_clock, die, statistics),
      tables(std::move(shared)),
      mte2(true, core_number, kEngine0, 0, tables->read, die, ubuffer,
           {statistics.mte2_busy_ps, statistics.local_read_requests, statistics.remote_read_requests,
            statistics.read_bytes, statistics.window_full, statistics.merged_writes}),
      mte3(false, core_number, kEngine1, kEngineTags, tables->write, die, ubuffer,
           {statistics.mte3_busy_ps, statistics.local_write_requests, statistics.remote_write_requests,
            statistics.written_bytes, statistics.window_full, statistics.merged_writes}) {
  add_engine(kPipeMte2, mte2, kEngine0);
  add_engine(kPipeMte3, mte3, kEngine1);
  setup[kPipeMte2] = mte.read_setup;
  setup[kPipeMte3] = mte.write_setup;
  wait_cycles = {nullptr, &statistics.vector_wait_cycles, &statistics.mte2_wait_cycles,
                 &statistics.mte3_wait_cycles};
}

Aiv::Aiv(std::uint16_t core, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
         CoreSocket& socket, std::shared_ptr<const AivTables> tables)
    : state_(std::make_unique<State>(core, vector, mte, core_clock, socket, std::move(tables))) {}
std::shared_ptr<const AivTables> Aiv::tables(const hw::VectorCore& vector, const hw::Mte& mte,
                                             const Clock& core_clock) {
  return std::make_shared<const AivTables>(vector, mte, core_clock);
}
Aiv::~Aiv() = default;
Aiv::Aiv(Aiv&&) noexcept = default;

void Aiv::set_options(const AivOptions& options) {
  state_->elide_polls = options.elide_polls;
  state_->set_hazards(options.check_hazards);
}

bool Aiv::checks_hazards() const {
  return state_->hazards != nullptr;
}

void Aiv::add_observer(PipeObserver& observer) {
  state_->observers.push_back(&observer);
}

void Aiv::mark_phase(std::uint32_t phase, std::int64_t cycle) const {
  for (PipeObserver* o : state_->observers) o->phase(phase, cycle);
}

void Aiv::copy(int pipe, const MteCopy& copy, Time ready) {
  state_->engine[pipe]->start(copy, ready);
}

void Aiv::forget_values() {
  state_->ubuffer.set_payload(0, kUBufferBytes, true);
}

IssueAnswer Aiv::issue(const PipeInstruction& in, std::int64_t cycle) {
  State& s = *state_;
  s.unpark();
  switch (in.instruction_class) {
    case CM384_CLASS_SYNC:
      return s.issue_sync(in, cycle);
    case CM384_CLASS_MTE:
      if (in.operation > CM384_MTE_UB_TO_GM_ADD_F32) fault(in.pc, "no such MTE operation on a vector core");
      return s.push(in.operation == CM384_MTE_GM_TO_UB ? kPipeMte2 : kPipeMte3, in, cycle);
    case CM384_CLASS_VECTOR:
    case CM384_CLASS_REDUCE:
    case CM384_CLASS_CONVERT:
      return s.push(kPipeV, in, cycle);
    default:
      fault(in.pc, "a vector core has no such class of pipe instructions");
  }
}

IssueAnswer Aiv::drain(std::int64_t cycle) {
  return state_->wait_all(cycle);
}
void Aiv::handle(std::uint32_t what, std::uint64_t argument, Time now) {
  state_->handle(what, argument, now);
}
void Aiv::completed(const sim::Completion& completion, Time now) {
  state_->completed(completion, now);
}
void Aiv::watched_write(Time at) {
  state_->watched_write(at);
}
void Aiv::cross_core_flag(std::uint32_t flag, int count, Time at) {
  state_->cross_core_flag(flag, count, at);
}
void Aiv::reset() {
  state_->reset();
}
std::string Aiv::waiting_for(const PlaceText& place) const {
  return state_->waiting_for(place);
}
Standstill Aiv::standstill() const {
  return state_->standstill();
}

Aiv::Places Aiv::places() const {
  Places at = state_->places();
  // What stands before the engines.
  at.bytes = static_cast<std::size_t>(reinterpret_cast<const char*>(&state_->mte2) -
                                      reinterpret_cast<const char*>(state_.get()));
  return at;
}
void Aiv::prefetch(int stage) const {
  state_->prefetch(stage);
}
void Aiv::prefetch_engine(std::uint32_t which, int stage) const {
  state_->prefetch_engine(which, stage);
}
void Aiv::prefetch_completion(std::uint32_t tag) const {
  state_->prefetch_completion(tag);
}

UBuffer& Aiv::ubuffer() {
  return state_->ubuffer;
}
const UBuffer& Aiv::ubuffer() const {
  return state_->ubuffer;
}

void Aiv::scalar_access(std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc) {
  if (!state_->hazards) return;
  state_->hazards->begin_access(kPipeS);
  state_->hazards->access(kPipeS, offset, bytes, write, pc);
}

std::uint64_t Aiv::last_pc(int pipe) const {
  const int p = state_->pipe_of(static_cast<std::uint64_t>(pipe));
  return p < 0 ? 0 : state_->queue[p].last_pc;
}

std::uint64_t Aiv::progress() const {
  const AivStatistics& s = state_->statistics;
  return state_->progress + s.local_read_requests + s.local_write_requests + s.remote_read_requests +
         s.remote_write_requests;
}

const AivStatistics& Aiv::statistics() const {
  return state_->statistics;
}
std::uint16_t Aiv::core() const {
  return state_->core;
}

}  // namespace cm384::npu
