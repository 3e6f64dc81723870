// `cm384 trace generate`: routing and traffic by rule and seed.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "cli/progress.h"
#include "hw/error.h"
#include "studies/options.h"
#include "traces/random.h"
#include "traces/routing.h"
#include "traces/traffic.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;

// The one file that the action names; false for --help.
bool parse(po::options_description& options, const Arguments& arguments, const std::string& what,
           po::variables_map& values, std::string& file) {
  options.add_options()("file", studies::required_text_option("OUT"),
                        "the file, by name or as bare argument");
  add_seed_option(options);
  add_help_option(options);
  values = studies::parse_options(options, arguments, "file");
  if (values["help"].as<bool>()) {
    fmt::print("cm384 trace generate {} OUT [options]\n\n{}", what, help_of(options));
    return false;
  }
  if (values.count("file") == 0) throw InputError(fmt::format("trace generate {}: names no file", what));
  file = values["file"].as<std::string>();
  return true;
}

int routing(const Arguments& arguments) {
  po::options_description options("options of `trace generate routing`", 110);
  options.add_options()(
      "pattern", studies::choice_option("uniform", {"uniform", "zipf", "group", "hot", "drift"}),
      "group: as DeepSeek routes, experts out of the best groups; hot: one expert in many tokens; drift: "
      "zipf "
      "whose hot experts change")("rows", studies::integer_option(32768, 1, 100'000'000), "tokens")(
      "top-k", studies::integer_option(8, 1, 64), "experts a token")(
      "experts", studies::integer_option(256, 1, 65536), "experts")(
      "exponent", studies::real_option(1, 0, 10), "of zipf and drift")(
      "groups", studies::integer_option(8, 1, 1024), "of pattern group")(
      "top-groups", studies::integer_option(4, 1, 1024), "groups that a token's experts come from")(
      "share", studies::real_option(0.5, 0, 1), "of tokens that choose the hot expert")(
      "period", studies::integer_option(4096, 1, 100'000'000),
      "rows after which drift moves on by one expert");
  po::variables_map values;
  std::string file;
  if (!parse(options, arguments, "routing", values, file)) return kDone;
  const std::string pattern = values["pattern"].as<std::string>();
  const std::int64_t rows = values["rows"].as<int>();
  const int top_k = values["top-k"].as<int>(), experts = values["experts"].as<int>();
  const std::uint64_t seed = seed_of(values);
  const double exponent = values["exponent"].as<double>();
  const traces::Routing made =
      pattern == "uniform" ? traces::uniform_routing(rows, top_k, experts, seed)
      : pattern == "zipf"  ? traces::zipf_routing(rows, top_k, experts, exponent, seed)
      : pattern == "group" ? traces::group_limited_routing(rows, top_k, experts, values["groups"].as<int>(),
                                                           values["top-groups"].as<int>(), seed)
      : pattern == "hot"
          ? traces::hot_routing(rows, top_k, experts, values["share"].as<double>(), seed)
          : traces::drifting_routing(rows, top_k, experts, exponent, values["period"].as<int>(), seed);
  traces::write_routing(file, made, fmt::format("generated: {}, seed {}", pattern, seed));
  fmt::print("{}: {} rows\n", file, made.rows());
  return kDone;
}

int traffic(const Arguments& arguments) {
  po::options_description options("options of `trace generate traffic`", 110);
  options.add_options()("pattern", studies::choice_option("uniform", {"uniform", "ring", "transpose"}),
                        "target of each transfer: any other die, the next one, or the one half round")(
      "dies", studies::integer_option(8, 2, 768), "dies, from 0")("cores", studies::integer_option(48, 1, 64),
                                                                  "cores of a die that take turns")(
      "transfers", studies::integer_option(100'000, 1, 2'000'000'000), "in all")(
      "bytes", studies::size_option(512_B), "of a transfer")(
      "interval", studies::time_option(100_ns), "between the transfers of a die, on the average")(
      "chained", po::bool_switch(), "each transfer of a core waits for its last one");
  po::variables_map values;
  std::string file;
  if (!parse(options, arguments, "traffic", values, file)) return kDone;
  const auto dies = static_cast<std::uint64_t>(values["dies"].as<int>());
  const auto cores = static_cast<std::uint64_t>(values["cores"].as<int>());
  const auto count = static_cast<std::uint64_t>(values["transfers"].as<int>());
  const std::string pattern = values["pattern"].as<std::string>();
  const auto interval = static_cast<std::uint64_t>(values["interval"].as<Time>().ps) / dies;
  const bool chained = values["chained"].as<bool>();
  const auto sink = traces::create_traffic(file, {"", "generated"});
  traces::Random random(seed_of(values), 5);
  traces::TrafficRecord r;
  r.operation = sim::Operation::write;
  r.bytes = static_cast<std::uint64_t>(values["bytes"].as<Bytes>().count);
  std::uint64_t written = 0;
  ConsoleProgress progress;
  for (std::uint64_t n = 0; n < count && interrupted() == 0; ++n, ++written) {
    constexpr std::uint64_t kBetweenLooks = 1 << 16;
    if (n % kBetweenLooks == 0)
      progress.update(static_cast<double>(n) / static_cast<double>(count), r.start, n);
    r.start += Time{static_cast<std::int64_t>(random.below(2 * interval + 1))};
    r.end = r.start;
    const std::uint64_t source = n % dies;
    const std::uint64_t step = pattern == "uniform" ? 1 + random.below(dies - 1)
                               : pattern == "ring"  ? 1
                                                    : dies / 2;
    r.source.number = static_cast<std::uint16_t>(source);
    r.target.number = static_cast<std::uint16_t>((source + step) % dies);
    r.core = static_cast<int>(n / dies % cores);
    // Every core of a die has 1 MiB of its own in its target's memory.
    constexpr std::uint64_t kArea = 1 << 20;
    const std::uint64_t places = std::max<std::uint64_t>(1, kArea / std::max<std::uint64_t>(r.bytes, 512));
    r.offset = (source * cores + static_cast<std::uint64_t>(r.core)) * kArea +
               random.below(places) * std::max<std::uint64_t>(r.bytes, 512);
    r.dependencies.clear();
    if (chained && n >= dies * cores) r.dependencies = {{n - dies * cores, {}, {}}};
    sink->add(r);
  }
  sink->finish();
  fmt::print("{}: {} transfers\n", file, written);
  if (written == count) return kDone;
  fmt::print(stderr, "cm384: interrupted; the trace is good, but shorter than asked for\n");
  return kInterrupted;
}

}  // namespace

int trace_generate_command(const Arguments& arguments) {
  const Arguments rest(arguments.empty() ? arguments.begin() : arguments.begin() + 1, arguments.end());
  const std::string what = arguments.empty() ? "" : arguments.front();
  if (what == "routing") return routing(rest);
  if (what == "traffic") return traffic(rest);
  if (what == "--help" || what == "-h") {
    fmt::print("cm384 trace generate routing|traffic OUT [options]\n");
    return kDone;
  }
  throw InputError(fmt::format("trace generate {}: unknown; allowed: routing, traffic", what));
}

}  // namespace cm384::cli
