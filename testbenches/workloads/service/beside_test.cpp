// Several services on the NPUs of one supernode: each as if alone where there are enough, and shares of what
// is free where there are not.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/drawn_requests.h"
#include "workloads/service/npu_budget.h"
#include "workloads/service/simulation.h"

namespace cm384::service::beside_test {
namespace {

using ::testing::HasSubstr;

// Prompts of 100 ms on one NPU each, a single token as the answer.
RequestTrace prompts(int count, Time from, Time gap) {
  RequestTrace trace;
  for (int k = 0; k < count; ++k) {
    Request& request = trace.requests.emplace_back();
    request.arrival = from + gap * k;
    request.prompt = 1000;
    request.output = 1;
  }
  return trace;
}

Deployment scaled(int most) {
  Deployment deployment = small_deployment();
  deployment.prefill.instances = 1;
  deployment.prefill.sequences = 1;
  deployment.scale.most = most;
  deployment.scale.up_tokens = 1000;
  deployment.scale.interval = 1_s;
  deployment.scale.start = 300_ms;
  return deployment;
}

// Own instances have an NPU for prompts and two for decode.
constexpr int kOwn = 3;

TEST(Beside, EachIsAsAloneWhereThereAreEnoughNpus) {
  DrawnRequests drawn;
  drawn.rate = 40;
  drawn.duration = 60_s;
  drawn.prompt = "uniform:50:900";
  drawn.output = "uniform:1:120";
  drawn.ramp = "0.2:2:0.2";
  const RequestTrace first = draw_requests(drawn);
  drawn.seed = 2;
  drawn.ramp = "2:0.2:2";
  const RequestTrace second = draw_requests(drawn);
  Deployment deployment = scaled(4);
  deployment.scale.decode_most = 4;
  deployment.scale.up_use = 0.5;
  const Library library = small_library();
  ServiceOptions options;
  options.sample = 1_s;
  std::vector<SharingService> services{{"first", first, deployment, library, options},
                                       {"second", second, deployment, library, options}};
  const std::vector<ServiceResult> together = serve_together(services, {100}).services;
  ASSERT_EQ(together.size(), 2u);
  for (const RequestTrace* trace : {&first, &second}) {
    const ServiceResult alone = serve(*trace, deployment, library, options);
    const ServiceResult& other = together[trace == &first ? 0 : 1];
    EXPECT_GT(alone.scaled_up + alone.decode_scaled_up, 2);
    EXPECT_EQ(other.scaled_up, alone.scaled_up);
    EXPECT_EQ(other.decode_scaled_up, alone.decode_scaled_up);
    EXPECT_EQ(other.denied, 0);
    EXPECT_EQ(other.end, alone.end);
    EXPECT_EQ(other.request_seconds, alone.request_seconds);
    EXPECT_EQ(other.prefill_pool_s, alone.prefill_pool_s);
    for (std::size_t k = 0; k < trace->requests.size(); ++k)
      ASSERT_EQ(other.served[k].done, alone.served[k].done) << k;
  }
}

// Where all want more than there is, each has its part of all NPUs.
TEST(Beside, NpusAreSharedByWeight) {
  const Library library = small_library();
  struct Case {
    std::vector<double> shares;
    int npus;
    std::vector<int> parts;
  };
  for (const Case& one : {Case{{1, 1}, 20, {10, 10}},
                          {{2, 1}, 30, {20, 10}},
                          {{2, 1}, 12, {8, 4}},
                          {{1, 3}, 32, {8, 24}},
                          {{1, 1, 2}, 40, {10, 10, 20}},
                          {{0.5, 1, 0.25}, 35, {10, 20, 5}}}) {
    std::vector<RequestTrace> traces(one.shares.size(), prompts(6000, {}, 1_ms));
    const Deployment deployment = scaled(100);
    ServiceOptions options;
    options.sample = 100_ms;
    std::vector<SharingService> services;
    for (std::size_t k = 0; k < one.shares.size(); ++k)
      services.push_back({"one", traces[k], deployment, library, options, one.shares[k]});
    const std::vector<ServiceResult> results = serve_together(services, {one.npus}).services;
    std::map<Time, int> sums;
    for (std::size_t k = 0; k < one.shares.size(); ++k) {
      EXPECT_GT(results[k].denied, 0);
      int most = 0;
      for (const Occupancy& o : results[k].occupancy) {
        sums[o.at] += o.prefill_instances + 2 * o.decode_instances;
        // As long as all of them want more.
        if (o.at < 25_s) most = std::max(most, o.prefill_instances + 2);
      }
      EXPECT_EQ(most, one.parts[k]) << k << " of " << one.shares.size() << ", " << one.npus;
    }
    for (const auto& [at, sum] : sums) EXPECT_LE(sum, one.npus) << at.us();
  }
}

// The first has the only free NPU until its prompts are answered; then the second one has it.
TEST(Beside, NpusGoToOthersWhenTheyAreNotNeeded) {
  const Library library = small_library();
  const RequestTrace first = prompts(80, {}, 1_ms), second = prompts(300, 1_ms, 1_ms);
  const Deployment deployment = scaled(5);
  ServiceOptions options;
  options.sample = 10_ms;
  std::vector<SharingService> services{{"first", first, deployment, library, options},
                                       {"second", second, deployment, library, options}};
  const std::vector<ServiceResult> results = serve_together(services, {2 * kOwn + 1}).services;
  EXPECT_EQ(results[0].scaled_up, 1);
  EXPECT_EQ(results[1].scaled_up, 1);
  // Ten prompts a second, from 1.3 s on twenty: 80 prompts end at about 4.7 s, so that the look at 5 s ends
  // it.
  EXPECT_NEAR(results[0].end.us() * 1e-6, 4.7, 0.15);
  const auto had_two = std::ranges::find(results[1].occupancy, 2, &Occupancy::prefill_instances);
  ASSERT_NE(had_two, results[1].occupancy.end());
  EXPECT_NEAR(had_two->at.us() * 1e-6, 5.3, 0.02);
  EXPECT_GE(results[1].denied, 4);
}

// The first had three free ones, of which its last look ends one: the others are free as well.
TEST(Beside, AServiceThatHasAnsweredAllKeepsNone) {
  const Library library = small_library();
  const RequestTrace first = prompts(100, {}, 1_ms), second = prompts(400, 5500_ms, 1_ms);
  const Deployment deployment = scaled(5);
  ServiceOptions options;
  options.sample = 10_ms;
  std::vector<SharingService> services{{"first", first, deployment, library, options},
                                       {"second", second, deployment, library, options}};
  const std::vector<ServiceResult> results = serve_together(services, {2 * kOwn + 3}).services;
  const auto most = [&](std::size_t k) {
    return std::ranges::max(results[k].occupancy, {}, &Occupancy::prefill_instances).prefill_instances;
  };
  EXPECT_LT(results[0].end, 5_s);
  EXPECT_EQ(most(0), 4);
  EXPECT_EQ(most(1), 4);
}

TEST(Beside, BeyondItsPartAServiceTakesWhatNobodyElseIsDueTo) {
  NpuBudget budget(10, {{4, 1}, {4, 1}});
  EXPECT_EQ(budget.free(), 2);
  EXPECT_FALSE(budget.acquire(0, false, 4, {})) << "there are two";
  EXPECT_TRUE(budget.acquire(1, true, 1, {})) << "the fifth of five";
  // The other one wants an instance of four, which is more than it is due to.
  EXPECT_TRUE(budget.acquire(1, true, 1, {}));
  EXPECT_EQ(budget.free(), 0);
  budget.release(1, 1, {});
  EXPECT_TRUE(budget.acquire(0, true, 1, {}));
  budget.release(0, 1, {});
  // It may want one more, and is due to it.
  EXPECT_FALSE(budget.acquire(1, true, 1, {}));
  budget.withdraw(0, true);
  EXPECT_TRUE(budget.acquire(1, true, 1, {}));
  EXPECT_EQ(budget.denied(0), 1);
  EXPECT_EQ(budget.denied(1), 1);
}

// A day of 60 NPUs for the service and a night of 20, of 100: sizes of 40 and 80.
TEST(Training, OfASquareDayAndNightTrainsWhatChangesLeave) {
  const TrainingTimes times{60_s, 83_s, 600_s};
  TrainingBeside training({{40, 1000}, {80, 1900}}, times, 80);
  const Time half = 43'200_s;
  Time now = half;  // a night has passed
  constexpr int kDays = 5;
  for (int day = 0; day < kDays; ++day) {
    training.yield(40, now);
    EXPECT_EQ(training.held(), 80);
    training.yield(40, now + 60_s);
    EXPECT_EQ(training.held(), 40);
    training.set_free(40, now + 60_s);
    training.set_free(80, now + half);
    now = now + half + half;
  }
  training.finish(now);
  const double by_day = 1000 * (43'200 - 60 - 83), by_night = 1000 * 600 + 1900 * (43'200 - 600 - 60 - 83);
  EXPECT_NEAR(training.tokens(), 1900.0 * 43'200 + kDays * (by_day + by_night), 1e-3);
  EXPECT_EQ(training.changes(), 2 * kDays);
  // It holds what it had until it has left it, and the larger size from the end of its checkpoint on.
  EXPECT_NEAR(training.npu_s(), 80.0 * 43'200 + kDays * (40.0 * 86'400 + 40 * 60 + 40 * (43'200 - 660)),
              1e-3);
  EXPECT_EQ(training.tokens_s_on(79), 1000);
  EXPECT_EQ(training.tokens_s_on(39), 0);
}

// The same second by second.
class TrainingModel {
 public:
  TrainingModel(std::vector<TrainingSize> sizes, int release, int resume, int hold, int free)
      : sizes_(std::move(sizes)), release_(release), resume_(resume), hold_(hold), free_(free) {
    size_ = largest(free);
  }
  void yield(int wanted) {
    if (free_ - held() >= wanted) return;
    const int size = largest(free_ - wanted);
    if (releases_) {
      next_ = std::min(next_, size);
    } else {
      releases_ = true, left_ = release_, next_ = size, ++changes;
    }
    change();
  }
  void set_free(int free) {
    if (largest(free) != largest(free_)) same_ = 0;
    free_ = free;
  }
  void second() {
    npu_s += held();
    if (!releases_ && pause_ == 0 && size_ >= 0) tokens += sizes_[static_cast<std::size_t>(size_)].tokens_s;
    left_ = std::max(0, left_ - 1);
    pause_ = std::max(0, pause_ - 1);
    ++same_;
    change();
  }
  int held() const { return size_ < 0 ? 0 : sizes_[static_cast<std::size_t>(size_)].npus; }
  double tokens = 0, npu_s = 0;
  std::int64_t changes = 0;

 private:
  int largest(int npus) const {
    int found = -1;
    for (const TrainingSize& size : sizes_) found += size.npus <= npus ? 1 : 0;
    return found;
  }
  void change() {
    for (;;) {
      if (releases_ && left_ == 0) {
        releases_ = false;
        size_ = std::min(next_, largest(free_));
        pause_ = resume_;
        same_ = 0;
      } else if (!releases_ && pause_ == 0 && largest(free_) > size_ && same_ >= hold_) {
        ++changes;
        next_ = largest(free_);
        if (size_ < 0) {
          size_ = next_;
          pause_ = resume_;
        } else {
          releases_ = true;
          left_ = release_;
        }
      } else {
        return;
      }
    }
  }
  std::vector<TrainingSize> sizes_;
  int release_, resume_, hold_, free_, size_ = -1, next_ = -1, left_ = 0, pause_ = 0, same_ = 0;
  bool releases_ = false;
};

TEST(Training, ShrinksAndGrowsAsSecondBySecond) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::int64_t changes = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<TrainingSize> sizes{{10 + below(5), 100}, {30, 250}, {50 + below(10), 400}};
    const int release = below(6), resume = below(9), hold = 1 + below(20);
    int free = below(80);
    const auto seconds_of = [](int s) { return 1_s * s; };
    TrainingBeside training(sizes, {seconds_of(release), seconds_of(resume), seconds_of(hold)}, free);
    TrainingModel model(sizes, release, resume, hold, free);
    int at = 0;
    for (; at < 2000; ++at, model.second()) {
      if (below(12) > 0) continue;
      if (free > 0 && below(2) == 0) {
        const int wanted = 1 + below(free);
        training.yield(wanted, seconds_of(at));
        model.yield(wanted);
      } else {
        training.yield(0, seconds_of(at));  // what it holds by now
        free = model.held() + below(80 - model.held());
        training.set_free(free, seconds_of(at));
        model.set_free(free);
      }
      ASSERT_EQ(training.held(), model.held()) << trial << " at " << at;
    }
    training.finish(seconds_of(at));
    EXPECT_NEAR(training.tokens(), model.tokens, 1e-6 * model.tokens) << trial;
    EXPECT_NEAR(training.npu_s(), model.npu_s, 1e-6 * model.npu_s) << trial;
    EXPECT_EQ(training.changes(), model.changes) << trial;
    changes += model.changes;
  }
  EXPECT_GT(changes, 2000);
}

// One that leaves at once takes nothing from a service; one that does not delays it, and has its NPUs at
// other times: together they never have more than there are.
TEST(Training, HasWhatTheServiceLeaves) {
  const Library library = small_library();
  const RequestTrace trace = prompts(3000, {}, 20_ms);
  const Deployment deployment = scaled(7);
  std::vector<SharingService> services{{"one", trace, deployment, library, {}}};
  const ServiceResult alone = serve_together(services, {12}).services[0];
  const auto beside = [&](Time release) {
    return serve_together(services, {12, false, {{3, 10}, {9, 30}}, {release, 1_s, 5_s}});
  };
  const SharedResult at_once = beside({});
  EXPECT_EQ(at_once.services[0].end, alone.end);
  EXPECT_EQ(at_once.services[0].request_seconds, alone.request_seconds);
  EXPECT_EQ(at_once.services[0].denied, 0);
  EXPECT_GT(at_once.training.changes, 0);
  const SharedResult late = beside(4_s);
  EXPECT_GT(late.services[0].denied, 0);
  EXPECT_GT(late.services[0].request_seconds, alone.request_seconds);
  for (const SharedResult* result : {&at_once, &late}) {
    const ServiceResult& service = result->services[0];
    EXPECT_LE(result->training.npu_s + service.prefill_pool_s + 2 * service.decode_pool_s,
              12 * result->training.seconds * (1 + 1e-9));
    EXPECT_LT(result->training.tokens, 30 * result->training.seconds);
    EXPECT_GT(result->training.tokens, 0);
    EXPECT_EQ(result->training.fixed_tokens_s, 10) << "of nine free ones the service had all but three";
  }
}

TEST(Training, RefusesSizesThatDoNotRise) {
  EXPECT_EQ(training_sizes("64:20000,128:39000.5")[1].tokens_s, 39000.5);
  for (const char* text : {"", "64", "64:0", "0:5", "64:1,64:2", "64:1,32:2", "64:1:2", "x:1", "64:-1"})
    EXPECT_THROW(training_sizes(text), InputError) << text;
}

// Blocks of two services in one memory service.
TEST(SharedBlocks, WithHalfOfItEachIsAsWithAHalfOfItsOwn) {
  DrawnRequests drawn;
  drawn.rate = 20;
  drawn.duration = 60_s;
  drawn.prompt = "uniform:200:900";
  drawn.output = "uniform:1:50";
  drawn.turns = 4;
  drawn.block_tokens = 64;
  const RequestTrace first = draw_requests(drawn);
  drawn.seed = 2;
  const RequestTrace second = draw_requests(drawn);
  Deployment deployment = small_deployment();
  deployment.cache.on = true;
  deployment.cache.servers = 1;
  const std::int64_t block = 64 * deployment.decode.token.count;
  const Library library = small_library();
  const auto hits = [](const ServiceResult& result) {
    return std::tuple(result.cache.dram_hits, result.cache.ssd_hits, result.cache.asked, result.end);
  };
  const auto together = [&](double quota) {
    Deployment shared = deployment;
    shared.cache.dram = Bytes{200 * block};
    shared.cache.evs = Bytes{600 * block};
    shared.cache.quota = quota;
    ServiceOptions options;
    options.allow_extrapolation = true;
    std::vector<SharingService> services{{"first", first, shared, library, options},
                                         {"second", second, shared, library, options}};
    return serve_together(services, {100, true}).services;
  };
  const std::vector<ServiceResult> halves = together(0.5), open = together(1);
  deployment.cache.dram = Bytes{100 * block};
  deployment.cache.evs = Bytes{300 * block};
  ServiceOptions options;
  options.allow_extrapolation = true;
  const ServiceResult alone[] = {serve(first, deployment, library, options),
                                 serve(second, deployment, library, options)};
  for (const std::size_t k : {0u, 1u}) {
    EXPECT_EQ(hits(halves[k]), hits(alone[k]));
    EXPECT_NE(hits(open[k]), hits(alone[k]));
    EXPECT_GT(halves[k].cache.dram_hits, 100);
    EXPECT_GT(halves[k].cache.ssd_hits, 100);
  }
  deployment.cache.scope = "instance";
  std::vector<SharingService> services{{"first", first, deployment, library, options}};
  EXPECT_THROW(serve_together(services, {100, true}), InputError);
}

TEST(Beside, RefusesDeploymentsThatHaveMoreTogether) {
  const Library library = small_library();
  const RequestTrace trace = prompts(1, {}, {});
  const Deployment deployment = scaled(5);
  std::vector<SharingService> services{{"one", trace, deployment, library, {}},
                                       {"other", trace, deployment, library, {}}};
  EXPECT_EQ(serve_together(services, {2 * kOwn}).services.size(), 2u);
  try {
    serve_together(services, {2 * kOwn - 1});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("have 6 NPUs together; allowed: at most 5"));
  }
  // What one of them cannot serve is said of it.
  RequestTrace large = trace;
  large.requests[0].prompt = 1'000'000;
  large.requests[0].output = 1'000'000;
  services.push_back({"third", large, deployment, library, {}});
  try {
    serve_together(services, {100});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("third: request 0: "));
  }
}

}  // namespace
}  // namespace cm384::service::beside_test
