#include "npu_core/scalar/bare_metal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/engine/hang.h"
#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/scalar/gdb_stub.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {
namespace {

// Memory of fixed latency, a UBuffer, no pipes and no GM.
class BareSurroundings final : public ScalarEnvironment {
 public:
  explicit BareSurroundings(const BareMetalOptions& options)
      : options_(options), ubuffer_(CM384_UBUFFER_BYTES) {}
  void attach(ScalarCore& core) { core_ = &core; }
  std::uint64_t exit_status() const { return exit_status_; }

  IssueAnswer pipe(const PipeInstruction& instruction, std::int64_t) override {
    throw MachineError(
        fmt::format("pipe instruction (class {}, operation {}) at {}: a bare-metal run has no pipes",
                    instruction.instruction_class, instruction.operation, core_->location()));
  }
  IssueAnswer host_call(std::uint32_t number, std::uint64_t a, std::uint64_t b, std::int64_t cycle,
                        std::uint64_t& result) override {
    result = 0;
    switch (number) {
      case CM384_HOST_EXIT:
        exit_status_ = a;
        break;
      case CM384_HOST_WRITE:
        write(a, b);
        break;
      default:
        throw MachineError(fmt::format("host call {} at {}: the program gave up", number, core_->location()));
    }
    return IssueAnswer::at(cycle);
  }
  IssueAnswer fill(std::uint64_t address, FillKind kind, std::int64_t cycle, std::byte* line, std::uint32_t,
                   sim::TagMask&) override {
    if (line != nullptr) {
      throw MachineError(fmt::format("access to global memory {:#x} at {}: a bare-metal run has none",
                                     address, core_->location()));
    }
    return IssueAnswer::at(
        cycle + (kind == FillKind::write_back ? options_.write_back_cycles : options_.fill_cycles));
  }
  IssueAnswer atomic(std::uint64_t address, const AtomicUpdate&, std::int64_t, std::uint64_t&,
                     bool&) override {
    throw MachineError(fmt::format("atomic on global memory {:#x} at {}: a bare-metal run has none", address,
                                   core_->location()));
  }
  bool ubuffer_load(std::uint32_t offset, std::uint32_t bytes, std::int64_t, std::byte* to) override {
    std::memcpy(to, ubuffer_.data() + offset, bytes);
    return false;
  }
  void ubuffer_store(std::uint32_t offset, std::uint32_t bytes, std::int64_t, const std::byte* from,
                     bool) override {
    std::memcpy(ubuffer_.data() + offset, from, bytes);
  }
  std::uint64_t csr(std::uint32_t number, std::int64_t cycle) override {
    switch (number) {
      case CM384_CSR_BLOCK_COUNT:
        return 1;
      case CM384_CSR_SYS_COUNT:
        return static_cast<std::uint64_t>(cycle / 37);  // 50 MHz beside 1.85 GHz
      default:
        return 0;
    }
  }

 private:
  void write(std::uint64_t address, std::uint64_t bytes) {
    std::array<std::byte, 256> piece;
    while (bytes != 0 && options_.console != nullptr) {
      const std::size_t part = std::min<std::uint64_t>(bytes, piece.size());
      if (!core_->read_memory(address, std::span(piece.data(), part))) return;
      std::fwrite(piece.data(), 1, part, options_.console);
      address += part;
      bytes -= part;
    }
  }

  const BareMetalOptions& options_;
  ScalarCore* core_ = nullptr;
  std::uint64_t exit_status_ = 0;
  std::vector<std::byte> ubuffer_;
};

std::uint64_t read_word(ScalarCore& core, std::uint64_t address) {
  std::uint64_t value = 0;
  core.read_memory(address, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace

BareMetalResult run_bare_metal(const std::string& path, const hw::ScalarCoreParameters& parameters,
                               const BareMetalOptions& options) {
  const auto image = ElfImage::read(path);
  const auto tohost = image->symbol("tohost");
  auto program = std::make_shared<Program>(image, parameters);
  BareSurroundings surroundings(options);
  ScalarCore core(parameters, surroundings, 0);
  surroundings.attach(core);
  core.set_trace(options.trace);
  core.start(program, 0);
  if (tohost) core.watch_word(*tohost);

  const auto finish = [&](const BareMetalResult& r) {
    if (options.debugger != nullptr) options.debugger->ended(r.passed ? 0 : 1);
    return r;
  };
  BareMetalResult result;
  for (;;) {
    const std::int64_t slice = core.cycle() + 1'000'000;
    const Stop stop = options.debugger != nullptr ? options.debugger->run(core, slice) : core.run(slice);
    result.instructions = core.instructions();
    result.cycles = core.cycle();
    if (stop == Stop::ended) {
      result.passed = surroundings.exit_status() == 0;
      result.failed_test = surroundings.exit_status();
      return finish(result);
    }
    if (stop == Stop::stored) {
      // The upper half may follow in a store of its own; its zero changes nothing.
      const std::uint64_t value = read_word(core, *tohost);
      if (value == 0) continue;
      result.passed = value == 1;
      result.failed_test = value >> 1;
      return finish(result);
    }
    if (result.instructions >= options.most_instructions) {
      throw sim::MachineHang(fmt::format("{}: no end after {} instructions, {} cycles; last at {}{}", path,
                                         result.instructions, result.cycles, core.location(),
                                         tohost ? "" : " (the ELF has no symbol tohost)"));
    }
  }
}

}  // namespace cm384::npu
