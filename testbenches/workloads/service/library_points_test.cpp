// Points of a library as `cm384 library` shows them, and its curves.
#include "workloads/service/library_points.h"

#include <gmock/gmock.h>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"

namespace cm384::service::library_points_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

OperatorPoint dispatch(const char* ranks, const char* batch, double us) {
  return {"dispatch",
          "latency_us.mean",
          {{"ranks", ranks}, {"batch", batch}},
          {{"bandwidth_GBps", 7}, {"latency_us.mean", us}, {"latency_us.p99", 2 * us}},
          "cm384 run dispatch",
          "0",
          1.5};
}

Library with_operators() {
  Library library = small_library();
  library.add(dispatch("8", "16", 10));
  library.add(dispatch("8", "32", 20));
  library.add(dispatch("8", "64", 60));
  library.add(dispatch("16", "32", 25));
  return library;
}

TEST(LibraryPoints, HaveTheirPlaceAndTheirValueFirst) {
  const std::vector<LibraryPoint> points = points_of(with_operators());
  ASSERT_THAT(points, SizeIs(3 + 6 + 4));
  EXPECT_EQ(points[0].kind, "decode");
  EXPECT_EQ(points[0].place(), "ranks 4, kv 1024, mtp 1, batch 8");
  EXPECT_THAT(points[0].values,
              ElementsAre(Pair("step_ms", 10), Pair("attention_half_us", 100), Pair("experts_half_us", 130)));
  EXPECT_EQ(points[3].place(), "mtp 1, sequences 2, kv 128");
  EXPECT_EQ(points[9].kind, "dispatch");
  EXPECT_THAT(points[9].values.front(), Pair("latency_us.mean", 10));
  EXPECT_THAT(points[9].values, SizeIs(3));
  EXPECT_EQ(points[9].seconds, 1.5);
  EXPECT_TRUE(points[9].is_at_place_of(points[9]));
  EXPECT_FALSE(points[9].is_at_place_of(points[10]));
}

TEST(LibraryPoints, AreReadAsTheyAreWritten) {
  Library library = with_operators();
  DecodePoint point = library.decode().front();
  point.layer_us = 123.25;
  point.seconds = 7;
  library.add(point);
  const std::string text = library.text();
  const Library again = Library::parse(text, "x");
  EXPECT_EQ(again.text(), text);
  EXPECT_EQ(again.decode().back().layer_us, 123.25);
  EXPECT_EQ(again.decode().back().seconds, 7);
  EXPECT_EQ(again.decode().front().layer_us, 0);
  EXPECT_THAT(again.operators()[3].at, ElementsAre(Pair("ranks", "16"), Pair("batch", "32")));
  EXPECT_THAT(again.operators()[3].values[2], Pair("latency_us.p99", 50));
}

TEST(LibraryPoints, SayWhenTheyWereMeasured) {
  Library library("small");
  AttentionPoint attention;
  attention.date = "2026-11-02";
  DecodePoint decode;
  decode.date = "2026-10-30";
  OperatorPoint other = dispatch("8", "16", 10);
  other.date = "2026-12-01";
  PrefillPoint prefill;
  prefill.date = "2026-11-30";
  library.add(attention);
  library.add(decode);
  library.add(other);
  library.add(prefill);
  EXPECT_THAT(dates_of(points_of(library)), Pair("2026-10-30", "2026-12-01"));
  EXPECT_THAT(dates_of(points_of(Library::parse(library.text(), "x"))), Pair("2026-10-30", "2026-12-01"));
  // Of one point nobody knows.
  library.add(dispatch("8", "32", 10));
  EXPECT_THAT(dates_of(points_of(library)), Pair("", ""));
  EXPECT_EQ(library.text().find("\"date\":\"\""), std::string::npos);
}

TEST(LibraryPoints, AreRefusedByTheirPlace) {
  const auto refusal = [](const std::string& point) {
    try {
      Library::parse(R"({"format": "cm384-library-1", "machine": "m", "operators": [)" + point + "]}",
                     "x.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing is refused");
  };
  EXPECT_THAT(refusal("3"), HasSubstr("x.json: operators[0]: study: is missing"));
  EXPECT_THAT(refusal(R"({"study": "op", "at": [1]})"), HasSubstr("operators[0]: at: allowed: names with"));
  EXPECT_THAT(refusal(R"({"study": "op", "at": {"a": 1}})"),
              HasSubstr("operators[0]: at: allowed: names with"));
  EXPECT_THAT(refusal(R"({"study": "op", "at": {}, "metric": "us", "values": {"us": "1"}})"),
              HasSubstr("operators[0]: values: allowed: names with"));
}

TEST(LibraryCurves, GoThroughPointsThatDifferInOneCoordinate) {
  const std::vector<LibraryCurve> curves = curves_of(points_of(with_operators()));
  const auto find = [&](const std::string& kind, const std::string& over, const std::string& at) {
    for (const LibraryCurve& curve : curves)
      if (curve.kind == kind && curve.over == over && text_of(curve.at) == at) return curve;
    ADD_FAILURE() << kind << " " << over << " " << at;
    return LibraryCurve{};
  };
  // Steps over batch, attention over tokens and over sequences, dispatch over batch and over ranks.
  EXPECT_THAT(curves, SizeIs(1 + 2 + 3 + 1 + 1));
  EXPECT_THAT(find("decode", "batch", "ranks 4, kv 1024, mtp 1").points,
              ElementsAre(Pair(8, 10), Pair(16, 12), Pair(32, 20)));
  EXPECT_THAT(find("attention", "sequences", "mtp 1, kv 1024").points,
              ElementsAre(Pair(2, 30), Pair(8, 120)));
  EXPECT_THAT(find("dispatch", "ranks", "batch 32").points, ElementsAre(Pair(8, 20), Pair(16, 25)));
  EXPECT_EQ(find("dispatch", "ranks", "batch 32").leave_one_out(), 0);
  // Without its middle the curve is a line: 10 + 50 / 48 x 16 at 32.
  EXPECT_NEAR(find("dispatch", "batch", "ranks 8").leave_one_out(), (10 + 50.0 / 3) / 20 - 1, 1e-12);
}

}  // namespace
}  // namespace cm384::service::library_points_test
