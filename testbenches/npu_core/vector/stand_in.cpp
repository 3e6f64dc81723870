#include "testbenches/npu_core/vector/stand_in.h"

#include <cstring>

namespace cm384::npu::testing {
namespace {

constexpr std::size_t kMemory = 4 << 20;

void copy_tags_out(const std::vector<bool>& tagged, std::uint64_t offset, std::uint32_t bytes,
                   sim::TagMask& tags) {
  tags = 0;
  for (std::uint32_t k = 0; k * 32 < bytes; ++k) {
    const std::uint64_t last = std::min<std::uint64_t>(offset + bytes, offset + k * 32 + 32) - 1;
    if (tagged[(offset + k * 32) / 32] || tagged[last / 32]) tags |= 1u << k;
  }
}
void copy_tags_in(std::vector<bool>& tagged, std::uint64_t offset, std::uint32_t bytes, sim::TagMask tags) {
  for (std::uint32_t k = 0; k * 32 < bytes; ++k) {
    const std::uint64_t last = std::min<std::uint64_t>(offset + bytes, offset + k * 32 + 32) - 1;
    for (std::uint64_t b = (offset + k * 32) / 32; b <= last / 32; ++b) tagged[b] = (tags >> k & 1) != 0;
  }
}

}  // namespace

hw::VectorCore vector_parameters() {
  hw::VectorCore p;
  p.queue_depth = 32;
  p.add = {10, 2.11, 14};
  p.mul = {10, 2.3, 15};
  p.adds = {13, 1, 18};
  p.muls = {13, 1, 13};
  p.max = {10, 2.01, 13};
  p.maxs = {14, 1, 9};
  p.div = {10, 4.03, 21};
  p.unary = {13, 1, 10};
  p.exp = {14, 2, 17};
  p.ln = {14, 2, 19};
  p.sqrt = {14, 2, 25};
  p.rsqrt = {14, 1.07, 10};
  p.logic = {10, 2.03, 10};
  p.copy = {11, 1, 13};
  p.madd = {10, 2.3, 15};
  p.shift = {13, 1, 10};
  p.cast = {14, 2, 18};
  p.reduce_add = p.reduce_max = {14, 7, 32};
  p.group_add = {14, 1, 24};
  p.group_max = {14, 1, 17};
  p.compare = {10, 2.01, 13};
  p.compares = {14, 1, 9};
  p.select = {13, 2, 14};
  p.gather_mask = {14, 14, 20};
  p.broadcast = {14, 1, 18};
  p.gather = {14, 2, 10};
  p.merge = {10, 19.5, 10};
  return p;
}

hw::Mte mte_parameters() {
  hw::Mte p;
  p.read_setup = 200;
  p.write_setup = 50;
  p.read_instruction_overhead = p.write_instruction_overhead = 12.6;
  p.read_request_interval = p.write_request_interval = 8;
  p.local_read_window = p.local_write_window = {16'384};
  p.remote_reads = 8;
  p.remote_writes = 16;
  p.remote_partial_write = "byte-enable";
  return p;
}

PipeInstruction sync(int operation, std::uint64_t a, std::uint64_t b) {
  PipeInstruction i;
  i.instruction_class = CM384_CLASS_SYNC;
  i.operation = static_cast<std::uint8_t>(operation);
  i.a = a;
  i.b = b;
  return i;
}
PipeInstruction set_flag(int source, int destination, int id) {
  return sync(CM384_SET_FLAG, static_cast<std::uint64_t>(source | destination << 8 | id << 16));
}
PipeInstruction wait_flag(int source, int destination, int id) {
  return sync(CM384_WAIT_FLAG, static_cast<std::uint64_t>(source | destination << 8 | id << 16));
}
PipeInstruction barrier(int pipe) {
  return sync(CM384_PIPE_BARRIER, static_cast<std::uint64_t>(pipe));
}
PipeInstruction copy_in(std::uint32_t ub, std::uint64_t gm, std::uint32_t bytes, std::uint32_t bursts) {
  PipeInstruction i;
  i.instruction_class = CM384_CLASS_MTE;
  i.operation = CM384_MTE_GM_TO_UB;
  i.a = ub;
  i.b = gm;
  i.c = std::uint64_t{bursts} << 32 | bytes;
  return i;
}
PipeInstruction copy_out(std::uint64_t gm, std::uint32_t ub, std::uint32_t bytes, std::uint32_t bursts) {
  PipeInstruction i = copy_in(0, ub, bytes, bursts);
  i.operation = CM384_MTE_UB_TO_GM;
  i.a = gm;
  return i;
}
PipeInstruction vector(int instruction_class, int operation, int type, std::uint32_t destination,
                       std::uint32_t source0, std::uint64_t rs2, std::uint32_t repeats, Strides s) {
  PipeInstruction i;
  i.instruction_class = static_cast<std::uint8_t>(instruction_class);
  i.operation = static_cast<std::uint8_t>(operation);
  i.type = static_cast<std::uint8_t>(type);
  i.a = destination | std::uint64_t{source0} << 32;
  i.b = rs2;
  i.c = repeats | s.destination_block << 8 | s.block0 << 16 | s.block1 << 24 | s.destination_repeat << 32 |
        s.repeat0 << 40 | s.repeat1 << 48;
  return i;
}

StandIn::StandIn(const hw::Mte& mte, const hw::VectorCore& vector, const AivOptions& options)
    : aiv(3, vector, mte, Clock{Frequency{1'850'000'000}}, *this),
      memory(kMemory),
      tagged(kMemory / 32),
      remote_memory(kMemory),
      remote_tagged(kMemory / 32) {
  aiv.set_options(options);
}

bool StandIn::run(const std::vector<PipeInstruction>& program, std::int64_t cycle) {
  program_ = program;
  for (std::size_t i = 0; i < program_.size(); ++i)
    program_[i].pc = static_cast<std::uint32_t>(0x1000 + 4 * i);
  next_ = 0;
  drained_ = -1;
  released_.assign(program.size(), -1);
  events_.push(std::max(clock.start(cycle), now()), kScalar, 0, static_cast<std::uint64_t>(cycle));
  events_.run_until(Time::never(), [this](const sim::Event& e) {
    switch (e.unit) {
      case kCore:
        return pipes->handle(e.what, e.argument, e.at);
      case kScalar:
        return step(static_cast<std::int64_t>(e.argument));
      case kCompletion:
        free_completions_.push_back(e.argument);
        return pipes->completed(sim::Completion(completions_[e.argument]), e.at);
      default:
        return callbacks_[e.argument]();
    }
  });
  return drained_ >= 0;
}

void StandIn::step(std::int64_t cycle) {
  while (next_ < program_.size()) {
    const IssueAnswer answer = pipes->issue(program_[next_], cycle);
    if (answer.parked) return;
    cycle = answer.release_cycle;
    released_[next_++] = cycle;
  }
  const IssueAnswer answer = pipes->drain(cycle);
  if (!answer.parked) drained_ = answer.release_cycle;
}

void StandIn::at(Time time, std::function<void()> what) {
  callbacks_.push_back(std::move(what));
  events_.push(time, kCallback, 0, callbacks_.size() - 1);
}

void StandIn::schedule(std::uint16_t, Time time, std::uint32_t what, std::uint64_t argument) {
  events_.push(time, kCore, what, argument);
}

Time StandIn::access(const LocalAccess& a, std::byte* bytes, sim::TagMask& tags) {
  if (a.at != now()) throw std::logic_error("an access must be made at its event time");
  if (record) accesses.push_back(a);
  if (a.write) {
    if (tags != sim::all_tags(a.bytes)) std::memcpy(&memory[a.offset], bytes, a.bytes);
    copy_tags_in(tagged, a.offset, a.bytes, tags);
  } else {
    std::memcpy(bytes, &memory[a.offset], a.bytes);
    copy_tags_out(tagged, a.offset, a.bytes, tags);
  }
  return a.at + (a.write ? write_latency : read_latency);
}

Time StandIn::atomic_add(const LocalAccess& a, const std::byte* bytes, sim::Operation operation) {
  if (record) accesses.push_back(a);
  for (std::uint32_t i = 0; i < a.bytes; i += 4) {
    if (operation == sim::Operation::atomic_add_f32) {
      float x = 0, y = 0;
      std::memcpy(&x, &memory[a.offset + i], 4);
      std::memcpy(&y, bytes + i, 4);
      x += y;
      std::memcpy(&memory[a.offset + i], &x, 4);
    } else {
      std::uint32_t x = 0, y = 0;
      std::memcpy(&x, &memory[a.offset + i], 4);
      std::memcpy(&y, bytes + i, 4);
      x += y;
      std::memcpy(&memory[a.offset + i], &x, 4);
    }
  }
  return a.at + write_latency;
}

void StandIn::submit(const sim::Request& request) {
  if (request.at != now()) throw std::logic_error("a request must be submitted at its event time");
  if (record) requests.push_back(request);
  sim::Completion c;
  c.tag = request.tag;
  c.core = request.core;
  c.bytes = request.bytes;
  sim::Payload payload = request.payload;
  const std::uint64_t offset = cm384_gm_offset(request.address);
  if (request.operation == sim::Operation::read) {
    copy_tags_out(remote_tagged, offset, request.bytes, c.payload.tags);
    if (c.payload.tags != sim::all_tags(request.bytes)) {
      c.payload.chunk = pool_.allocate();
      std::memcpy(pool_.bytes(c.payload.chunk), &remote_memory[offset], request.bytes);
    }
  } else {
    if (payload.chunk != sim::kNoChunk) {
      std::memcpy(&remote_memory[offset], pool_.bytes(payload.chunk), request.bytes);
    }
    copy_tags_in(remote_tagged, offset, request.bytes, payload.tags);
    pool_.release(payload);
  }
  if (free_completions_.empty()) {
    free_completions_.push_back(completions_.size());
    completions_.emplace_back();
  }
  const std::uint64_t place = free_completions_.back();
  free_completions_.pop_back();
  completions_[place] = c;
  events_.push(request.at + remote_latency, kCompletion, 0, place);
}

void StandIn::wake_scalar(std::uint16_t, std::int64_t cycle) {
  ++wakes;
  events_.push(std::max(clock.start(cycle), now()), kScalar, 0, static_cast<std::uint64_t>(cycle));
}

void StandIn::cross_core_set(std::uint16_t, std::uint32_t mode, std::uint32_t flag) {
  cross_core_sets.emplace_back(mode << 8 | flag, now());
}

void StandIn::watch(std::uint16_t, std::uint64_t offset, std::uint64_t bytes) {
  watched_offset = offset;
  watched_bytes = bytes;
}

}  // namespace cm384::npu::testing
