// The references themselves: what is right passes, what is a little wrong does not. Values here come from
// plain loops or from cases whose result is known.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/gemm_reference.h"
#include "workloads/operators/reference/mla_reference.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/rows_reference.h"

namespace cm384::reference::comparisons_test {
namespace {

// BF16 has eight significant bits: by the exponent, without looking at any bits.
std::uint16_t rounded(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const auto kept = static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
  std::uint32_t bits = 0;
  std::memcpy(&bits, &kept, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

TEST(Bf16, TiesGoToEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(to_bf16(-1.0f - 0x1p-8f), 0xbf80);
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  for (int n = 1; n < 1000; ++n) {
    const float value = std::ldexp(static_cast<float>(n) * 1.37f, n % 40 - 20);
    EXPECT_EQ(to_bf16(value), rounded(value)) << value;
  }
}

TEST(Quantised, TiesGoToEven) {
  // The largest is 127, so that the factor is 1.
  const std::vector<float> row = {127, 0.5f, 1.5f, 2.5f, -0.5f, -2.5f, -126.5f};
  std::vector<std::int8_t> out(row.size());
  EXPECT_EQ(quantise_values(row, out), 1.0f);
  EXPECT_EQ(out, (std::vector<std::int8_t>{127, 0, 2, 2, 0, -2, -126}));
}

TEST(Quantised, RowsAreComparedToTheBit) {
  const RowCase c{RowOperation::quantise, 3, 64};
  const RowInputs inputs = make_row_inputs(c);
  RowOutputs out;
  out.integers.resize(c.elements());
  for (std::size_t row = 0; row < c.rows; ++row) {
    const std::size_t first = row * c.width;
    out.scales.push_back(quantise_row(std::span(inputs.x).subspan(first, c.width),
                                      std::span(out.integers).subspan(first, c.width)));
  }
  EXPECT_EQ(compare_rows(c, inputs, out), "");
  RowOutputs wrong = out;
  wrong.integers[130] = static_cast<std::int8_t>(wrong.integers[130] ^ 1);
  EXPECT_EQ(compare_rows(c, inputs, wrong).find("row 2 column 2: "), 0u);
  wrong = out;
  wrong.scales[1] = std::nextafter(wrong.scales[1], 1.0f);
  EXPECT_EQ(compare_rows(c, inputs, wrong).find("scale, row 1 "), 0u);
}

double element(const GemmCase& g, const std::vector<std::byte>& matrix, std::uint64_t at) {
  if (g.type == CM384_GEMM_INT8) return static_cast<std::int8_t>(matrix[at]);
  std::uint16_t bits = 0;
  std::memcpy(&bits, &matrix[at * 2], 2);
  return from_bf16(bits);
}

std::vector<std::uint16_t> product(const GemmCase& g, const GemmInputs& in) {
  std::vector<std::uint16_t> c(g.rows() * g.n);
  std::uint64_t first = 0;
  for (std::uint32_t group = 0; group < g.group_rows.size(); first += g.group_rows[group++]) {
    for (std::uint64_t row = first; row < first + g.group_rows[group]; ++row) {
      for (std::uint32_t n = 0; n < g.n; ++n) {
        const std::uint64_t column = std::uint64_t{group} * g.n + n;
        double sum = 0;
        for (std::uint32_t k = 0; k < g.k; ++k)
          sum += element(g, in.a, row * g.k + k) * element(g, in.b, column * g.k + k);
        if (g.type == CM384_GEMM_INT8)
          sum = static_cast<float>(sum) * in.channel_scales[column] * in.token_scales[row];
        c[row * g.n + n] = rounded(sum);
      }
    }
  }
  return c;
}

TEST(GemmReference, TakesWhatIsRightAndNamesWhatIsNot) {
  for (const cm384_gemm_type type : {CM384_GEMM_INT8, CM384_GEMM_BF16}) {
    const GemmCase g{3, {5, 0, 4}, 7, 40, type};
    const GemmInputs inputs = make_gemm_inputs(g);
    std::vector<std::uint16_t> c = product(g, inputs);
    EXPECT_EQ(compare_gemm(g, inputs, c), "");
    // Of INT8 one step of the last bit, of BF16 three, which are more than rounding explains; every element.
    for (std::size_t at = 0; at < c.size(); ++at) {
      const std::uint16_t right = c[at];
      c[at] = static_cast<std::uint16_t>(right + (type == CM384_GEMM_INT8 ? 1 : 3));
      // A small sum of large products may be off by more of its own size.
      const bool small = type == CM384_GEMM_BF16 && std::fabs(from_bf16(right)) < 0.0625f;
      EXPECT_TRUE(small || !compare_gemm(g, inputs, c).empty()) << at;
      c[at] = right;
    }
  }
}

// Queries of zero weigh all tokens alike: every output is a mean, of one token more for each query.
TEST(MlaReference, EachQuerySeesTheTokensBeforeIt) {
  const MlaCase mla{5, {3, 1}, 2, 2, 0.1f};
  MlaInputs in = make_mla_inputs(mla);
  for (auto& q : in.q) q = 0;
  std::vector<std::uint16_t> out(std::size_t{mla.batch()} * mla.queries * mla.heads * 512);
  const auto latent = [&](std::uint32_t sequence, std::uint32_t token, std::uint32_t channel) {
    const std::uint64_t page = in.page_table[sequence * mla.table_width() + token / 128];
    const std::uint64_t row = token % 128;
    return double{from_bf16(in.pages[page * 73'728 + (channel / 16 * 128 + row) * 16 + channel % 16])};
  };
  std::size_t at = 0;
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) {
    for (std::uint32_t query = 0; query < mla.queries; ++query) {
      for (std::uint32_t head = 0; head < mla.heads; ++head) {
        for (std::uint32_t c = 0; c < 512; ++c) {
          const std::uint32_t tokens = mla.kv_lens[sequence] + query;
          double sum = 0;
          for (std::uint32_t t = 0; t < tokens; ++t) sum += latent(sequence, t, c);
          out[at++] = rounded(sum / tokens);
        }
      }
    }
  }
  EXPECT_EQ(compare_mla(mla, in, out), "");
  // A step of the fifth bit is no rounding. The first query of the second sequence sees one token.
  const std::size_t wrong = std::size_t{2} * 2 * 512 + 17;
  out[wrong] = static_cast<std::uint16_t>(out[wrong] + 16);
  EXPECT_EQ(compare_mla(mla, in, out).find("sequence 1 query 0 head 0 element 17"), 0u);
}

}  // namespace
}  // namespace cm384::reference::comparisons_test
