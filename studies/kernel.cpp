// `cm384 run kernel my.elf`: one kernel on the cores of one die, or a bare-metal program on one scalar unit.
#include "firmware/abi/kernel.h"

#include <cstdio>
#include <memory>
#include <optional>

#include "hw/error.h"
#include "npu_core/scalar/bare_metal.h"
#include "npu_core/scalar/elf_image.h"
#include "npu_core/scalar/gdb_stub.h"
#include "studies/options.h"
#include "studies/session.h"
#include "studies/studies.h"

namespace cm384::studies {
namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("elf", required_text_option("FILE"), "the kernel: an RV64 ELF linked at 0x80000000")(
      "cores", integer_option(1, 1, 64), "AIVs it runs on, one block each")(
      "die", integer_option(0, 0, 767), "die it runs on")("scratch", size_option(64_MiB),
                                                          "memory handed to the kernel, zero")(
      "trace", text_option("", "FILE"), "write an instruction trace of block 0, a line an instruction")(
      "check-hazards", boost::program_options::bool_switch(),
      "report pipes that touch the UBuffer without a flag that orders them")(
      "patience", time_option(5_ms),
      "simulated time without a copy, a write or a launch after which the run ends as hung")(
      "real-polling", boost::program_options::bool_switch(), "run every turn of a marked polling loop")(
      "max-instructions", integer_option(2'000'000'000, 1, 2'000'000'000),
      "of a bare-metal program (one with a symbol `tohost`), before it counts as hung");
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

// The file of --trace; null where none was asked for.
File open_trace(const StudyContext& context) {
  const auto& path = context.option<std::string>("trace");
  if (path.empty()) return {};
  File file(std::fopen(path.c_str(), "w"));
  if (!file) throw InputError(fmt::format("--trace: {}: cannot be written", path));
  return file;
}

// A program that ends by writing `tohost`: one scalar unit alone, without pipes and dies.
StudyResult run_bare_metal_program(const StudyContext& context, const std::string& path) {
  const File trace = open_trace(context);
  npu::BareMetalOptions options;
  options.most_instructions = static_cast<std::uint64_t>(context.option<int>("max-instructions"));
  options.console = stderr;
  options.trace = trace.get();
  std::optional<npu::GdbStub> debugger;
  if (context.gdb_port != 0) {
    debugger.emplace(static_cast<std::uint16_t>(context.gdb_port));
    options.debugger = &*debugger;
  }
  const npu::BareMetalResult outcome = npu::run_bare_metal(path, context.machine.scalar_core, options);
  StudyResult result;
  result.input_files.push_back(path);
  result.passed = outcome.passed;
  result.simulator.instructions = outcome.instructions;
  result.simulator.simulated = Clock(context.machine.die.clock).start(outcome.cycles);
  Json row;
  row["kernel"] = path;
  row["passed"] = outcome.passed;
  row["failed_test"] = outcome.passed ? Json() : Json(outcome.failed_test);
  row["instructions"] = outcome.instructions;
  row["cycles"] = outcome.cycles;
  result.rows.push_back(row);
  return result;
}

StudyResult run(const StudyContext& context) {
  if (context.options.count("elf") == 0)
    throw InputError("run kernel: no --elf FILE: an RV64 ELF linked at 0x80000000");
  const auto& path = context.option<std::string>("elf");
  const auto image = npu::ElfImage::read(path);
  if (image->symbol("tohost")) return run_bare_metal_program(context, path);

  StudyResult result;
  result.input_files.push_back(path);
  const int die = context.option<int>("die");
  const auto scratch = static_cast<std::uint64_t>(context.option<Bytes>("scratch").count);
  SessionOptions options;
  options.dies = {die};
  options.die.aiv.check_hazards = context.option<bool>("check-hazards");
  options.patience = context.option<Time>("patience");
  options.die.aiv.elide_polls = !context.option<bool>("real-polling");
  options.what = fmt::format("kernel {}", path);
  Session session(context, options);
  auto& runtime = session.runtime();

  cm384_kernel arguments{};
  arguments.scratch = runtime.allocate(die, scratch);
  arguments.scratch_bytes = scratch;
  const std::uint64_t block = runtime.allocate(die, sizeof arguments);
  runtime.put(block, arguments);

  const File trace = open_trace(context);
  // One die alone: its package is one module.
  if (trace) session.machine().die(die).core(0).scalar().set_trace(trace.get());
  const auto cores = runtime.first_cores(context.option<int>("cores"));
  const auto launch = runtime.launch(die, runtime.load(image), block, cores, runtime.earliest_start());
  result.complete = runtime.wait();
  session.count(result.simulator);
  if (!result.complete) return result;

  const auto& record = runtime.record(launch);
  Json row;
  row["kernel"] = path;
  row["cores"] = cores.size();
  row["kernel_us"] = (record.last_retired - record.first_instruction).us();
  row["task_us"] = (record.task_end - record.task_start).us();
  row["instructions"] = result.simulator.instructions;
  result.rows.push_back(row);
  return result;
}

}  // namespace

const Study kKernelStudy{"kernel", "one kernel ELF on the cores of a die, or a bare-metal test program",
                         add_options, run, "elf"};

}  // namespace cm384::studies
