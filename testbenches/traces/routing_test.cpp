#include "traces/routing/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <set>
#include <sstream>

#include "base/text/error.h"
#include "traces/random.h"

namespace cm384::traces::routing_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kMeta = R"({"type": "meta", "model_id": "m", "top_k": 2, "num_experts": 8})";

std::string route(const std::string& ids) {
  return R"({"type": "route", "token_idx": 0, "layer": 0, "topk_ids": )" + ids + "}";
}
Routing read(const std::vector<std::string>& lines, const RoutingReadOptions& options = {}) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  std::istringstream in(text);
  return read_routing(in, "log.jsonl", options);
}
std::string error_of(const std::vector<std::string>& lines, const RoutingReadOptions& options = {}) {
  try {
    read(lines, options);
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

TEST(RoutingReader, TakesTopKAndExpertsFromTheTrace) {
  const Routing r = read({kMeta, route("[3, 1]"), route("[0, 7]")});
  EXPECT_EQ(r.top_k, 2);
  EXPECT_EQ(r.experts, 8);
  EXPECT_THAT(r.ids, ElementsAre(3, 1, 0, 7));
  const Routing without_meta = read({route("[3, 1, 2]")});
  EXPECT_EQ(without_meta.top_k, 3);
  EXPECT_EQ(without_meta.experts, 4);
}

TEST(RoutingReader, KeepsOrDropsConsecutiveRepeats) {
  const std::vector<std::string> lines = {kMeta, route("[3, 1]"), route("[3, 1]"), route("[1, 3]"),
                                          route("[3, 1]")};
  EXPECT_EQ(read(lines).rows(), 4);
  EXPECT_THAT(read(lines, {true}).ids, ElementsAre(3, 1, 1, 3, 3, 1));
}

TEST(RoutingReader, ReadsOneLayer) {
  const std::string other = R"({"type": "route", "layer": 5, "topk_ids": [6, 7]})";
  EXPECT_THAT(read({kMeta, route("[3, 1]"), other}).ids, ElementsAre(3, 1));
  EXPECT_THAT(read({kMeta, route("[3, 1]"), other}, {false, 0, 5}).ids, ElementsAre(6, 7));
}

TEST(RoutingReader, NamesFileLineAndFieldOfWhatIsWrong) {
  std::vector<std::string> lines = {kMeta};
  while (lines.size() < 16) lines.push_back(route("[0, 1]"));
  lines.push_back(R"({"type": "route", "topk_ids": [0, 1)");
  EXPECT_EQ(error_of(lines), "log.jsonl:17: line is not JSON; allowed: one object per line");
  EXPECT_EQ(error_of({kMeta, route("[0, 8]")}),
            "log.jsonl:2: topk_ids[1]: expert 8 is out of range; allowed: a whole number from 0 to 7");
  EXPECT_THAT(error_of({kMeta, route("[-1, 2]")}),
              HasSubstr("log.jsonl:2: topk_ids[0]: expert -1 is out of range"));
  EXPECT_THAT(error_of({kMeta, route("[1.5, 2]")}), HasSubstr("topk_ids[0]: expert 1.5"));
  EXPECT_THAT(error_of({kMeta, route("[18446744073709551615, 2]")}), HasSubstr("topk_ids[0]"));
  EXPECT_THAT(error_of({kMeta, route("[2, 2]")}), HasSubstr("topk_ids[1]: expert 2 is named twice"));
  EXPECT_THAT(error_of({kMeta, route("[1, 2, 3]")}), HasSubstr("topk_ids: has 3 experts; allowed: 2"));
  EXPECT_THAT(error_of({kMeta, R"({"type": "route"})"}), HasSubstr("log.jsonl:2: topk_ids: is missing"));
  EXPECT_THAT(error_of({kMeta, R"({"type": "rout", "topk_ids": [1, 2]})"}), HasSubstr("type: is \"rout\""));
  EXPECT_THAT(error_of({kMeta, "[1, 2]"}), HasSubstr("log.jsonl:2: line is array"));
  EXPECT_THAT(error_of({R"({"type": "meta", "top_k": 0})"}), HasSubstr("log.jsonl:1: top_k: is 0"));
  EXPECT_THAT(error_of({route("[1, 2]"), kMeta}),
              HasSubstr("log.jsonl:2: type: is \"meta\" after route lines"));
  EXPECT_EQ(error_of({kMeta}), "log.jsonl: no route line");
  EXPECT_THAT(error_of({kMeta, route("[5, 6]")}, {false, 6}), HasSubstr("expert 6 is out of range"));
  EXPECT_THROW(read_routing("/nowhere/log.jsonl"), InputError);
}

// Found by random inputs: a value so deep that quoting it took all stack, a row so long that looking for
// repeats took seconds.
TEST(RoutingReader, RefusesWhatIsTooDeepOrTooLong) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_EQ(error_of({R"({"type": "route", "layer": )" + deep + R"(, "topk_ids": [0]})"}),
            "log.jsonl:1: layer: is a list; allowed: a whole number from 0 to 1048576");
  EXPECT_THAT(error_of({route("[" + deep + "]")}), HasSubstr("topk_ids[0]: expert a list is out of range"));
  std::string ids = "0";
  for (int id = 1; id < 1024; ++id) ids += "," + std::to_string(id);
  EXPECT_EQ(read({route("[" + ids + "]")}).top_k, 1024);
  EXPECT_EQ(error_of({route("[" + ids + ",1024]")}),
            "log.jsonl:1: topk_ids: has 1025 experts; allowed: at most 1024");
}

TEST(RoutingReader, ReadsWhatGzipPackedAndWhatBeginsWithAMark) {
  const std::string text = std::string("\xef\xbb\xbf") + kMeta + "\r\n" + route("[3, 1]") + "\r\n",
                    path = ::testing::TempDir() + "cm384-routing.jsonl.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_THAT(read_routing(path).ids, ElementsAre(3, 1));
}

TEST(RoutingReader, ReadsTheSample) {
  const Routing r = read_routing(CM384_SOURCE_DIR "/traces/samples/qwen1.5-moe-a2.7b-layer0-part.jsonl");
  EXPECT_EQ(r.top_k, 4);
  EXPECT_EQ(r.experts, 60);
  EXPECT_EQ(r.rows(), 1200);
}

TEST(TakeRows, WrapsRound) {
  const Routing r{1, 4, {0, 1, 2}};
  EXPECT_THAT(rows_of_block(r, 0, 2), ElementsAre(0, 1));
  EXPECT_THAT(rows_of_block(r, 1, 2), ElementsAre(2, 0));
  EXPECT_THAT(rows_of_block(r, 2, 4), ElementsAre(2, 0, 1, 2));
}

void expect_distinct_rows(const Routing& r) {
  for (std::int64_t i = 0; i < r.rows(); ++i) {
    const auto row = r.row(i);
    EXPECT_EQ(std::set<std::int32_t>(row.begin(), row.end()).size(), row.size());
    for (const auto id : row) EXPECT_TRUE(id >= 0 && id < r.experts);
  }
}
std::vector<double> load(const Routing& r) {
  std::vector<double> hits(static_cast<std::size_t>(r.experts), 0);
  for (const auto id : r.ids) hits[static_cast<std::size_t>(id)] += 1;
  return hits;
}

TEST(UniformRouting, IsFlatAndDistinct) {
  const Routing r = uniform_routing(32000, 8, 256, 1);
  EXPECT_EQ(r.rows(), 32000);
  expect_distinct_rows(r);
  for (const double hits : load(r)) EXPECT_NEAR(hits, 1000, 5 * 31.2);  // five standard deviations
  EXPECT_EQ(r.ids, uniform_routing(32000, 8, 256, 1).ids);
  EXPECT_NE(r.ids, uniform_routing(32000, 8, 256, 2).ids);
  expect_distinct_rows(uniform_routing(50, 60, 60, 1));
}

TEST(ZipfRouting, FollowsThePower) {
  const Routing one = zipf_routing(100000, 1, 64, 1.2, 9);
  const auto hits = load(one);
  double sum = 0;
  for (int e = 0; e < 64; ++e) sum += std::pow(e + 1.0, -1.2);
  for (int e = 0; e < 64; e += 9) {
    const double expected = 100000 * std::pow(e + 1.0, -1.2) / sum;
    EXPECT_NEAR(hits[static_cast<std::size_t>(e)], expected, 5 * std::sqrt(expected));
  }
  const Routing r = zipf_routing(2000, 8, 256, 1.0, 9);
  expect_distinct_rows(r);
  EXPECT_GT(load(r)[0], 4 * load(r)[40]);
  expect_distinct_rows(zipf_routing(50, 16, 16, 6.0, 9));  // almost no weight is left for the last
  for (const double h : load(zipf_routing(32000, 8, 256, 0.0, 1))) EXPECT_NEAR(h, 1000, 5 * 31.2);
}

TEST(Generators, RefuseWhatCannotBe) {
  EXPECT_THROW(uniform_routing(1, 9, 8, 1), InputError);
  EXPECT_THROW(uniform_routing(1, 0, 8, 1), InputError);
  EXPECT_THROW(zipf_routing(1, 1, 8, -1, 1), InputError);
}

TEST(RoutingSource, IsParsed) {
  EXPECT_EQ(parse_routing_source("uniform").kind, RoutingSource::Kind::kUniform);
  EXPECT_EQ(parse_routing_source("zipf:1.25").exponent, 1.25);
  EXPECT_EQ(parse_routing_source("trace:a/b.jsonl").path, "a/b.jsonl");
  const RoutingSource groups = parse_routing_source("groups:8:4");
  EXPECT_EQ(groups.kind, RoutingSource::Kind::kGroups);
  EXPECT_EQ(groups.groups, 8);
  EXPECT_EQ(groups.top_groups, 4);
  EXPECT_EQ(parse_routing_source("groups:4:4").top_groups, 4);
  for (const char* bad :
       {"", "unifrom", "zipf", "zipf:", "zipf:x", "zipf:1x", "zipf:-1", "zipf:11", "trace:", "groups:8",
        "groups:", "groups:8:", "groups:8:9", "groups:8:0", "groups:0:0", "groups:8:4:2", "groups::4"}) {
    EXPECT_THROW(parse_routing_source(bad), InputError) << bad;
  }
}

TEST(Random, IsTheSameEverywhere) {
  Random random(42);
  EXPECT_EQ(random.next(), 13679457532755275413u);  // SplitMix64 of seed 42
  int low = 0;
  for (int i = 0; i < 3000; ++i) low += random.below(3) == 0;
  EXPECT_NEAR(low, 1000, 130);
}

}  // namespace
}  // namespace cm384::traces::routing_test
