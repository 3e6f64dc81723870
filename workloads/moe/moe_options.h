// Options and rows that the studies of the MoE operators share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workloads/frame/fields.h"
#include "workloads/frame/study.h"
#include "workloads/moe/combine.h"

namespace cm384::studies {

// Options of a case that are not given follow from its model, if it has one. Throws InputError.
template <class Case>
void follow_model_of(Case& setting, const Given& given) {
  if (setting.model.empty()) return;
  follow_model(hw::list_parameters(setting), given, setting.model,
               Case::of_model(model_of_experts(setting.model)));
}

// A case and the numbers of ranks it is run for, one row each.
template <class Case>
struct MoeOptions {
  Integers ranks{8};
  Case setting;
  bool kernel_time = false;
  bool free_fetch = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("ranks", self.ranks, Range{1, kMostRanks}, "ranks, one per die; one row each");
    Case::describe(self.setting, visit);
    visit(
        "measure", self.kernel_time, Either{"task", "kernel"},
        "latency_us of the whole task as the vendor's profiler reads it, or from first to last instruction");
    visit("beside", self.setting.beside.dies, Range{0, kMostRanks},
          "dies without a rank that copy to each other by SDMA meanwhile, evenly on the nodes of the ranks, "
          "each "
          "to another node: another tenant's bulk copy (ub.qos)");
    visit("beside-volume", self.setting.beside.volume, Range{256_KiB, 1_GiB},
          "that each of them copies per iteration", Needs{"beside", {}});
    visit(
        "across", self.setting.relay, Either{"direct", "relay"},
        "rows of a token to other supernodes: to each of its experts there, or once to the rank of the same "
        "number, which forwards them, and on the way back adds them up");
    visit("mode", self.setting.normal, Either{"low-latency", "normal"},
          "DeepEP's exchange, on machines without cores: a message per token and expert, or the normal one: "
          "a row "
          "once to each server and once to each of its GPUs");
    visit("tokens", self.setting.tokens, Range{1, 16384}, "per rank in mode normal",
          Needs{"mode", {"normal"}});
    visit("sms", self.setting.sms, Range{2, 4096},
          "compute units that mode normal uses: half send, half receive, forward and add up",
          Needs{"mode", {"normal"}});
    visit("free-fetch", self.free_fetch,
          "run each row a second time with instruction fetch free of charge, and show that time beside it");
  }
  void follow(const Given& given) { follow_model_of(setting, given); }
  std::vector<std::string> inputs() const { return model_files(setting.model); }
  void settle(const hw::Machine& machine) { setting.settle(machine); }
};

// Throws InputError for options that have no effect beside a routing trace, or without one.
void check_moe_options(const StudyContext& context, const DispatchCase& setting);
// The trace that the routing is read from, if it is one.
std::vector<std::string> routing_files(const std::string& routing);
// That file, and that of the model.
std::vector<std::string> files_of(const DispatchCase& setting);
// The batch of a row; null where ranks differ.
inline Value batch_of(const RoutedSetting& reading) {
  return reading.batch == 0 ? Value() : Value(reading.batch);
}
// Says in the result's notes what rows do not show: unlike ranks, and a routing trace that is shorter than
// what is taken from it.
void note_routing(StudyResult& result, const DispatchCase& setting, const RoutedSetting& reading);

// How one operator is shown.
struct OperatorRows {
  int element_bytes;                             // of what it sends
  std::string_view kernel;                       // whose phases the rows have
  Row more;                                      // columns of its own, the same in every row
  bool kernel_time = false, free_fetch = false;  // as MoeOptions
};
using MeasureOperator = std::function<DispatchReading(const StudyContext& context, int ranks,
                                                      SimulatorCounts& counts, double from, double to)>;

// The fields of an operator's rows.
extern const std::span<const Field> kOperatorFields;

// One row for each number of ranks.
StudyResult run_operator(const StudyContext& context, const Integers& ranks, const DispatchCase& setting,
                         const OperatorRows& rows, const MeasureOperator& measure);

// Calls `run` for each number of ranks, with its part of the study's work, until interrupted.
void for_each_ranks(const StudyContext& context, const Integers& ranks, StudyResult& result,
                    const std::function<void(int ranks, double from, double to)>& run);

}  // namespace cm384::studies
