// `cm384 run balance`: how evenly experts load their ranks, and what renewing their placement by load wins as
// what tokens choose drifts. No time is simulated: `run layer` says what an imbalance costs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "base/text/error.h"
#include "base/text/quantity.h"
#include "traces/routing/routing.h"
#include "workloads/frame/confidence.h"
#include "workloads/frame/model_option.h"
#include "workloads/operators/reference/expert_balance.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

using reference::ExpertPlacement;
using traces::RoutingSource;

struct BalanceOptions {
  std::string model{};
  int ranks = 320;
  int tokens = 96;
  int experts = 256;
  int top_k = 8;
  int shared_copies = -1;
  int redundant = -1;
  std::string routing = "zipf:1";
  int drift = 0;
  int steps = 64;
  Integers renew{1, 4, 16, 0};
  Bytes weights = Bytes{44'040'192};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("ranks", self.ranks, Range{2, kMostRanks}, "dies that take part, one rank each");
    visit("model", self.model, Form{"NAME|FILE"},
          "language model that experts, experts-per-token and weights (INT8) follow from where they are not "
          "given: one of `cm384 model list`, a config.json or a TOML");
    visit("tokens", self.tokens, Range{1, 4096}, "of a rank in a step");
    visit("experts", self.experts, Range{2, 4096}, "routed experts; a trace has its own");
    visit("experts-per-token", self.top_k, Range{1, 16}, "experts that a token chooses; a trace has its own",
          Alias{"top-k"});
    visit("shared-copies", self.shared_copies, Range{-1, 256},
          "ranks that hold the shared expert; -1: 32 at 320 ranks, otherwise a ninth of them");
    visit("redundant", self.redundant, Range{-1, 1024},
          "further copies of routed experts; -1: as many as fill the slots of all ranks");
    visit("routing", self.routing, Form{"uniform|zipf:S|groups:N:M|trace:FILE"},
          "which experts tokens choose");
    visit("drift", self.drift, Range{0, 1000},
          "steps after which zipf's weights move on by one expert; 0: they stay");
    visit("steps", self.steps, Range{2, 1000}, "one after another; those behind the longest --renew count");
    visit("renew", self.renew, Range{0, 1000},
          "steps between placements, each by the load of so many steps before; 0: none by load, the experts "
          "in order");
    visit("weights", self.weights, Range{1_B, 4_GiB}, "of a copy, which its new rank has to load");
  }
  void follow(const Given& given) {
    if (model.empty()) return;
    const models::Model of = model_of_experts(model);
    const models::Experts of_experts = of.experts();
    OptionValues values{{"experts", std::to_string(of_experts.routed)},
                        {"experts-per-token", std::to_string(of_experts.chosen)},
                        {"weights", hw::format(Bytes{3 * of.hidden * of_experts.width})}};
    if (of_experts.shared == 0) values.emplace_back("shared-copies", "0");
    follow_model(hw::list_parameters(*this), given, model, values);
  }
  std::vector<std::string> inputs() const {
    std::vector<std::string> files = model_files(model);
    const RoutingSource source = traces::parse_routing_source(routing);
    if (source.kind == RoutingSource::Kind::kTrace) files.push_back(source.path);
    return files;
  }
};

traces::Routing make_routing(const BalanceOptions& o, std::uint64_t seed, const Given& given) {
  const RoutingSource source = traces::parse_routing_source(o.routing);
  const std::int64_t step = std::int64_t{o.ranks} * o.tokens, rows = step * o.steps;
  if (o.drift > 0 && source.kind != RoutingSource::Kind::kZipf)
    throw InputError("run balance: --drift: has an effect only with --routing zipf:S");
  constexpr std::int64_t kMostChoices = std::int64_t{1} << 30;  // 4 GiB of them
  if (source.kind != RoutingSource::Kind::kTrace && rows > kMostChoices / o.top_k)
    throw InputError(
        fmt::format("run balance: {} ranks x {} tokens x {} steps x {} experts are {:.3g} choices; allowed: "
                    "at most {}, in memory",
                    o.ranks, o.tokens, o.steps, o.top_k, static_cast<double>(rows) * o.top_k, kMostChoices));
  switch (source.kind) {
    case RoutingSource::Kind::kUniform:
      return traces::uniform_routing(rows, o.top_k, o.experts, seed);
    case RoutingSource::Kind::kZipf:
      return o.drift == 0
                 ? traces::zipf_routing(rows, o.top_k, o.experts, source.exponent, seed)
                 : traces::drifting_routing(rows, o.top_k, o.experts, source.exponent, step * o.drift, seed);
    case RoutingSource::Kind::kGroups:
      return traces::group_limited_routing(rows, o.top_k, o.experts, source.groups, source.top_groups, seed);
    case RoutingSource::Kind::kTrace:
      break;
  }
  for (const char* name : {"experts-per-token", "experts"}) {
    if (given.contains(name))
      throw InputError(
          fmt::format("run balance: --{}: the trace of --routing sets it; allowed: one of the two", name));
  }
  traces::Routing routing = traces::read_routing(source.path);
  check_trace_of_model(o.model, routing.experts, routing.top_k);
  return routing;
}

int shared_copies_of(const BalanceOptions& o) {
  if (o.shared_copies >= 0) return o.shared_copies;
  return o.ranks == 320 ? 32 : o.ranks / 9;
}

// Tokens that each source rank sends to each expert in a step.
class Steps {
 public:
  Steps(const BalanceOptions& o, const traces::Routing& routing) : o_(o), routing_(routing) {}

  // Of each expert over the steps [first, last).
  std::vector<double> loads(int first, int last) const {
    std::vector<double> made(static_cast<std::size_t>(routing_.experts));
    for_each_row(first, last, [&](int, std::span<const std::int32_t> row) {
      for (const std::int32_t expert : row) ++made[static_cast<std::size_t>(expert)];
    });
    return made;
  }
  // Rows that each rank gets in a step, those of the shared expert among them.
  std::vector<double> rank_rows(int step, const ExpertPlacement& placement) const {
    std::vector<double> made(static_cast<std::size_t>(o_.ranks));
    for_each_row(step, step + 1, [&](int source, std::span<const std::int32_t> row) {
      for (const std::int32_t expert : row) ++made[placement.slot_of(expert, source).rank];
      if (placement.shared > 0) ++made[placement.slot_of(placement.experts, source).rank];
    });
    return made;
  }

 private:
  template <class Visit>
  void for_each_row(int first, int last, Visit&& visit) const {
    const std::int64_t step = std::int64_t{o_.ranks} * o_.tokens;
    for (std::int64_t row = first * step; row < last * step; ++row)
      visit(static_cast<int>(row % step / o_.tokens), routing_.row(row % routing_.rows()));
  }

  const BalanceOptions& o_;
  const traces::Routing& routing_;
};

struct Outcome {
  std::vector<double> imbalance;  // of each step that counts
  std::vector<double> moved;      // at each renewal among them
};

class BalanceRows {
 public:
  BalanceRows(const BalanceOptions& o, const traces::Routing& routing)
      : o_(o),
        steps_(o, routing),
        experts_(routing.experts),
        top_k_(routing.top_k),
        shared_(shared_copies_of(o)),
        redundant_(o.redundant >= 0 ? o.redundant : reference::free_slots(o.ranks, experts_, shared_)),
        first_(std::ranges::max(o.renew)) {
    if (first_ >= o.steps)
      throw InputError(fmt::format("run balance: --steps {}: allowed: more than the longest --renew, {}",
                                   o.steps, first_));
  }

  // `tell` is called with each step that is done; false: nothing more is wanted, and the row is empty.
  using Tell = std::function<bool(int)>;
  Row row(int renew, const Tell& tell) const {
    const Outcome got = outcome(renew, tell);
    if (got.imbalance.empty()) return {};
    const Summary imbalance = summarise(got.imbalance);
    Row row{{"ranks", o_.ranks},
            {"experts", experts_},
            {"redundant", redundant_},
            {"renew", renew},
            {"steps", static_cast<std::int64_t>(got.imbalance.size())}};
    row.set("imbalance", to_row(imbalance)).set("hottest", hottest());
    if (!got.moved.empty()) {
      const double most = summarise(got.moved).mean;
      row.set("new_copies", most).set("load_MB", most * static_cast<double>(o_.weights.count) / 1e6);
    }
    return row;
  }

 private:
  Outcome outcome(int renew, const Tell& tell) const {
    Outcome made;
    ExpertPlacement placement = place(std::vector<double>(static_cast<std::size_t>(experts_), 1.0));
    for (int step = 0; step < o_.steps; ++step) {
      if (renew > 0 && step > 0 && step % renew == 0) {
        ExpertPlacement next = place(steps_.loads(step - renew, step));
        if (step >= first_) made.moved.push_back(static_cast<double>(reference::new_copies(placement, next)));
        placement = std::move(next);
      }
      if (step >= first_) made.imbalance.push_back(reference::imbalance(steps_.rank_rows(step, placement)));
      if (!tell(step + 1)) return {};
    }
    return made;
  }
  ExpertPlacement place(const std::vector<double>& loads) const {
    const double tokens = std::accumulate(loads.begin(), loads.end(), 0.0) / top_k_;
    return reference::place_by_load(o_.ranks, loads, redundant_, shared_, tokens);
  }
  // The load of the hottest expert over the mean, all steps that count together.
  double hottest() const { return reference::imbalance(steps_.loads(first_, o_.steps)); }

  const BalanceOptions& o_;
  Steps steps_;
  int experts_, top_k_, shared_, redundant_;
  int first_;
};

StudyResult run(const StudyContext& context, const BalanceOptions& options) {
  StudyResult result;
  result.input_files = options.inputs();
  const traces::Routing routing = make_routing(options, context.seed, context.given);
  const BalanceRows rows(options, routing);
  const std::int64_t taken = std::int64_t{options.ranks} * options.tokens * options.steps;
  if (routing.rows() < taken)
    result.notes.push_back(fmt::format(
        "the steps take {} rows of routing, but the trace has {}: its rows repeat", taken, routing.rows()));
  double done = 0;
  for (const int renew : options.renew) {
    const Row row = rows.row(renew, [&](int step) {
      const double all = static_cast<double>(options.renew.size());
      context.progress.update((done + step / static_cast<double>(options.steps)) / all, Time{}, 0);
      return context.interrupted == 0;
    });
    if (context.interrupted != 0) {
      result.complete = false;
      break;
    }
    context.finish_row(result, row);
    ++done;
  }
  return result;
}

constexpr std::array kBalanceFields{
    Field{"ranks", FieldType::integer, "dies that take part, one rank each", true}.as_condition(),
    Field{"experts", FieldType::integer, "routed experts"}.as_condition(),
    Field{"redundant", FieldType::integer, "further copies of them", true}.as_condition(),
    Field{"renew", FieldType::integer, "steps between placements by load; 0: none", true}.as_condition(),
    Field{"steps", FieldType::integer, "that count"},
    Field{"imbalance", FieldType::object, "rows of the fullest rank over the mean of all, over steps", true,
          kSummaryParts},
    Field{"hottest", FieldType::number, "load of the hottest expert over the mean of all", true},
    Field{"new_copies", FieldType::number, "most that a rank has to load at a renewal, on the average", true},
    Field{"load_MB", FieldType::number, "of their weights", true},
};

}  // namespace

const Study kBalanceStudy{
    .name = "balance",
    .summary = "how evenly experts load their ranks, and what renewing their placement gains",
    .fields = kBalanceFields,
    .options = options_of<BalanceOptions, run>,
    .coreless = true,
    .supernodes = true,
    .dies = false};

}  // namespace cm384::studies
