#include "npu_core/cube/aic.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/cube/cube_unit.h"
#include "npu_core/memory/atomic.h"
#include "npu_core/pipes/pipe_fault.h"

namespace cm384::npu {
namespace {

constexpr PipeDescription kPipeNames[kCubePipes] = {{"S", CM384_PIPE_S},       {"M", CM384_PIPE_M},
                                                    {"MTE1", CM384_PIPE_MTE1}, {"MTE2", CM384_PIPE_MTE2},
                                                    {"FIX", CM384_PIPE_FIX},   {"MTE3", CM384_PIPE_MTE3}};

// All buffers as one range, for the hazard checker.
constexpr std::uint32_t kL0aAt = kL1Bytes;
constexpr std::uint32_t kL0bAt = kL0aAt + kL0aBytes;
constexpr std::uint32_t kL0cAt = kL0bAt + kL0bBytes;
constexpr std::uint32_t kBiasAt = kL0cAt + kL0cBytes;
constexpr std::uint32_t kFixpipeAt = kBiasAt + kBiasBytes;
constexpr HazardSpace::Buffer kBufferNames[] = {{"L1", 0},
                                                {"L0A", kL0aAt},
                                                {"L0B", kL0bAt},
                                                {"L0C", kL0cAt},
                                                {"the bias table", kBiasAt},
                                                {"the fixpipe buffer", kFixpipeAt}};
// A fractal is the grain: buffers are laid out in whole ones.
constexpr HazardSpace kSpace{kPipeNames, kBufferNames, kFixpipeAt + kFixpipeBytes, kFractalBytes};

// Operations from here on: CM384_CUBE_FIX or CM384_MTE_L1_TO_GM with an atomic mode, which is added.
constexpr std::uint8_t kAtomic = 64;

sim::Operation written_as(const PipeInstruction& in) {
  if (in.operation < kAtomic) return sim::Operation::write;
  return static_cast<sim::Operation>(static_cast<int>(sim::Operation::write) + in.operation - kAtomic);
}

CubePipe cube_pipe(const PipeInstruction& in) {
  switch (in.operation) {
    case CM384_CUBE_MMAD:
      return kCubeM;
    case CM384_CUBE_FIX:
    case CM384_CUBE_LOAD_FIXPIPE:
    case CM384_CUBE_FIX_TO_L1:
      return kCubeFix;
    case CM384_CUBE_FILL:
      return in.a >> 32 == 0 ? kCubeMte2 : kCubeMte1;
    default:
      if (in.operation > CM384_CUBE_FIX_TO_L1) fault(in.pc, "no such cube operation");
      return kCubeMte1;
  }
}

void check_atomic(const MteCopy& copy) {
  if (copy.operation < sim::Operation::atomic_add_s32) return;
  const std::uint32_t element = atomic_element_bytes(copy.operation);
  if (copy.gm % element != 0 || copy.burst_bytes % element != 0)
    fault(copy.pc, fmt::format("atomic copy: address and burst must be multiples of {}", element));
}

}  // namespace

Aic::Aic(std::uint16_t core_number, const hw::CubeCore& cube, const hw::Mte& mte, const Clock& core_clock,
         CoreSocket& die, bool elides_polls)
    : PipeSet(core_number, "a cube core", kSpace, static_cast<std::uint32_t>(cube.queue_depth), core_clock,
              die, statistics_),
      parameters_(cube),
      read_timing_(mte_timing(core_clock, mte.read_instruction_overhead, mte.read_request_interval,
                              mte.local_read_window, mte.remote_reads)),
      write_timing_(mte_timing(core_clock, mte.write_instruction_overhead, mte.write_request_interval,
                               mte.local_write_window, mte.remote_writes, mte.remote_partial_write)),
      fix_timing_(mte_timing(core_clock, mte.write_instruction_overhead, 1.0, mte.local_write_window,
                             mte.remote_writes, mte.remote_partial_write)),
      mte2_(true, core_number, kEngine0, 0, read_timing_, die, buffers_.l1,
            {statistics_.mte2_busy_ps, statistics_.local_requests, statistics_.remote_requests,
             statistics_.read_bytes, statistics_.window_full, statistics_.merged_writes}),
      mte3_(false, core_number, kEngine1, kEngineTags, write_timing_, die, buffers_.l1,
            {statistics_.mte3_busy_ps, statistics_.local_requests, statistics_.remote_requests,
             statistics_.mte3_bytes, statistics_.window_full, statistics_.merged_writes}),
      fix_(false, core_number, kEngine2, 2 * kEngineTags, fix_timing_, die, fix_result_,
           {statistics_.fix_busy_ps, statistics_.local_requests, statistics_.remote_requests,
            statistics_.fix_bytes, statistics_.window_full, statistics_.merged_writes}) {
  fix_timing_.sector_ps = mte_timing(core_clock, 0, 128.0 / cube.fixpipe_bytes_per_cycle, 0_B, 0).interval_ps;
  add_engine(kCubeMte2, mte2_, kEngine0);
  add_engine(kCubeMte3, mte3_, kEngine1);
  add_engine(kCubeFix, fix_, kEngine2);
  setup[kCubeMte2] = mte.read_setup;
  setup[kCubeMte3] = setup[kCubeFix] = mte.write_setup;
  for (int p = 1; p < kCubePipes; ++p) wait_cycles[p] = &statistics_.wait_cycles[p];
  waits = statistics_.waits.data();
  set_hazards(true);
  elide_polls = elides_polls;
}

void Aic::start_work(int pipe, QueuedInstruction& entry) {
  PipeQueue& q = queue[pipe];
  hazards->started(pipe);
  hazards->begin_access(pipe);
  const std::int64_t own = std::max(q.ready, q.unit_free);
  const std::int64_t start = std::max(entry.cycle, own);
  const std::int64_t cycles = start_unit(pipe, entry);
  q.unit_free = start + cycles;
  q.unit_complete = std::max(q.unit_complete, q.unit_free + (pipe == kCubeM ? 0 : parameters_.load_latency));
  step(PipeStep::Kind::work, pipe, entry, own, start, q.unit_free, start);
  // Pipes that copy as well go on once the work is complete.
  q.ready = engine[pipe] != nullptr ? q.unit_complete : start + 1;
  retire(pipe, start);
}

std::int64_t Aic::start_unit(int pipe, const QueuedInstruction& entry) {
  const PipeInstruction& in = entry.instruction;
  switch (in.operation) {
    case CM384_CUBE_MMAD:
      return start_mmad(in);
    case CM384_CUBE_LOAD_2D_A:
    case CM384_CUBE_LOAD_2D_B:
      return start_fractals(in);
    case CM384_CUBE_LOAD_3D_A:
      return start_image(entry);
    case CM384_CUBE_FILL:
      return start_fill(in);
    case CM384_CUBE_FIX_TO_L1:
      return start_fixpipe_to_l1(entry);
    default:
      return start_load(in, pipe);
  }
}

std::int64_t Aic::start_load(const PipeInstruction& in, int pipe) {
  const CubeLoad load = decode_cube_load(in);
  struct Way {
    std::uint32_t begin;
    int rate;
  };
  const int table = parameters_.table_bytes_per_cycle;
  const Way ways[] = {{kL0aAt, parameters_.l0a_bytes_per_cycle},
                      {kL0bAt, parameters_.l0b_bytes_per_cycle},
                      {kL0bAt, parameters_.l0b_bytes_per_cycle},
                      {kBiasAt, table},
                      {kFixpipeAt, table}};
  const Way& way = ways[load.operation];
  touch(pipe, load.l1, load.l1_bytes(), false, in.pc);
  touch(pipe, way.begin + load.destination, load.bytes, true, in.pc);
  perform(load, buffers_);
  return load_cycles(load.bytes, way.rate);
}

std::int64_t Aic::start_fractals(const PipeInstruction& in) {
  const FractalLoad load = decode_fractal_load(in);
  const std::uint32_t to = load.to_a ? kL0aAt : kL0bAt;
  for (std::uint32_t step = 0; step < load.steps; ++step) {
    touch(kCubeMte1, load.from(step), load.fractals * kFractalBytes, false, in.pc);
    for (std::uint32_t n = 0; n < load.fractals; ++n)
      touch(kCubeMte1, to + load.to(step, n), kFractalBytes, true, in.pc);
  }
  perform(load, buffers_);
  return load_cycles(load.bytes(),
                     load.to_a ? parameters_.l0a_bytes_per_cycle : parameters_.l0b_bytes_per_cycle);
}

std::int64_t Aic::start_image(const QueuedInstruction& entry) {
  const PipeInstruction& in = entry.instruction;
  const ImageLoad load = decode_image_load(in, entry.low, entry.high);
  for (std::uint32_t row = 0; row < load.rows; ++row) {
    for (std::uint32_t column = 0; column < load.columns; ++column) {
      std::uint32_t from = 0;
      if (load.place(row, column, from) == ImageLoad::Place::image)
        touch(kCubeMte1, from, sim::kBlockBytes, false, in.pc);
    }
  }
  touch(kCubeMte1, kL0aAt + load.destination, load.bytes(), true, in.pc);
  perform(load, buffers_);
  return load_cycles(load.bytes(), parameters_.l0a_bytes_per_cycle);
}

// As long as a load of as many bytes, of L1 as one to L0A (assumed).
std::int64_t Aic::start_fill(const PipeInstruction& in) {
  const BufferFill fill = decode_buffer_fill(in);
  const bool l1 = fill.buffer == BufferFill::Buffer::l1, b = fill.buffer == BufferFill::Buffer::l0b;
  const std::uint32_t at = l1 ? 0 : b ? kL0bAt : kL0aAt;
  const int pipe = l1 ? kCubeMte2 : kCubeMte1;
  for (std::uint32_t turn = 0; turn < fill.turns; ++turn)
    touch(pipe, at + fill.destination + turn * fill.pitch, fill.turn_bytes, true, in.pc);
  perform(fill, buffers_);
  const int rate = b ? parameters_.l0b_bytes_per_cycle : parameters_.l0a_bytes_per_cycle;
  if (!l1) return load_cycles(fill.bytes(), rate);
  ++statistics_.mte2_instructions;
  return (fill.bytes() + static_cast<std::uint32_t>(rate) - 1) / static_cast<std::uint32_t>(rate);
}

// At the rate of the fixpipe, which moves the rows of C's columns of blocks as they come.
std::int64_t Aic::start_fixpipe_to_l1(const QueuedInstruction& entry) {
  const PipeInstruction& in = entry.instruction;
  const FixpipeCopy f = decode_fixpipe(in, entry.low);
  const std::uint32_t to = fixpipe_in_l1(in, f, entry.high), pitch = static_cast<std::uint32_t>(entry.high);
  touch(kCubeFix, kL0cAt + f.l0c, f.c_bytes(), false, in.pc);
  if (f.vector()) touch(kCubeFix, kFixpipeAt + f.scales, f.n * f.scale_bytes, false, in.pc);
  perform(f, buffers_, fix_result_);
  const std::uint32_t columns = blocks_of(f.n * f.element_bytes(), f.nz_row), each = f.m * f.nz_row;
  std::vector<std::byte> bytes(each);
  for (std::uint32_t column = 0; column < columns; ++column) {
    touch(kCubeFix, to + column * pitch, each, true, in.pc);
    const bool payload = fix_result_.payload(column * each, each);
    buffers_.l1.set_payload(to + column * pitch, each, payload);
    if (payload) continue;
    fix_result_.load(column * each, bytes.data(), each);
    buffers_.l1.store(to + column * pitch, bytes.data(), each);
  }
  ++statistics_.fix_instructions;
  const auto rate = static_cast<std::uint32_t>(parameters_.fixpipe_bytes_per_cycle);
  return (columns * each + rate - 1) / rate;
}

std::int64_t Aic::load_cycles(std::uint32_t bytes, int rate) {
  const std::int64_t cycles = (bytes + rate - 1) / rate;
  ++statistics_.loads;
  statistics_.load_cycles += static_cast<std::uint64_t>(cycles);
  return cycles;
}

// ascend-facts A5: 6 + ceil(m / 16) * ceil(k / c0) * ceil(n / 16), of steps that take a cycle each at the
// rate of the 910C.
std::int64_t Aic::start_mmad(const PipeInstruction& in) {
  const Mmad mmad = decode_mmad(in);
  touch(kCubeM, kL0aAt + mmad.l0a, mmad.a_bytes(), false, in.pc);
  touch(kCubeM, kL0bAt + mmad.l0b, mmad.b_bytes(), false, in.pc);
  if (mmad.start == 1) touch(kCubeM, kL0cAt + mmad.l0c, mmad.c_bytes(), false, in.pc);
  if (mmad.start == 2) touch(kCubeM, kBiasAt + mmad.bias, mmad.n * 4, false, in.pc);
  touch(kCubeM, kL0cAt + mmad.l0c, mmad.c_bytes(), true, in.pc);
  perform(mmad, buffers_);
  const std::int64_t steps = std::int64_t{mmad.m_blocks()} * mmad.k_blocks() * mmad.n_blocks();
  const std::int64_t macs = steps * kFractalRows * kFractalRows *
                            (sim::kBlockBytes / cube_element_bytes(in.type)) * (mmad.halves ? 2 : 1);
  const std::int64_t rate = mmad.halves ? parameters_.macs_per_cycle.int4 : macs_per_cycle(in.type);
  const std::int64_t cycles = parameters_.mmad_setup + (macs + rate - 1) / rate;
  ++statistics_.mmads;
  const std::uint64_t multiply_adds = std::uint64_t{mmad.m} * mmad.n * mmad.k;
  statistics_.multiply_adds += multiply_adds;
  if (in.type == CM384_CUBE_S8) statistics_.int8_multiply_adds += multiply_adds;
  if (in.type == CM384_CUBE_F32) statistics_.fp32_multiply_adds += multiply_adds;
  statistics_.mmad_cycles += static_cast<std::uint64_t>(cycles);
  return cycles;
}

std::int64_t Aic::macs_per_cycle(std::uint8_t type) const {
  const hw::MacsPerCycle& rates = parameters_.macs_per_cycle;
  return type == CM384_CUBE_S8 ? rates.int8 : type == CM384_CUBE_F32 ? rates.fp32 : rates.bf16;
}

MteCopy Aic::prepare_copy(int pipe, const QueuedInstruction& entry) {
  hazards->begin_access(pipe);
  const MteCopy copy = pipe == kCubeFix ? fixpipe_copy(entry) : l1_copy(pipe, entry);
  if (!cm384_is_gm(copy.gm))
    fault(copy.pc, fmt::format("copy with {:#x}, which is no global address", copy.gm));
  return copy;
}

MteCopy Aic::l1_copy(int pipe, const QueuedInstruction& entry) {
  const PipeInstruction& in = entry.instruction;
  const bool reads = pipe == kCubeMte2;
  const bool nd2nz = in.operation == CM384_MTE_GM_TO_L1_ND2NZ;
  const std::uint64_t local = reads ? in.a : in.b;
  const std::uint64_t local_stride = reads ? entry.high : entry.low;
  MteCopy c;
  c.gm = reads ? in.b : in.a;
  c.burst_bytes = static_cast<std::uint32_t>(in.c);
  c.bursts = static_cast<std::uint32_t>(in.c >> 32);
  c.allocate = entry.allocate;
  c.pc = in.pc;
  c.operation = reads ? sim::Operation::read : written_as(in);
  if (c.burst_bytes > kL1Bytes || c.bursts > 65535)
    fault(in.pc, "copy of more than L1, or of more than 65535 bursts");
  if (local % sim::kBlockBytes != 0 || (c.bursts > 1 && local_stride % sim::kBlockBytes != 0))
    fault(in.pc, "copy: L1 offset and stride must be multiples of 32");
  if (c.bursts > 1) c.gm_stride = static_cast<std::int64_t>(reads ? entry.low : entry.high);
  const std::uint64_t stride = std::min<std::uint64_t>(local_stride, kL1Bytes);
  std::uint64_t span = 0;
  if (nd2nz) {
    if (c.burst_bytes > sim::kBlockBytes && stride < std::uint64_t{c.bursts} * sim::kBlockBytes)
      fault(in.pc, "copy with ND2NZ: the destination stride does not hold the rows");
    c.local_stride = sim::kBlockBytes;
    c.block_stride =
        c.burst_bytes > sim::kBlockBytes ? static_cast<std::uint32_t>(stride) : 2 * sim::kBlockBytes;
    span = (c.padded() / sim::kBlockBytes - 1) * std::uint64_t{c.block_stride} +
           std::uint64_t{c.bursts} * sim::kBlockBytes;
  } else {
    if (c.bursts > 1) c.local_stride = static_cast<std::uint32_t>(stride);
    span = std::uint64_t{c.bursts - 1} * c.local_stride + c.padded();
  }
  if (local + span > kL1Bytes)
    fault(in.pc, fmt::format("copy of {} x {} B at L1 offset {:#x} leaves L1 (512 KiB)", c.bursts,
                             c.burst_bytes, local));
  c.local = static_cast<std::uint32_t>(local);
  check_atomic(c);
  touch(pipe, c.local, static_cast<std::uint32_t>(span), reads, in.pc);
  ++(reads ? statistics_.mte2_instructions : statistics_.mte3_instructions);
  return c;
}

MteCopy Aic::fixpipe_copy(const QueuedInstruction& entry) {
  const PipeInstruction& in = entry.instruction;
  const FixpipeCopy f = decode_fixpipe(in, entry.low);
  touch(kCubeFix, kL0cAt + f.l0c, f.c_bytes(), false, in.pc);
  if (f.vector()) touch(kCubeFix, kFixpipeAt + f.scales, f.n * f.scale_bytes, false, in.pc);
  perform(f, buffers_, fix_result_);
  const std::uint32_t row_bytes = f.n * f.element_bytes();
  MteCopy c;
  c.gm = in.a;
  c.burst_bytes = f.nz ? f.m * f.nz_row : row_bytes;
  c.bursts = f.nz ? blocks_of(row_bytes, f.nz_row) : f.m;
  c.gm_stride = static_cast<std::int64_t>(entry.high);
  c.local_stride = c.padded();
  c.operation = written_as(in);
  c.allocate = entry.allocate;
  c.pc = in.pc;
  check_atomic(c);
  ++statistics_.fix_instructions;
  return c;
}

IssueAnswer Aic::issue(const PipeInstruction& in, std::int64_t cycle) {
  unpark();
  switch (in.instruction_class) {
    case CM384_CLASS_SYNC:
      return issue_sync(in, cycle);
    case CM384_CLASS_MTE:
      if (in.operation < CM384_MTE_GM_TO_L1 || in.operation > CM384_MTE_L1_TO_GM)
        fault(in.pc, "no such MTE operation on a cube core");
      if (copies_nothing(in)) return IssueAnswer::at(cycle + 1);
      if (in.operation == CM384_MTE_L1_TO_GM) return push(kCubeMte3, with_mode(in), cycle);
      return push(kCubeMte2, in, cycle);
    case CM384_CLASS_CUBE:
      return push(cube_pipe(in), in.operation == CM384_CUBE_FIX ? with_mode(in) : in, cycle);
    default:
      fault(in.pc, "a cube core has no such class of pipe instructions");
  }
}

// Of an instruction in the queue: where it writes to memory, the atomic mode it was issued under stands in
// its number.
PipeInstruction Aic::with_mode(const PipeInstruction& in) const {
  if (atomic_mode() == CM384_ATOMIC_NONE) return in;
  PipeInstruction adds = in;
  adds.operation = static_cast<std::uint8_t>(kAtomic + atomic_mode());
  return adds;
}

bool Aic::copies(const PipeInstruction& in) const {
  return in.instruction_class == CM384_CLASS_MTE || in.operation == CM384_CUBE_FIX || in.operation >= kAtomic;
}

void Aic::forget_values() {
  buffers_.l1.set_payload(0, kL1Bytes, true);
  fix_result_.set_payload(0, kL0cBytes, true);
}

void Aic::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const AicStatistics& s = statistics_;
  const auto m = at.part("m"), mte1 = at.part("mte1"), mte2 = at.part("mte2"), fix = at.part("fix"),
             mte3 = at.part("mte3");
  to.declare(m, "instructions", "instructions", "MMADs started", s.mmads);
  to.declare(m, "multiply_adds", "operations", "multiplications with their additions that those asked for",
             s.multiply_adds);
  to.declare(m, "multiply_adds_int8", "operations", "of them, on INT8", s.int8_multiply_adds);
  to.declare(m, "multiply_adds_fp32", "operations", "of them, on FP32", s.fp32_multiply_adds);
  to.declare(m, "multiply_adds_bf16", "operations", "of them, on BF16 and FP16",
             [&s] { return s.multiply_adds - s.int8_multiply_adds - s.fp32_multiply_adds; });
  to.declare(m, "busy_cycles", "cycles", "in which the matrix unit worked", s.mmad_cycles);
  to.declare(mte1, "instructions", "instructions", "loads from L1 started", s.loads);
  to.declare(mte1, "busy_cycles", "cycles", "in which MTE1 moved data", s.load_cycles);
  to.declare(mte2, "instructions", "instructions", "copies from memory to L1 started", s.mte2_instructions);
  to.declare(mte2, "busy_ps", "ps", "from an instruction's turn to issue to its last request",
             s.mte2_busy_ps);
  to.declare(mte2, "bytes", "B", "read, without padding and rounding to sectors", s.read_bytes);
  to.declare(fix, "instructions", "instructions", "copies from L0C to memory started", s.fix_instructions);
  to.declare(fix, "busy_ps", "ps", "from an instruction's turn to issue to its last request", s.fix_busy_ps);
  to.declare(fix, "bytes", "B", "written, without rounding to sectors", s.fix_bytes);
  to.declare(mte3, "instructions", "instructions", "copies from L1 to memory started", s.mte3_instructions);
  to.declare(mte3, "busy_ps", "ps", "from an instruction's turn to issue to its last request",
             s.mte3_busy_ps);
  to.declare(mte3, "bytes", "B", "written, without rounding to sectors", s.mte3_bytes);
  const sim::StatisticPath paths[] = {m, mte1, mte2, fix, mte3};
  for (std::size_t p = 0; p < std::size(paths); ++p) {
    to.declare(paths[p], "wait_cycles", "cycles", "the pipe stood at a wait_flag whose flag was not set",
               s.wait_cycles[p + 1]);
  }
  to.declare(at, "local_requests", "requests", "to the own die's memory, at most 512 B each",
             s.local_requests);
  to.declare(at, "remote_requests", "requests", "to other memory, at most 512 B each", s.remote_requests);
  declare_pipe_statistics(to, at, s);
}

}  // namespace cm384::npu
