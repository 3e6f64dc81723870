// Flags, and what an Aiv tells about itself.
#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/isa.h"
#include "npu_core/vector/aiv_state.h"
#include "sim/error.h"

namespace cm384::npu {

int pipe_of(std::uint64_t isa_pipe) {
  switch (isa_pipe) {
    case CM384_PIPE_S:
      return kPipeS;
    case CM384_PIPE_V:
      return kPipeV;
    case CM384_PIPE_MTE2:
      return kPipeMte2;
    case CM384_PIPE_MTE3:
      return kPipeMte3;
    default:
      return -1;
  }
}

std::uint32_t flag_number(const PipeInstruction& in) {
  const int source = pipe_of(in.a & 0xff);
  const int destination = pipe_of(in.a >> 8 & 0xff);
  const std::uint64_t id = in.a >> 16;
  if (source < 0 || destination < 0 || source == destination || id > 7) {
    throw MachineError(
        fmt::format("pc {:#x}: no such flag: two different pipes of S, V, MTE2, MTE3 and an id 0..7", in.pc));
  }
  return static_cast<std::uint32_t>((source * kPipes + destination) * 8) + static_cast<std::uint32_t>(id);
}

std::string flag_text(std::uint32_t number) {
  return fmt::format("flag {}->{} id {}", pipe_name(static_cast<int>(number / 32)),
                     pipe_name(static_cast<int>(number / 8 % 4)), number % 8);
}

Flag& Aiv::State::flag(std::uint32_t number) {
  auto& group = flags[number / 8];
  if (!group) group = std::make_unique<std::array<Flag, 8>>();
  return (*group)[number % 8];
}

void Aiv::State::set_flag(std::uint32_t number, std::int64_t cycle, std::uint64_t pc) {
  Flag& f = flag(number);
  const std::uint32_t at = (f.first + f.count) % Flag::kDepth;
  f.cycle[at] = cycle;
  f.pc[at] = pc;
  ++f.count;
  ++statistics.flags_set;
  ++progress;
  if (f.count > 1) {
    const Time when = std::max(clock.start(cycle + 1), socket.now());
    socket.schedule(core, when, kFlagCheck, argument(number));
  }
  const std::uint32_t destination = number / 8 % 4;
  if (destination != kPipeS) pending |= 1u << destination;
}

void Aiv::State::consume_flag(std::uint32_t number, std::int64_t cycle, std::uint64_t pc) {
  Flag& f = flag(number);
  if (f.count > 1 && f.cycle[f.second()] < cycle) {
    throw MachineError(
        fmt::format("pc {:#x}: sets {} at cycle {}, which is still set: it is waited for at cycle "
                    "{} (pc {:#x})",
                    f.pc[f.second()], flag_text(number), f.cycle[f.second()], cycle, pc));
  }
  const std::uint32_t source = number / 32;
  if (f.count == Flag::kDepth && source != kPipeS) pending |= 1u << source;
  f.first = static_cast<std::uint8_t>(f.second());
  --f.count;
}

void Aiv::State::check_flag(std::uint32_t number, Time now) {
  const Flag& f = flag(number);
  if (f.count > 1 && f.cycle[f.second()] < tick(now)) {
    throw MachineError(fmt::format("pc {:#x}: sets {} at cycle {}, which is still set (by pc {:#x})",
                                   f.pc[f.second()], flag_text(number), f.cycle[f.second()], f.pc[f.first]));
  }
}

void Aiv::State::fire_cross_core(std::uint64_t operand, std::int64_t cycle) {
  const std::uint64_t mode = operand >> 8 & 0xff;
  const std::uint64_t number = operand >> 16 & 0xff;
  socket.schedule(core, std::max(clock.start(cycle), socket.now()), kCrossCoreSet,
                  argument(mode | number << 8));
}

std::string Aiv::waiting_for() const {
  State& s = *state_;
  std::string text;
  const auto line = [&](const char* who, const std::string& what, std::int64_t since, std::uint64_t pc) {
    text +=
        fmt::format("{} waits for {} since {:.3f} us, pc {:#x}\n", who, what, s.clock.start(since).us(), pc);
  };
  switch (s.parked_on) {
    case ParkedOn::queue:
      line("S", fmt::format("a place in {}'s queue", pipe_name(static_cast<int>(s.parked_operand))),
           s.parked_cycle, s.parked_pc);
      break;
    case ParkedOn::flag:
      line("S", flag_text(s.parked_operand), s.parked_cycle, s.parked_pc);
      break;
    case ParkedOn::flag_room:
      line("S", flag_text(s.parked_operand) + " to be waited for", s.parked_cycle, s.parked_pc);
      break;
    case ParkedOn::all_pipes:
      line("S", "all pipes", s.parked_cycle, s.parked_pc);
      break;
    case ParkedOn::cross_core:
      line("S", fmt::format("cross-core flag {}", s.parked_operand), s.parked_cycle, s.parked_pc);
      break;
    case ParkedOn::poll:
      line("S", fmt::format("a write to memory offset {:#x} ({} B)", s.watch_offset, s.watch_bytes),
           s.parked_cycle, s.parked_pc);
      break;
    case ParkedOn::nothing:
      break;
  }
  for (int p = kPipeV; p < kPipes; ++p) {
    const PipeQueue& q = s.queue[p];
    if (p != kPipeV && s.engine(p).remote_outstanding() != 0) {
      line(pipe_name(p), fmt::format("{} remote requests", s.engine(p).remote_outstanding()),
           s.tick(s.engine(p).last_request()), s.engine(p).oldest_pc());
    }
    if (q.empty()) continue;
    const QueuedInstruction& front = q.front();
    const bool sync = front.instruction.instruction_class == CM384_CLASS_SYNC;
    const std::string what = sync && front.instruction.operation == CM384_WAIT_FLAG
                                 ? flag_text(flag_number(front.instruction))
                             : sync ? "its earlier instructions"
                                    : "its engine";
    line(pipe_name(p), what, std::max(front.arrival, q.ready), front.instruction.pc);
  }
  return text;
}

std::uint64_t Aiv::last_pc(int pipe) const {
  const int p = pipe_of(static_cast<std::uint64_t>(pipe));
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
