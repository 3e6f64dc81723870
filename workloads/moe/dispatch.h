// FusedDispatch by AIV-Direct over many ranks: one launch of kernel `dispatch` a rank and iteration.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/units.h"
#include "npu_core/die/launch.h"
#include "workloads/frame/confidence.h"
#include "workloads/frame/model_option.h"
#include "workloads/frame/study.h"
#include "workloads/moe/batches.h"
#include "workloads/moe/copies_beside.h"
#include "workloads/operators/reference/accuracy.h"

namespace cm384::supernode {
class Supernode;
}
namespace cm384::reference {
struct DispatchCase;
}

namespace cm384::studies {

void check_routing(std::string_view text);

// One row of `run dispatch`.
struct DispatchCase {
  int ranks = 8;
  std::string model{};  // that what is not given follows from; empty: none
  int batch = 128;
  std::string batches{};  // of unlike ranks, as batches.h reads it; empty: all have batch
  int top_k = 8;
  int experts = 256;
  int hidden = 7168;
  int shared_copies = -1;
  int redundant = -1;
  bool by_load = false;
  int expert_ranks = 0;
  int cores = 0;
  bool full_mesh = false;
  // Of these two, on machines without cores: DeepEP's normal exchange, of so many tokens by so many units.
  bool normal = false;
  int tokens = 4096, sms = 24;
  bool relay = false;  // of `run dispatch` and `run combine`: rows go to other supernodes once, by relays
  int warmup = 1;
  int iterations = 1;
  bool full = false;
  bool real_polling = false;
  std::string check_hazards = "auto";
  std::string placement = "linear";
  std::string routing = "uniform";
  bool drop_repeats = false;
  CopiesBesideSetting beside{};            // of `run dispatch` and `run combine`
  std::optional<reference::Draw> drawn{};  // with `full`: tokens, and networks between, are real numbers
  Time start_skew{};                       // ranks start at times drawn from [0, start_skew]
  bool reverse_modules = false;  // dies become modules in the opposite order, which must change nothing
  // Called with the machine before its first launch: where faults and observers are attached.
  std::function<void(supernode::Supernode&)> prepare;

  // Everything but the ranks.
  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit(
        "model", self.model, Form{"NAME|FILE"},
        "language model that experts, experts-per-token, hidden and what else is not given follow from: one "
        "of `cm384 model list`, a config.json or a TOML");
    visit("batch", self.batch, Range{1, kMostTokensOfRank}, "tokens per rank");
    visit("batches", self.batches, Form{"uniform:LOW..HIGH|N,N,..|file:FILE", check_batches},
          "unlike ranks instead of --batch: tokens of each, drawn evenly, or numbers in the order of ranks, "
          "which start over at their end");
    visit("experts-per-token", self.top_k, Range{1, 16}, "routed experts per token", Alias{"top-k"});
    visit("experts", self.experts, Range{1, 1024}, "logical routed experts");
    visit("hidden", self.hidden, Range{32, 16384, 32}, "elements of a token");
    visit("shared-copies", self.shared_copies, Range{-1, 256},
          "ranks that hold the shared expert, the ninth message of every token; -1: 32 at 320 ranks, "
          "otherwise none");
    visit("redundant", self.redundant, Range{-1, 1024},
          "further copies of routed experts; -1: as many as fill the slots of all ranks");
    visit(
        "balance", self.by_load, Either{"even", "eplb"},
        "experts on ranks in order, or copied and packed by the load that another draw of the routing shows");
    visit("expert-ranks", self.expert_ranks, Range{0, kMostRanks - 1},
          "the last so many ranks hold all experts and have no tokens, the others have tokens and no "
          "experts; 0: "
          "every rank has both");
    visit("cores", self.cores, Range{0, 64}, "AIVs per rank; 0: all of the die");
    visit("iterations", self.iterations, Range{1, 1000}, "iterations that count");
    visit("warmup", self.warmup, Range{0, 1000}, "iterations before them that do not count");
    visit("payload", self.full, Either{"control", "full"},
          "full moves every byte and compares it with the host's reference; control moves flags, counts and "
          "ids");
    visit("routing", self.routing, Form{"uniform|zipf:S|groups:N:M|trace:FILE", check_routing},
          "which experts tokens choose; a trace also sets experts-per-token and experts");
    visit("drop-repeats", self.drop_repeats, "leave out rows of a routing trace that equal the row before");
    visit("placement", self.placement, Form{"POLICY"},
          "ranks on dies: linear, strided, random, or a list of dies");
    visit("variant", self.full_mesh, Either{"status", "full-mesh"},
          "dispatch with flags and counts after a barrier, or with flags inside the rows' 512 B blocks");
    visit("start-skew", self.start_skew, Range{Time{}, 1_s}, "ranks start at random times up to this apart");
    visit("real-polling", self.real_polling,
          "run every turn of polling loops instead of skipping those that find nothing");
    visit("check-hazards", self.check_hazards, OneOf{{"auto", "on", "off"}},
          "end with a report where pipes touch the UBuffer without a flag that orders them; auto: with "
          "--payload full");
  }
  void settle(const hw::Machine& machine) { all_if_zero(cores, machine.die.aiv); }
  // Ranks that hold experts, behind `token_ranks()`, which have the tokens; all have both where there are
  // none.
  int holders() const { return expert_ranks == 0 ? ranks : expert_ranks; }
  int token_ranks() const { return ranks - holders(); }
  // What follows from a model. A routing trace has experts of its own, which have to be as many.
  static OptionValues of_model(const models::Model& model);
};

// A case with what it leaves to the machine.
template <class Case>
Case settled(Case setting, const hw::Machine& machine) {
  setting.settle(machine);
  return setting;
}

// Whether hazards are looked for, as --check-hazards says.
bool checks_hazards(const DispatchCase& setting);

// What a setting came to: a trace sets experts and how many a token has.
struct RoutedSetting {
  int batch = 0;          // tokens of each of them; 0: they are unlike
  int token_ranks = 0;    // that have tokens
  double mean_batch = 0;  // over these
  int top_k = 0, experts = 0;
  std::int64_t routing_rows = 0;  // that the ranks take of the routing
  std::int64_t trace_rows = 0;    // of the routing trace; 0: none
};
RoutedSetting routed_setting(const reference::DispatchCase& layer);

struct DispatchReading : RoutedSetting {
  Summary task_us;  // over ranks and counted iterations
  Summary kernel_us;
  std::vector<double> phase_us;          // mean of a core's time in each phase of the kernel
  double fetch_stall_us = 0;             // mean of a core's wait for instructions
  std::uint64_t code_bytes = 0;          // of the kernel's image
  std::optional<bool> correct;           // payload mode full only
  std::string first_difference;          // where `correct` is false
  std::uint64_t digest = 0;              // of all that dispatch delivered, with `correct`
  std::vector<npu::LaunchRecord> tasks;  // of counted iterations, in each one of all ranks in order
  double counted_MB = 0;                 // of a rank: what published bandwidths of the normal exchange count
  std::optional<double> rdma_MB;         // that a rank writes over the RDMA plane in an iteration
  std::optional<double> beside_GBps;     // of a die that copies beside it
  bool beside_covered = true;            // these dies copied all the time
  std::uint64_t skipped_polls = 0;       // turns of polling loops left out, with their requests
};

// Runs the case on a machine of its own, counters added to `counts`. [progress_from, progress_to] is its part
// of the study's work.
DispatchReading measure_dispatch(const StudyContext& context, const DispatchCase& setting,
                                 SimulatorCounts& counts, double progress_from = 0, double progress_to = 1);

}  // namespace cm384::studies
