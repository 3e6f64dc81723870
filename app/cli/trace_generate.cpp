// `cm384 trace generate`: routing and traffic by rule and seed.
#include <fmt/format.h>

#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "app/cli/progress.h"
#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "traces/random.h"
#include "traces/routing/routing.h"
#include "traces/traffic.h"

namespace cm384::cli {
namespace {

using studies::Form;
using studies::Needs;
using studies::OneOf;
using studies::Range;

struct CommonOptions {
  std::string file;
  SeedOption seed;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"OUT"}, "the file");
    SeedOption::describe(self.seed, visit);
  }
  // Throws InputError if it is not given.
  const std::string& path(std::string_view what) const {
    if (file.empty()) throw InputError(fmt::format("trace generate {}: no file given", what));
    return file;
  }
};

struct TraceGenerateRoutingOptions {
  std::string pattern = "uniform";
  int rows = 32768, top_k = 8, experts = 256, groups = 8, top_groups = 4, period = 4096;
  double exponent = 1, share = 0.5;
  CommonOptions common;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("pattern", self.pattern, OneOf{{"uniform", "zipf", "group", "hot", "drift"}},
          "group: as DeepSeek routes, experts out of the best groups; hot: one expert in many tokens; drift: "
          "zipf "
          "whose hot experts change");
    visit("rows", self.rows, Range{1, 100'000'000}, "tokens");
    visit("experts-per-token", self.top_k, Range{1, 64}, "routed experts per token", hw::Alias{"top-k"});
    visit("experts", self.experts, Range{1, 65536}, "experts");
    visit("exponent", self.exponent, Range{0.0, 10.0}, "of zipf and drift",
          Needs{"pattern", {"zipf", "drift"}});
    visit("groups", self.groups, Range{1, 1024}, "of experts", Needs{"pattern", {"group"}});
    visit("top-groups", self.top_groups, Range{1, 1024}, "groups that a token's experts come from",
          Needs{"pattern", {"group"}});
    visit("share", self.share, Range{0.0, 1.0}, "of tokens that choose the hot expert",
          Needs{"pattern", {"hot"}});
    visit("period", self.period, Range{1, 100'000'000}, "rows after which drift moves on by one expert",
          Needs{"pattern", {"drift"}});
    CommonOptions::describe(self.common, visit);
  }
};

int routing(const Program&, const TraceGenerateRoutingOptions& o, const studies::Given&) {
  const std::string& file = o.common.path("routing");
  const std::uint64_t seed = o.common.seed.value();
  const traces::Routing made =
      o.pattern == "uniform" ? traces::uniform_routing(o.rows, o.top_k, o.experts, seed)
      : o.pattern == "zipf"  ? traces::zipf_routing(o.rows, o.top_k, o.experts, o.exponent, seed)
      : o.pattern == "group"
          ? traces::group_limited_routing(o.rows, o.top_k, o.experts, o.groups, o.top_groups, seed)
      : o.pattern == "hot" ? traces::hot_routing(o.rows, o.top_k, o.experts, o.share, seed)
                           : traces::drifting_routing(o.rows, o.top_k, o.experts, o.exponent, o.period, seed);
  traces::write_routing(file, made, fmt::format("generated: {}, seed {}", o.pattern, seed));
  fmt::print("{}: {} rows\n", file, made.rows());
  return kDone;
}

struct TrafficOptions {
  std::string pattern = "uniform";
  int dies = 8, cores = 48, transfers = 100'000;
  Bytes bytes = 512_B;
  Time interval = 100_ns;
  bool chained = false;
  CommonOptions common;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("pattern", self.pattern, OneOf{{"uniform", "ring", "transpose"}},
          "target of each transfer: any other die, the next one, or the one half round");
    visit("dies", self.dies, Range{2, studies::kMostRanks}, "dies, from 0");
    visit("cores", self.cores, Range{1, 64}, "cores of a die that take turns");
    visit("transfers", self.transfers, Range{1, 2'000'000'000}, "in all");
    visit("bytes", self.bytes, Range{1_B, 128_KiB}, "of a transfer");
    visit("interval", self.interval, Range{Time{}, 1_s}, "between the transfers of a die, on average");
    visit("chained", self.chained, "each transfer of a core waits for its last one");
    CommonOptions::describe(self.common, visit);
  }
};

int traffic(const Program&, const TrafficOptions& options, const studies::Given&) {
  const auto dies = static_cast<std::uint64_t>(options.dies);
  const auto cores = static_cast<std::uint64_t>(options.cores);
  const auto count = static_cast<std::uint64_t>(options.transfers);
  const auto interval = static_cast<std::uint64_t>(options.interval.ps) / dies;
  const auto sink = traces::create_traffic(options.common.path("traffic"), {"", "generated"});
  traces::Random random(options.common.seed.value(), 5);
  traces::TrafficRecord r;
  r.operation = sim::Operation::write;
  r.bytes = static_cast<std::uint64_t>(options.bytes.count);
  std::uint64_t written = 0;
  ConsoleProgress progress;
  for (std::uint64_t n = 0; n < count && interrupted() == 0; ++n, ++written) {
    constexpr std::uint64_t kBetweenLooks = 1 << 16;
    if (n % kBetweenLooks == 0)
      progress.update(static_cast<double>(n) / static_cast<double>(count), r.start, n);
    r.start += Time{static_cast<std::int64_t>(random.below(2 * interval + 1))};
    r.end = r.start;
    const std::uint64_t source = n % dies;
    const std::uint64_t step = options.pattern == "uniform" ? 1 + random.below(dies - 1)
                               : options.pattern == "ring"  ? 1
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
    if (options.chained && n >= dies * cores) r.dependencies = {{n - dies * cores, {}, {}}};
    sink->add(r);
  }
  sink->finish();
  fmt::print("{}: {} transfers\n", options.common.file, written);
  if (written == count) return kDone;
  print_error("cm384: interrupted; the trace is good, but shorter than asked for\n");
  return kInterrupted;
}

}  // namespace

constinit const Command kTraceGenerateRoutingCommand = make_command<TraceGenerateRoutingOptions, routing>(
    "trace generate routing", "OUT", "a routing trace by rule and seed", "file");
constinit const Command kTraceGenerateTrafficCommand = make_command<TrafficOptions, traffic>(
    "trace generate traffic", "OUT", "a traffic trace by rule and seed", "file");

}  // namespace cm384::cli
