#include "workloads/training/unit_train_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "workloads/collectives/transfer_collective.h"
#include "workloads/fabric/p2p_sdma.h"
#include "workloads/moe/normal_exchange_run.h"
#include "workloads/operators/attention/attention.h"

namespace cm384::studies {
namespace {

using training::Message;
using training::Operation;

constexpr double kBf16 = 2, kFp32 = 4;  // bytes
// Of attention: five products of queries and keys where the forward pass has two.
constexpr double kAttentionBackward = 2.5;
constexpr double kRowsAndGradients = 2;  // a gradient needs the row and the gradient behind it

// Nothing of it is measured.
OperatorTime closed_form(const Operation& of) {
  OperatorTime made;
  made.operation = of;
  made.share = 0;
  return made;
}

int servers_of(const training::Plan& plan, const hw::Machine& machine) {
  const int each = machine.topology.one_supernode().dies();
  if (plan.expert > each && plan.expert % each != 0)
    throw InputError(
        fmt::format("run train: --expert {}: does not fill servers of {}; allowed: up to {}, or a "
                    "multiple of {}",
                    plan.expert, each, each, each));
  return std::max(1, plan.expert / each);
}

// Products and attention have the units that exchanges leave them; memory is all of theirs.
hw::Machine with_units_left(hw::Machine machine, const training::Plan& plan) {
  if (plan.expert < 2) return machine;
  const double left = 1 - static_cast<double>(DispatchCase{}.sms) / machine.processor.units;
  if (left <= 0)
    throw InputError(fmt::format("processor.units: {}; allowed: more than the {} that exchange experts' rows",
                                 machine.processor.units, DispatchCase{}.sms));
  for (double* rate :
       {&machine.processor.bf16_tflops, &machine.processor.fp8_tflops, &machine.processor.int8_tops})
    *rate *= left;
  return machine;
}

}  // namespace

UnitTrainParts::UnitTrainParts(const StudyContext& context, const training::Plan& plan,
                               const TrainMeasures& measures, StudyResult& result)
    : TrainParts(context, plan, measures, result),
      computing_(with_units_left(one_, plan)),
      exchanging_(with_supernodes(context.machine, servers_of(plan, context.machine))),
      servers_(context.on(exchanging_)) {
  if (measures.fp8 && computing_.processor.fp8_tflops <= 0)
    throw InputError(
        fmt::format("run train: --products fp8: {} has none; allowed: bf16", context.machine.name));
}

double UnitTrainParts::time_of(double operations, double bytes, NumberFormat format, bool attention) const {
  UnitOperator made;
  made.work.operations = operations;
  made.work.bytes = bytes;
  made.format = format;
  made.attention = attention;
  return unit_time_of(made, computing_).task_us;
}

OperatorTime UnitTrainParts::product(const Operation& of) {
  OperatorTime made = closed_form(of);
  const bool fp8 = measures_.fp8 && of.of != Operation::Of::head && of.name != "gate's product";
  const double element = fp8 ? 1 : kBf16;
  // In FP8 operands are cast before, which moves so many bytes.
  const auto us = [&](std::int64_t m, std::int64_t n, std::int64_t k, double out, double cast) {
    const auto groups = static_cast<double>(of.groups), rows = static_cast<double>(m),
               columns = static_cast<double>(n), inner = static_cast<double>(k);
    const double bytes = groups * (element * inner * (rows + columns) + out * rows * columns);
    const double operations = 2 * groups * rows * columns * inner;
    if (!fp8) return time_of(operations, bytes, NumberFormat::bf16);
    return time_of(operations, bytes, NumberFormat::fp8) + time_of(0, cast, NumberFormat::fp8);
  };
  // Forward from BF16; a gradient by rows and by columns at once; what forward had, by columns.
  const auto groups = static_cast<double>(of.groups), input = groups * static_cast<double>(of.m * of.k),
             gradient = groups * static_cast<double>(of.m * of.n);
  made.forward = us(of.m, of.n, of.k, kBf16, (kBf16 + 1) * input);
  made.inputs = us(of.m, of.k, of.n, kBf16, (kBf16 + 2) * gradient);
  made.weights = us(of.k, of.n, of.m, kFp32, 2 * input);
  made.how = fmt::format("all three products in closed form, {}", fp8 ? "FP8 and casts" : "BF16");
  return made;
}

OperatorTime UnitTrainParts::rows(const models::Model& model, const Operation& of) {
  OperatorTime made = closed_form(of);
  double share = 1;
  const operators::Work work = operator_of(request_of(model, of, share))()->work();
  made.forward = time_of(work.operations / share, work.bytes / share, NumberFormat::bf16);
  made.inputs = kRowsAndGradients * made.forward;
  made.how = "in closed form, backward taken twice as long";
  return made;
}

OperatorTime UnitTrainParts::attention(const Operation& of) {
  OperatorTime made = closed_form(of);
  double share = 1;
  const operators::Work work =
      operators::FlashAttention(attention_case(of, (plan_.sequence + 15) / 16 * 16, share)).work();
  const double operations = work.operations / share, bytes = work.bytes / share;
  made.forward = time_of(operations, bytes, NumberFormat::bf16, true);
  made.inputs = time_of(kAttentionBackward * operations, 2 * bytes, NumberFormat::bf16, true);
  made.how = "in closed form, backward 2.5 times the operations";
  return made;
}

double UnitTrainParts::rows_us(const models::Model& model, ExchangeDirection direction) {
  const models::Experts experts = model.experts();
  DispatchCase setting;
  setting.ranks = plan_.expert;
  setting.normal = true;
  setting.top_k = static_cast<int>(experts.chosen);
  setting.experts = static_cast<int>(experts.routed);
  setting.hidden = static_cast<int>(model.hidden);
  setting.shared_copies = 0;
  setting.redundant = 0;
  setting.warmup = 0;
  if (experts.groups_chosen < experts.groups)
    setting.routing = fmt::format("groups:{}:{}", experts.groups, experts.groups_chosen);
  // About as many tokens in all as a simulation passes in some seconds.
  constexpr int kTokens = 8192;
  const double most = std::clamp(kTokens / plan_.expert, 32, 1024);
  const char* name = direction == ExchangeDirection::dispatch ? "dispatch" : "combine";
  const auto tokens = static_cast<double>(plan_.own_tokens());
  return in_proportion(
      fmt::format("{} of {} ranks, tokens", name, plan_.expert), tokens, most, 1, [&](std::int64_t some) {
        setting.tokens = static_cast<int>(some);
        const DispatchReading read = measure_normal(servers_, setting, direction, result_.simulator);
        interrupted_ = interrupted_ || read.task_us.count == 0;
        return read.task_us.mean;
      });
}

MessageTime UnitTrainParts::message(const models::Model& model, const Message& of) {
  const auto bytes = static_cast<double>(of.bytes);
  if (of.among == Message::Among::expert) {
    const ExchangeDirection direction =
        of.name == "dispatch" ? ExchangeDirection::dispatch : ExchangeDirection::combine;
    return {of, rows_us(model, direction),
            fmt::format("DeepEP's normal exchange by {} units, simulated", DispatchCase{}.sms)};
  }
  if (of.among == Message::Among::context)
    return {of, exchange_us(plan_.context, plan_.tensor, bytes), "simulated"};
  const bool gather = of.kind == Message::Kind::all_gather;
  const double us = collective_us(
      gather ? "all-gather" : "reduce-scatter",
      gather ? reference::CollectiveKind::all_gather : reference::CollectiveKind::reduce_scatter,
      plan_.tensor, bytes);
  return {of, us, "simulated"};
}

double UnitTrainParts::collective_us(const char* name, reference::CollectiveKind kind, int ranks,
                                     double bytes) {
  TransferCollectiveCase made;
  made.collective.kind = kind;
  made.collective.ranks = ranks;
  made.warmup = 0;
  const std::string what = fmt::format("{} of {} ranks", name, ranks);
  return in_proportion(what, bytes, 1 << 20, 512, [&](std::int64_t size) {
    made.collective.bytes = static_cast<std::uint64_t>(size);
    const auto read = run_transfer_collective(context_, what, made, result_.simulator);
    interrupted_ = interrupted_ || !read;
    return read ? read->task_us : 0;
  });
}

double UnitTrainParts::exchange_us(int ranks, int, double bytes) {
  if (ranks < 2 || bytes <= 0) return 0;
  return collective_us("exchange", reference::CollectiveKind::all_to_all, ranks, bytes);
}

double UnitTrainParts::send_us(double bytes, bool between_supernodes) {
  if (bytes <= 0) return 0;
  P2pPoint point;
  point.operation = "write";
  point.distance = between_supernodes ? "inter-supernode" : "intra-node";
  point.rdma = between_supernodes;
  const StudyContext& context = between_supernodes ? between_ : context_;
  const hw::Processor& processor = context.machine.processor;
  const double around = (processor.launch_latency + processor.end_latency).us();
  return around + in_proportion("copy " + point.distance, bytes, 4 << 20, 512, [&](std::int64_t size) {
           point.bytes = Bytes{size};
           const SdmaReading read = measure_transfer(context, point, result_.simulator);
           interrupted_ = interrupted_ || context.interrupted != 0;
           return read.latency_us;
         });
}

double UnitTrainParts::stream_us(double bytes) {
  return bytes <= 0 ? 0 : time_of(0, bytes, NumberFormat::bf16);
}

WorkTime UnitTrainParts::measure_order(const models::Model& model) {
  WorkTime made;
  if (plan_.expert < 2) return made;
  const double rows = static_cast<double>(plan_.own_tokens()) * static_cast<double>(model.experts().chosen) *
                      measures_.imbalance;
  const auto add = [&](const char* name, double element) {
    OperatorTime time;
    time.operation.name = name;
    time.operation.kind = Operation::Kind::rows;
    time.operation.of = Operation::Of::experts;
    time.share = 0;
    time.forward = time_of(0, 2 * element * rows * static_cast<double>(model.hidden), NumberFormat::bf16);
    time.inputs = time.forward;
    time.how = "in closed form, backward taken as long";
    made.operators.push_back(std::move(time));
  };
  add("rows to the order of experts", measures_.fp8 ? 1 : kBf16);
  add("outputs to the order of tokens", kBf16);
  return made;
}

}  // namespace cm384::studies
