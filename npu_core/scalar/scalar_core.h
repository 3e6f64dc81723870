// The scalar unit of an AI core: RV64IMAFC_Zicsr_Zifencei, in order, one instruction per cycle, with caches.
//
// It runs ahead of the die's event queue in local time (core cycles since the start of the run) until it
// reaches the limit, parks on its surroundings or ends. Time inside a block of straight-line code is known
// when the block is decoded; only cache misses, UBuffer accesses, pipe instructions and host calls add to it.
//
// Memory: private memory (copy on write from the shared image) and GM go through the write-back data cache;
// its GM lines hold data of their own and are not coherent with the pipes (CM384_DCCI cleans and
// invalidates). What leaves it is in memory, for all to see, when its write is complete; the unit waits for
// that, so that a fence has nothing left to order. AMOs on GM are performed in memory in the same way; a line
// of the own cache is cleaned and dropped first. LR/SC, and AMOs on private memory, complete in the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "firmware/abi/memory_map.h"
#include "hw/parameters/scalar_core.h"
#include "npu_core/scalar/environment.h"
#include "npu_core/scalar/machine_state.h"
#include "npu_core/scalar/private_memory.h"
#include "npu_core/scalar/program.h"

namespace cm384::npu {

struct Block;
struct Operation;
struct Turn;
class DecodeCache;
struct CoreCaches;
class ScalarProfile;
enum class ScalarStall : std::uint8_t;

enum class Stop : std::uint8_t {
  limit,       // local time has reached the limit: call run() again with a later one
  parked,      // the environment parked the instruction at pc(): call resume(), then run()
  ended,       // the program has called CM384_HOST_EXIT
  breakpoint,  // a breakpoint at pc(), or an ebreak under a debugger; run() goes on past it
  stored       // the watched word was stored to (watch_word)
};

class ScalarCore {
 public:
  // `number` is mhartid and the name of the core in reports and traces.
  ScalarCore(const hw::ScalarCoreParameters& parameters, ScalarEnvironment& environment,
             std::uint32_t number);
  ~ScalarCore();
  ScalarCore(ScalarCore&&) noexcept;

  // Loads the program and sets the core to its entry: registers zero, sp at the end of private memory, caches
  // empty (dirty GM lines are dropped: firmware cleans them before it exits, or KernelRules::write_back does;
  // dirty_at_end counts them).
  void start(std::shared_ptr<Program> program, std::int64_t cycle);
  // After start(): the first bytes of the program's code are in the instruction cache.
  void preload(std::uint64_t bytes);
  // Drops program, memory and caches.
  void stop();

  // Executes until something of Stop happens. Local time may pass the limit by the length of one block.
  // Throws MachineError for a trap without a handler and for control flow or an address that depends on
  // payload; the message names symbol and pc.
  Stop run(std::int64_t limit_cycle);
  // The parked instruction may be tried again: local time becomes max(local time, cycle).
  void resume(std::int64_t cycle) {
    if (cycle > cycle_) cycle_ = cycle;
  }
  // Executes one instruction (or parks on it).
  Stop step();

  std::int64_t cycle() const { return cycle_; }
  std::uint64_t instructions() const { return instructions_; }
  std::uint64_t pc() const { return pc_; }
  std::uint32_t number() const { return number_; }
  bool running() const { return program_ != nullptr && !ended_; }
  // "kernel.elf: CopyOut at kernel.cpp:42, pc 0x80000a34", for reports.
  std::string location() const;
  std::string location(std::uint64_t pc) const;

  std::uint64_t x(unsigned index) const { return x_[index]; }
  void set_x(unsigned index, std::uint64_t value) {
    if (index != 0) x_[index] = value;
  }
  std::uint32_t f(unsigned index) const { return f_[index]; }
  void set_f(unsigned index, std::uint32_t value) { f_[index] = value; }
  void set_pc(std::uint64_t pc);
  std::uint32_t fcsr() const { return state_.fcsr(); }
  void set_fcsr(std::uint32_t value) { state_.set_fcsr(value); }

  // The core's private memory, UBuffer and global memory as the program sees them (the own cache's lines
  // before memory), without time. Returns false where there is none. Reads see payload as stand-in bytes.
  bool read_memory(std::uint64_t address, std::span<std::byte> to);
  bool write_memory(std::uint64_t address, std::span<const std::byte> from);

  // Replaces the set of breakpoints; from the first one on the core decodes for itself.
  void set_breakpoints(std::vector<std::uint64_t> addresses);
  // With a debugger attached an ebreak stops instead of trapping.
  void set_debugged(bool on) { debugged_ = on; }
  // run() returns Stop::stored after a store that touches the 8 bytes at the (aligned) address.
  void watch_word(std::uint64_t address);
  // For polling loops (npu_core/cluster/poll_finder.h). Called within a pipe instruction; from there on one
  // turn of the loop is recorded. `timed`: registers, as bits of OperandUse, whose values come from a cycle
  // counter.
  void begin_turn(std::uint64_t timed);
  // At the same instruction again: the registers that now come from a counter, where another turn would
  // change nothing; nothing where it would, or where the turn left registers or private memory changed.
  std::optional<std::uint64_t> end_turn();
  void forget_turn();
  // One line an instruction: cycle, core, pc, symbol, encoding, disassembly. Null: off, at no cost.
  void set_trace(std::FILE* file) { trace_ = file; }

  // Sets the profile that counts where cycles go, from the next start() on; it must outlive the last run.
  // Null: none.
  void set_profile(ScalarProfile* profile) { profile_ = profile; }

  // Counters since start().
  struct Counters {
    std::uint64_t instruction_misses = 0, instruction_prefetches = 0, instruction_stall_cycles = 0;
    std::uint64_t data_misses = 0, write_backs = 0, traps = 0;
    std::uint64_t atomics = 0;  // on GM
    std::uint64_t dirty_at_end =
        0;  // GM lines that the program has not cleaned: what it stored there is lost
    std::uint64_t written_at_end = 0;  // or, by KernelRules::write_back, is not

    Counters& operator+=(const Counters& other) {
      instruction_misses += other.instruction_misses;
      instruction_prefetches += other.instruction_prefetches;
      instruction_stall_cycles += other.instruction_stall_cycles;
      data_misses += other.data_misses;
      write_backs += other.write_backs;
      traps += other.traps;
      atomics += other.atomics;
      dirty_at_end += other.dirty_at_end;
      written_at_end += other.written_at_end;
      return *this;
    }
  };
  const Counters& counters() const { return counters_; }
  // Asks the host's cache for what the next instructions will touch: stage 1 the caches' own state, 2 the
  // stack. Stage 0, the core itself, is its owner's.
  void prefetch(int stage) const;
  // Bytes this core holds on the heap.
  std::size_t footprint() const;
  // Whether a register holds a value computed from payload.
  bool tainted() const { return (taint_ & ~std::uint64_t{1}) != 0; }

 private:
  enum class Access : std::uint8_t { done, parked, faulted };

  // interpreter.cpp. kChecked: with payload taint and trace; kProfiled: with a profile.
  template <bool kChecked, bool kProfiled>
  Stop interpret(std::int64_t limit);
  Stop step_one(bool past_breakpoint);
  // Whether the block must run in the checked variant; taint is no matter to one that neither reads nor
  // writes a tainted register.
  bool needs_checks(const Block& block) const;
  void finish_load(const Operation& op, std::uint64_t value);

  Block* find_block(std::uint64_t pc);
  // The block at pc and what the way there from `from` costs, over its edge 0 or 1.
  Block* follow(Block& from, unsigned edge, std::uint64_t pc, std::int64_t& cost);
  // As follow(); remembers the answer in the edge where both blocks live equally long.
  Block* link(Block& from, unsigned edge, std::uint64_t pc, std::int64_t& cost);
  void decode_privately();
  void synchronise_code();

  // memory.cpp: slow paths; cycle_ is the issue cycle of the access and is moved by what it costs.
  Access load(std::uint64_t address, unsigned bytes, std::uint64_t& value, bool& tainted, FillKind kind);
  Access store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool tainted);
  Access order_access(std::uint64_t address, unsigned bytes, bool write);
  Access store_piece(std::uint64_t address, unsigned bytes, const std::byte* from, bool tainted);
  // Offset in the UBuffer that an address means; beyond its size: none.
  std::uint64_t ubuffer_offset(std::uint64_t address) const;
  // What an access there waits for.
  ScalarStall stall_at(std::uint64_t address) const;
  Access load_piece(std::uint64_t address, unsigned bytes, std::byte* to, bool& tainted, FillKind kind);
  Access touch_line(std::uint64_t address, FillKind kind, std::uint32_t& slot);
  Access write_back(std::uint32_t slot);
  Access write_back_all();
  Access clean_range(std::uint64_t address, std::uint64_t bytes);
  bool fetch_lines(std::uint64_t first, std::uint64_t last);
  bool fetch_line(std::uint64_t line);
  void prefetch_lines(std::uint64_t after, std::int64_t asked);
  void hold_line(std::uint64_t line);
  void install(std::uint64_t address, std::uint32_t slot);
  std::byte* writable(std::uint64_t address);
  IssueAnswer ask_fill(std::uint64_t address, FillKind kind, std::byte* line, std::uint32_t bytes,
                       sim::TagMask& tags);

  // system.cpp
  Access amo(const Operation& op);
  Access amo_in_memory(std::uint64_t address, const AtomicUpdate& update, std::uint64_t& old, bool& tainted);
  std::uint64_t dirty_global_lines() const;
  static bool is_global(std::uint64_t address) { return cm384_is_gm(address) && address < 2 * CM384_GM_BASE; }
  Access pipe(const Operation& op);
  Access host_call(const Operation& op);
  void trap(std::uint32_t cause, std::uint64_t value);
  // For a fault: "", or that the stack pointer has left the stack.
  std::string stack_fault() const;
  bool stack_in_program() const {
    return program_->has_stack() &&
           x_[2] - program_->text_low() < program_->text_high() - program_->text_low();
  }
  void return_from_trap();

  // csr.cpp; false: illegal.
  bool csr(const Operation& op);
  bool read_csr(std::uint32_t number, std::uint64_t& value);
  bool read_environment_csr(std::uint32_t number, std::uint64_t& value);
  bool write_csr(std::uint32_t number, std::uint64_t value);

  // float_slow.cpp: what the host's float unit does not do in one operation; false: illegal rounding mode.
  bool float_slow(const Operation& op);
  void collect_float_flags();

  // taint.cpp
  void spread_taint(const Operation& op);
  bool value_is_tainted(const Operation& op) const;
  [[noreturn]] void payload_error(const char* what) const;

  // turn.cpp
  void watch_operation(const Operation& op);
  // What the checked variant does besides: the trace, and a turn that is watched.
  void look_at(const Operation& op) {
    if (trace_ != nullptr) write_trace(op);
    if (turn_ != nullptr) watch_operation(op);
  }

  // trace.cpp
  void write_trace(const Operation& op);

  // Architectural state. x_[32] swallows writes to x0.
  std::array<std::uint64_t, 33> x_{};
  std::array<std::uint32_t, 32> f_{};
  std::uint64_t pc_ = 0;
  std::int64_t cycle_ = 0;
  std::uint64_t instructions_ = 0;
  // Bit i: x[i], bit 32 + i: f[i] depends on payload; bit 0: the accrued float flags.
  std::uint64_t taint_ = 0;
  MachineState state_;

  // Where a parked instruction goes on: its block and index.
  Block* parked_block_ = nullptr;
  std::uint32_t parked_index_ = 0;
  std::uint32_t number_ = 0;
  std::uint32_t fault_cause_ = 0;
  std::uint64_t fault_value_ = 0;

  const hw::ScalarCoreParameters& parameters_;
  ScalarEnvironment& environment_;
  std::shared_ptr<Program> program_;
  PrivateMemory memory_;
  std::unique_ptr<CoreCaches> caches_;
  std::unique_ptr<DecodeCache> own_blocks_;  // once it has written its own code, or has breakpoints
  std::unique_ptr<std::vector<std::uint64_t>> breakpoints_;
  std::unique_ptr<Block> single_;
  std::FILE* trace_ = nullptr;
  ScalarProfile* profile_ = nullptr;
  std::unique_ptr<Turn> turn_;
  std::uint64_t watched_ = 0;
  Counters counters_;
  bool ended_ = false;
  bool debugged_ = false;
  bool text_written_ = false;
  bool stored_ = false;
  bool at_breakpoint_ = false;
  bool retrying_ = false;  // the parked instruction has been traced
  bool switch_ = false;    // interpret() returned to be entered again in its other variant
};

}  // namespace cm384::npu
