#include "workloads/kernels/unit_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/error.h"
#include "system/machine/driver.h"

namespace cm384::studies {
namespace {

constexpr std::array<std::string_view, 3> kFormats{"bf16", "fp8", "int8"};

double peak_of(NumberFormat format, const hw::Machine& machine) {
  const hw::Peaks peaks = hw::peaks_of(machine);
  const double peak = format == NumberFormat::bf16  ? peaks.bf16_tflops
                      : format == NumberFormat::fp8 ? peaks.fp8_tflops
                                                    : peaks.int8_tops;
  if (peak > 0) return peak;
  throw InputError(
      fmt::format("{}: has no products in {}; allowed: formats whose peak in section processor "
                  "is not 0",
                  machine.name, name_of(format)));
}

npu::UnitWork counted(const UnitOperator& made) {
  const auto whole = [](double value) { return static_cast<std::uint64_t>(value); };
  npu::UnitWork work;
  std::uint64_t& operations = made.format == NumberFormat::bf16  ? work.bf16
                              : made.format == NumberFormat::fp8 ? work.fp8
                                                                 : work.int8;
  operations = whole(made.work.operations);
  work.memory_bytes = work.bytes = whole(made.work.bytes);
  return work;
}

// One after another on an accelerator, which counts the work at each end.
class Turns final : public supernode::Driver {
 public:
  Turns(supernode::Supernode& machine, Time each, const npu::UnitWork& work, int times)
      : machine_(machine),
        accelerator_(machine.accelerator(0)),
        unit_(machine.attach(0, *this)),
        each_(each),
        work_(work),
        left_(times) {}

  bool run() {
    ++machine_.unfinished();
    accelerator_.queue().push(machine_.earliest() + each_, unit_, 0);
    return machine_.run();
  }
  void handle(int, const sim::Event& event) override {
    accelerator_.count_work(work_);
    if (--left_ > 0) return accelerator_.queue().push(event.at + each_, unit_, 0);
    --machine_.unfinished();
  }
  std::string report(int) const override { return fmt::format("{} operators have not run\n", left_); }

 private:
  supernode::Supernode& machine_;
  npu::Accelerator& accelerator_;
  std::uint32_t unit_;
  Time each_;
  npu::UnitWork work_;
  int left_;
};

}  // namespace

std::string_view name_of(NumberFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

NumberFormat format_of(std::string_view name) {
  return static_cast<NumberFormat>(std::ranges::find(kFormats, name) - kFormats.begin());
}

UnitReading unit_time_of(const UnitOperator& made, const hw::Machine& machine) {
  const hw::Processor& processor = machine.processor;
  const hw::TransferEngine& memory = machine.transfer_engine;
  UnitReading reading;
  double products = 0;  // us
  if (made.work.operations > 0) {
    reading.peak_TOPS = peak_of(made.format, machine);
    const double share = made.attention ? processor.attention_efficiency : processor.product_efficiency;
    products = made.work.operations / (reading.peak_TOPS * share * 1e6);
  }
  const double moving = made.work.bytes / (static_cast<double>(memory.memory_bandwidth.bytes_per_second) *
                                           1e-6 * processor.memory_efficiency);
  const double kernels = made.kernels;
  const double around = kernels * (processor.launch_latency + processor.end_latency).us();
  reading.kernel_us = std::max(products, moving) + kernels * memory.memory_read_latency.us();
  reading.task_us = reading.kernel_us + around;
  const double most = std::max({products, moving, reading.task_us - std::max(products, moving)});
  reading.bottleneck = fmt::format("{}: {:.0f} %",
                                   most == products ? "products"
                                   : most == moving ? "memory"
                                                    : "launch",
                                   100 * most / reading.task_us);
  return reading;
}

std::optional<UnitReading> run_on_units(const StudyContext& context, const std::string& what,
                                        const UnitOperator& made, int times, SimulatorCounts& counts) {
  const UnitReading reading = unit_time_of(made, context.machine);
  SessionOptions options;
  options.dies = {0};
  options.what = what;
  const auto each = Time{static_cast<std::int64_t>(reading.task_us * 1e6 + 0.5)};
  options.patience = std::max(options.patience, each + each);
  Session session(context, options);
  Turns turns(session.machine(), each, counted(made), times);
  const bool finished = turns.run();
  session.count(counts);
  if (!finished) return {};
  return reading;
}

void refuse_beside_formula(const StudyContext& context, const char* study,
                           std::initializer_list<const char*> options) {
  for (const char* name : options) {
    if (context.given.contains(name))
      throw InputError(fmt::format("run {}: --{}: needs cores, and accelerator.kind is {}; allowed: ascend",
                                   study, name, context.machine.accelerator.kind));
  }
  if (context.observers != nullptr || context.gdb_port != 0)
    throw InputError(
        fmt::format("run {}: --record, --timeline, --wave and --gdb look at what moves, and without cores "
                    "nothing does at grade formula; allowed: none of them",
                    study));
}

void add_unit_row(const StudyContext& context, StudyResult& result, Row row, const UnitOperator& made,
                  const UnitReading& reading, bool kernel_time) {
  const double latency = reading.latency_us(kernel_time);
  row.set("latency_us", latency);
  if (reading.peak_TOPS > 0) {
    const double rate = made.work.operations / (latency * 1e6);
    row.set("TOPS", rate)
        .set("compute_utilisation", rate / reading.peak_TOPS)
        .set("peak_TOPS", reading.peak_TOPS);
  }
  row.set("hbm_GBps", made.work.bytes / (latency * 1e3));
  row.set("bottleneck", reading.bottleneck);
  row.set("task_us", reading.task_us).set("kernel_us", reading.kernel_us).set("grade", "formula");
  context.finish_row(result, std::move(row));
  if (result.rows.size() > 1) return;
  const hw::Processor& p = context.machine.processor;
  const double share = made.attention ? p.attention_efficiency : p.product_efficiency;
  const std::string products =
      reading.peak_TOPS > 0 ? fmt::format("the longer of products at {:.3g} of the dense peak and ", share)
                            : "";
  result.notes.push_back(
      fmt::format("grade formula: {}memory at {:.3g} of its rate, and launches; nothing is executed",
                  products, p.memory_efficiency));
}

}  // namespace cm384::studies
