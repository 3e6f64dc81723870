#include "workloads/layer/layer_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cm384::studies {
namespace {

Time time_of(double us) {
  return Time{std::llround(us * 1e6)};
}

std::string arguments_of(int layer, int microbatch) {
  return layer < 0 ? "" : fmt::format(R"("layer":{},"microbatch":{})", layer, microbatch);
}

const char* stream_name(int stream, int microbatches) {
  if (microbatches == 1) return "stream 0: all kernels";
  return stream == 0 ? "stream 0: attention" : "stream 1: experts";
}

// Slices one after another.
class Step {
 public:
  double now() const { return now_; }

  void part(std::string name, double us) {
    if (us <= 0) return;
    slices_.push_back({StepSlice::parts, std::move(name), now_, now_ + us});
    now_ += us;
  }
  // One of `layers` that ran, as number `shown` of the step, `us` long. The last of its microbatches ends
  // with it.
  void kernels(const std::vector<LayerKernel>& all, int layer, int shown, double us) {
    const double end = now_ + us;
    if (layer == 0) ends_ = {now_, now_};  // nothing before it to overlap
    double last = 0;
    for (const LayerKernel& kernel : all)
      if (kernel.layer == layer) last = std::max(last, kernel.end_us);
    for (const LayerKernel& kernel : all) {
      if (kernel.layer != layer) continue;
      double& before = ends_[static_cast<std::size_t>(kernel.stream)];
      const double from = std::max(before, kernel.start_us - last + end), to = kernel.end_us - last + end;
      if (to <= from) continue;
      slices_.push_back({kernel.stream == 0 ? StepSlice::attention : StepSlice::experts, kernel.name, from,
                         to, shown, kernel.microbatch});
      before = to;
    }
  }
  std::vector<StepSlice> release() { return std::move(slices_); }

 private:
  double now_ = 0;
  std::array<double, 2> ends_{};  // by stream
  std::vector<StepSlice> slices_;
};

}  // namespace

Rows rows_of(const std::vector<LayerKernel>& kernels) {
  Rows rows;
  for (const LayerKernel& kernel : kernels)
    rows.push_back({{"layer", kernel.layer},
                    {"microbatch", kernel.microbatch},
                    {"stream", kernel.stream},
                    {"name", kernel.name},
                    {"start_us", kernel.start_us},
                    {"end_us", kernel.end_us}});
  return rows;
}

std::vector<StepSlice> lanes_of_step(const DecodeOptions& options, const DecodeParts& parts) {
  Step step;
  const double launch = options.launch == "cpu" ? options.graph_launch.us() : 0;
  int last = 0;
  for (const LayerKernel& kernel : parts.kernels_of_layers) last = std::max(last, kernel.layer);
  const auto layer = [&](const std::string& name, int ran, int shown, double us) {
    step.kernels(parts.kernels_of_layers, ran, shown, us);
    step.part(name, us);
  };
  step.part("launch", launch);
  for (int n = 0; n < options.other_layers(); ++n)
    step.part(fmt::format("dense layer {}", n), parts.dense_attention + parts.dense_network);
  // Those with a window, or with the choice of another, come last.
  const int layers = options.main_layers(), full = layers - options.unlike_layers();
  for (int n = 0; n < layers; ++n)
    layer(fmt::format("{} layer {}", options.main_name(), n), n == 0 ? 0 : last, n,
          n == 0     ? parts.first_layer
          : n < full ? parts.layer
                     : parts.sliding_layer);
  step.part("head", parts.head);
  step.part("sampling", parts.sampling);
  for (int n = 0; n < options.layer.mtp; ++n) {
    step.part("launch", launch);
    if (n == 0) {
      step.part("MTP projection", parts.mtp_projection);
      layer("MTP layer", 0, layers, parts.first_layer);
    } else {
      // Its kernels are not kept.
      step.part("MTP projection", parts.further_projection);
      step.part("further MTP layer", parts.further_layer);
    }
    step.part("MTP head", parts.mtp_head);
    step.part("MTP sampling", parts.mtp_sampling);
  }
  step.part("renewal", renewal_us(options, parts));
  return step.release();
}

void write_lanes(LaneTimeline& timeline, const LayerReading& reading, int microbatches) {
  const auto rank = [&](int process, const std::string& name, const std::vector<LayerKernel>& kernels) {
    timeline.process(process, name);
    for (int stream = 0; stream < microbatches; ++stream)
      timeline.lane(process, stream, stream_name(stream, microbatches));
    for (const LayerKernel& kernel : kernels)
      timeline.slice(process, kernel.stream, kernel.name, time_of(kernel.start_us), time_of(kernel.end_us),
                     arguments_of(kernel.layer, kernel.microbatch));
  };
  rank(1, fmt::format("layers, rank {}", reading.kernels_rank), reading.kernels);
  if (!reading.experts_kernels.empty())
    rank(2, fmt::format("layers, rank {}, with experts", reading.experts_rank), reading.experts_kernels);
}

void write_lanes(LaneTimeline& timeline, int process, const DecodeOptions& options,
                 const DecodeParts& parts) {
  timeline.process(process, fmt::format("decode step, batch {}", options.layer.batch));
  timeline.lane(process, StepSlice::parts, "parts of the step");
  for (int stream = 0; stream < parts.microbatches; ++stream)
    timeline.lane(process, StepSlice::attention + stream, stream_name(stream, parts.microbatches));
  for (const StepSlice& slice : lanes_of_step(options, parts))
    timeline.slice(process, slice.lane, slice.name, time_of(slice.start_us), time_of(slice.end_us),
                   arguments_of(slice.layer, slice.microbatch));
}

}  // namespace cm384::studies
