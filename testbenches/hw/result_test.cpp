#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/text/output_file.h"
#include "testbenches/hw/refusal.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::studies::result_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Rows sample_rows() {
  return {{{"ranks", 8},
           {"path", "aiv-direct"},
           {"latency_us", Row{{"mean", 116.04}, {"p99", 120.5}}},
           {"correct", true}},
          {{"ranks", 256},
           {"path", "sdma, staged"},
           {"latency_us", Row{{"mean", 1520.4}, {"p99", {}}}},
           {"correct", {}},
           {"note", "a \"quote\""}}};
}

TEST(Result, Table) {
  EXPECT_EQ(to_table(sample_rows()),
            "ranks  path          latency_us.mean  latency_us.p99  correct  note\n"
            "-----  ------------  ---------------  --------------  -------  ---------\n"
            "    8  aiv-direct              116.0           120.5  yes      -\n"
            "  256  sdma, staged             1520               -  -        a \"quote\"\n");
}

TEST(Result, Csv) {
  EXPECT_EQ(to_csv(sample_rows()),
            "ranks,path,latency_us.mean,latency_us.p99,correct,note\n"
            "8,aiv-direct,116.04,120.5,true,\n"
            "256,\"sdma, staged\",1520.4,,,\"a \"\"quote\"\"\"\n");
}

TEST(Result, DocumentHasTheStableParts) {
  const hw::Machine machine = hw::load_machine("node8", {"die.aiv=40"});
  StudyResult result;
  result.parameters = {{"batch", 128}};
  result.rows = sample_rows();
  result.simulator = {
      .simulated = 5_us, .instructions = 7, .packet_hops = 8, .events = 9, .memory_requests = 10};
  const Json document = to_document(result, machine, {.study = "dispatch", .seed = 3, .wall_s = 1.5});
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["study"], "dispatch");
  EXPECT_EQ(document["machine"], "node8");
  EXPECT_EQ(document["seed"], 3);
  EXPECT_EQ(document["complete"], true);
  EXPECT_EQ(document["machine_overrides"].dump(), R"({"die.aiv":"40"})");
  EXPECT_EQ(document["parameters"].dump(), R"({"batch":128})");
  EXPECT_EQ(document["rows"].dump(),
            R"([{"ranks":8,"path":"aiv-direct","latency_us":{"mean":116.04,"p99":120.5},"correct":true},)"
            R"({"ranks":256,"path":"sdma, staged","latency_us":{"mean":1520.4,"p99":null},"correct":null,)"
            R"("note":"a \"quote\""}])");
  EXPECT_EQ(document["simulator"]["simulated_us"], 5.0);
  EXPECT_EQ(document["simulator"]["packet_hops"], 8);
  EXPECT_GT(document["simulator"]["peak_rss_MB"].get<double>(), 1.0);
  EXPECT_THAT(document["simulator"]["build"]["compiler"].get<std::string>(), HasSubstr("GNU"));
}

TEST(Result, SaysHowAndWhenItWasMade) {
  const hw::Machine machine = hw::load_machine("node8");
  EXPECT_FALSE(to_document({}, machine, {}).contains("invocation"));
  const Json document = to_document(
      {}, machine,
      {.arguments = {"run", "p2p", "--fault", "plane=0,die=*", "a'b"}, .date = "2026-05-04T12:00:00Z"});
  EXPECT_EQ(document["invocation"].dump(),
            R"({"command":"cm384 run p2p --fault 'plane=0,die=*' 'a'\\''b'","date":"2026-05-04T12:00:00Z"})");
}

TEST(Result, TheDateMayBeFixed) {
  ::setenv("SOURCE_DATE_EPOCH", "951782399", 1);
  EXPECT_EQ(date_now(), "2000-02-28T23:59:59Z");
  for (const char* wrong : {"", "now", "-1", "1e9", "253402300800"}) {
    ::setenv("SOURCE_DATE_EPOCH", wrong, 1);
    EXPECT_THAT(refusal([] { date_now(); }), HasSubstr("SOURCE_DATE_EPOCH")) << wrong;
  }
  ::unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_THAT(date_now(), ::testing::MatchesRegex("20[0-9-]{8}T[0-9:]{8}Z"));
}

TEST(Result, InputsAreHashed) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cm384_input_test";
  write_file((folder / "a.jsonl").string(), "a");
  StudyResult result;
  result.input_files = {(folder / "a.jsonl").string()};
  const Json document = to_document(result, hw::load_machine("node8"), {});
  EXPECT_EQ(document["inputs"][0]["hash"],
            "fnv1a64:af63dc4c8601ec8c");  // the reference value of FNV-1a for "a"
  fs::remove_all(folder);
}

}  // namespace
}  // namespace cm384::studies::result_test
