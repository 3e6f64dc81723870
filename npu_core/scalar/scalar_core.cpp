#include "npu_core/scalar/scalar_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/engine/prefetch.h"
#include "npu_core/scalar/core_caches.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/float_environment.h"
#include "npu_core/scalar/scalar_profile.h"
#include "npu_core/scalar/turn.h"

namespace cm384::npu {
namespace {

// Code as the image has it, for the blocks all cores share.
class ImageCode final : public CodeSource {
 public:
  explicit ImageCode(const Program& program) : program_(program) {}
  bool fetch(std::uint64_t address, std::uint16_t& halfword) const override {
    if (!PrivateMemory::contains(address)) return false;
    const std::byte* at = program_.page(PrivateMemory::page_of(address)).data() + address % kPageBytes;
    halfword =
        static_cast<std::uint16_t>(std::to_integer<unsigned>(at[0]) | std::to_integer<unsigned>(at[1]) << 8);
    return true;
  }

 private:
  const Program& program_;
};

// Code as one core's memory has it.
class PrivateCode final : public CodeSource {
 public:
  explicit PrivateCode(const PrivateMemory& memory) : memory_(memory) {}
  bool fetch(std::uint64_t address, std::uint16_t& halfword) const override {
    if (!PrivateMemory::contains(address)) return false;
    const std::byte* at = memory_.read(address);
    halfword =
        static_cast<std::uint16_t>(std::to_integer<unsigned>(at[0]) | std::to_integer<unsigned>(at[1]) << 8);
    return true;
  }

 private:
  const PrivateMemory& memory_;
};

}  // namespace

std::unique_ptr<Block> decode_image_block(std::uint64_t pc, const Program& program) {
  return decode_block(pc, ImageCode(program), program.parameters(), DecodeCache::kLongestBlock);
}

ScalarCore::ScalarCore(const hw::ScalarCoreParameters& parameters, ScalarEnvironment& environment,
                       std::uint32_t number)
    : number_(number), parameters_(parameters), environment_(environment) {
  static_assert(sizeof(ScalarCore) <= 1024, "36,864 idle cores stand in a machine");
}
ScalarCore::~ScalarCore() = default;
ScalarCore::ScalarCore(ScalarCore&&) noexcept = default;

void ScalarCore::start(std::shared_ptr<Program> program, std::int64_t cycle) {
  const bool same_code = program == program_ && !text_written_ && own_blocks_ == nullptr;
  auto caches = same_code && parameters_.instruction_cache_relaunch == "kept" ? std::move(caches_) : nullptr;
  stop();
  if (caches != nullptr) caches->drop_data();
  caches_ = std::move(caches);
  program_ = std::move(program);
  memory_.reset(program_.get());
  x_ = {};
  f_ = {};
  x_[2] = CM384_PRIVATE_BASE + CM384_PRIVATE_BYTES;
  pc_ = program_->image().entry();
  cycle_ = cycle;
  instructions_ = 0;
  taint_ = 0;
  turn_.reset();
  state_ = MachineState{};
  counters_ = Counters{};
  ended_ = text_written_ = stored_ = at_breakpoint_ = false;
  if (breakpoints_ != nullptr) decode_privately();
  if (profile_ != nullptr) profile_->begin(program_);
}

void ScalarCore::preload(std::uint64_t bytes) {
  if (caches_ == nullptr) caches_ = std::make_unique<CoreCaches>(parameters_);
  const auto line_bytes = static_cast<std::uint64_t>(parameters_.instruction_cache_line.count);
  const std::uint64_t low = program_->text_low(), high = std::min(program_->text_high(), low + bytes);
  for (std::uint64_t line = low / line_bytes; line * line_bytes < high; ++line) {
    if (caches_->instruction.find(line) == CacheTags::kNone) hold_line(line);
  }
}

void ScalarCore::stop() {
  program_.reset();
  memory_.reset(nullptr);
  caches_.reset();
  own_blocks_.reset();
  single_.reset();
  parked_block_ = nullptr;
  ended_ = true;
}

Stop ScalarCore::run(std::int64_t limit_cycle) {
  const FloatEnvironment float_unit;
  if (caches_ == nullptr) caches_ = std::make_unique<CoreCaches>(parameters_);
  Stop stop = Stop::limit;
  if (at_breakpoint_) {
    at_breakpoint_ = false;
    stop = step_one(true);
  }
  if (stop == Stop::limit) {
    do {
      switch_ = false;
      // Where the core does not stand within a block, the next one's entry decides.
      const bool checked =
          parked_block_ != nullptr ? needs_checks(*parked_block_) : trace_ != nullptr || turn_ != nullptr;
      if (profile_ != nullptr) {
        stop = checked ? interpret<true, true>(limit_cycle) : interpret<false, true>(limit_cycle);
      } else {
        stop = checked ? interpret<true, false>(limit_cycle) : interpret<false, false>(limit_cycle);
      }
    } while (switch_);
  }
  collect_float_flags();
  return stop;
}

Stop ScalarCore::step() {
  const FloatEnvironment float_unit;
  if (caches_ == nullptr) caches_ = std::make_unique<CoreCaches>(parameters_);
  const bool past_breakpoint = at_breakpoint_;
  at_breakpoint_ = false;
  const Stop stop = step_one(past_breakpoint);
  collect_float_flags();
  return stop;
}

Stop ScalarCore::step_one(bool past_breakpoint) {
  const bool under_way = parked_block_ != nullptr && parked_block_ == single_.get() &&
                         single_->operations[parked_index_].kind != Kind::end;
  if (!under_way) {
    if (program_->is_text(PrivateMemory::page_of(pc_)) && own_blocks_ == nullptr) {
      single_ = decode_block(pc_, ImageCode(*program_), parameters_, 1);
    } else {
      single_ = decode_block(pc_, PrivateCode(memory_), parameters_, 1);
    }
    parked_block_ = nullptr;
    if (past_breakpoint && debugged_ && single_->operations[0].kind == Kind::ebreak) {
      pc_ = single_->end_pc;
      return Stop::limit;
    }
    if (!fetch_lines(single_->first_line, single_->last_line)) return Stop::parked;
    parked_block_ = single_.get();
    parked_index_ = 0;
  }
  // The limit lies in the past: the core stops at the entry of whatever comes next.
  constexpr auto kPast = std::numeric_limits<std::int64_t>::min();
  return profile_ != nullptr ? interpret<true, true>(kPast) : interpret<true, false>(kPast);
}

Block* ScalarCore::find_block(std::uint64_t pc) {
  if (own_blocks_ == nullptr) {
    DecodeCache& shared = program_->blocks();
    if (Block* block = shared.find(pc)) return block;
    if (PrivateMemory::contains(pc) && program_->is_text(PrivateMemory::page_of(pc))) {
      return shared.decode(pc, ImageCode(*program_));
    }
    decode_privately();
  }
  if (Block* block = own_blocks_->find(pc)) return block;
  return own_blocks_->decode(pc, PrivateCode(memory_));
}

void ScalarCore::decode_privately() {
  parked_block_ = nullptr;
  if (own_blocks_ == nullptr) {
    own_blocks_ = std::make_unique<DecodeCache>(parameters_, program_->text_low(), program_->text_high());
  }
  own_blocks_->set_breakpoints(breakpoints_ != nullptr ? *breakpoints_ : std::vector<std::uint64_t>{});
}

void ScalarCore::synchronise_code() {
  caches_->instruction.clear();
  caches_->under_way.clear();
  caches_->fetched.fill(CacheTags::kInvalid);
  if (text_written_ || own_blocks_ != nullptr) decode_privately();
}

Block* ScalarCore::follow(Block& from, unsigned edge, std::uint64_t pc, std::int64_t& cost) {
  const std::int64_t lost = from.branch_cost[edge];
  Block* const to = find_block(pc);
  cost = lost + (from.pending.empty() ? 0 : carried_stall(from, *to, lost));
  return to;
}

Block* ScalarCore::link(Block& from, unsigned edge, std::uint64_t pc, std::int64_t& cost) {
  Block* const to = follow(from, edge, pc, cost);
  if (from.owner == to->owner) {
    from.target = edge == 1 ? pc : from.target;
    from.edges[edge] = {to, cost};
  }
  return to;
}

void ScalarCore::set_pc(std::uint64_t pc) {
  pc_ = pc;
  parked_block_ = nullptr;
  at_breakpoint_ = false;
}

void ScalarCore::set_breakpoints(std::vector<std::uint64_t> addresses) {
  breakpoints_ = std::make_unique<std::vector<std::uint64_t>>(std::move(addresses));
  if (program_ != nullptr) decode_privately();
}

void ScalarCore::watch_word(std::uint64_t address) {
  watched_ = address;
  if (caches_ != nullptr) caches_->drop_all_shortcuts();
}

void ScalarCore::finish_load(const Operation& op, std::uint64_t value) {
  const auto extend = [](auto narrow) { return static_cast<std::uint64_t>(std::int64_t{narrow}); };
  switch (op.kind) {
    case Kind::lb:
      x_[op.rd] = extend(static_cast<std::int8_t>(value));
      return;
    case Kind::lh:
      x_[op.rd] = extend(static_cast<std::int16_t>(value));
      return;
    case Kind::lw:
      x_[op.rd] = extend(static_cast<std::int32_t>(value));
      return;
    case Kind::flw:
      f_[op.rd] = static_cast<std::uint32_t>(value);
      return;
    default:  // unsigned or whole: the bytes not read are zero
      x_[op.rd] = value;
      return;
  }
}

std::string ScalarCore::location(std::uint64_t pc) const {
  if (program_ == nullptr) return "no program";
  const std::string& path = program_->image().path();
  const std::size_t slash = path.rfind('/');
  return fmt::format("{}: {}", slash == std::string::npos ? path : path.substr(slash + 1),
                     program_->image().describe(pc));
}

std::string ScalarCore::location() const {
  return location(pc_);
}

std::size_t ScalarCore::footprint() const {
  return sizeof *this + memory_.footprint() + (caches_ != nullptr ? caches_->footprint() : 0) +
         (own_blocks_ != nullptr ? own_blocks_->footprint() : 0);
}

void ScalarCore::prefetch(int stage) const {
  if (caches_ == nullptr) return;
  const std::uint64_t stack = x_[2];
  if (stage == 1) {
    const std::uint64_t line = pc_ / static_cast<std::uint64_t>(parameters_.instruction_cache_line.count);
    __builtin_prefetch(&caches_->fetched[line % CoreCaches::kFetchShortcuts]);
    sim::prefetch(&caches_->shortcut(stack), 3 * sizeof(Shortcut));
    sim::prefetch(&caches_->instruction, sizeof(CoreCaches) - offsetof(CoreCaches, instruction));
  } else if (const Shortcut& top = caches_->shortcut(stack);
             top.load_tag == (stack & ~(Shortcut::kBytes - 1))) {
    sim::prefetch(top.host, 4 * Shortcut::kBytes);
  }
}

}  // namespace cm384::npu
