// `cm384 run ffn`: the feed-forward network of a die's experts.
#include "workloads/kernels/ffn.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/text/error.h"
#include "workloads/kernels/unit_run.h"
#include "workloads/studies.h"

namespace cm384::studies {
CubeReading measure_ffn(const StudyContext& context, const FfnSetting& setting, SimulatorCounts& counts) {
  CubeRun run(context, fmt::format("ffn, {} experts", setting.expert_rows.size()), setting, [&] {
    Stages stages;
    stages.placed.push_back(std::make_unique<operators::Ffn>(setting, context.seed));
    stages.run = {stages.placed.back().get()};
    return stages;
  });
  const std::vector<CubeReading> readings = run.measure(counts);
  return readings.empty() ? CubeReading{} : readings.front();
}

namespace {

struct FfnOptions {
  int experts = 1;
  int rows = 1024;
  int hidden = 7168;
  int width = 2048;
  std::string type = "int8";
  CubeOptions cube;
  AccuracyOptions accuracy;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("experts", self.experts, Range{1, 256}, "experts on the die");
    visit("rows", self.rows, Range{1, 100'000}, "tokens per expert");
    visit("hidden", self.hidden, Range{64, 16384, 64}, "elements of a token");
    visit("width", self.width, Range{64, 4096, 64}, "elements between the two multiplications");
    visit(
        "type", self.type, OneOf{{"int8", "bf16", "w4a8", "fp8"}},
        "of weights and products; w4a8: weights of 4 bits with a scale per column, activations of INT8; fp8 "
        "of accelerators that have it");
    CubeOptions::describe(self.cube, visit);
    AccuracyOptions::describe(self.accuracy, visit);
  }
  void follow(const Given& given) { cube.follow(given); }
  void settle(const hw::Machine& machine) { cube.settle(machine); }
};

// Two products and what stands between them, a kernel each.
StudyResult run_without_cores(const StudyContext& context, const FfnOptions& options) {
  check_without_cores(context, options.cube, "ffn");
  if (options.type == "w4a8")
    throw InputError(
        "run ffn: --type w4a8: no peak of its products is in section processor; allowed: int8, "
        "bf16, fp8");
  StudyResult result;
  FfnSetting setting;
  setting.expert_rows.assign(static_cast<std::size_t>(options.experts),
                             static_cast<std::uint32_t>(options.rows));
  setting.hidden = static_cast<std::uint32_t>(options.hidden);
  setting.width = static_cast<std::uint32_t>(options.width);
  setting.bf16 = options.type == "bf16";
  const UnitOperator made{operators::Ffn(setting, context.seed).work(), format_of(options.type), false, 3};
  const auto reading =
      run_on_units(context, fmt::format("ffn, {} experts", options.experts), made, 1, result.simulator);
  if (!reading) {
    result.complete = false;
    return result;
  }
  add_unit_row(context, result, {{"experts", options.experts}, {"rows", options.rows}}, made, *reading,
               options.cube.kernel_time);
  return result;
}

StudyResult run(const StudyContext& context, const FfnOptions& options) {
  if (!context.machine.accelerator.has_cores()) return run_without_cores(context, options);
  if (options.type == "fp8")
    throw InputError("run ffn: --type fp8: the cube cores have no FP8; allowed: int8, bf16, w4a8");
  StudyResult result;
  FfnSetting setting;
  static_cast<CubeSetting&>(setting) = cube_setting(context, options.cube, "ffn");
  setting.expert_rows.assign(static_cast<std::size_t>(options.experts),
                             static_cast<std::uint32_t>(options.rows));
  setting.hidden = static_cast<std::uint32_t>(options.hidden);
  setting.width = static_cast<std::uint32_t>(options.width);
  if (options.accuracy.wanted && options.type != "int8")
    throw InputError("run ffn: --accuracy: of products in INT8; allowed with --type int8");
  setting.bf16 = options.type == "bf16";
  setting.int4 = options.type == "w4a8";
  setting.drawn = options.accuracy.draw();
  const CubeReading reading = measure_ffn(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  Row row{{"experts", options.experts}, {"rows", options.rows}};
  add_accuracy(options.accuracy, reading.accuracy, result, row);
  add_row(context, options.cube, result, std::move(row), reading,
          setting.bf16 ? CM384_GEMM_BF16 : CM384_GEMM_INT8);
  return result;
}

constexpr std::array kFfnFields{
    Field{"experts", FieldType::integer, "experts on the die", true}.as_condition(),
    Field{"rows", FieldType::integer, "tokens per expert", true}.as_condition(),
};

std::span<const Field> ffn_fields() {
  static const std::vector<Field> all = with_cube_fields(kFfnFields, kAccuracyFields);
  return all;
}

}  // namespace

const Study kFfnStudy{.name = "ffn",
                      .summary = "feed-forward network of a die's experts, on its cube and vector cores",
                      .fields = ffn_fields(),
                      .options = options_of<FfnOptions, run>,
                      .coreless = true,
                      .first_server = true};

}  // namespace cm384::studies
