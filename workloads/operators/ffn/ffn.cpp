#include "workloads/operators/ffn/ffn.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <span>

#include "workloads/operators/gemm/four_bits.h"
#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/ffn_reference.h"
#include "workloads/operators/reference/quantise.h"

namespace cm384::operators {
namespace {

cm384_gemm_type type_of(const FfnSetting& setting) {
  return setting.bf16 ? CM384_GEMM_BF16 : CM384_GEMM_INT8;
}

}  // namespace

Ffn::Ffn(const FfnSetting& setting, std::uint64_t seed)
    : setting_(setting),
      gate_up_{seed, setting.expert_rows, 2 * setting.width, setting.hidden, type_of(setting), setting.int4},
      down_{seed + 1, setting.expert_rows, setting.hidden, setting.width, type_of(setting), setting.int4} {}

cm384_gemm Ffn::place_product(const Site& site, const reference::GemmCase& gemm) const {
  const std::vector<std::uint32_t> rows = setting_.int4 ? in_two_rows(gemm.group_rows) : gemm.group_rows;
  const GemmShape shape{rows,
                        gemm.n,
                        setting_.int4 ? gemm.k / 2 : gemm.k,
                        gemm.type,
                        static_cast<std::uint32_t>(site.cores.size()),
                        setting_.int4 ? four_bit_rates(site) : rates_of(site, gemm.type)};
  cm384_gemm made = place_whole_gemm(site.memory, gemm, shape, checked_tiling(shape), true, site.full);
  if (setting_.int4) become_four_bits(made);
  return made;
}

std::uint64_t Ffn::write_arguments(host::DeviceMemory& memory) const {
  if (setting_.bf16) return memory.put(cm384_ffn_bf16{arguments_, x_, scales_});
  if (!setting_.int4) return memory.put(arguments_);
  cm384_ffn_w4a8 made = four_bits_;
  made.network = arguments_;
  return memory.put(made);
}

void Ffn::place_four_bits(const Site& site) {
  const std::uint64_t rows = gate_up_.rows(), experts = setting_.expert_rows.size();
  four_bits_.x = site.memory.allocate_lines(rows * gate_up_.k);
  four_bits_.hidden_rows = site.memory.allocate_lines(rows * down_.k);
  four_bits_.gate_up_sums = site.memory.allocate_weights(experts * gate_up_.n * 4);
  four_bits_.down_sums = site.memory.allocate_weights(experts * down_.n * 4);
  if (site.full) return;
  runtime().mark_payload(four_bits_.x, rows * gate_up_.k);
  runtime().mark_payload(four_bits_.gate_up_sums, experts * gate_up_.n * 4);
  runtime().mark_payload(four_bits_.down_sums, experts * down_.n * 4);
}

void Ffn::lay_out_four_bits() {
  const auto put = [&](const cm384_gemm& gemm, const reference::GemmInputs& inputs, std::uint64_t sums_at) {
    const std::vector<float> sums = eight_times_sums(inputs.b, gemm.k);
    const std::vector<std::byte> weights = packed(inputs.b);
    write_b(runtime(), gemm, weights);
    runtime().put(gemm.channel_scales, std::span<const float>(inputs.channel_scales));
    runtime().put(sums_at, std::span<const float>(sums));
  };
  put(arguments_.gate_up, *gate_up_inputs_, four_bits_.gate_up_sums);
  put(arguments_.down, *down_inputs_, four_bits_.down_sums);
  runtime().copy_in(four_bits_.x, gate_up_inputs_->a);
  runtime().put(arguments_.gate_up.token_scales, std::span<const float>(gate_up_inputs_->token_scales));
}

void Ffn::lay_out(const Site& site) {
  arguments_.gate_up = place_product(site, gate_up_);
  arguments_.down = place_product(site, down_);
  if (setting_.int4) place_four_bits(site);
  arguments_.width = setting_.width;
  const std::uint64_t rows = setting_.bf16 && setting_.int8_rows ? gate_up_.rows() : 0;
  if (rows > 0) {
    x_ = site.memory.allocate_lines(rows * setting_.hidden);
    scales_ = site.memory.allocate_lines(rows * 4);
  }
  if (!site.full) {
    if (rows == 0) return;
    runtime().mark_payload(x_, rows * setting_.hidden);
    runtime().mark_payload(scales_, rows * 4);
    return;
  }
  if (setting_.drawn) {
    gate_up_drawn_ = draw_operands(gate_up_, *setting_.drawn);
    down_drawn_ = draw_operands(down_, {});
  }
  gate_up_inputs_ = gate_up_drawn_ ? round_operands(gate_up_, *gate_up_drawn_) : make_gemm_inputs(gate_up_);
  down_inputs_ = down_drawn_ ? round_operands(down_, *down_drawn_) : make_gemm_inputs(down_);
  if (setting_.int4) return lay_out_four_bits();
  if (rows > 0) {
    write_int8_rows();
    write_b(runtime(), arguments_.gate_up, gate_up_inputs_->b);
  } else {
    write_inputs(runtime(), arguments_.gate_up, *gate_up_inputs_);
  }
  write_inputs(runtime(), arguments_.down, *down_inputs_);
}

// What the reference multiplies is what these rows stand for; the kernel's own stay unset.
void Ffn::write_int8_rows() {
  const std::size_t rows = gate_up_.rows(), hidden = setting_.hidden;
  std::vector<std::int8_t> x(rows * hidden);
  std::vector<float> scales(rows);
  std::vector<std::uint16_t> row(hidden);
  std::vector<std::byte>& a = gate_up_inputs_->a;
  for (std::size_t r = 0; r < rows; ++r) {
    std::memcpy(row.data(), &a[r * hidden * 2], hidden * 2);
    const std::span out(&x[r * hidden], hidden);
    scales[r] = reference::quantise_row(row, out);
    for (std::size_t i = 0; i < hidden; ++i)
      row[i] = reference::to_bf16(static_cast<float>(out[i]) * scales[r]);
    std::memcpy(&a[r * hidden * 2], row.data(), hidden * 2);
  }
  runtime().put(x_, std::span<const std::int8_t>(x));
  runtime().put(scales_, std::span<const float>(scales));
}

Work Ffn::work() const {
  const double rows = static_cast<double>(gate_up_.rows()), hidden = setting_.hidden, width = setting_.width;
  const double element = setting_.bf16 ? 2 : 1, weight = setting_.int4 ? 0.5 : element;
  const double weights = weight * 3 * static_cast<double>(setting_.expert_rows.size()) * hidden * width;
  const double row = hidden * (setting_.int8_rows ? 3 : element + 2);
  return {6.0 * rows * hidden * width, !setting_.bf16, weights + rows * row, 3, weights};
}

std::string Ffn::size() const {
  return fmt::format("ffn {} x {} x {}{}", fmt::join(setting_.expert_rows, ","), setting_.hidden,
                     setting_.width,
                     setting_.int4   ? " w4a8"
                     : setting_.bf16 ? setting_.int8_rows ? " bf16 of int8 rows" : " bf16"
                                     : "");
}

std::vector<reference::StageAccuracy> Ffn::accuracy() const {
  if (!gate_up_drawn_) return {};
  const std::uint64_t rows = down_.rows();
  const auto gate_up = runtime().get<std::uint16_t>(arguments_.gate_up.c, rows * gate_up_.n),
             out = runtime().get<std::uint16_t>(arguments_.down.c, rows * down_.n);
  const auto activations = runtime().get<std::int8_t>(arguments_.down.a, rows * down_.k);
  const auto scales = runtime().get<float>(arguments_.down.token_scales, rows);
  return ffn_accuracy(gate_up_, *gate_up_drawn_, down_, *down_drawn_, {gate_up, activations, scales, out});
}

std::string Ffn::check() const {
  return (setting_.bf16 ? reference::compare_ffn_bf16 : reference::compare_ffn)(
      gate_up_, *gate_up_inputs_, down_, *down_inputs_,
      runtime().get<std::uint16_t>(arguments_.down.c, down_.rows() * down_.n));
}

}  // namespace cm384::operators
