// `cm384 run op NAME`: one small operator on a die, or among a few of them.
#include <fmt/format.h>

#include <array>

#include "base/text/error.h"
#include "workloads/kernels/cube_run.h"
#include "workloads/kernels/op_cases.h"
#include "workloads/kernels/unit_run.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

void check_shape(std::string_view text) {
  parse_shape(text);
}

struct OpOptions {
  std::string name = "add";
  std::string shape = "256x7168";
  std::string type = "bf16";
  std::string layout = "nz";
  int split_k = 1;
  bool basic_tile = true;
  bool graph = false;
  int groups = 0;
  int buffers = 0;
  double top_p = 0.95;
  bool no_mask = false;
  std::string block_keys = "512";
  std::string algorithm = "best";
  std::string path = "aiv";
  bool reads = false;
  bool by_aicpu = false;
  int iterations = 1;
  int warmup = 1;
  bool full = false;
  bool kernel_time = false;
  bool path_given = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, OneOf{op_names()},
          "the operator; rms-norm is of the sum with a residual, head-norm of rows of 64 or 128, quantise "
          "has a scale per row, "
          "static-quantise one per column, softmax, sort and sample are of floats");
    visit("shape", self.shape, Form{"MxN", check_shape},
          "rows x columns of the input; matmul: M x N x K; batch-matmul: groups x M x N x K; gate: tokens x "
          "experts; rope: tokens x heads; sample: rows x words x largest that are kept; kv-norm-rope: "
          "tokens; flash-attention: sequences x heads x tokens, x cached ones of these; among ranks: ranks x "
          "bytes");
    visit(
        "dtype", self.type, OneOf{{"bf16", "int8", "fp8"}},
        "of a product's A and B; int8 comes out as BF16, scaled per row and per column; fp8 of accelerators "
        "that have it",
        Needs{"name", product_names()});
    visit("b-layout", self.layout, OneOf{{"nz", "nd"}}, "of a product's B in memory: fractals, or rows of k",
          Needs{"name", product_names()});
    visit("split-k", self.split_k, Range{1, 64},
          "parts of a product's K, which cores without a tile of their own take; the vector cores sum them",
          Needs{"name", product_names()});
    visit("tile", self.basic_tile, Either{"fitted", "basic"},
          "of a product: basic: 128x256 for 128 rows or more, what public libraries begin with, unless more "
          "than half of the cores had none; fitted: what gives the busiest core the least to do",
          Needs{"name", product_names()});
    visit("launch", self.graph, Either{"single", "graph"},
          "single: set-up begins when the task has its turn; graph: it was set up while the task before ran");
    visit("cores", self.groups, Range{0, 64},
          "AICs, each with its two AIVs, that the operator may use; 0: all of the die");
    visit(
        "buffers", self.buffers, Range{0, 2},
        "each way: with 2 the next row is loaded while one is computed; 0: 2 of head-norm, quantise, "
        "static-quantise and swiglu, 1 of others",
        Needs{"name", {"rms-norm", "head-norm", "quantise", "static-quantise", "swiglu", "softmax", "sort"}});
    visit("top-p", self.top_p, Range{0.0, 1.0},
          "of the largest that are kept, the fewest whose shares sum up to this", Needs{"name", {"sample"}});
    visit("mask", self.no_mask, Either{"causal", "none"},
          "causal: a token sees itself and those before it; none: all tokens of its sequence",
          Needs{"name", {"grouped-attention"}});
    visit("block-keys", self.block_keys, OneOf{{"128", "256", "512"}},
          "that a core group works on at a time for 128 queries, of attention: public libraries take 512 or "
          "1024",
          Needs{"name", {"flash-attention", "grouped-attention"}});
    visit("algorithm", self.algorithm,
          OneOf{{"best", "direct", "rounds", "by-package", "ring", "halving", "hierarchical"}},
          "among ranks: direct: each to each; best: what takes the shortest by its bytes, rates and "
          "exchanges. By aiv, rounds: for any number of ranks, and an all-reduce in two steps; by-package: "
          "one die of a package gets what both want, and their link brings it to the other. By sdma, ring: "
          "to the next rank; halving: halving and doubling; hierarchical: between nodes, between packages "
          "and within them",
          Needs{"name", collective_names()});
    visit(
        "path", self.path, OneOf{{"aiv", "sdma", "transfer"}},
        "among ranks: vector cores write to each other; or the SDMA engines of dies copy, with notifies "
        "between them, and vector cores add alone; transfer, the default without cores: queues of transfers "
        "copy, and compute units add",
        Needs{"name", collective_names()});
    visit("copies", self.reads, Either{"writes", "reads"},
          "writes: who has a part copies it to its place; reads: who gets it, from a window into which the "
          "other one puts its input first",
          Needs{"path", {"sdma"}});
    visit("unfold", self.by_aicpu, Either{"host", "aicpu"},
          "who writes the entries of copies and notifies into streams, of single launches; those of a graph "
          "are there before",
          Needs{"path", {"sdma"}});
    visit("iterations", self.iterations, Range{1, 1000},
          "counted launches, one after another, each with operands of its own");
    visit("warmup", self.warmup, Range{0, 1000},
          "launches before them, which bring the kernel's code into L2");
    visit("payload", self.full, Either{"control", "full"},
          "full computes every value and compares it with the host's; control moves tags of payload");
    visit(
        "measure", self.kernel_time, Either{"task", "kernel"},
        "latency_us of the whole task as the vendor's profiler reads it, or from first to last instruction");
  }
  void follow(const Given& given) { path_given = given.contains("path"); }
  void settle(const hw::Machine& machine) {
    if (!machine.accelerator.has_cores()) {
      if (!path_given) path = "transfer";
      return;
    }
    all_if_zero(groups, machine.die.groups());
    if (buffers == 0) buffers = usual_buffers(name);
  }
};

OpRequest request_of(const StudyContext& context, const OpOptions& options) {
  return {options.name,     options.shape,
          options.type,     options.layout,
          options.split_k,  options.basic_tile,
          options.buffers,  options.top_p,
          context.seed,     options.algorithm,
          options.path,     options.reads,
          options.by_aicpu, options.graph,
          !options.no_mask, static_cast<std::uint32_t>(std::stoi(options.block_keys))};
}

std::optional<OpReading> measure(const StudyContext& context, const OpOptions& options,
                                 SimulatorCounts& counts) {
  const OpRequest request = request_of(context, options);
  const OpSetting setting{options.groups, options.graph, options.iterations, options.warmup, options.full};
  const std::string what = fmt::format("{} {}", options.name, options.shape);
  if (!is_collective(options.name))
    return run_operator_alone(context, what, setting, operator_of(request), counts);
  if (options.path == "sdma") {
    const CopyRun copies = copies_of(request, 2 * options.groups, options.full, context.machine);
    auto reading = run_copy_collective(context, what, setting, copies, counts);
    if (reading) reading->algorithm = operators::name_of(copies.setting.algorithm);
    return reading;
  }
  const CollectiveRun collective = collective_of(request, 2 * options.groups, options.full, context.machine);
  auto reading = run_collective(context, what, setting, collective, counts);
  if (reading) reading->algorithm = collective.algorithm;
  return reading;
}

// What vector cores alone do, and SDMA engines alone.
void check_path(const OpOptions& options) {
  if (options.type == "fp8")
    throw InputError("run op: --dtype fp8: the cube cores have no FP8; allowed: bf16, int8");
  if (!is_collective(options.name)) return;
  if (options.path == "transfer")
    throw InputError("run op: --path transfer: for accelerators without cores; allowed: aiv, sdma");
  const std::string& algorithm = options.algorithm;
  const bool copies = options.path == "sdma";
  if (copies ? algorithm == "rounds" || algorithm == "by-package"
             : algorithm == "ring" || algorithm == "halving" || algorithm == "hierarchical")
    throw InputError(fmt::format("run op {}: --algorithm {}: --path {} has none; allowed: best, direct, {}",
                                 options.name, algorithm, options.path,
                                 copies ? "ring, halving, hierarchical" : "rounds, by-package"));
  if (!copies && options.name == "all-to-all")
    throw InputError("run op all-to-all: no kernel does it; allowed: --path sdma");
  if (copies && options.kernel_time)
    throw InputError("run op: --measure kernel: no kernel copies by --path sdma; allowed: task");
  if (options.by_aicpu && options.graph)
    throw InputError(
        "run op: --unfold aicpu: the entries of a graph are there before; allowed: --launch single");
}

Row first_columns(const OpOptions& options) {
  return {{"name", options.name}, {"shape", options.shape}, {"launch", options.graph ? "graph" : "single"}};
}

// Among the accelerators of a server, by transfers.
StudyResult run_transfers(const StudyContext& context, const OpOptions& options) {
  StudyResult result;
  TransferCollectiveCase made = transfers_of(request_of(context, options), context.machine);
  made.iterations = options.iterations;
  made.warmup = options.warmup;
  const auto reading = run_transfer_collective(context, fmt::format("{} {}", options.name, options.shape),
                                               made, result.simulator);
  if (!reading) {
    result.complete = false;
    return result;
  }
  Row row = first_columns(options);
  row.set("latency_us", options.kernel_time ? reading->kernel_us : reading->task_us)
      .set("task_us", reading->task_us)
      .set("kernel_us", reading->kernel_us)
      .set("pace_us", reading->pace_us)
      .set("path", options.path)
      .set("algorithm", std::string(operators::name_of(made.algorithm)));
  context.finish_row(result, std::move(row));
  return result;
}

// Operators that are attention, of those that multiply.
bool is_attention(std::string_view name) {
  return name.find("attention") != std::string_view::npos;
}

StudyResult run_without_cores(const StudyContext& context, const OpOptions& options) {
  refuse_beside_formula(context, "op",
                        {"cores", "payload", "launch", "buffers", "block-keys", "split-k", "tile", "b-layout",
                         "copies", "unfold"});
  if (options.path != "transfer")
    throw InputError(
        fmt::format("run op: --path {}: needs cores, and accelerator.kind is {}; allowed: transfer",
                    options.path, context.machine.accelerator.kind));
  if (is_collective(options.name)) return run_transfers(context, options);
  StudyResult result;
  OpRequest request = request_of(context, options);
  const NumberFormat format = format_of(options.type);
  if (format == NumberFormat::fp8) request.type = "int8";  // as many bytes
  request.buffers = usual_buffers(options.name);
  const UnitOperator made{operator_of(request)()->work(), format, is_attention(options.name)};
  const auto reading = run_on_units(context, fmt::format("{} {}", options.name, options.shape), made,
                                    options.iterations, result.simulator);
  if (!reading) {
    result.complete = false;
    return result;
  }
  Row row = first_columns(options);
  row.set("pace_us", reading->task_us).set("hbm_bytes", static_cast<std::uint64_t>(made.work.bytes));
  add_unit_row(context, result, std::move(row), made, *reading, options.kernel_time);
  return result;
}

StudyResult run(const StudyContext& context, const OpOptions& options) {
  if (!context.machine.accelerator.has_cores()) return run_without_cores(context, options);
  if (options.groups > context.machine.die.groups())
    throw InputError(fmt::format("run op: --cores {}: a die has {} AICs with two AIVs each", options.groups,
                                 context.machine.die.groups()));
  check_path(options);
  StudyResult result;
  if (const std::string idle = cores_without_group(context.machine.die); !idle.empty())
    result.notes.push_back(idle);
  const auto reading = measure(context, options, result.simulator);
  if (!reading) {
    result.complete = false;
    return result;
  }
  const double latency = options.kernel_time ? reading->kernel_us : reading->task_us;
  Row row{{"name", options.name},
          {"shape", options.shape},
          {"launch", options.graph ? "graph" : "single"},
          {"latency_us", latency},
          {"task_us", reading->task_us},
          {"pace_us", reading->pace_us},
          {"blocks", reading->blocks},
          {"hbm_bytes", static_cast<std::uint64_t>(reading->hbm_bytes)},
          {"hbm_GBps", reading->hbm_bytes / (latency * 1e3)},
          {"bottleneck", reading->bottleneck},
          {"correct", reading->correct}};
  if (options.path != "sdma") row.set("kernel_us", reading->kernel_us);
  if (is_collective(options.name)) row.set("path", options.path).set("algorithm", reading->algorithm);
  if (options.path == "sdma")
    row.set("copies", options.reads ? "reads" : "writes").set("unfold", options.by_aicpu ? "aicpu" : "host");
  context.finish_row(result, std::move(row));
  if (reading->correct && !*reading->correct) {
    result.passed = false;
    result.notes.push_back(reading->first_difference);
  }
  return result;
}

constexpr std::array kOpFields{
    Field{"name", FieldType::text, "of the operator", true}.as_condition(),
    Field{"shape", FieldType::text, "as asked for", true}.as_condition(),
    Field{"launch", FieldType::text, "single, or graph", true}.as_condition(),
    Field{"latency_us", FieldType::number, "mean of one launch, as --measure chooses", true},
    Field{"task_us", FieldType::number, "task duration, launch and teardown of the blocks inside", true},
    Field{"kernel_us", FieldType::number,
          "from the first instruction of the first block to the last of the last", true},
    Field{"pace_us", FieldType::number,
          "from the beginning of the first counted launch to the end of the last, over their number"},
    Field{"blocks", FieldType::integer, "of a launch"},
    Field{"hbm_bytes", FieldType::integer,
          "to and from a die's HBM per launch; what stays in L2 is not among them", true},
    Field{"hbm_GBps", FieldType::number, "these over the latency"},
    Field{"bottleneck", FieldType::text,
          "the unit with work for the largest share of the task, mean over the cores, or the launch", true},
    Field{"correct", FieldType::boolean, "values equal those of the reference; payload mode full only"},
    Field{"path", FieldType::text, "among ranks: aiv, sdma"}.as_condition(),
    Field{"algorithm", FieldType::text,
          "among ranks: direct, by package, ring, halving, hierarchical; of an all-reduce by vector cores "
          "one-shot, or reduce-scatter + all-gather",
          true},
    Field{"copies", FieldType::text, "by SDMA: writes, reads"}.as_condition(),
    Field{"unfold", FieldType::text, "who writes the entries of copies: host, aicpu"}.as_condition(),
    Field{"TOPS", FieldType::number, "without cores: 10^12 operations per second, two for a multiply-add"},
    Field{"compute_utilisation", FieldType::ratio, "these over the dense peak"},
    Field{"peak_TOPS", FieldType::number, "that peak"},
    kGradeField,
};

}  // namespace

const Study kOpStudy{.name = "op",
                     .summary = "one small operator, launched singly or from a captured graph",
                     .fields = kOpFields,
                     .options = options_of<OpOptions, run>,
                     .positional = "name",
                     .coreless = true,
                     .first_server = true};

}  // namespace cm384::studies
