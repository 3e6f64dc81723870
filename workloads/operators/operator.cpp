#include "workloads/operators/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "firmware/embedded.h"
#include "system/host/recording_file.h"

namespace cm384::operators {
namespace {

constexpr std::array<std::string_view, 3> kGrades{"firmware", "replay", "formula"};

}  // namespace

std::string_view name_of(Grade grade) {
  return kGrades[static_cast<std::size_t>(grade)];
}

Grade grade_of(std::string_view name) {
  const auto found = std::ranges::find(kGrades, name);
  if (found == kGrades.end())
    throw InputError(fmt::format("grade {}; allowed: firmware, replay, formula", name));
  return static_cast<Grade>(found - kGrades.begin());
}

std::vector<std::uint16_t> cores_from(int first, int count) {
  std::vector<std::uint16_t> cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), static_cast<std::uint16_t>(first));
  return cores;
}

std::shared_ptr<npu::Program> load_built_in(host::Runtime& runtime, std::string_view kernel) {
  const auto image = firmware::kernel_image(kernel);
  if (image.empty()) throw InputError(fmt::format("no built-in kernel `{}`", kernel));
  return runtime.load(npu::ElfImage::from_memory(image, fmt::format("{}.elf (built in)", kernel)));
}

void KernelOperator::place(const Site& site) {
  site_ = std::make_unique<Site>(site);
  lay_out(*site_);
}

void KernelOperator::run_at(Grade grade, std::shared_ptr<const npu::Recording> recording,
                            npu::Pacing pacing) {
  if (grade == Grade::replay && recording == nullptr)
    throw std::logic_error("an operator at grade replay needs a recording");
  grade_ = grade;
  recording_ = std::move(recording);
  pacing_ = pacing;
}

npu::LaunchRequest KernelOperator::request() {
  if (arguments_ == 0) arguments_ = write_arguments(site_->memory);
  npu::LaunchRequest made;
  made.arguments = arguments_;
  made.cores = cores();
  made.type = type();
  made.graph = graph_;
  return made;
}

void KernelOperator::enqueue(host::Stream stream) {
  npu::LaunchRequest made = request();
  if (grade_ == Grade::firmware) {
    made.program = site_->load(kernel());
  } else {
    if (!played_) {
      npu::PlayedLaunch played{recording_, {}, pacing_};
      if (grade_ == Grade::formula) {
        const std::size_t blocks = made.cores.size();
        played.recording = std::make_shared<npu::Recording>(
            npu::Recording::idle(type() == npu::KernelType::mix ? 3 * blocks : blocks,
                                 duration_of(work(), blocks, runtime().machine().parameters())));
      }
      std::vector<std::uint64_t> bytes;
      for (const auto& region : site_->memory.regions()) {
        played.regions.push_back(cm384_gm_offset(region.address));
        bytes.push_back(region.bytes);
      }
      host::check_fits(*played.recording,
                       type() == npu::KernelType::mix ? 3 * made.cores.size() : made.cores.size(), bytes);
      played_ = std::make_shared<npu::PlayedLaunch>(std::move(played));
    }
    made.played = played_;
  }
  launch_ = runtime().launch(stream, std::move(made));
}

Time duration_of(const Work& work, std::size_t blocks, const hw::Machine& machine) {
  const hw::Peaks peaks = hw::peaks_of(machine);
  const hw::OnDieNetwork& network = machine.memory.on_die_network;
  const double share = static_cast<double>(blocks) / machine.die.aic;
  const double rate = (work.int8 ? peaks.int8_tops : peaks.bf16_tflops) * share;  // a picosecond
  const double moving = work.bytes / (static_cast<double>(peaks.hbm.bytes_per_second) * 1e-12);
  const Time trip = network.request_latency + machine.memory.l2.hit_latency +
                    machine.memory.hbm.controller_latency + network.response_latency;
  return Time{static_cast<std::int64_t>(std::max(work.operations / rate, moving)) + trip.ps * work.stages};
}

}  // namespace cm384::operators
