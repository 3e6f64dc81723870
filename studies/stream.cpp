#include "studies/stream.h"

#include <algorithm>

#include "firmware/abi/stream.h"
#include "studies/session.h"
#include "studies/studies.h"

namespace cm384::studies {

const std::array<StreamShape, 4>& stream_shapes() {
  // N = 12287: rows of 24,574 B follow each other without a gap, so that nearly all start unaligned.
  static const std::array<StreamShape, 4> shapes{StreamShape{"1x128", 1, 128, 12288, 24576, 24576},
                                                 StreamShape{"64x128", 64, 128, 12288, 24576, 24576},
                                                 StreamShape{"64x2048", 64, 2048, 12288, 24576, 24576},
                                                 StreamShape{"unaligned", 64, 2048, 12288, 24574, 24574}};
  return shapes;
}

StreamReading measure_stream(const StudyContext& context, const StreamShape& shape, int cores, int passes,
                             bool wait_for_reuse, SimulatorCounts& counts) {
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
  arguments.passes = static_cast<std::uint32_t>(passes);
  arguments.results = runtime.allocate(0, static_cast<std::uint64_t>(cores) * CM384_STREAM_RESULT_STRIDE);
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);

  const auto launch = runtime.launch(0, session.built_in("stream"), block, runtime.first_cores(cores),
                                     runtime.earliest_start());
  StreamReading reading;
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return reading;
  std::uint64_t start = UINT64_MAX, end = 0, bytes = 0;
  for (int core = 0; core < cores; ++core) {
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

struct Options {
  Texts shape{"1x128", "64x128", "64x2048", "unaligned"};
  int cores = 48;
  int passes = 1;
  bool wait_for_reuse = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("shape", self.shape, OneOf{{"1x128", "64x128", "64x2048", "unaligned"}},
          "how rows of the matrix are cut into instructions: rows x bytes; unaligned: 64x2048 of rows of "
          "24,574 B");
    visit("cores", self.cores, Range{1, 64}, "AIVs that read");
    visit("passes", self.passes, Range{1, 100}, "how often the matrix of 302 MB is read");
    visit("wait-for-reuse", self.wait_for_reuse,
          "wait for the data of a buffer before it is filled again; the measured kernels have no consumer "
          "and do not");
  }
};

constexpr std::array kFields{
    Field{"shape", FieldType::text, "rows x bytes of an instruction", true},
    Field{"cores", FieldType::integer, "AIVs that read", true},
    Field{"kernel_us", FieldType::number, "from the first core's start to the last one's end", true},
    Field{"task_us", FieldType::number, "task duration, launch and teardown of the blocks inside", true},
    Field{"bandwidth_TBps", FieldType::number, "bytes over kernel_us", true},
    Field{"l2_hit_rate", FieldType::ratio, "hits over all requests to L2", true},
};

StudyResult run(const StudyContext& context, const Options& options) {
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
    context.finish_row(result, {{"shape", name},
                                {"cores", options.cores},
                                {"kernel_us", reading.kernel_us},
                                {"task_us", reading.task_us},
                                {"bandwidth_TBps", reading.bandwidth_TBps},
                                {"l2_hit_rate", reading.l2_hit_rate}});
    context.progress.update(static_cast<double>(i + 1) / static_cast<double>(options.shape.size()),
                            result.simulator.simulated, result.simulator.events);
  }
  return result;
}

}  // namespace

const Study kStreamStudy{"stream", "streaming reads of a die's memory by its vector cores", kFields,
                         options_of<Options, run>};

}  // namespace cm384::studies
