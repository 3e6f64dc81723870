// Measured times and what is made of them.
#include "workloads/service/library.h"

#include <gmock/gmock.h>

// Boost 1.74 does not include what this header uses.
// clang-format off
#include <boost/math/special_functions/fpclassify.hpp>
#include <boost/math/interpolators/pchip.hpp>
// clang-format on

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/json.h"
#include "testbenches/workloads/service/file_of.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/deployment.h"

namespace cm384::service::library_test {
namespace {

using ::testing::HasSubstr;
using Points = std::vector<std::pair<double, double>>;

TEST(MonotoneCurve, IsThatOfBoost) {
  const std::vector<double> x{1, 2, 4, 5, 9, 20}, y{3, 4, 4.5, 9, 9, 30};
  Points points;
  for (std::size_t k = 0; k < x.size(); ++k) points.emplace_back(x[k], y[k]);
  const MonotoneCurve curve(points);
  std::vector<double> own_x = x, own_y = y;
  const boost::math::interpolators::pchip<std::vector<double>> boost(std::move(own_x), std::move(own_y));
  double last = 0;
  for (double at = 1; at <= 20; at += 0.07) {
    EXPECT_NEAR(curve(at), boost(at), 1e-12) << at;
    EXPECT_GE(curve(at), last - 1e-12);
    last = curve(at);
  }
  for (std::size_t k = 0; k < x.size(); ++k) EXPECT_DOUBLE_EQ(curve(x[k]), y[k]);
  EXPECT_DOUBLE_EQ(curve(31), 30 + 11 * 21.0 / 11);
  EXPECT_DOUBLE_EQ(curve(0), 2);
  EXPECT_TRUE(curve.is_point(4));
  EXPECT_FALSE(curve.is_point(4.5));
}

TEST(MonotoneCurve, TellsHowFarItMissesWhatIsLeftOut) {
  EXPECT_DOUBLE_EQ(leave_one_out_error(Points{{1, 1}, {2, 2}, {3, 3}, {4, 4}}), 0);
  EXPECT_DOUBLE_EQ(leave_one_out_error(Points{{1, 1}, {2, 4}, {3, 3}}), 0.5);
  EXPECT_DOUBLE_EQ(leave_one_out_error(Points{{1, 1}, {3, 3}}), 0);
}

TEST(DecodeSteps, AreMeasuredInterpolatedOrExtrapolated) {
  const Library library = small_library();
  const DecodeSteps steps(library, 4, 1);
  EXPECT_DOUBLE_EQ(steps.at(8, 1024).ms, 10);
  EXPECT_EQ(steps.at(8, 1024).evidence, Evidence::measured);
  EXPECT_EQ(steps.at(12, 1024).evidence, Evidence::interpolated);
  EXPECT_GT(steps.at(12, 1024).error, 0);
  EXPECT_EQ(steps.at(8, 2000).evidence, Evidence::interpolated);
  EXPECT_EQ(steps.at(33, 1024).evidence, Evidence::extrapolated);
  EXPECT_EQ(steps.at(7, 1024).evidence, Evidence::extrapolated);
  EXPECT_EQ(steps.at(8, 4097).evidence, Evidence::extrapolated);
  EXPECT_EQ(steps.at(8, 127).evidence, Evidence::extrapolated);
}

// Steps at a scaled point, or on curves that have one, are scaled; those at a measured one are measured.
TEST(DecodeSteps, TellScaledPointsFromMeasuredOnes) {
  const Library whole = small_library();
  Library library("other");
  for (DecodePoint point : whole.decode()) {
    if (point.batch == whole.decode().front().batch) point.from = "scaled", point.error = 0.03;
    library.add(point);
  }
  for (AttentionPoint point : whole.attention()) {
    point.from = "scaled";
    point.error = 0.04;
    library.add(point);
  }
  const DecodeSteps before(whole, 4, 1), steps(Library::parse(library.text(), "again"), 4, 1);
  const int scaled = whole.decode().front().batch, measured = whole.decode().back().batch;
  const StepTime at = steps.at(scaled, 1024), other = steps.at(measured, 1024);
  EXPECT_EQ(at.evidence, Evidence::scaled);
  EXPECT_DOUBLE_EQ(at.scaled_error, 0.03);
  EXPECT_DOUBLE_EQ(at.error, 0);
  EXPECT_EQ(other.evidence, Evidence::measured);
  const StepTime between = steps.at(12, 1024), longer = steps.at(measured, 2000);
  EXPECT_EQ(between.evidence, Evidence::scaled);
  EXPECT_DOUBLE_EQ(between.error, before.at(12, 1024).error);
  EXPECT_DOUBLE_EQ(between.scaled_error, 0.03);
  EXPECT_EQ(longer.evidence, Evidence::scaled);
  EXPECT_DOUBLE_EQ(longer.scaled_error, 0.04);
  EXPECT_EQ(steps.at(33, 1024).evidence, Evidence::extrapolated);
  EXPECT_EQ(to_string(Evidence::scaled), "SCALED");
}

TEST(DecodeSteps, TakeLongerByWhatAttentionTakesWhereItBinds) {
  const DecodeSteps steps(small_library(), 4, 1);
  // Two sequences at 1,024 tokens take 30 us, at 4,096 they take 90: 60 more in each microbatch. Halves of
  // 100 and 130 us become 160 and 130: 30 more in 10 layers of two microbatches, 60 in 3 others.
  EXPECT_NEAR(steps.at(8, 4096).ms, 10 + 2 * (10 * 30 + 3 * 60) * 1e-3, 1e-9);
  // 20 less at 128 tokens: only where nothing overlaps.
  EXPECT_NEAR(steps.at(8, 128).ms, 10 - 2 * 3 * 20 * 1e-3, 1e-9);
}

// Steps of another model at several numbers of tokens, each 2 ms + 0.1 ms a request + 1 ms a 1,024 tokens.
Library library_over_tokens() {
  Library library("cloudmatrix384");
  for (const int kv : {1024, 2048, 8192}) {
    for (const int batch : {4, 8, 32}) {
      if (kv == 8192 && batch == 32) continue;
      DecodePoint point{8, batch, kv, 0, 1, 63, 1, 2 + 0.1 * batch + kv / 1024.0, 50, 60, "run decode", "0"};
      point.layer_us = 100 + kv / 1024.0;
      point.network = "other";
      point.weights_gb = 20;
      point.context_bytes = 32768;
      library.add(point);
    }
  }
  return library;
}

TEST(DecodeSteps, StandBetweenThoseOfSeveralNumbersOfTokens) {
  const DecodeSteps steps(library_over_tokens(), 8, 0);
  EXPECT_NEAR(steps.at(8, 2048).ms, 4.8, 1e-12);
  EXPECT_EQ(steps.at(8, 2048).evidence, Evidence::measured);
  EXPECT_NEAR(steps.at(6, 1536).ms, 4.1, 1e-12);
  EXPECT_EQ(steps.at(6, 1536).evidence, Evidence::interpolated);
  EXPECT_NEAR(steps.layer_us(8, 5120), 105, 1e-12);
  EXPECT_NEAR(steps.leave_one_out(), 0, 1e-12);
  // 32 requests were not measured at 8,192 tokens.
  EXPECT_EQ(steps.at(32, 2048).evidence, Evidence::measured);
  EXPECT_EQ(steps.at(32, 4096).evidence, Evidence::extrapolated);
  EXPECT_EQ(steps.at(8, 8193).evidence, Evidence::extrapolated);
  EXPECT_EQ(steps.at(8, 1023).evidence, Evidence::extrapolated);
  EXPECT_EQ(steps.at(3, 1024).evidence, Evidence::extrapolated);
  EXPECT_EQ(steps.least_batch(), 4);
  EXPECT_EQ(steps.least_kv(), 1024);
}

TEST(DecodeSteps, OfOneStreamTakeAllThatAttentionTakesLonger) {
  Library library("cloudmatrix384");
  library.add(DecodePoint{4, 8, 1024, 1, 1, 10, 3, 10, 100, 130, "run decode", "0"});
  for (const auto& [kv, us] : {std::pair{1024, 30.0}, std::pair{4096, 90.0}})
    library.add(AttentionPoint{4, kv, 1, us, "run mla", "0"});
  EXPECT_NEAR(DecodeSteps(library, 4, 1).at(8, 4096).ms, 10 + (10 + 3) * 60 * 1e-3, 1e-9);
}

TEST(Deployment, TakesContextsOfTheLibrarysModel) {
  Library library = library_over_tokens();
  const std::vector<std::string> changes{"decode.npus=4", "prefill.npus=4", "prefill.batch_time=100ms"};
  Deployment deployment = load_deployment("cloudmatrix-infer", changes);
  EXPECT_THAT(fit_to(library, Bytes{64'000'000'000}, deployment), HasSubstr("contexts are those of other"));
  EXPECT_EQ(deployment.decode.token.count, 32768);
  EXPECT_EQ(deployment.decode.kv_room.count, 39'000'000'000);  // 64 less 20 less 5
  EXPECT_EQ(deployment.decode.model, "other");
  EXPECT_EQ(fit_to(library, Bytes{64'000'000'000}, deployment), "");  // it is of that model now

  auto own = changes;
  own.insert(own.end(), {"decode.token=1KiB", "decode.kv_room=7GB"});
  deployment = load_deployment("cloudmatrix-infer", own);
  fit_to(library, Bytes{64'000'000'000}, deployment);
  EXPECT_EQ(deployment.decode.token.count, 1024);
  EXPECT_EQ(deployment.decode.kv_room.count, 7'000'000'000);

  // Of the published model, or of one that is not known: as the deployment says.
  deployment = load_deployment("cloudmatrix-infer", changes);
  deployment.decode.model = "other";
  EXPECT_EQ(fit_to(library, Bytes{64'000'000'000}, deployment), "");
  deployment = load_deployment("cloudmatrix-infer", {});
  EXPECT_EQ(fit_to(small_library(), Bytes{64'000'000'000}, deployment), "");

  const auto refusal = [&](const std::vector<std::string>& with, std::int64_t memory) {
    Deployment made = load_deployment("cloudmatrix-infer", with);
    try {
      fit_to(library, Bytes{memory}, made);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(changes, 25'000'000'000), HasSubstr("leave no room"));
  EXPECT_THAT(refusal({"decode.npus=4", "prefill.npus=4"}, 64'000'000'000),
              HasSubstr("prefill.batch_time is of deepseek-r1"));
  DecodePoint third{8, 64, 1024, 0, 1, 63, 1, 9, 50, 60, "run decode", "0"};
  third.network = "third";
  library.add(third);
  EXPECT_THAT(refusal(changes, 64'000'000'000), HasSubstr("of other and of third"));
}

TEST(Library, IsReadAsItIsWritten) {
  const Library library = small_library();
  EXPECT_EQ(Library::parse(library.text(), "x").text(), library.text());
  const auto refusal = [](const std::string& text) {
    try {
      Library::parse(text, "x.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing is refused");
  };
  EXPECT_THAT(refusal("{"), HasSubstr("x.json: is not a library"));
  EXPECT_THAT(refusal(R"({"format": "cm384-library-1", "machine": "m", "attention": [{"sequences": 1}]})"),
              HasSubstr("x.json: attention[0]: kv: is missing"));
  EXPECT_THAT(refusal(R"({"format": "cm384-library-1", "machine": "m", "attention": [{"sequences": -1}]})"),
              HasSubstr("attention[0]: sequences: allowed: a number"));
  EXPECT_THROW(DecodeSteps(library, 320, 1), InputError);
  // What measuring writes has a checksum; a digit changed is seen, and without it nothing says so.
  std::string text = library.text();
  EXPECT_TRUE(Library::parse(text, "x").checked());
  text.replace(text.find("\"batch\":16"), 10, "\"batch\":18");
  EXPECT_THAT(refusal(text), HasSubstr("x.json: its checksum does not match"));
  text.replace(text.find("checksum"), 8, "chacksum");
  EXPECT_THAT(refusal(text), HasSubstr("x.json: has no checksum"));
  text.replace(text.find("library-2"), 9, "library-1");
  EXPECT_FALSE(Library::parse(text, "x").checked());
  EXPECT_THROW(Library::load("nowhere/at/all.json"), InputError);
}

TEST(Library, OfThePublishedMachineHasTheStepsOfItsPage) {
  const Library library = Library::load("cloudmatrix384");
  const DecodeSteps steps(library, 320, 1);
  EXPECT_EQ(steps.least_batch(), 8);
  EXPECT_NEAR(steps.at(96, 4096).ms / 1.7, 56.0, 0.05);
  EXPECT_NEAR(steps.at(32, 4096).ms / 1.7, 31.4, 0.05);
  double last = 0;
  for (int batch = 8; batch <= 96; batch += 8) {
    const StepTime time = steps.at(batch, 4096);
    EXPECT_GT(time.ms, last);
    EXPECT_NE(time.evidence, Evidence::extrapolated);
    last = time.ms;
  }
}

// A bit that flips in one that comes with cm384 is seen wherever it stands, but in digits behind those that a
// number has.
TEST(Library, ThatComesWithCm384IsSealed) {
  ASSERT_FALSE(hw::embedded_library().empty());
  for (const hw::EmbeddedText& known : hw::embedded_library()) {
    EXPECT_TRUE(Library::load(std::string(known.name)).checked()) << known.name;
    std::string text(known.text);
    const Json whole = Json::parse(text);
    for (std::size_t at = 0; at < text.size(); at += 3) {
      const char flipped = static_cast<char>(1 << at % 8);
      text[at] = static_cast<char>(text[at] ^ flipped);
      if (const Json damaged = Json::parse(text, nullptr, false); damaged != whole) {
        EXPECT_THROW(Library::parse(text, "x"), InputError) << known.name << ": byte " << at;
      }
      text[at] = static_cast<char>(text[at] ^ flipped);
    }
    EXPECT_NO_THROW(Library::parse(text, "x"));
  }
}

TEST(Deployment, IsThePublishedOneWithChanges) {
  const Deployment deployment = load_deployment("cloudmatrix-infer", {"decode.batch=64"});
  EXPECT_EQ(deployment.prefill.instances, 6);
  EXPECT_EQ(deployment.npus(), 256);
  EXPECT_EQ(deployment.decode.batch, 64);
  EXPECT_EQ(deployment.sources.at("decode.batch").from, "command line");
  EXPECT_EQ(deployment.sources.at("decode.npus").from, "published");
  const FileOf file("[prefill]\ninstances = 3\n", "toml");
  EXPECT_EQ(load_deployment(file.path(), {}).prefill.instances, 3);
  EXPECT_EQ(load_deployment(file.path(), {}).decode.npus, 160);
}

TEST(Deployment, IsRefusedByFileLineAndKey) {
  const auto refusal = [](const std::string& text, const std::vector<std::string>& changes = {}) {
    const FileOf file(text, "toml");
    try {
      load_deployment(file.path(), changes);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing is refused");
  };
  EXPECT_THAT(refusal("[prefill]\ninstance = 3\n"),
              HasSubstr(":2: prefill.instance: no such key; did you mean"));
  EXPECT_THAT(refusal("[prefill]\ninstances = 0\n"), HasSubstr(":2: prefill.instances: 0"));
  EXPECT_THAT(refusal("prefill = 3\n"), HasSubstr(":1: prefill: is a section; allowed: [prefill]"));
  EXPECT_THAT(refusal("", {"decode.batch"}), HasSubstr("--deploy decode.batch: no such parameter"));
  EXPECT_THAT(refusal("", {"decode.batch=7"}), HasSubstr("--deploy decode.batch: 7"));
  EXPECT_THAT(refusal("", {"prefill.least_time=4s"}), HasSubstr("prefill.least_time is more than"));
  EXPECT_THROW(load_deployment("cloudmatrix", {}), InputError);
}

// Two of one place: the last one counts, as for points of a curve that are drawn.
TEST(Library, TakesPointsThatStandTwice) {
  Library library = small_library();
  library.add(AttentionPoint{2, 1024, 1, 40, "run mla", "0"});
  library.add(DecodePoint{4, 16, 1024, 1, 2, 10, 3, 12.5, 100, 130, "run decode", "0"});
  EXPECT_NO_THROW(DecodeSteps(library, 4, 1));
}

}  // namespace
}  // namespace cm384::service::library_test
