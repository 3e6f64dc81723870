// Points in, rows out: what is run, and what is told of it.
#include "lab/runs/runs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <deque>
#include <map>

#include "base/text/error.h"

namespace cm384::runs::runs_test {
namespace {

using ::testing::ElementsAre;

// A study `echo` whose option is its identity; "no" is refused.
class EchoSubject final : public Subject {
 public:
  void choose(const std::string& study) override {
    if (study != "echo") throw InputError("'" + study + "': no such study");
  }
  std::vector<std::string> arguments(const Settings& settings) override {
    return {"echo", settings.front().second};
  }
  std::string identity(const Settings& settings) override {
    if (settings.front().second == "no") throw InputError("value: no");
    return settings.front().second;
  }
};

// Gives each point the outcome of its key; what has none is as if interrupted.
class ScriptedExecutor final : public Executor {
 public:
  explicit ScriptedExecutor(std::map<std::string, Outcome> outcomes) : outcomes_(std::move(outcomes)) {}
  void add(std::size_t ticket, Job job) override { queue_.emplace_back(ticket, std::move(job)); }
  std::optional<Finished> next(const std::function<void()>&) override {
    if (queue_.empty()) return std::nullopt;
    const auto [ticket, job] = queue_.front();
    queue_.pop_front();
    started.push_back(job.arguments.back());
    const auto known = outcomes_.find(job.key);
    if (known == outcomes_.end()) return std::nullopt;
    return Finished{ticket, known->second};
  }
  std::size_t running() const override { return 1; }
  double seconds_per_point() const override { return 0; }

  std::vector<std::string> started;

 private:
  std::map<std::string, Outcome> outcomes_;
  std::deque<std::pair<std::size_t, Job>> queue_;
};

Outcome row_of_latency(int us) {
  return {.document = R"({"rows": [{"latency_us": {"mean": )" + std::to_string(us) + "}}]}"};
}

std::vector<Runs::Request> echoes(const std::vector<std::string>& values) {
  std::vector<Runs::Request> requests;
  for (const std::string& value : values) requests.push_back({"echo", {{"value", value}}});
  return requests;
}

TEST(Runs, PointsThatAreAlikeAreRunOnce) {
  EchoSubject subject;
  ScriptedExecutor executor({{"a", row_of_latency(3)}, {"b", row_of_latency(5)}});
  std::vector<std::size_t> told;
  Runs runs(subject, executor, [&](std::size_t done, std::size_t) { told.push_back(done); });
  const auto ended = runs.run(echoes({"b", "a", "b"}));
  EXPECT_THAT(executor.started, ElementsAre("b", "a"));
  ASSERT_EQ(ended.size(), 3u);
  EXPECT_EQ(metric_of(ended[0], "latency_us.mean"), 5);
  EXPECT_EQ(metric_of(ended[1], "latency_us.mean"), 3);
  EXPECT_EQ(metric_of(ended[2], "latency_us.mean"), 5);
  EXPECT_EQ(ended[1].document()["rows"].size(), 1u);
  EXPECT_THAT(told, ElementsAre(1, 2));
  EXPECT_FALSE(runs.interrupted());
}

TEST(Runs, WhatFailedSaysWhy) {
  EchoSubject subject;
  Outcome hung = row_of_latency(9);
  hung.exit_code = 1;
  hung.reason = "a check failed";
  ScriptedExecutor executor({{"hung", hung}, {"cut", {.document = R"({"rows": [{"laten)"}}});
  Runs runs(subject, executor);
  const auto ended = runs.run(echoes({"hung", "no", "cut"}));
  EXPECT_EQ(ended[0].failed, "a check failed");
  EXPECT_EQ(ended[0].rows.size(), 1u);
  EXPECT_TRUE(std::isnan(metric_of(ended[0], "latency_us.mean")));
  EXPECT_EQ(ended[1].failed, "value: no");
  EXPECT_EQ(ended[2].failed, "its result is damaged");
  EXPECT_TRUE(ended[2].document().is_null());
  EXPECT_FALSE(runs.interrupted());
  EXPECT_EQ(runs.run({{"ecko", {}}})[0].failed, "'ecko': no such study");
}

TEST(Runs, AnInterruptLeavesTheRestMissing) {
  EchoSubject subject;
  ScriptedExecutor executor({{"a", row_of_latency(3)}});
  Runs runs(subject, executor);
  const auto ended = runs.run(echoes({"a", "b"}));
  EXPECT_TRUE(ended[0].good());
  EXPECT_TRUE(ended[1].missing);
  EXPECT_TRUE(std::isnan(metric_of(ended[1], "latency_us.mean")));
  EXPECT_TRUE(runs.interrupted());
}

}  // namespace
}  // namespace cm384::runs::runs_test
