// How exact INT8 and BF16 are on drawn tensors, against closed forms: a step of 1 / 127 of the largest
// magnitude has a variance of its square over 12, so that the signal to noise ratio is 52.9 dB less the crest
// factor's 20 log10, and noises of two operands add.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/text/error.h"
#include "workloads/operators/reference/product_accuracy.h"

namespace cm384::reference::accuracy_test {
namespace {

using ::testing::HasSubstr;

constexpr double kInt8 = 52.87;  // dB: 20 log10(127 sqrt(12))

double decibels(double ratio) {
  return 10 * std::log10(ratio);
}
// Of noises that add, each given as a signal to noise ratio.
double added(std::initializer_list<double> ratios) {
  double noise = 0;
  for (const double ratio : ratios) noise += std::pow(10, -ratio / 10);
  return -decibels(noise);
}
double of_crest(double crest) {
  return kInt8 - 20 * std::log10(crest);
}

double power(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += double{v} * v;
  return sum / static_cast<double>(values.size());
}
double kurtosis(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += std::pow(double{v}, 4);
  return sum / static_cast<double>(values.size()) / std::pow(power(values), 2);
}

TEST(Accuracy, DrawsAreNamed) {
  EXPECT_EQ(parse_draw("normal").kind, Draw::Kind::normal);
  EXPECT_EQ(parse_draw("laplace").kind, Draw::Kind::laplace);
  const Draw outliers = parse_draw("outliers:7:100");
  EXPECT_EQ(outliers.kind, Draw::Kind::outliers);
  EXPECT_EQ(outliers.channels, 7);
  EXPECT_EQ(outliers.factor, 100);
  EXPECT_EQ(parse_draw("outliers:1:1e6").factor, 1e6);
  for (const char* text : {"", "gauss", "outliers", "outliers:7", "outliers:0:20", "outliers:7:0.5",
                           "outliers:7:1.1e6", "outliers:7:nan", "outliers:7:20:1", "outliers:x:20"})
    try {
      parse_draw(text);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("allowed: normal, laplace, or outliers:N:FACTOR")) << text;
    }
}

// Variance 1; a fourth moment of 3 and of 6. Of 200,000 values the standard deviations are 0.0032 and 0.0055
// of a normal one's, and 0.005 and 0.07 of the other's.
TEST(Accuracy, DistributionsHaveTheirMoments) {
  const auto normal = draw_rows({}, 1, 2, 200, 1000),
             laplace = draw_rows({Draw::Kind::laplace, 0, 1}, 1, 2, 200, 1000);
  EXPECT_NEAR(power(normal), 1, 0.013);
  EXPECT_NEAR(kurtosis(normal), 3, 0.05);
  EXPECT_NEAR(power(laplace), 1, 0.02);
  EXPECT_NEAR(kurtosis(laplace), 6, 0.3);
  EXPECT_EQ(draw_rows({}, 1, 2, 2, 3), draw_rows({}, 1, 2, 2, 3));
  EXPECT_NE(draw_rows({}, 1, 2, 2, 3), draw_rows({}, 1, 3, 2, 3));
  EXPECT_NE(draw_rows({}, 1, 2, 2, 3), draw_rows({}, 2, 2, 2, 3));
}

TEST(Accuracy, OutliersAreTheSameChannelsOfAllRows) {
  const auto plain = draw_rows({}, 1, 2, 3, 64),
             scaled = draw_rows({Draw::Kind::outliers, 4, 20}, 1, 2, 3, 64);
  std::set<std::size_t> channels;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == scaled[i]) continue;
    EXPECT_FLOAT_EQ(scaled[i], 20 * plain[i]);
    channels.insert(i % 64);
  }
  EXPECT_EQ(channels, (std::set<std::size_t>{8, 24, 40, 56}));
  EXPECT_EQ(draw_rows({Draw::Kind::outliers, 64, 2}, 1, 2, 1, 64).front(), 2 * plain.front());
  EXPECT_THROW(draw_rows({Draw::Kind::outliers, 65, 2}, 1, 2, 1, 64), InputError);
}

TEST(Accuracy, DeviationsAreThoseWorkedByHand) {
  Deviation found;
  found.add(3.5, 3);
  found.add(-4, -4);
  EXPECT_NEAR(*found.snr_db(), 20, 1e-9);  // 25 over 0.25
  EXPECT_DOUBLE_EQ(found.relative_error(), 0.1);
  EXPECT_NEAR(found.largest_error(), 0.5 / std::sqrt(12.5), 1e-12);
  EXPECT_NEAR(found.cosine(), 26.5 / std::sqrt(25 * 28.25), 1e-12);
  Deviation none;
  none.add(2, 2);
  EXPECT_FALSE(none.snr_db());
  EXPECT_EQ(none.relative_error(), 0);
  EXPECT_EQ(none.largest_error(), 0);
  EXPECT_EQ(none.cosine(), 1);
  Crest crest;
  crest.add(std::vector<float>{1, -1, 1, 1});
  EXPECT_EQ(crest.value(), 1);
  crest.add(std::vector<float>{0, 0, -4, 0});  // (1 + 16) / (1 + 4)
  EXPECT_NEAR(crest.value(), std::sqrt(17.0 / 5), 1e-12);
}

// The product as kernels compute it, from its definition.
std::vector<std::uint16_t> product(const GemmCase& gemm, const GemmInputs& in) {
  const auto bits = [](float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
  };
  std::vector<std::uint16_t> c;
  for (std::uint64_t r = 0; r < gemm.rows(); ++r) {
    for (std::uint32_t j = 0; j < gemm.n; ++j) {
      double sum = 0;
      for (std::uint32_t k = 0; k < gemm.k; ++k) {
        const std::size_t x = r * gemm.k + k, y = std::size_t{j} * gemm.k + k;
        if (gemm.type == CM384_GEMM_INT8) {
          sum += static_cast<std::int8_t>(in.a[x]) * static_cast<std::int8_t>(in.b[y]);
        } else {
          std::uint16_t a = 0, b = 0;
          std::memcpy(&a, &in.a[x * 2], 2);
          std::memcpy(&b, &in.b[y * 2], 2);
          sum += double{std::bit_cast<float>(std::uint32_t{a} << 16)} *
                 std::bit_cast<float>(std::uint32_t{b} << 16);
        }
      }
      c.push_back(bits(static_cast<float>(sum * in.token_scales[r] * in.channel_scales[j])));
    }
  }
  return c;
}

// Of rounding to BF16: the spacing of values is 2^-7 of the power of two below them.
double of_bf16_rounding(std::span<const float> values) {
  double noise = 0, signal = 0;
  for (const float v : values) {
    const double spacing = std::ldexp(1.0, std::ilogb(v) - 7);
    noise += spacing * spacing / 12;
    signal += double{v} * v;
  }
  return decibels(signal / noise);
}

struct Known {
  const char* draw;
  double int8;    // dB, of one product with K = 7168
  double spread;  // of the largest of few outliers in 64 rows
  double closed;  // of the closed form
};
class Products : public ::testing::TestWithParam<Known> {};

// Known magnitudes; the closed form from what was drawn, with the roundings of X and of the output to BF16.
// Channels a hundred times as large make a step that exceeds the others' values, and these are their noise.
TEST_P(Products, HaveTheNoiseOfTheirCrestFactors) {
  const GemmCase gemm{3, {64}, 64, 7168, CM384_GEMM_INT8};
  const DrawnOperands drawn = draw_operands(gemm, parse_draw(GetParam().draw));
  const StageAccuracy found = product_accuracy(gemm, drawn, product(gemm, round_operands(gemm, drawn)));
  EXPECT_NEAR(*found.exact.snr_db(), GetParam().int8, GetParam().spread);
  const double x = of_bf16_rounding(drawn.a), w = of_bf16_rounding(drawn.b), out = 56;
  EXPECT_NEAR(*found.of_bf16.snr_db(), added({x, w, out}), 0.5);
  EXPECT_NEAR(*found.exact.snr_db(), added({of_crest(*found.crest), of_crest(*found.weights_crest), x, out}),
              GetParam().closed);
  EXPECT_NEAR(*found.bf16.snr_db(), added({*found.exact.snr_db(), *found.of_bf16.snr_db()}), 0.3);
  EXPECT_NEAR(found.exact.relative_error(), std::pow(10, -*found.exact.snr_db() / 20), 1e-12);
  EXPECT_NEAR(found.exact.cosine(), 1 - std::pow(found.exact.relative_error(), 2) / 2, 2e-4);
}
INSTANTIATE_TEST_SUITE_P(Of7168, Products,
                         ::testing::Values(Known{"normal", 38.1, 0.8, 0.2}, Known{"laplace", 35.0, 0.8, 0.2},
                                           Known{"outliers:7:20", 22.1, 1.5, 0.4},
                                           Known{"outliers:7:100", 18.5, 1.5, 1.2}),
                         [](const auto& known) {
                           std::string name = known.param.draw;
                           std::erase(name, ':');
                           return name;
                         });

TEST(Accuracy, ABf16ProductIsBf16Arithmetic) {
  const GemmCase gemm{3, {5, 3}, 24, 700, CM384_GEMM_BF16};
  GemmCase one = gemm;
  one.group_rows = {8};
  const DrawnOperands drawn = draw_operands(one, {});
  const StageAccuracy found = product_accuracy(one, drawn, product(one, round_operands(one, drawn)));
  EXPECT_FALSE(found.bf16.snr_db());
  EXPECT_EQ(*found.exact.snr_db(), *found.of_bf16.snr_db());
  EXPECT_FALSE(found.crest);
  // Groups have weights of their own.
  EXPECT_EQ(draw_operands(gemm, {}).b.size(), 2 * drawn.b.size());
}

}  // namespace
}  // namespace cm384::reference::accuracy_test
