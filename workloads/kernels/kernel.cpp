// `cm384 run kernel my.elf`: one kernel on the cores of one die, or a bare-metal program on one scalar unit.
#include "firmware/abi/kernel.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/text/error.h"
#include "npu_core/scalar/bare_metal.h"
#include "npu_core/scalar/elf_image.h"
#include "npu_core/scalar/gdb_stub.h"
#include "workloads/frame/session.h"
#include "workloads/kernels/instruction_trace.h"
#include "workloads/kernels/kernel_rules.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

struct KernelOptions {
  std::string elf;
  int cores = 1;
  int die = 0;
  Bytes scratch = 64_MiB;
  std::string trace;
  bool check_hazards = true;
  bool check_memory = false;
  RuleOptions rules;
  Time patience = 5_ms;
  bool real_polling = false;
  int most_instructions = 2'000'000'000;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("elf", self.elf, Form{"FILE"}, "the kernel: an RV64 ELF linked at 0x80000000");
    visit("cores", self.cores, Range{1, 64}, "AIVs it runs on, one block each");
    visit("die", self.die, Range{0, 767}, "die it runs on");
    visit("scratch", self.scratch, Range{0_B, 64_GiB}, "memory handed to the kernel, zero");
    visit("trace", self.trace, Form{"FILE"},
          "write an instruction trace of block 0, one line per instruction");
    visit("check-hazards", self.check_hazards, Either{"off", "on"}, kCheckHazards);
    visit("check-memory", self.check_memory, kCheckMemory);
    RuleOptions::describe(self.rules, visit);
    visit(
        "patience", self.patience, Range{1_us, 1000_s},
        "simulated time of work without a copy from elsewhere, a write or a launch after which the run ends "
        "as hung");
    visit("real-polling", self.real_polling, "run every turn of a marked polling loop");
    visit("max-instructions", self.most_instructions, Range{1, 2'000'000'000},
          "of a bare-metal program (one with a symbol `tohost`), before it counts as hung");
  }
};

constexpr std::array kKernelFields{
    Field{"kernel", FieldType::text, "the ELF", true}.as_condition(),
    Field{"cores", FieldType::integer, "AIVs it ran on", true}.as_condition(),
    Field{"kernel_us", FieldType::number,
          "from the first instruction of the first block to the last of the last", true},
    Field{"task_us", FieldType::number, "task duration, launch and teardown of the blocks inside", true},
    Field{"passed", FieldType::boolean, "of a bare-metal program: it wrote 1 to `tohost`", true},
    Field{"failed_test", FieldType::integer, "number of the test that failed"},
    Field{"instructions", FieldType::integer, "retired by scalar units", true},
    Field{"cycles", FieldType::integer, "of the scalar unit"},
};

// A program that ends by writing `tohost`: one scalar unit alone, without pipes and dies.
StudyResult run_bare_metal_program(const StudyContext& context, const KernelOptions& asked) {
  InstructionTrace trace(asked.trace);
  npu::BareMetalOptions options;
  options.most_instructions = static_cast<std::uint64_t>(asked.most_instructions);
  options.console = stderr;
  options.trace = trace.file();
  std::optional<npu::GdbStub> debugger;
  if (context.gdb_port != 0) {
    debugger.emplace(static_cast<std::uint16_t>(context.gdb_port));
    if (context.gdb_at_fault) debugger->wait_for_fault();
    options.debugger = &*debugger;
  }
  const npu::BareMetalResult outcome = npu::run_bare_metal(asked.elf, context.machine.scalar_core, options);
  StudyResult result;
  trace.close();
  result.input_files.push_back(asked.elf);
  result.passed = outcome.passed;
  result.simulator.instructions = outcome.instructions;
  result.simulator.simulated = Clock(context.machine.die.clock).start(outcome.cycles);
  context.finish_row(result, {{"kernel", asked.elf},
                              {"passed", outcome.passed},
                              {"failed_test", outcome.passed ? Value() : Value(outcome.failed_test)},
                              {"instructions", outcome.instructions},
                              {"cycles", outcome.cycles}});
  return result;
}

StudyResult run(const StudyContext& context, const KernelOptions& options) {
  if (options.elf.empty()) throw InputError("run kernel: no --elf FILE: an RV64 ELF linked at 0x80000000");
  const auto image = npu::ElfImage::read(options.elf);
  if (image->takes_arguments())
    throw InputError(
        fmt::format("{}: a kernel with arguments: `cm384 run program` passes them", options.elf));
  if (image->symbol("tohost")) return run_bare_metal_program(context, options);
  if (context.given.contains("max-instructions"))
    throw InputError(
        "--max-instructions: has an effect only on a bare-metal program, one with a symbol `tohost`");

  StudyResult result;
  result.input_files.push_back(options.elf);
  const auto scratch = static_cast<std::uint64_t>(options.scratch.count);
  SessionOptions session_options;
  session_options.dies = {options.die};
  session_options.die.aiv.check_hazards = options.check_hazards;
  session_options.check_memory = options.check_memory;
  session_options.patience = options.patience;
  session_options.die.aiv.elide_polls = !options.real_polling;
  session_options.what = fmt::format("kernel {}", options.elf);
  Session session(context, session_options);
  auto& runtime = session.runtime();

  cm384_kernel arguments{};
  arguments.scratch = runtime.allocate(options.die, scratch);
  arguments.scratch_bytes = scratch;
  const std::uint64_t block = runtime.allocate(options.die, sizeof arguments);
  runtime.put(block, arguments);

  InstructionTrace trace(options.trace);
  // One die alone: its package is one module.
  if (trace.file() != nullptr)
    session.machine().die(options.die).cluster().core(0).scalar().set_trace(trace.file());
  const auto cores = runtime.first_cores(options.cores);
  const auto program = runtime.load(image);
  apply_rules(options.rules, !context.gdb_at_fault, *program);
  const auto launch = runtime.launch(options.die, program, block, cores, runtime.earliest_start());
  result.complete = runtime.wait();
  session.count(result.simulator);
  session.add_findings(result);
  report_rules(*program, Clock(context.machine.die.clock), result);
  if (!result.complete) return result;

  const auto& record = runtime.record(launch);
  context.finish_row(result, {{"kernel", options.elf},
                              {"cores", cores.size()},
                              {"kernel_us", (record.last_retired - record.first_instruction).us()},
                              {"task_us", (record.task_end - record.task_start).us()},
                              {"instructions", result.simulator.instructions}});
  trace.close();
  return result;
}

}  // namespace

const Study kKernelStudy{"kernel",      "one kernel ELF on the cores of a die, or a bare-metal test program",
                         kKernelFields, options_of<KernelOptions, run>,
                         false,         "elf"};

}  // namespace cm384::studies
