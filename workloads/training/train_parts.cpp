#include "workloads/training/train_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "base/text/error.h"
#include "firmware/abi/tokens.h"
#include "workloads/collectives/exchange.h"
#include "workloads/fabric/copies.h"
#include "workloads/kernels/op_cases.h"
#include "workloads/layer/alone.h"
#include "workloads/moe/moe_case.h"
#include "workloads/operators/all_to_all/step.h"
#include "workloads/operators/attention/attention.h"
#include "workloads/operators/attention/backward.h"
#include "workloads/training/unit_train_parts.h"

namespace cm384::studies {
namespace {

using training::Message;
using training::Operation;

// Elements of a head that the kernel of attention's backward pass is for.
constexpr std::int64_t kBackwardHead = 128;
// Heads of an attention that is measured: so many that each core has several tiles.
constexpr std::int64_t kHeads = 8;
// A gradient of a row needs the row and the gradient behind it.
constexpr double kRowsBackward = 2;

std::uint32_t number(std::int64_t value) {
  return static_cast<std::uint32_t>(value);
}

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The largest part of `all` of at most `most`, in multiples of `unit`, of which there are whole ones or
// almost.
std::int64_t piece_of(std::int64_t all, std::int64_t most, std::int64_t unit) {
  const std::int64_t pieces = (all + most - 1) / most;
  return rounded_up((all + pieces - 1) / pieces, unit);
}

}  // namespace

hw::Machine with_supernodes(hw::Machine machine, int supernodes) {
  machine.topology = machine.topology.one_supernode();
  machine.topology.supernodes = supernodes;
  return machine;
}

TrainParts::TrainParts(const StudyContext& context, const training::Plan& plan, const TrainMeasures& measures,
                       StudyResult& result)
    : one_(with_supernodes(context.machine, 1)),
      two_(with_supernodes(context.machine, 2)),
      context_(context.on(one_)),
      between_(context.on(two_)),
      plan_(plan),
      measures_(measures),
      result_(result) {}

double TrainParts::product_us(std::int64_t groups, std::int64_t m, std::int64_t n, std::int64_t k,
                              bool weights, double& share) {
  const std::int64_t rows = measures_.rows;
  // Of a gradient of weights the tokens are what is summed up.
  const std::int64_t some_m = weights ? piece_of(m, 4096, 1) : piece_of(m, rows, 1);
  const std::int64_t some_k = weights ? piece_of(k, rows, 1) : piece_of(k, 32768, 1);
  const std::int64_t some_n = piece_of(n, 16384, 8);
  const std::int64_t most_groups =
      std::max<std::int64_t>(1, rows / std::max<std::int64_t>(1, weights ? some_k : some_m));
  const std::int64_t some_groups = std::min(groups, std::min<std::int64_t>(most_groups, 8));
  const auto of = [](std::int64_t part, std::int64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  };
  share = of(some_groups, groups) * of(some_m, m) * of(some_n, n) * of(some_k, k);
  const std::string what =
      fmt::format("product {}x{}x{}x{}{}", some_groups, some_m, some_n, some_k, weights ? " nd" : "");
  return once(what,
              [&] {
                Alone alone(context_, result_, 0);
                const double us = alone.product(static_cast<int>(some_groups), static_cast<int>(some_m),
                                                static_cast<int>(some_n), static_cast<int>(some_k), "bf16",
                                                weights ? "nd" : "nz");
                interrupted_ = interrupted_ || alone.interrupted();
                return us;
              }) /
         share;
}

OperatorTime TrainParts::product(const Operation& of) {
  OperatorTime made{.operation = of};
  double share = 1;
  made.forward = product_us(of.groups, of.m, of.n, of.k, false, made.share);
  made.inputs = product_us(of.groups, of.m, of.k, of.n, false, share);
  made.share = std::min(made.share, share);
  made.weights = product_us(of.groups, of.k, of.n, of.m, true, share);
  made.share = std::min(made.share, share);
  made.how = "all three products measured";
  return made;
}

OpRequest TrainParts::request_of(const models::Model& model, const Operation& of, double& share) const {
  OpRequest request{.name = of.operation, .shape = {}};
  std::int64_t rows = of.rows, width = of.width;
  if (of.operation == "rope") {
    // In so many parts of a token as the kernel needs.
    std::int64_t parts = 1;
    width = rounded_up(width, 2);
    while (width % (2 * parts) != 0 || width / parts > std::int64_t{CM384_ROPE_HEADS}) ++parts;
    rows *= parts;
    width /= parts;
  } else if (of.operation == "swiglu") {
    // Its elements are each other's equals: a long row is several.
    std::int64_t parts = 1;
    while (width % (128 * parts) != 0 ? width > 128 * parts : width / parts > 8192) ++parts;
    rows *= parts;
    width = rounded_up(width / parts, 128);
  } else if (of.operation != "gate" && of.operation != "head-norm") {
    width = rounded_up(width, 64);
  }
  const std::int64_t some = std::min<std::int64_t>(rows, measures_.rows);
  request.shape = fmt::format("{}x{}", some, width);
  if (of.operation == "head-norm") {
    const std::int64_t each = of.attention.key_width;
    request.shape = fmt::format("{}x{}", some * (width / each), each);
  }
  if (of.operation == "gate") {
    const models::Experts& experts = model.experts();
    if (experts.gate == "softmax") request.name = "softmax-gate";
    const bool limited = experts.groups_chosen < experts.groups;
    request.shape +=
        fmt::format("x{}x{}x{}", experts.chosen, limited ? experts.routed / experts.groups : experts.routed,
                    limited ? experts.groups_chosen : 1);
  }
  share = static_cast<double>(some) / static_cast<double>(rows);
  return request;
}

OperatorTime TrainParts::rows(const models::Model& model, const Operation& of) {
  OperatorTime made{.operation = of};
  const OpRequest request = request_of(model, of, made.share);
  made.forward = once(request.name + " " + request.shape,
                      [&] {
                        Alone alone(context_, result_, 0);
                        const double us = alone.one(request);
                        interrupted_ = interrupted_ || alone.interrupted();
                        return us;
                      }) /
                 made.share;
  made.inputs = kRowsBackward * made.forward;
  made.how = "forward measured, backward taken twice as long";
  return made;
}

reference::AttentionCase TrainParts::attention_case(const Operation& of, std::int64_t length,
                                                    double& share) const {
  const models::Attention& whole = of.attention;
  reference::AttentionCase some{.seed = context_.seed, .length = number(length)};
  if (of.kv_heads > 0) {
    const std::int64_t each = of.heads / of.kv_heads;
    some.kv_heads = number(std::clamp<std::int64_t>(kHeads / each, 1, of.kv_heads));
    some.heads = number(some.kv_heads * each);
    some.width = number(whole.key_width);
    if (whole.kind == models::AttentionKind::sliding && whole.window < length)
      some.window = number(whole.window);
    some.sinks = whole.sink_scores;
  } else {
    some.heads = number(std::min(of.heads, kHeads));
  }
  const auto pairs = [&](std::int64_t tokens) {
    return training::causal_tokens(whole, static_cast<double>(tokens)) * static_cast<double>(tokens);
  };
  share = some.heads * pairs(length) /
          (static_cast<double>(of.heads * of.sequences) * pairs(plan_.sequence) * of.share);
  return some;
}

OperatorTime TrainParts::attention(const Operation& of) {
  const std::int64_t length = rounded_up(std::min<std::int64_t>(plan_.sequence, measures_.rows), 16);
  OperatorTime made{.operation = of};
  const reference::AttentionCase some = attention_case(of, length, made.share);
  made.forward = attention_us(some, false) / made.share;
  if (some.kv_heads > 0 && some.width == kBackwardHead && some.window == 0 && !some.sinks) {
    made.inputs = attention_us(some, true) / made.share;
    made.how = "forward and backward measured";
    return made;
  }
  // No kernel goes backward: as much longer than forward as with heads of 128.
  const reference::AttentionCase other{.seed = context_.seed,
                                       .heads = number(kHeads),
                                       .length = number(length),
                                       .kv_heads = number(kHeads),
                                       .width = number(kBackwardHead)};
  made.inputs = made.forward * attention_us(other, true) / std::max(1e-9, attention_us(other, false));
  made.how = "forward measured, backward as much longer as with heads of 128";
  return made;
}

double TrainParts::attention_us(const reference::AttentionCase& of, bool backward) {
  return once(fmt::format("attention{} {}x{}x{}x{}x{}{}", backward ? " backward" : "", of.heads, of.kv_heads,
                          of.width, of.length, of.window, of.sinks ? " with sinks" : ""),
              [&] {
                Alone alone(context_, result_, 0);
                const double us =
                    backward ? alone.one("attention, backward",
                                         [of] { return std::make_unique<operators::AttentionBackward>(of); })
                             : alone.one("attention",
                                         [of] { return std::make_unique<operators::FlashAttention>(of); });
                interrupted_ = interrupted_ || alone.interrupted();
                return us;
              });
}

double TrainParts::exchange_us(int ranks, int stride, double bytes) {
  if (ranks < 2 || bytes <= 0) return 0;
  // Of more dies than a simulation has in seconds so many, of which each sends as much.
  constexpr int kDies = 64;
  const int some = std::min(ranks, kDies), apart = std::clamp(kDies / some, 1, stride);
  const double each = bytes * (ranks - 1) / (some - 1);
  // About as many packets in all as a simulation passes in a second.
  constexpr double kBytes = 16e6;
  const int dies = some * apart;
  const double most = std::floor(std::max(4096.0, kBytes / dies / (some - 1)) / 1024) * 1024;
  const std::string what = fmt::format("exchange of {} ranks, {} apart", some, apart);
  return in_proportion(what, each, most, 512, [&](std::int64_t size) {
    ExchangeCase exchange = ExchangeCase::even(dies, 0);
    for (int from = 0; from < dies; ++from) {
      for (int to = from % apart; to < dies; to += apart) {
        if (to != from)
          exchange.bytes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] =
              static_cast<std::uint64_t>(size);
      }
    }
    const Summary read = measure_exchange(context_, what, exchange, result_.simulator);
    interrupted_ = interrupted_ || read.count == 0;
    return read.max;
  });
}

double TrainParts::scatter_us(int ranks, int stride, double bytes) {
  const training::Levels levels = training::levels_of(ranks, stride, one_.topology.dies());
  const double inside = exchange_us(levels.inside, stride, bytes / levels.inside);
  const double outside = bytes / levels.inside * (levels.outside - 1) / levels.outside;
  return inside + (levels.outside > 1 ? send_us(outside, true) : 0);
}

double TrainParts::send_us(double bytes, bool between_supernodes) {
  if (bytes <= 0) return 0;
  CopiesPoint point;
  point.peer = between_supernodes ? "inter-supernode" : "inter-node";
  point.rdma = between_supernodes;
  const StudyContext& context = between_supernodes ? between_ : context_;
  const hw::Topology& topology = context.machine.topology;
  if (!between_supernodes && topology.nodes < 2) point.peer = "intra-node";
  // All dies of a node send.
  point.pairs = std::min(topology.dies_per_node, most_pairs(point, topology));
  const double most = 4 << 20;
  return in_proportion("copy " + point.peer, bytes, most, 512, [&](std::int64_t size) {
    point.volume = Bytes{size};
    point.blocks = {Bytes{size}};
    const auto read = measure_copies(context, point, result_.simulator);
    interrupted_ = interrupted_ || !read;
    return read ? *std::ranges::max_element(read->block_us) : 0;
  });
}

double TrainParts::stream_us(double bytes) {
  if (bytes <= 0) return 0;
  constexpr std::int64_t kRows = 1024, kWidth = 4096;  // two are read, one is written, in BF16
  const double us = once("stream", [&] {
    Alone alone(context_, result_, 0);
    const double taken = alone.row_operator("add", kRows, kWidth);
    interrupted_ = interrupted_ || alone.interrupted();
    return taken;
  });
  return us * bytes / (3 * 2 * kRows * kWidth);
}

double TrainParts::collective_us(const Message& message) {
  const auto bytes = static_cast<double>(message.bytes);
  switch (message.among) {
    case Message::Among::context:
      return exchange_us(plan_.context, plan_.tensor, bytes);
    case Message::Among::expert: {
      // What is for another supernode passes the RDMA plane meanwhile.
      const training::Levels levels = training::levels_of(plan_.expert, 1, one_.topology.dies());
      const double inside = exchange_us(levels.inside, 1, bytes);
      if (levels.outside == 1) return inside;
      return std::max(inside, send_us(bytes * levels.inside * (levels.outside - 1), true));
    }
    case Message::Among::tensor:
      break;
  }
  // By vector cores, which add on the way.
  const char* name = message.kind == Message::Kind::all_gather ? "all-gather" : "reduce-scatter";
  return in_proportion(
      fmt::format("{} of {} ranks", name, plan_.tensor), bytes, 1 << 20, 512, [&](std::int64_t size) {
        OpRequest request{.name = name, .shape = fmt::format("{}x{}", plan_.tensor, size)};
        request.graph = true;
        OpSetting setting;
        setting.graph = true;
        setting.warmup = 0;
        setting.groups = one_.die.groups();
        const auto read =
            run_collective(context_, request.name + " " + request.shape, setting,
                           collective_of(request, 2 * setting.groups, false, one_), result_.simulator);
        interrupted_ = interrupted_ || !read;
        return read ? read->task_us : 0;
      });
}

MessageTime TrainParts::message(const models::Model&, const Message& of) {
  const bool leaves = of.among == Message::Among::expert &&
                      training::levels_of(plan_.expert, 1, one_.topology.dies()).outside > 1;
  return {of, collective_us(of),
          leaves ? "simulated within a supernode, and beside it at the rate of simulated copies between two"
                 : "simulated"};
}

WorkTime TrainParts::measure(const models::Model& model, const training::Work& work) {
  WorkTime made;
  for (const Operation& of : work.operations) {
    switch (of.kind) {
      case Operation::Kind::product:
        made.operators.push_back(product(of));
        break;
      case Operation::Kind::rows:
        made.operators.push_back(rows(model, of));
        break;
      case Operation::Kind::attention:
        made.operators.push_back(attention(of));
        break;
    }
  }
  for (const Message& of : work.messages) made.messages.push_back(message(model, of));
  return made;
}

WorkTime TrainParts::measure_order(const models::Model& model) {
  WorkTime made;
  if (plan_.expert < 2) return made;
  const models::Experts experts = model.experts();
  const auto tokens = plan_.own_tokens();
  const auto some = static_cast<int>(std::min<std::int64_t>(tokens, 256));
  DispatchCase setting;
  setting.ranks = std::min(plan_.expert, one_.topology.dies());
  setting.batch = some;
  setting.top_k = static_cast<int>(experts.chosen);
  setting.experts = static_cast<int>(experts.routed);
  setting.hidden = static_cast<int>(model.hidden);
  setting.shared_copies = 0;
  setting.redundant = 0;
  setting.cores = one_.die.aiv;
  const reference::DispatchCase layer = make_moe_case(context_.seed, setting);
  const auto add = [&](const char* name, cm384_all_to_all_step step) {
    OperatorTime time;
    time.operation.name = name;
    time.operation.kind = Operation::Kind::rows;
    time.operation.of = Operation::Of::experts;
    time.share = static_cast<double>(some) / static_cast<double>(tokens);
    time.forward = once(fmt::format("order of rows, step {}", static_cast<int>(step)),
                        [&] {
                          Alone alone(context_, result_, 0);
                          const double us = alone.one(name, [&layer, step] {
                            return std::make_unique<operators::AllToAllStep>(step, layer, 0);
                          });
                          interrupted_ = interrupted_ || alone.interrupted();
                          return us;
                        }) /
                   time.share;
    // Backward the same rows go the other way.
    time.inputs = time.forward;
    time.how = "forward measured, backward taken as long";
    made.operators.push_back(std::move(time));
  };
  add("rows to the order of ranks", CM384_STEP_PACK);
  add("rows to the order of experts", CM384_STEP_UNSORT);
  add("outputs to the order of ranks", CM384_STEP_UNSORT);
  add("weighted sum", CM384_STEP_SUM);
  return made;
}

std::unique_ptr<TrainParts> make_train_parts(const StudyContext& context, const training::Plan& plan,
                                             const TrainMeasures& measures, StudyResult& result) {
  if (!context.machine.accelerator.has_cores())
    return std::make_unique<UnitTrainParts>(context, plan, measures, result);
  if (measures.fp8) throw InputError("run train: --products fp8: the cube cores have no FP8; allowed: bf16");
  return std::make_unique<TrainParts>(context, plan, measures, result);
}

}  // namespace cm384::studies
