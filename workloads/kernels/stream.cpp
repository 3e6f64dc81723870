#include "workloads/kernels/stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/stream.h"
#include "workloads/frame/session.h"
#include "workloads/operators/operator.h"
#include "workloads/studies.h"

namespace cm384::studies {

std::span<const StreamShape> stream_shapes() {
  // N = 12287: rows of 24,574 B follow each other without a gap, so that nearly all start unaligned. The
  // shared 6.3 MB are the rows of one core of 48.
  constexpr std::uint64_t kRow = 24576, kOdd = 24574, kRows = 12288;
  static const std::vector<StreamShape> shapes{
      {"1x128", 1, 128, kRows, kRow, kRow, false, 1, 1, 0, 548.2},
      {"64x128", 64, 128, kRows, kRow, kRow, false, 1, 1, 0, 220.8},
      {"64x2048", 64, 2048, kRows, kRow, kRow, false, 1, 1, 0, 202.7},
      {"unaligned", 64, 2048, kRows, kOdd, kOdd, false, 1, 1, 0, 259.0},
      {"whole", 64, 2048, kRows, kRow, kRow, false, 1, 4, 0, 816},
      {"quarters", 64, 2048, kRows, kRow, kRow, false, 4, 4, 0, 354.6},
      {"same-order", 128, 128, 256, kRow, kRow, false, 1, 1, CM384_STREAM_SAME, 474.7},
      {"rotated", 128, 128, 256, kRow, kRow, false, 1, 1, CM384_STREAM_ROTATED, 307.4},
      {"l1-64x128", 64, 128, kRows, kRow, kRow, true, 1, 1, 0, 283.5},
      {"l1-64x512", 64, 512, kRows, kRow, kRow, true, 1, 1, 0, 214.5},
      {"l1-unaligned", 64, 512, kRows, kOdd, kOdd, true, 1, 1, 0, 422.5},
      {"l1-whole", 64, 512, kRows, kRow, kRow, true, 1, 4, 0, 872},
      {"l1-quarters", 64, 512, kRows, kRow, kRow, true, 4, 4, 0, 397.8}};
  return shapes;
}

StreamReading measure_stream(const StudyContext& context, const StreamShape& shape, int cores, int passes,
                             bool wait_for_reuse, SimulatorCounts& counts) {
  const int blocks = shape.readers(cores);
  if (shape.cube && blocks > context.machine.die.aic)
    throw InputError(fmt::format("--cores: {} AIVs are of {} groups, but a die has {} AICs", cores, blocks,
                                 context.machine.die.aic));
  SessionOptions options;
  options.dies = {0};
  options.what = fmt::format("stream {}, {} cores", shape.name, cores);
  Session session(context, options);
  auto& runtime = session.runtime();

  cm384_stream arguments{};
  arguments.source = runtime.allocate(0, shape.rows * shape.pitch, 4096);
  runtime.mark_payload(arguments.source, shape.rows * shape.pitch);
  arguments.rows = shape.rows;
  arguments.row_bytes = shape.row_bytes;
  arguments.pitch = shape.pitch;
  arguments.block_count = shape.block_count;
  arguments.block_bytes = shape.block_bytes;
  // As many equal buffers as fit; small instructions share a buffer.
  const std::uint32_t instruction = shape.block_count * ((shape.block_bytes + 31) / 32 * 32);
  arguments.buffers = instruction > CM384_STREAM_BUFFER_BYTES / 2
                          ? 1
                          : std::min(8u, CM384_STREAM_BUFFER_BYTES / std::max(instruction, 16384u));
  arguments.buffer_bytes = std::max(instruction, 16384u);
  arguments.wait_for_reuse = wait_for_reuse ? 1 : 0;
  arguments.passes = shape.passes * static_cast<std::uint32_t>(passes);
  arguments.parts = shape.parts;
  arguments.shared = shape.shared;
  arguments.results = runtime.allocate(0, static_cast<std::uint64_t>(blocks) * CM384_STREAM_RESULT_STRIDE);
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);

  const auto program = session.built_in("stream");
  const auto launch =
      shape.cube ? runtime.launch(0, program, block, operators::cores_from(0, blocks),
                                  runtime.earliest_start(), npu::KernelType::aic)
                 : runtime.launch(0, program, block, runtime.first_cores(cores), runtime.earliest_start());
  StreamReading reading;
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return reading;
  std::uint64_t start = UINT64_MAX, end = 0, bytes = 0;
  for (int core = 0; core < blocks; ++core) {
    const auto r =
        runtime
            .get<cm384_stream_result>(
                arguments.results + static_cast<std::uint64_t>(core) * CM384_STREAM_RESULT_STRIDE, 1)
            .front();
    start = std::min(start, r.start_cycle);
    end = std::max(end, r.end_cycle);
    bytes += r.bytes;
  }
  const Clock clock(context.machine.die.clock);
  reading.kernel_us =
      (clock.start(static_cast<std::int64_t>(end)) - clock.start(static_cast<std::int64_t>(start))).us();
  const auto& record = runtime.record(launch);
  reading.task_us = (record.task_end - record.task_start).us();
  reading.bandwidth_TBps = static_cast<double>(bytes) / (reading.kernel_us * 1e6);
  const auto& memory = session.machine().die(0).memory().statistics();
  reading.l2_hit_rate = static_cast<double>(memory.l2_hits) /
                        static_cast<double>(std::max<std::uint64_t>(1, memory.l2_hits + memory.l2_misses));
  return reading;
}

namespace {

Texts names() {
  Texts names;
  for (const StreamShape& shape : stream_shapes()) names.push_back(shape.name);
  return names;
}

struct StreamOptions {
  Texts shape = names();
  int cores = 0;
  int passes = 1;
  bool wait_for_reuse = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit(
        "shape", self.shape,
        OneOf{{"1x128", "64x128", "64x2048", "unaligned", "whole", "quarters", "same-order", "rotated",
               "l1-64x128", "l1-64x512", "l1-unaligned", "l1-whole", "l1-quarters"}},
        "how rows of the matrix are cut into instructions: rows x bytes; unaligned: rows of 24,574 B; whole, "
        "quarters: all, or a quarter after the other, four times; same-order, rotated: all cores the same "
        "6.3 MB, "
        "in one order or each an instruction further on; l1: by AICs, to L1");
    visit("cores", self.cores, Range{0, 64}, "AIVs that read; of AICs half as many; 0: all of the die");
    visit("passes", self.passes, Range{1, 100}, "how often what the shape says is read");
    visit("wait-for-reuse", self.wait_for_reuse,
          "wait for the data of a buffer before it is filled again; the measured kernels have no consumer "
          "and do not");
  }
  void settle(const hw::Machine& machine) { all_if_zero(cores, machine.die.aiv); }
};

constexpr std::array kStreamFields{
    Field{"shape", FieldType::text, "rows x bytes of an instruction, and who reads what", true}
        .as_condition(),
    Field{"cores", FieldType::integer, "that read: AIVs, of l1 shapes AICs", true}.as_condition(),
    Field{"kernel_us", FieldType::number, "from the first core's start to the last one's end", true},
    Field{"task_us", FieldType::number, "task duration, launch and teardown of the blocks inside", true},
    Field{"bandwidth_TBps", FieldType::number, "bytes over kernel_us", true},
    Field{"measured_TBps", FieldType::number,
          "measured on the part with 48 AIVs or 24 AICs; of the unchanged machine alone", true},
    Field{"error", FieldType::ratio, "bandwidth_TBps over measured_TBps, less 1", true},
    Field{"l2_hit_rate", FieldType::ratio, "hits over all requests to L2", true},
};

StudyResult run(const StudyContext& context, const StreamOptions& options) {
  StudyResult result;
  for (std::size_t i = 0; i < options.shape.size(); ++i) {
    const std::string& name = options.shape[i];
    const auto shape = std::find_if(stream_shapes().begin(), stream_shapes().end(),
                                    [&](const StreamShape& s) { return s.name == name; });
    const StreamReading reading = measure_stream(context, *shape, options.cores, options.passes,
                                                 options.wait_for_reuse, result.simulator);
    if (context.interrupted != 0) {
      result.complete = false;
      break;
    }
    const hw::Machine& machine = context.machine;
    const bool as_measured = options.cores == 48 && options.passes == 1 && !options.wait_for_reuse &&
                             machine.preset == hw::kDefaultMachine && machine.overrides.empty();
    const double measured = static_cast<double>(shape->bytes(48)) / (shape->measured_us * 1e6);
    context.finish_row(result,
                       {{"shape", name},
                        {"cores", shape->readers(options.cores)},
                        {"kernel_us", reading.kernel_us},
                        {"task_us", reading.task_us},
                        {"bandwidth_TBps", reading.bandwidth_TBps},
                        {"measured_TBps", as_measured ? Value(measured) : Value()},
                        {"error", as_measured ? Value(reading.bandwidth_TBps / measured - 1) : Value()},
                        {"l2_hit_rate", reading.l2_hit_rate}});
    context.progress.update(static_cast<double>(i + 1) / static_cast<double>(options.shape.size()),
                            result.simulator.simulated, result.simulator.events);
  }
  return result;
}

}  // namespace

const Study kStreamStudy{"stream", "streaming reads of a die's memory by its cores", kStreamFields,
                         options_of<StreamOptions, run>};

}  // namespace cm384::studies
