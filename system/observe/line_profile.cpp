#include "system/observe/line_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "firmware/abi/isa.h"
#include "npu_core/cube/aic.h"
#include "npu_core/cube/cube_instruction.h"
#include "npu_core/die/die.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_observer.h"
#include "npu_core/scalar/by_pc.h"
#include "npu_core/scalar/debug_info.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/disassemble.h"
#include "npu_core/scalar/program.h"
#include "npu_core/vector/aiv.h"
#include "npu_core/vector/vector_instruction.h"
#include "npu_core/vector/vector_pipes.h"
#include "system/observe/instruction_name.h"
#include "system/observe/kernel_name.h"

namespace cm384::observe {

// What the cores of one number count together, on the dies of one worker: a table a core would not stay in
// the host's caches. In no namespace without a name: a watch of cores has it.
struct LineProfile::Tables {
  npu::ScalarTables scalar;
  std::vector<npu::ByPc<PipeWork>> pipes;  // by program, as in scalar; by key()

  // An instruction may go to one pipe or another, by its operand.
  static std::uint64_t key(std::uint64_t pc, int pipe) { return pc << 3 | static_cast<std::uint64_t>(pipe); }
  PipeWork& at(std::size_t program, std::uint64_t pc, int pipe) {
    if (pipes.size() <= program) pipes.resize(program + 1);
    return pipes[program].at(key(pc, pipe));
  }
  // Calls visit(pc, pipe, work) for what pipes did of one program.
  template <class Visit>
  void each(std::size_t program, const Visit& visit) const {
    if (program >= pipes.size()) return;
    pipes[program].each(
        [&](std::uint64_t key, const PipeWork& work) { visit(key >> 3, static_cast<int>(key & 7), work); });
  }
  void clear() {
    scalar.clear();
    pipes.clear();
  }
};

namespace {

WorkLane lane_of(int pipe, bool cube) {
  static constexpr std::array<WorkLane, npu::kPipes> kOfVector{WorkLane::scalar, WorkLane::vector,
                                                               WorkLane::mte2, WorkLane::mte3};
  static constexpr std::array<WorkLane, npu::kCubePipes> kOfCube{
      WorkLane::scalar, WorkLane::cube, WorkLane::mte1, WorkLane::mte2, WorkLane::fixpipe, WorkLane::mte3};
  return cube ? kOfCube[static_cast<std::size_t>(pipe)] : kOfVector[static_cast<std::size_t>(pipe)];
}

std::uint64_t elements_on(const npu::VectorInstruction& v) {
  const std::uint32_t all = v.elements_masked();
  if (v.full_mask()) return all;
  const auto low = static_cast<std::uint64_t>(std::popcount(v.mask_low));
  return all <= 64 ? static_cast<std::uint64_t>(std::popcount(
                         v.mask_low & (all == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << all) - 1)))
                   : low + static_cast<std::uint64_t>(std::popcount(v.mask_high));
}

WorkLane scalar_lane(const npu::Operation& op) {
  using npu::Kind;
  if (npu::access_bytes(op.kind) != 0 || op.kind == Kind::amo || op.kind == Kind::dcci)
    return WorkLane::scalar_memory;
  if (op.kind == Kind::pipe)
    return (npu::raw_of(op) >> 12 & 7) == CM384_CLASS_SYNC ? WorkLane::flow : WorkLane::scalar;
  return npu::ends_block(op.kind) ? WorkLane::flow : WorkLane::scalar;
}

// The instruction as its class, operation and type say it, without operands.
npu::PipeInstruction bare(const npu::Operation& op) {
  npu::PipeInstruction in;
  in.instruction_class = static_cast<std::uint8_t>(npu::raw_of(op) >> 12 & 7);
  in.operation = op.rd;
  in.type = static_cast<std::uint8_t>(npu::raw_of(op) >> 25 & 3);
  return in;
}

void describe(InstructionWork& work, const npu::Operation& op) {
  const std::string text = npu::disassemble(op);
  if (op.kind == npu::Kind::pipe) {
    work.name = name_of(bare(op));
    work.detail = text.substr(text.rfind(' ') + 1);
    if (const std::string type = type_of(bare(op)); !type.empty()) work.detail = type + " " + work.detail;
    return;
  }
  const std::size_t end = text.find(' ');
  work.name = text.substr(0, end);
  if (end != std::string::npos) work.detail = text.substr(end + 1);
}

}  // namespace

const char* name_of(WorkLane lane) {
  static constexpr std::array<const char*, kWorkLanes> kNames{
      "SCALAR", "SCALARLDST", "FLOWCTRL", "VECTOR", "CUBE", "MTE1", "MTE2", "MTE3", "FIXP"};
  return kNames[static_cast<std::size_t>(lane)];
}

PipeWork& PipeWork::operator+=(const PipeWork& other) {
  instructions += other.instructions;
  busy_cycles += other.busy_cycles;
  busy_ps += other.busy_ps;
  conflict_cycles += other.conflict_cycles;
  flag_cycles += other.flag_cycles;
  barrier_cycles += other.barrier_cycles;
  order_cycles += other.order_cycles;
  bytes += other.bytes;
  operations += other.operations;
  lanes += other.lanes;
  repeats += other.repeats;
  return *this;
}

// One core: its scalar unit counts by itself, its pipes are listened to.
class LineProfile::CoreWatch final : public npu::PipeObserver {
 public:
  CoreWatch(int die, npu::Core& core, bool cube, Tables& tables)
      : die_(die), core_(core), cube_(cube), tables_(tables), scalar_(tables.scalar) {
    if (cube) {
      const npu::AicStatistics& counted = core.aic().statistics();
      busy_[npu::kCubeMte2] = &counted.mte2_busy_ps;
      busy_[npu::kCubeMte3] = &counted.mte3_busy_ps;
      busy_[npu::kCubeFix] = &counted.fix_busy_ps;
    } else {
      busy_[npu::kPipeMte2] = &core.aiv().statistics().mte2_busy_ps;
      busy_[npu::kPipeMte3] = &core.aiv().statistics().mte3_busy_ps;
    }
    core.scalar().set_profile(&scalar_);
    core.pipes().add_observer(*this);
  }
  ~CoreWatch() { core_.scalar().set_profile(nullptr); }
  CoreWatch(const CoreWatch&) = delete;
  CoreWatch& operator=(const CoreWatch&) = delete;

  int die() const { return die_; }
  int core() const { return core_.number(); }
  bool cube() const { return cube_; }
  const npu::ScalarProfile& scalar() const { return scalar_; }
  const std::shared_ptr<npu::Program>& program(std::size_t number) const {
    return tables_.scalar.programs()[number];
  }
  const std::array<PipeWork, kWorkLanes>& pipes() const { return pipes_; }
  void clear() {
    scalar_.clear();
    pipes_.fill({});
  }

  void scalar_polled(std::int64_t, std::int64_t) override { scalar_.polled(); }

  void left(const npu::PipeStep& step) override {
    using Kind = npu::PipeStep::Kind;
    PipeWork work;
    work.instructions = 1;
    switch (step.kind) {
      case Kind::work:
        if (step.vector.instruction != nullptr) {
          const npu::VectorInstruction& v = *step.vector.instruction;
          work.busy_cycles += static_cast<std::uint64_t>(step.vector.busy);
          work.conflict_cycles += static_cast<std::uint64_t>(step.vector.conflicts);
          work.order_cycles += static_cast<std::uint64_t>(step.vector.ordered);
          work.operations += elements_on(v) * v.repeats;
          work.lanes += std::uint64_t{v.elements_masked()} * v.repeats;
          work.repeats += v.repeats;
        } else {
          work.busy_cycles += static_cast<std::uint64_t>(step.end - step.start);
          if (cube_ && step.pipe == npu::kCubeM) {
            const npu::Mmad mmad = npu::decode_mmad(*step.instruction);
            work.operations += std::uint64_t{2} * mmad.m * mmad.n * mmad.k;
          }
        }
        break;
      case Kind::copy: {
        const auto pipe = static_cast<std::size_t>(step.pipe);
        work.bytes += std::uint64_t{step.copy->burst_bytes} * step.copy->bursts;
        in_hand_[pipe] = {step.instruction->pc, scalar_.current(), *busy_[pipe]};
        break;
      }
      case Kind::wait_flag:
        work.flag_cycles += static_cast<std::uint64_t>(step.end - step.start);
        break;
      case Kind::barrier:
        work.barrier_cycles += static_cast<std::uint64_t>(step.end - step.start);
        break;
      case Kind::set_flag:
      case Kind::cross_set:
        break;
    }
    tables_.at(scalar_.current(), step.instruction->pc, step.pipe) += work;
    of_pipe(step.pipe) += work;
  }

  void issued(int pipe, std::int64_t) override {
    InHand& copy = in_hand_[static_cast<std::size_t>(pipe)];
    if (copy.pc == 0) return;
    const std::uint64_t busy_ps = *busy_[static_cast<std::size_t>(pipe)] - copy.busy_before;
    tables_.at(copy.program, copy.pc, pipe).busy_ps += busy_ps;
    of_pipe(pipe).busy_ps += busy_ps;
    copy.pc = 0;
  }

 private:
  struct InHand {
    std::uint64_t pc = 0;
    std::size_t program = 0;
    std::uint64_t busy_before = 0;
  };

  PipeWork& of_pipe(int pipe) { return pipes_[static_cast<std::size_t>(lane_of(pipe, cube_))]; }

  int die_;
  npu::Core& core_;
  bool cube_;
  Tables& tables_;
  npu::ScalarProfile scalar_;
  std::array<PipeWork, kWorkLanes> pipes_{};  // of all programs
  std::array<const std::uint64_t*, npu::kMostPipes> busy_{};
  std::array<InHand, npu::kMostPipes> in_hand_{};
};

namespace {

// Sums of one kernel, before its instructions are described.
struct Gathered {
  std::shared_ptr<npu::Program> program;
  std::uint64_t blocks = 0, cube_cycles = 0, cube_bytes = 0;
  npu::ScalarTables::Counts scalar;
  npu::ByPc<PipeWork> pipes;  // by lane_key()

  Gathered& operator+=(const Gathered& other) {
    blocks += other.blocks;
    cube_cycles += other.cube_cycles;
    cube_bytes += other.cube_bytes;
    scalar += other.scalar;
    other.pipes.each([&](std::uint64_t at, const PipeWork& work) { pipes.at(at) += work; });
    return *this;
  }
};
std::uint64_t lane_key(std::uint64_t pc, WorkLane lane) {
  return pc << 4 | static_cast<std::uint64_t>(lane);
}

// Names and places of a program's instructions, asked for once each.
class Places {
 public:
  struct Place {
    npu::Operation operation;
    npu::SourcePlace source;
  };
  const Place& at(const npu::Program& program, std::uint64_t pc) {
    const auto [found, added] = known_.try_emplace({&program.image(), pc});
    if (added) {
      found->second.operation = npu::decode_image_block(pc, program)->operations[0];
      if (auto source = program.image().place_of(pc)) found->second.source = std::move(*source);
    }
    return found->second;
  }

 private:
  std::map<std::pair<const npu::ElfImage*, std::uint64_t>, Place> known_;
};

KernelWork described(const Gathered& from, Places& places, npu::ScalarTables::Blocks& blocks) {
  KernelWork made;
  made.kernel = kernel_name(from.program->image());
  made.blocks = from.blocks;
  made.cube_cycles = from.cube_cycles;
  made.cube_bytes = from.cube_bytes;
  const auto add = [&](std::uint64_t pc, WorkLane lane) -> InstructionWork& {
    const Places::Place& place = places.at(*from.program, pc);
    InstructionWork& work = made.instructions.emplace_back();
    work.pc = pc;
    work.lane = lane;
    describe(work, place.operation);
    work.function = place.source.function;
    work.file = place.source.file;
    work.path = place.source.path;
    work.line = place.source.line;
    return work;
  };
  for (const auto& [pc, cycles] : npu::ScalarTables::instructions(*from.program, from.scalar, blocks))
    add(pc, scalar_lane(places.at(*from.program, pc).operation)).scalar = cycles;
  from.pipes.each([&](std::uint64_t at, const PipeWork& pipe) {
    add(at >> 4, static_cast<WorkLane>(at & 15)).pipe = pipe;
  });
  std::ranges::stable_sort(made.instructions, {},
                           [](const InstructionWork& work) { return std::pair(work.pc, work.lane); });
  return made;
}

std::vector<KernelWork> described(const std::vector<Gathered>& all, Places& places,
                                  npu::ScalarTables::Blocks& blocks) {
  std::vector<KernelWork> made;
  for (const Gathered& each : all) {
    if (each.blocks > 0) made.push_back(described(each, places, blocks));
  }
  return made;
}

// Kernels are one where their images are.
Gathered& kernel_in(std::vector<Gathered>& all, const std::shared_ptr<npu::Program>& program) {
  const auto known =
      std::ranges::find_if(all, [&](const Gathered& g) { return &g.program->image() == &program->image(); });
  if (known != all.end()) return *known;
  all.emplace_back().program = program;
  return all.back();
}

}  // namespace

LineProfile::LineProfile(supernode::Supernode& machine) : machine_(machine), tables_(machine.workers()) {
  for (const int number : machine.dies()) {
    npu::Die& die = machine.die(number);
    std::vector<std::unique_ptr<Tables>>& tables = tables_[machine.worker_of_die(number)];
    for (int n = 0; n < die.cluster().size(); ++n) {
      if (static_cast<std::size_t>(n) == tables.size()) tables.push_back(std::make_unique<Tables>());
      watches_.push_back(std::make_unique<CoreWatch>(number, die.cluster().core(n),
                                                     die.cluster().is_cube(static_cast<std::uint16_t>(n)),
                                                     *tables[static_cast<std::size_t>(n)]));
    }
  }
}

LineProfile::~LineProfile() = default;

void LineProfile::begin_counted() {
  for (const auto& watch : watches_) watch->clear();
  for (const auto& of_worker : tables_) {
    for (const auto& tables : of_worker) tables->clear();
  }
}

LineReport LineProfile::report() const {
  const hw::Machine& machine = machine_.parameters();
  const Clock clock(machine.die.clock);
  LineReport made;
  made.cycle_ps = static_cast<double>(clock.numerator()) / static_cast<double>(clock.denominator());
  made.vector_cores = machine.die.aiv;
  made.cube_cores = machine.die.aic;
  made.hbm_bytes_per_s = static_cast<double>(hw::peaks_of(machine).hbm.bytes_per_second);
  made.cube_operations_per_cycle = 2.0 * machine.cube_core.macs_per_cycle.bf16;
  npu::ScalarTables::Blocks blocks;
  std::vector<Gathered> all;
  struct OfNumber {
    std::string name;
    bool cube = false;
    std::vector<Gathered> kernels;
  };
  std::map<int, OfNumber> by_number;
  std::vector<int> numbers;  // in the order in which they ran something
  for (const auto& watch : watches_) {
    CoreWork core{.die = watch->die(), .core = watch->core(), .name = {}, .scalar = {}, .pipes = {}};
    const int number = watch->cube() ? core.core - machine.die.aiv : core.core;
    core.name = watch->cube() ? fmt::format("core{}.cubecore0", number)
                              : fmt::format("core{}.veccore{}", number / 2, number % 2);
    bool ran = false;
    for (const npu::ScalarProfile::Started& started : watch->scalar().started()) {
      if (started.times == 0) continue;
      ran = true;
      const std::shared_ptr<npu::Program>& program = watch->program(started.program);
      OfNumber& of = by_number[core.core];
      if (of.kernels.empty()) numbers.push_back(core.core);
      of.name = core.name;
      of.cube = watch->cube();
      kernel_in(of.kernels, program).blocks += started.times;
      kernel_in(all, program);
    }
    if (!ran) continue;
    core.scalar = watch->scalar().total();
    core.pipes = watch->pipes();
    made.cores.push_back(std::move(core));
  }
  for (auto& entry : by_number) {
    const auto number = static_cast<std::size_t>(entry.first);
    OfNumber& of = entry.second;
    for (Gathered& kernel : of.kernels) {
      for (const auto& of_worker : tables_) {
        if (of_worker.empty()) continue;
        const Tables& tables = *of_worker[number];
        const auto& programs = tables.scalar.programs();
        for (std::size_t p = 0; p < programs.size(); ++p) {
          if (&programs[p]->image() != &kernel.program->image()) continue;
          kernel.scalar += tables.scalar.counts(p);
          tables.each(p, [&](std::uint64_t pc, int pipe, const PipeWork& work) {
            kernel.pipes.at(lane_key(pc, lane_of(pipe, of.cube))) += work;
            if (of.cube) kernel.cube_bytes += work.bytes;
          });
        }
      }
      if (of.cube)
        kernel.cube_cycles = npu::ScalarTables::total(*kernel.program, kernel.scalar, blocks).cycles();
      kernel_in(all, kernel.program) += kernel;
    }
  }
  Places places;
  made.kernels = described(all, places, blocks);
  for (const int number : numbers)
    made.by_core.push_back({by_number[number].name, described(by_number[number].kernels, places, blocks)});
  return made;
}

}  // namespace cm384::observe
