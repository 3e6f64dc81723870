// `cm384 run gemm`.
#include <fmt/format.h>

#include <charconv>

#include "hw/error.h"
#include "hw/quantity.h"
#include "studies/gemm.h"
#include "studies/options.h"
#include "studies/studies.h"

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

// "17,0,1"; empty for an empty text.
std::vector<std::uint32_t> parse_rows(std::string_view text) {
  std::vector<std::uint32_t> rows;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::uint32_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + end, value);
    if (read.ec != std::errc() || read.ptr != text.data() + end || value > 1'000'000)
      throw InputError(
          fmt::format("{}: allowed: rows of each group up to 1000000, as 17,0,1", text.substr(0, end)));
    rows.push_back(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

void add_options(boost::program_options::options_description& options) {
  options.add_options()("groups", integer_option(4, 1, 1024), "groups, each with a B of its own")(
      "m", integer_option(7168, 0, 1'000'000), "rows of A a group")(
      "m-list", checked_text_option("", "M,M,...", [](std::string_view text) { parse_rows(text); }),
      "rows of each group, in place of --groups and --m")("n", integer_option(4096, 8, 65536),
                                                          "columns of C, a multiple of 8")(
      "k", integer_option(4096, 1, 65535), "elements of a row of A and B")(
      "dtype", choice_option("int8", {"int8", "bf16"}),
      "of A and B; int8 comes out as BF16 times a scale a row and a scale a column")(
      "b-layout", choice_option("nz", {"nz", "nd"}), "of B in memory: fractals or rows of k")(
      "tile", checked_text_option("auto", "auto|MxN", [](std::string_view text) { parse_tile(text); }),
      "tile of C a cube core works on");
  add_cube_options(options);
}

GemmSetting setting_of(const StudyContext& context) {
  GemmSetting setting;
  setting.group_rows.assign(static_cast<std::size_t>(context.option<int>("groups")),
                            static_cast<std::uint32_t>(context.option<int>("m")));
  const auto list = parse_rows(context.option<std::string>("m-list"));
  if (!list.empty()) setting.group_rows = list;
  setting.n = static_cast<std::uint32_t>(context.option<int>("n"));
  setting.k = static_cast<std::uint32_t>(context.option<int>("k"));
  setting.type = context.option<std::string>("dtype") == "int8" ? CM384_GEMM_INT8 : CM384_GEMM_BF16;
  setting.b_nz = context.option<std::string>("b-layout") == "nz";
  const TileSize tile = parse_tile(context.option<std::string>("tile"));
  setting.tile_m = tile.m;
  setting.tile_n = tile.n;
  setting.blocks = read_cores(context, "gemm");
  setting.full = payload_is_full(context);
  if (setting.n % 8 != 0)
    throw InputError(fmt::format("run gemm: --n {}: allowed: multiples of 8", setting.n));
  return setting;
}

StudyResult run(const StudyContext& context) {
  StudyResult result;
  const GemmSetting setting = setting_of(context);
  const GemmReading reading = measure_gemm(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  Json row;
  row["groups"] = setting.group_rows.size();
  row["dtype"] = context.option<std::string>("dtype");
  row["tile"] = fmt::format("{}x{}", reading.tiling.tile_m, reading.tiling.tile_n);
  add_row(context, result, row, reading, setting.type);
  return result;
}

}  // namespace

const Study kGemmStudy{"gemm", "grouped matrix multiplication on the cube cores of a die", add_options, run};

}  // namespace cm384::studies
