#include "workloads/operators/attention/backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text/error.h"

namespace cm384::operators {

AttentionBackward::AttentionBackward(const reference::AttentionCase& attention) : case_(attention) {
  const auto refuse = [](const std::string& what) { throw InputError("attention-backward: " + what); };
  if (case_.length % 16 != 0)
    refuse(fmt::format("sequences of {} tokens; allowed: multiples of 16", case_.length));
  if (case_.kv_heads == 0 || case_.width != CM384_BACKWARD_HEAD)
    refuse(fmt::format("heads of {} elements; allowed: {}", case_.key(), CM384_BACKWARD_HEAD));
  if (case_.heads % case_.kv_heads != 0)
    refuse(fmt::format("{} KV heads; allowed: a divisor of {} heads", case_.kv_heads, case_.heads));
  if (case_.cached != 0 || case_.window != 0 || !case_.causal)
    refuse("allowed: a causal mask without a window, no cached tokens");
  case_.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(case_.key())));
}

// A tile of keys of a head is one block's; where there are fewer the other cores are left out.
std::vector<std::uint16_t> AttentionBackward::cores() const {
  const std::uint64_t tiles = (case_.length + CM384_BACKWARD_TILE - 1) / CM384_BACKWARD_TILE;
  std::vector<std::uint16_t> cores = site().cores;
  cores.resize(std::min<std::uint64_t>(cores.size(), std::uint64_t{case_.sequences} * case_.heads * tiles));
  return cores;
}

void AttentionBackward::lay_out(const Site& site) {
  const auto allocate = [&site](std::uint64_t bytes) { return site.memory.allocate(bytes, 4096); };
  cm384_flash_backward& a = arguments_;
  a.sequences = case_.sequences;
  a.heads = case_.heads;
  a.kv_heads = case_.kv_heads;
  a.length = case_.length;
  a.scale = case_.scale;
  const std::uint64_t bytes = rows() * case_.width * 2, kv_bytes = kv_rows() * case_.width * 2;
  // A tile's sums behind the last token are read, too.
  const std::uint64_t sums = (rows() + CM384_BACKWARD_TILE) * 4;
  a.q = allocate(bytes);
  a.k = allocate(kv_bytes);
  a.v = allocate(kv_bytes);
  a.out = allocate(bytes);
  a.gradient = allocate(bytes);
  a.sums = allocate(sums);
  a.rows = allocate(sums);
  a.added = allocate(2 * (bytes + 2 * kv_bytes));
  a.gradients = allocate(bytes + 2 * kv_bytes);
  a.workspace = allocate(std::uint64_t{CM384_BACKWARD_WORKSPACE} * site.cores.size());
  if (!site.full) {
    for (const std::uint64_t of : {a.q, a.out, a.gradient}) runtime().mark_payload(of, bytes);
    for (const std::uint64_t of : {a.k, a.v}) runtime().mark_payload(of, kv_bytes);
    runtime().mark_payload(a.sums, sums);
    return;
  }
  inputs_ = reference::make_backward_inputs(case_);
  const auto put = [&](std::uint64_t at, const auto& values) {
    runtime().put(at, std::span(values.data(), values.size()));
  };
  put(a.q, inputs_->forward.q);
  put(a.k, inputs_->forward.k);
  put(a.v, inputs_->forward.v);
  put(a.out, inputs_->out);
  put(a.gradient, inputs_->gradient);
  put(a.sums, inputs_->sums);
}

Work AttentionBackward::work() const {
  const double length = case_.length, heads = 1.0 * case_.sequences * case_.heads;
  const double pairs = length * (length + 1) / 2 * heads;
  // Scores and the gradient's products, and three gradients.
  const double operations = 5 * 2 * pairs * case_.width;
  const double bytes =
      2.0 * case_.width * (4.0 * static_cast<double>(rows()) + 4.0 * static_cast<double>(kv_rows()));
  return {operations, false, bytes, 1, 0, 0};
}

std::string AttentionBackward::size() const {
  return fmt::format("attention-backward {} x {} heads x {}, {} KV heads", case_.sequences, case_.heads,
                     case_.length, case_.kv_heads);
}

std::string AttentionBackward::check() const {
  return compare_backward(
      case_, *inputs_,
      runtime().get<std::uint16_t>(arguments_.gradients, (rows() + 2 * kv_rows()) * case_.width));
}

}  // namespace cm384::operators
