// `cm384 run gemm`.
#include "workloads/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "base/text/error.h"
#include "workloads/kernels/unit_run.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

struct TileSize {
  std::uint32_t m = 0, n = 0;
};

// "128x152"; "auto": zeros.
TileSize parse_tile(std::string_view text) {
  if (text == "auto") return {};
  TileSize tile;
  const auto* const end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, tile.m);
  if (rows.ec == std::errc() && rows.ptr != end && *rows.ptr == 'x') {
    const auto columns = std::from_chars(rows.ptr + 1, end, tile.n);
    if (columns.ec == std::errc() && columns.ptr == end && tile.m > 0 && tile.n > 0 && tile.m <= 1024 &&
        tile.n <= 1024)
      return tile;
  }
  throw InputError(
      fmt::format("{}: allowed: auto, or rows x columns such as 128x152, each up to 1024", text));
}

void check_tile(std::string_view text) {
  parse_tile(text);
}

struct GemmOptions {
  int groups = 4;
  int m = 7168;
  Integers m_list;
  int n = 4096;
  int k = 4096;
  std::string type = "int8";
  std::string layout = "nz";
  std::string tile = "auto";
  CubeOptions cube;
  AccuracyOptions accuracy;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("groups", self.groups, Range{1, 1024}, "groups, each with a B of its own");
    visit("m", self.m, Range{1, 1'000'000}, "rows of A per group");
    visit("m-list", self.m_list, Range{0, 1'000'000}, "rows of each group, in place of --groups and --m");
    visit("n", self.n, Range{8, 65536, 8}, "columns of C");
    visit("k", self.k, Range{1, 65535}, "elements of a row of A and B");
    visit("dtype", self.type, OneOf{{"int8", "bf16", "fp8"}},
          "of A and B; int8 comes out as BF16, scaled per row and per column; fp8 of accelerators that have "
          "it");
    visit("b-layout", self.layout, OneOf{{"nz", "nd"}}, "of B in memory: fractals, or rows of k");
    visit("tile", self.tile, Form{"auto|MxN", check_tile}, "tile of C that a cube core works on");
    CubeOptions::describe(self.cube, visit);
    AccuracyOptions::describe(self.accuracy, visit);
  }
  void follow(const Given& given) { cube.follow(given); }
  void settle(const hw::Machine& machine) { cube.settle(machine); }
};

}  // namespace

GemmReading measure_gemm(const StudyContext& context, const GemmSetting& setting, SimulatorCounts& counts) {
  operators::Gemm* gemm = nullptr;
  CubeRun run(context,
              fmt::format("gemm, {} groups, n {}, k {}", setting.group_rows.size(), setting.n, setting.k),
              setting, [&] {
                Stages stages;
                stages.placed.push_back(std::make_unique<operators::Gemm>(setting, context.seed));
                gemm = static_cast<operators::Gemm*>(stages.placed.back().get());
                stages.run = {gemm};
                return stages;
              });
  GemmReading reading;
  reading.tiling = gemm->tiling();
  for (CubeReading& measured : run.measure(counts)) static_cast<CubeReading&>(reading) = std::move(measured);
  return reading;
}

namespace {

// What is multiplied, wherever it runs.
GemmSetting product_of(const StudyContext& context, const GemmOptions& options) {
  for (const char* name : {"groups", "m"}) {
    if (!options.m_list.empty() && context.given.contains(name))
      throw InputError(fmt::format("--{}: --m-list takes its place; allowed: one of the two", name));
  }
  GemmSetting setting;
  setting.group_rows.assign(static_cast<std::size_t>(options.groups), static_cast<std::uint32_t>(options.m));
  if (!options.m_list.empty()) setting.group_rows.assign(options.m_list.begin(), options.m_list.end());
  if (std::ranges::count(setting.group_rows, 0u) == static_cast<std::ptrdiff_t>(setting.group_rows.size()))
    throw InputError("--m-list: no group has a row; allowed: at least one row in all");
  setting.n = static_cast<std::uint32_t>(options.n);
  setting.k = static_cast<std::uint32_t>(options.k);
  setting.type = options.type == "bf16" ? CM384_GEMM_BF16 : CM384_GEMM_INT8;
  return setting;
}

GemmSetting setting_of(const StudyContext& context, const GemmOptions& options) {
  if (options.type == "fp8")
    throw InputError("run gemm: --dtype fp8: the cube cores have no FP8; allowed: int8, bf16");
  GemmSetting setting = product_of(context, options);
  static_cast<CubeSetting&>(setting) = cube_setting(context, options.cube, "gemm");
  setting.b_nz = options.layout == "nz";
  const TileSize tile = parse_tile(options.tile);
  setting.tile_m = tile.m;
  setting.tile_n = tile.n;
  setting.drawn = options.accuracy.draw();
  return setting;
}

// Of A, B and C, each once.
double operand_bytes(const GemmSetting& setting) {
  const double rows = std::accumulate(setting.group_rows.begin(), setting.group_rows.end(), 0.0);
  const double groups = static_cast<double>(setting.group_rows.size());
  const double element = setting.type == CM384_GEMM_INT8 ? 1 : 2;
  return (rows + groups * setting.n) * setting.k * element + rows * setting.n * 2;
}

StudyResult run_without_cores(const StudyContext& context, const GemmOptions& options) {
  check_without_cores(context, options.cube, "gemm");
  StudyResult result;
  const GemmSetting setting = product_of(context, options);
  const UnitOperator made{operators::Gemm(setting, context.seed).work(), format_of(options.type)};
  const auto reading = run_on_units(
      context, fmt::format("gemm, {} groups, n {}, k {}", setting.group_rows.size(), setting.n, setting.k),
      made, 1, result.simulator);
  if (!reading) {
    result.complete = false;
    return result;
  }
  const double us = reading->latency_us(options.cube.kernel_time);
  Row row{{"groups", setting.group_rows.size()},
          {"dtype", options.type},
          {"operand_GBps", operand_bytes(setting) / (us * 1e3)}};
  add_unit_row(context, result, std::move(row), made, *reading, options.cube.kernel_time);
  return result;
}

StudyResult run(const StudyContext& context, const GemmOptions& options) {
  if (!context.machine.accelerator.has_cores()) return run_without_cores(context, options);
  StudyResult result;
  const GemmSetting setting = setting_of(context, options);
  const GemmReading reading = measure_gemm(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  Row row{{"groups", setting.group_rows.size()},
          {"dtype", options.type},
          {"operand_GBps", operand_bytes(setting) / (latency_us(options.cube, reading) * 1e3)},
          {"tile", fmt::format("{}x{}", reading.tiling.tile_m, reading.tiling.tile_n)}};
  add_accuracy(options.accuracy, reading.accuracy, result, row);
  add_row(context, options.cube, result, std::move(row), reading, setting.type);
  return result;
}

constexpr std::array kGemmFields{
    Field{"groups", FieldType::integer, "groups, each with a B of its own", true}.as_condition(),
    Field{"dtype", FieldType::text, "of A and B", true}.as_condition(),
    Field{"operand_GBps", FieldType::number, "bytes of A, B and C, each once, over the latency"},
    Field{"tile", FieldType::text, "rows x columns of C that a cube core works on", true},
};

std::span<const Field> gemm_fields() {
  static const std::vector<Field> all = with_cube_fields(kGemmFields, kAccuracyFields);
  return all;
}

}  // namespace

const Study kGemmStudy{.name = "gemm",
                       .summary = "grouped matrix multiplication on the cube cores of a die",
                       .fields = gemm_fields(),
                       .options = options_of<GemmOptions, run>,
                       .coreless = true,
                       .first_server = true};

}  // namespace cm384::studies
