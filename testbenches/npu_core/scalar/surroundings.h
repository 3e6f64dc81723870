// Stand-in for the die around a scalar core: memory of fixed latency, GM lines, a UBuffer with payload tags,
// a log.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu::testing {

inline hw::ScalarCoreParameters small_core() {
  hw::ScalarCoreParameters p;
  p.load_use = 3;
  p.multiply = 4;
  p.divide = 20;
  p.float_operation = 5;
  p.float_divide = 15;
  p.float_square_root = 17;
  p.taken_branch = 1;
  p.branch_mispredict = 6;
  p.trap = 7;
  p.instruction_cache = Bytes{32768};
  p.instruction_cache_ways = 4;
  p.instruction_cache_line = Bytes{64};
  p.instruction_cache_relaunch = "kept";
  p.instruction_prefetch = 0;
  p.instruction_fetch = "charged";
  p.data_cache = Bytes{32768};
  p.data_cache_ways = 4;
  p.data_cache_line = Bytes{64};
  p.ubuffer_load = 8;
  p.ubuffer_store = 2;
  p.cache_clean_line = 1;
  return p;
}

class Surroundings final : public ScalarEnvironment {
 public:
  struct Fill {
    std::uint64_t address;
    FillKind kind;
    std::int64_t cycle;
  };

  IssueAnswer pipe(const PipeInstruction& instruction, std::int64_t cycle) override {
    if (park_next) {
      park_next = false;
      return IssueAnswer::park();
    }
    pipes.push_back(instruction);
    pipe_cycles.push_back(cycle);
    return IssueAnswer::at(cycle + pipe_wait);
  }
  IssueAnswer host_call(std::uint32_t number, std::uint64_t a, std::uint64_t b, std::int64_t cycle,
                        std::uint64_t& result) override {
    result = 0;
    if (number == CM384_HOST_EXIT) exit_status = a;
    if (number == CM384_HOST_WRITE && core != nullptr) {
      std::string text(b, '\0');
      core->read_memory(a, std::as_writable_bytes(std::span(text)));
      written += text;
    }
    return IssueAnswer::at(cycle);
  }
  IssueAnswer fill(std::uint64_t address, FillKind kind, std::int64_t cycle, std::byte* line,
                   std::uint32_t bytes, sim::TagMask& tags) override {
    if (park_fills && parked.insert({address, kind}).second) return IssueAnswer::park();
    parked.erase({address, kind});
    const bool prefetched = kind == FillKind::instruction && !fills.empty() && fills.back().cycle == cycle &&
                            fills.back().kind == kind;
    fills.push_back({address, kind, cycle});
    if (line != nullptr) {
      Line& memory = gm[address];
      if (kind == FillKind::write_back) {
        std::memcpy(memory.bytes.data(), line, bytes);
        memory.tags = tags;
      } else {
        std::memcpy(line, memory.bytes.data(), bytes);
        tags = memory.tags;
      }
    }
    if (kind == FillKind::write_back) return IssueAnswer::at(cycle);
    return IssueAnswer::at(cycle + fill_cycles + (prefetched ? prefetch_cycles : 0));
  }
  IssueAnswer atomic(std::uint64_t address, const AtomicUpdate& update, std::int64_t cycle,
                     std::uint64_t& old, bool& payload) override {
    if (park_fills && parked.insert({address, FillKind::store}).second) return IssueAnswer::park();
    parked.erase({address, FillKind::store});
    Line& memory = gm[address / 64 * 64];
    std::byte* const word = &memory.bytes[address % 64];
    payload = (memory.tags >> address % 64 / 32 & 1) != 0;
    std::memcpy(&old, word, update.bytes);
    const std::uint64_t value = update(old);
    if (!payload) std::memcpy(word, &value, update.bytes);
    if (update.payload) memory.tags |= sim::TagMask{1} << address % 64 / 32;
    return IssueAnswer::at(cycle + fill_cycles);
  }
  bool ubuffer_load(std::uint32_t offset, std::uint32_t bytes, std::int64_t, std::byte* to) override {
    std::memcpy(to, ubuffer.data() + offset, bytes);
    return ubuffer_tags.contains(offset / 32) || ubuffer_tags.contains((offset + bytes - 1) / 32);
  }
  void ubuffer_store(std::uint32_t offset, std::uint32_t bytes, std::int64_t, const std::byte* from,
                     bool payload) override {
    std::memcpy(ubuffer.data() + offset, from, bytes);
    if (payload) ubuffer_tags.insert(offset / 32);
  }
  std::uint64_t csr(std::uint32_t number, std::int64_t) override { return number; }

  struct Line {
    std::array<std::byte, 512> bytes{};
    sim::TagMask tags = 0;
  };
  std::map<std::uint64_t, Line> gm;
  std::vector<std::byte> ubuffer = std::vector<std::byte>(192 * 1024);
  std::set<std::uint32_t> ubuffer_tags;
  std::vector<Fill> fills;
  std::vector<PipeInstruction> pipes;
  std::vector<std::int64_t> pipe_cycles;
  std::set<std::pair<std::uint64_t, FillKind>> parked;
  std::int64_t fill_cycles = 100;
  std::int64_t prefetch_cycles = 0;  // that lines fetched in the cycle of another take longer
  std::int64_t pipe_wait = 0;
  bool park_fills = false;
  bool park_next = false;
  std::uint64_t exit_status = ~std::uint64_t{0};
  std::string written;
  ScalarCore* core = nullptr;
};

// A core with the test's program of snippets: each begins at a label and ends in ebreak.
class Bench {
 public:
  explicit Bench(const std::string& program, const hw::ScalarCoreParameters& parameters = small_core())
      : parameters_(parameters), core_(parameters_, surroundings_, 7) {
    image_ = ElfImage::read(std::string(CM384_SCALAR_PROGRAMS) + "/" + program + ".elf");
    program_ = std::make_shared<Program>(image_, parameters_);
    surroundings_.core = &core_;
    core_.start(program_, 0);
    core_.set_debugged(true);
  }

  ScalarCore& core() { return core_; }
  Surroundings& surroundings() { return surroundings_; }
  std::shared_ptr<Program> program() { return program_; }
  std::uint64_t address(const std::string& label) { return image_->symbol(label).value(); }

  // Runs a snippet to its ebreak, resuming whenever it parks; returns the cycles up to the ebreak's issue.
  std::int64_t run(const std::string& label) {
    core_.set_pc(address(label));
    return finish();
  }
  std::int64_t finish() {
    const std::int64_t begin = core_.cycle();
    for (;;) {
      const Stop stop = core_.run(core_.cycle() + 100'000);
      if (stop == Stop::breakpoint || stop == Stop::ended) return core_.cycle() - begin;
      if (stop == Stop::parked) core_.resume(core_.cycle());
    }
  }
  // With the caches warm.
  std::int64_t run_warm(const std::string& label) {
    run(label);
    return run(label);
  }

 private:
  hw::ScalarCoreParameters parameters_;
  Surroundings surroundings_;
  std::shared_ptr<const ElfImage> image_;
  std::shared_ptr<Program> program_;
  ScalarCore core_;
};

}  // namespace cm384::npu::testing
