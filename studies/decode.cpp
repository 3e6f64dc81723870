// `cm384 run decode`.
#include "studies/decode.h"

#include <fmt/format.h>

#include <array>

#include "hw/error.h"
#include "operators/reference/expert_placement.h"
#include "studies/decode_parts.h"
#include "studies/studies.h"

namespace cm384::studies {

DecodeMemory memory_of(const DecodeOptions& options, int shared_copies) {
  const LayerOptions& o = options.layer;
  const double hidden = o.hidden, heads = o.heads, q_lora = o.q_lora, element = o.int8 ? 1 : 2;
  const double layers = options.dense_layers + options.moe_layers + o.mtp;
  const double attention = element * (hidden * (q_lora + 576) + q_lora * heads * 192 + heads * 128 * hidden) +
                           2 * 2 * heads * 128 * 512;
  const reference::ExpertPlacement placement = reference::place_experts(o.ranks, o.experts, shared_copies);
  const double experts = 3.0 * placement.local_experts * hidden * o.width;
  DecodeMemory memory;
  memory.weights = layers * attention + (options.moe_layers + o.mtp) * experts +
                   3.0 * options.dense_layers * hidden * options.dense_width +
                   2 * 2 * hidden * options.vocabulary;
  memory.request = layers * o.kv * 2.0 * 576;
  memory.cache = memory.request * o.batch / 2;
  return memory;
}

namespace {

void check_memory(const StudyContext& context, const DecodeOptions& options, int shared_copies) {
  const DecodeMemory memory = memory_of(options, shared_copies);
  const double room = static_cast<double>(context.machine.memory.hbm.capacity.count);
  if (memory.weights > room)
    throw InputError(fmt::format("run decode: --ranks {}: weights of {:.1f} GB do not fit a die's {:.1f} GB",
                                 options.layer.ranks, memory.weights / 1e9, room / 1e9));
  if (memory.weights + memory.cache > room)
    throw InputError(
        fmt::format("run decode: --batch {} --kv {}: {:.1f} GB of weights and {:.1f} GB of cache do not fit "
                    "a die's {:.1f} GB; {} "
                    "requests an NPU would",
                    options.layer.batch, options.layer.kv, memory.weights / 1e9, memory.cache / 1e9,
                    room / 1e9, 2 * static_cast<int>((room - memory.weights) / memory.request)));
}

StudyResult run(const StudyContext& context, const DecodeOptions& options) {
  StudyResult result;
  const LayerOptions& o = options.layer;
  const LayerSetting setting = layer_setting(context, o);
  check_memory(context, options, setting.moe.shared_copies);
  if (o.mtp == 0 && context.given.contains("acceptance"))
    throw InputError("run decode: --acceptance: has an effect only with --mtp 1");
  const auto parts = decode_parts(context, options, result);
  if (!parts) {
    result.complete = false;
    return result;
  }
  const bool by_cpu = options.launch == "cpu";
  const double graphs = 1 + o.mtp;
  struct Line {
    const char* part;
    double count, each_us;
  };
  const std::array lines{
      Line{"dense layers", 1.0 * options.dense_layers, parts->dense_attention + parts->dense_network},
      Line{"first MoE layer", 1, parts->first_layer},
      Line{"MoE layers", options.moe_layers - 1.0, parts->layer},
      Line{"head", 1, parts->head},
      Line{"MTP layer", 1.0 * o.mtp, parts->mtp_projection + parts->first_layer},
      Line{"MTP head", 1.0 * o.mtp, parts->mtp_head},
      Line{"launch", by_cpu ? graphs : 0, options.graph_launch.us()},
  };
  double step = 0;
  for (const Line& line : lines) step += line.count * line.each_us;
  const double tokens = 1 + options.acceptance * o.mtp, tpot_ms = step / tokens / 1000;
  const auto row = [&](const char* part) {
    return Row{{"ranks", o.ranks}, {"batch", o.batch}, {"kv", o.kv}, {"mtp", o.mtp}, {"part", part}};
  };
  for (const Line& line : lines) {
    if (line.count == 0) continue;
    Row made = row(line.part);
    made.set("count", static_cast<std::int64_t>(line.count)).set("each_us", line.each_us);
    made.set("total_ms", line.count * line.each_us / 1000).set("share", line.count * line.each_us / step);
    context.finish_row(result, std::move(made));
  }
  Row whole = row("step");
  whole.set("count", 1).set("each_us", step).set("total_ms", step / 1000).set("share", 1.0);
  whole.set("tpot_ms", tpot_ms).set("tokens_per_second", o.batch * 1000 / tpot_ms);
  whole.set("attention_half_us", parts->attention_half).set("experts_half_us", parts->experts_half);
  const double dispatches = static_cast<double>(o.microbatches) * (options.moe_layers + o.mtp);
  whole.set("dispatch_share", dispatches * parts->dispatch / step);
  context.finish_row(result, std::move(whole));
  return result;
}

constexpr std::array kFields{
    Field{"ranks", FieldType::integer, "dies that take part, one rank each", true},
    Field{"batch", FieldType::integer, "requests per NPU of two dies", true},
    Field{"kv", FieldType::integer, "mean tokens of a request in the cache", true},
    Field{"mtp", FieldType::integer, "tokens predicted beyond the next one"},
    Field{"part", FieldType::text, "of the step; the last row is the whole step", true},
    Field{"count", FieldType::integer, "how many of it", true},
    Field{"each_us", FieldType::number, "of one", true},
    Field{"total_ms", FieldType::number, "of all", true},
    Field{"share", FieldType::ratio, "of the step", true},
    Field{"tpot_ms", FieldType::number, "time per output token: the step over 1 + acceptance", true},
    Field{"tokens_per_second", FieldType::number, "per NPU: batch over tpot_ms", true},
    Field{"attention_half_us", FieldType::number, "of a microbatch and layer: prolog to output projection"},
    Field{"experts_half_us", FieldType::number, "of a microbatch and layer: norm and gate to combine"},
    Field{"dispatch_share", FieldType::ratio, "of all dispatches, one after another, in the step"},
};

}  // namespace

const Study kDecodeStudy{"decode", "a decode step and the time per output token", kFields,
                         options_of<DecodeOptions, run>};

}  // namespace cm384::studies
