#include "system/observe/traffic_recorder.h"

#include <algorithm>

#include "firmware/abi/memory_map.h"
#include "npu_core/causality/pipe_shapes.h"
#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::observe {
namespace {

using traces::TrafficDependency;
using traces::TrafficRecord;

int die_of(sim::TransactionId id) {
  return static_cast<int>(id >> 48) - 1;
}
std::uint64_t sequence_of(sim::TransactionId id) {
  return id & ((std::uint64_t{1} << 48) - 1);
}

}  // namespace

TrafficRecorder::TrafficRecorder(supernode::Supernode& machine, traces::TrafficSink& sink)
    : machine_(machine),
      sink_(sink),
      numbers_(static_cast<std::size_t>(machine.parameters().topology.dies())),
      pending_(1024),
      reader_(Clock(machine.parameters().die.clock), npu::vector_shape(machine.parameters().vector_core),
              npu::cube_shape(machine.parameters().cube_core), *this),
      log_([this](std::span<const std::uint64_t> words) { reader_.read(words); }) {
  machine.keep_log(log_);
}

void TrafficRecorder::Numbers::grow() {
  std::vector<std::uint64_t> larger(std::max<std::size_t>(64, 2 * ring.size()));
  for (std::uint64_t n = first; n < last; ++n) larger[n & (larger.size() - 1)] = at(n);
  ring = std::move(larger);
}

bool TrafficRecorder::number_of(sim::TransactionId id, std::uint64_t& number) const {
  if (id == 0) return false;
  const Numbers& numbers = numbers_[static_cast<std::size_t>(die_of(id))];
  const std::uint64_t sequence = sequence_of(id);
  if (sequence < numbers.first || sequence >= numbers.last) return false;
  number = numbers.at(sequence);
  return next_ - number <= traces::kReach;
}

// The record of a transaction that begins; its time may lie behind that of the record before by less than a
// window, since dies run in turn.
TrafficRecord& TrafficRecorder::append(sim::TransactionId id) {
  if (id != 0) {
    // Ids of a die come in their order.
    Numbers& numbers = numbers_[static_cast<std::size_t>(die_of(id))];
    if (numbers.last - numbers.first == numbers.ring.size()) numbers.grow();
    numbers.at(numbers.last++) = next_;
    while (next_ - numbers.at(numbers.first) > traces::kReach) ++numbers.first;
  }
  if (next_ - written_ == pending_.size()) {
    std::vector<Pending> larger(2 * pending_.size());
    for (std::uint64_t n = written_; n < next_; ++n) larger[n & (larger.size() - 1)] = std::move(pending(n));
    pending_ = std::move(larger);
  }
  Pending& fresh = pending(next_++);
  fresh.complete = false;
  std::vector<TrafficDependency> kept = std::move(fresh.record.dependencies);
  kept.clear();
  fresh.record = TrafficRecord{};
  fresh.record.dependencies = std::move(kept);
  return fresh.record;
}

void TrafficRecorder::add(TrafficRecord& record, std::span<const npu::Dependency> dependencies,
                          std::uint64_t number) {
  for (const npu::Dependency& d : dependencies) {
    std::uint64_t on = 0;
    if (number_of(d.on, on) && on < number) record.dependencies.push_back({on, d.kind, d.delay});
  }
}

void TrafficRecorder::transaction_begun(const npu::TransactionBegun& t) {
  const std::uint64_t number = next_;
  TrafficRecord& r = append(t.id);
  r.kind = t.fill ? TrafficRecord::Kind::fill : TrafficRecord::Kind::transfer;
  r.operation = t.operation;
  r.start = r.end = t.at;
  r.source = {false, static_cast<std::uint16_t>(t.die)};
  const bool sdma = t.core == npu::kSdmaCore;
  r.core = sdma ? 0 : t.core;
  r.engine = sdma                          ? TrafficRecord::Engine::sdma
             : t.engine == npu::kFixEngine ? TrafficRecord::Engine::fix
                                           : TrafficRecord::Engine::mte;
  r.target = {cm384_gm_is_cpu(t.address) != 0, static_cast<std::uint16_t>(cm384_gm_unit(t.address))};
  r.by_rdma = cm384_gm_via_rdma(t.address) != 0;
  r.by_ub = !r.by_rdma && (t.address & CM384_GM_VIA_UB_BIT) != 0;
  r.allocate = t.allocate;
  r.offset = cm384_gm_offset(t.address);
  r.bytes = sdma ? t.bytes : t.burst_bytes;
  r.bursts = t.bursts;
  r.stride = t.bursts > 1 ? t.stride : 0;
  if (t.stream != npu::TransactionBegun::kNoStream) r.words = {t.stream, t.copy_of_stream};
  add(r, t.dependencies, number);
}

void TrafficRecorder::transaction_completed(const npu::TransactionCompleted& t) {
  std::uint64_t number = 0;
  if (!number_of(t.id, number)) return;
  if (number < written_) return;
  Pending& p = pending(number);
  p.record.end = t.at;
  p.complete = true;
  flush();
}

void TrafficRecorder::joined(const npu::JoinedAt& j) {
  const std::uint64_t number = next_;
  TrafficRecord& r = append(j.id);
  r.kind = j.kind == npu::JoinedAt::Kind::barrier  ? TrafficRecord::Kind::barrier
           : j.kind == npu::JoinedAt::Kind::launch ? TrafficRecord::Kind::launch
                                                   : TrafficRecord::Kind::end;
  r.start = r.end = j.at;
  r.source = r.target = {false, static_cast<std::uint16_t>(j.die)};
  if (j.kind != npu::JoinedAt::Kind::barrier) r.words = {j.launch, j.block};
  add(r, j.dependencies, number);
  pending(number).complete = true;
  flush();
}

void TrafficRecorder::host_point(const npu::HostPoint& point) {
  static_assert(static_cast<int>(TrafficRecord::Kind::call) - static_cast<int>(TrafficRecord::Kind::idle) ==
                static_cast<int>(npu::HostPoint::Kind::call));
  const std::uint64_t number = next_;
  TrafficRecord& r = append(0);
  r.kind = static_cast<TrafficRecord::Kind>(static_cast<int>(TrafficRecord::Kind::idle) +
                                            static_cast<int>(point.kind));
  r.start = point.start;
  r.end = point.end;
  r.source = r.target = {false, static_cast<std::uint16_t>(point.die)};
  r.words.assign(point.words.begin(), point.words.end());
  if (r.kind == TrafficRecord::Kind::idle) {
    idle_ = number;
    idle_at_ = r.start;
  } else if (r.kind == TrafficRecord::Kind::given && number - idle_ <= traces::kReach) {
    r.dependencies.push_back({idle_, TrafficDependency::Kind::completion, r.start - idle_at_});
  }
  pending(number).complete = true;
  flush();
}

void TrafficRecorder::flush() {
  for (; written_ < next_ && pending(written_).complete; ++written_) sink_.add(pending(written_).record);
}

void TrafficRecorder::finish() {
  log_.drain();
  for (std::uint64_t n = written_; n < next_; ++n) {
    Pending& p = pending(n);
    if (!p.complete) p.record.end = std::max(p.record.start, machine_.earliest());
    p.complete = true;
  }
  flush();
}

}  // namespace cm384::observe
