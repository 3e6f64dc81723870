// Pools that follow their load, against a model that goes from event to event, instance by instance.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/simulation.h"

namespace cm384::service::scaling_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kTokenPs = 97'003'000, kStepPs = 10'000'000'000, kLookPs = 1'000'000'000'003,
                       kStartPs = 2'300'000'000'007, kSwitchPs = 1'700'000'000'011;

struct Asked {
  std::int64_t at = 0;
  int prompt = 0, output = 1;
};
struct Pools {
  int prefill = 1, decode = 1, ratio = 1, slots = 4, room = 1000;  // slots and tokens of a die
  int most = 0, decode_most = 0;
  bool move = false;
  std::int64_t up_tokens = 0;
  double up = 0.9, down = 0.5;
};

// Prompts one at a time, in the order in which they came; a token a step; a context's way takes no time.
class ScaledModel {
 public:
  ScaledModel(const std::vector<Asked>& asked, const Pools& pools)
      : done(asked.size()), asked_(asked), pools_(pools), dies_(2 * pools.ratio) {
    for (int k = 0; k < pools.prefill; ++k) add_prefill(0);
    for (int k = 0; k < pools.decode; ++k) add_decode(0);
    for (std::size_t k = 0; k < asked.size(); ++k)
      at(asked[k].at, [this, k] {
        queue_.push_back(k);
        compute();
      });
    at(kLookPs, [this] { look(); });
    for (; !events_.empty(); events_.erase(events_.begin())) {
      now_ = events_.begin()->first.first;
      events_.begin()->second();
    }
    for (const Computer& one : computers_) prefill_s += seconds(one.since, one.until);
    for (const Stepper& one : steppers_) decode_s += seconds(one.since, one.until);
  }

  std::vector<std::int64_t> done;
  int up = 0, down = 0, decode_up = 0, decode_down = 0, moved = 0, moved_back = 0;
  double prefill_s = 0, decode_s = 0;

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  // Why an instance takes nothing more: it ends, or it is one of those that change their pool together.
  struct Leaver {
    bool closed = false;
    int change = -1;
    std::int64_t since = 0, until = kNever;
  };
  struct Computer : Leaver {
    std::optional<std::size_t> prompt;
    int contexts = 0;
  };
  struct Die {
    int promised = 0, tokens = 0;
    std::vector<std::size_t> here;
  };
  struct Stepper : Leaver {
    std::vector<Die> dies;
    std::vector<std::pair<std::size_t, std::size_t>> joining;  // request, die
    bool steps = false;
  };

  void at(std::int64_t when, std::function<void()> what) { events_.emplace(std::pair(when, turn_++), what); }
  double seconds(std::int64_t since, std::int64_t until) const {
    const std::int64_t end = std::ranges::max(done);
    return std::max(0.0, static_cast<double>(std::min(until, end) - since) * 1e-12);
  }
  void add_prefill(std::int64_t since) { computers_.emplace_back().since = since; }
  void add_decode(std::int64_t since) {
    steppers_.emplace_back().since = since;
    steppers_.back().dies.resize(static_cast<std::size_t>(dies_));
  }
  int size_of(std::size_t k) const { return asked_[k].prompt + asked_[k].output; }

  void compute() {
    for (std::size_t i = 0; i < computers_.size(); ++i) {
      if (computers_[i].closed || computers_[i].prompt || queue_.empty()) continue;
      const std::size_t k = queue_.front();
      queue_.pop_front();
      computers_[i].prompt = k;
      at(now_ + asked_[k].prompt * kTokenPs, [this, i, k] {
        computers_[i].prompt.reset();
        if (asked_[k].output == 1) {
          done[k] = now_;
          ++ended_;
        } else {
          ready_.emplace_back(k, i);
          ++computers_[i].contexts;
        }
        send();
        compute();
        drain(computers_[i]);
      });
    }
  }

  void send() {
    for (; !ready_.empty(); ready_.pop_front()) {
      const auto [k, from] = ready_.front();
      std::optional<std::pair<std::size_t, std::size_t>> best;
      for (std::size_t i = 0; i < steppers_.size(); ++i) {
        if (steppers_[i].closed) continue;
        std::optional<std::size_t> own;
        const auto& dies = steppers_[i].dies;
        for (std::size_t d = 0; d < dies.size(); ++d) {
          if (dies[d].promised == pools_.slots || dies[d].tokens + size_of(k) > pools_.room) continue;
          if (!own ||
              std::pair(dies[d].promised, dies[d].tokens) < std::pair(dies[*own].promised, dies[*own].tokens))
            own = d;
        }
        if (own && (!best || dies[*own].promised < steppers_[best->first].dies[best->second].promised))
          best = {i, *own};
      }
      if (!best) return;
      const auto [i, d] = *best;
      ++steppers_[i].dies[d].promised;
      steppers_[i].dies[d].tokens += size_of(k);
      at(now_, [this, k = k, from = from, i = i, d = d] {
        steppers_[i].joining.emplace_back(k, d);
        step(i);
        --computers_[from].contexts;
        drain(computers_[from]);
      });
    }
  }

  void step(std::size_t i) {
    Stepper& of = steppers_[i];
    if (of.steps) return;
    for (const auto& [k, d] : of.joining) of.dies[d].here.push_back(k);
    of.joining.clear();
    of.steps = std::ranges::any_of(of.dies, [](const Die& die) { return !die.here.empty(); });
    if (of.steps) at(now_ + kStepPs, [this, i] { end_step(i); });
  }

  void end_step(std::size_t i) {
    steppers_[i].steps = false;
    for (Die& die : steppers_[i].dies) {
      std::erase_if(die.here, [&](std::size_t k) {
        if (++made_[k] < asked_[k].output - 1) return false;
        done[k] = now_;
        ++ended_;
        --die.promised;
        die.tokens -= size_of(k);
        return true;
      });
    }
    send();
    step(i);
    drain(steppers_[i]);
  }

  void drain(Computer& one) {
    if (!one.prompt && one.contexts == 0) leave(one);
  }
  void drain(Stepper& one) {
    if (std::ranges::all_of(one.dies, [](const Die& die) { return die.promised == 0; })) leave(one);
  }
  void leave(Leaver& one) {
    if (!one.closed || one.until != kNever) return;
    one.until = now_;
    if (one.change < 0 || --open_[static_cast<std::size_t>(one.change)] > 0) return;
    const bool was_prefill = to_decode_[static_cast<std::size_t>(one.change)];
    at(now_ + kSwitchPs, [this, was_prefill] {
      changing_ = false;
      if (was_prefill) {
        add_decode(now_);
        send();
      } else {
        for (int k = 0; k < pools_.ratio; ++k) add_prefill(now_);
        compute();
      }
    });
  }

  void look() {
    std::int64_t waiting = 0;
    for (const std::size_t k : queue_) waiting += asked_[k].prompt;
    std::vector<std::size_t> idle;
    int open = 0, decode_open = 0;
    for (std::size_t i = 0; i < computers_.size(); ++i) {
      if (computers_[i].closed) continue;
      ++open;
      if (!computers_[i].prompt && queue_.empty()) idle.push_back(i);
    }
    double requests = static_cast<double>(ready_.size()), tokens = 0;
    for (const auto& [k, from] : ready_) tokens += size_of(k);
    std::optional<std::size_t> emptiest;
    int fewest = INT32_MAX;
    for (std::size_t i = 0; i < steppers_.size(); ++i) {
      if (steppers_[i].closed) continue;
      ++decode_open;
      int own = 0;
      for (const Die& die : steppers_[i].dies) {
        own += die.promised;
        tokens += die.tokens;
      }
      requests += own;
      if (own <= fewest) fewest = own, emptiest = i;
    }
    const double used = std::max(requests / (pools_.slots * dies_), tokens / (1.0 * pools_.room * dies_));
    const bool spare = decode_open > 1 && used < pools_.down * (decode_open - 1);
    if (pools_.move && !changing_) {
      const auto ratio = static_cast<std::size_t>(pools_.ratio);
      if (waiting > pools_.up_tokens * open) {
        if (spare) {
          ++moved_back;
          change({}, emptiest);
        }
      } else if (used > pools_.up * decode_open && waiting == 0 && idle.size() >= ratio &&
                 open > pools_.ratio) {
        ++moved;
        change({idle.end() - pools_.ratio, idle.end()}, {});
      }
    }
    if (pools_.most > 0) {
      if (waiting > pools_.up_tokens * (open + starting_) && open + starting_ < pools_.most) {
        ++up;
        ++starting_;
        at(now_ + kStartPs, [this] {
          --starting_;
          add_prefill(now_ - kStartPs);
          compute();
        });
      } else if (waiting == 0 && !idle.empty() && open > pools_.prefill) {
        ++down;
        computers_[idle.back()].closed = true;
        drain(computers_[idle.back()]);
      }
    }
    if (pools_.decode_most > 0) {
      const int there = decode_open + decode_starting_;
      if (used > pools_.up * there && there < pools_.decode_most) {
        ++decode_up;
        ++decode_starting_;
        at(now_ + kStartPs, [this] {
          --decode_starting_;
          add_decode(now_ - kStartPs);
          send();
        });
      } else if (decode_starting_ == 0 && decode_open > pools_.decode && spare) {
        ++decode_down;
        steppers_[*emptiest].closed = true;
        drain(steppers_[*emptiest]);
      }
    }
    if (ended_ < asked_.size()) at(now_ + kLookPs, [this] { look(); });
  }

  void change(const std::vector<std::size_t>& prefill, const std::optional<std::size_t>& decode) {
    changing_ = true;
    const int number = static_cast<int>(open_.size());
    open_.push_back(decode ? 1 : static_cast<int>(prefill.size()));
    to_decode_.push_back(!decode);
    const auto close = [&](auto& one) {
      one.closed = true;
      one.change = number;
      drain(one);
    };
    for (const std::size_t i : prefill) close(computers_[i]);
    if (decode) close(steppers_[*decode]);
  }

  const std::vector<Asked>& asked_;
  const Pools& pools_;
  int dies_;
  std::deque<Computer> computers_;
  std::deque<Stepper> steppers_;
  std::deque<std::size_t> queue_;
  std::deque<std::pair<std::size_t, std::size_t>> ready_;  // request, instance that computed it
  std::map<std::size_t, int> made_;
  std::vector<int> open_;
  std::vector<bool> to_decode_;
  bool changing_ = false;
  int starting_ = 0, decode_starting_ = 0;
  std::size_t ended_ = 0;
  std::map<std::pair<std::int64_t, int>, std::function<void()>> events_;
  int turn_ = 0;
  std::int64_t now_ = 0;
};

// Steps of 10 ms whatever is in them.
Library even_library(int dies) {
  Library library("small");
  for (const int batch : {8, 32, 64})
    library.add(DecodePoint{dies, batch, 1024, 1, 2, 10, 3, 10, 100, 130, "run decode", "0"});
  for (const int sequences : {2, 16})
    for (const int kv : {128, 65'536}) library.add(AttentionPoint{sequences, kv, 1, 10, "run mla", "0"});
  return library;
}

// Days with many requests and nights with few; prompts are long in the first half, answers in the second.
// `turns`: long prompts and long answers by turns, one hundred requests each, all by day.
std::vector<Asked> draw_days(std::mt19937& random, bool turns) {
  std::vector<Asked> asked;
  std::int64_t at = 0;
  for (int k = 0; k < 400; ++k) {
    const bool day = turns || k / 100 % 2 == 0, prompts = turns ? k / 100 % 2 == 0 : k < 200;
    asked.push_back({at, 1 + static_cast<int>(random() % (prompts ? 1500 : 300)),
                     1 + static_cast<int>(random() % (prompts ? 30 : 300))});
    const std::uint64_t gap = turns && prompts ? 40'000'000'000 : day ? 80'000'000'000 : 500'000'000'000;
    at += 1 + static_cast<std::int64_t>((std::uint64_t{random()} << 16) % gap);
  }
  return asked;
}

Deployment deployment_of(const Pools& pools) {
  Deployment deployment = small_deployment();
  deployment.prefill.instances = pools.prefill;
  deployment.prefill.sequences = 1;
  deployment.prefill.batch_time = {1000 * kTokenPs};
  deployment.decode.instances = pools.decode;
  deployment.decode.npus = pools.ratio;
  deployment.decode.batch = 2 * pools.slots;
  deployment.decode.acceptance = 0;
  deployment.decode.kv_room = Bytes{1000 * pools.room};
  deployment.recovery.role_switch = {kSwitchPs};
  deployment.scale.most = pools.most;
  deployment.scale.decode_most = pools.decode_most;
  deployment.scale.move = pools.move;
  deployment.scale.up_tokens = pools.up_tokens;
  deployment.scale.up_use = pools.up;
  deployment.scale.down_use = pools.down;
  deployment.scale.interval = {kLookPs};
  deployment.scale.start = {kStartPs};
  return deployment;
}

TEST(PoolScaling, OfBothPoolsIsThatOfItsModel) {
  std::mt19937 random(41);
  int up = 0, down = 0, decode_up = 0, decode_down = 0, moved = 0, moved_back = 0, by_room = 0;
  for (int trial = 0; trial < 120; ++trial) {
    Pools pools;
    pools.move = trial % 3 == 2;
    pools.ratio = 1 + trial % 2;
    pools.prefill = 1 + static_cast<int>(random() % 2) + (pools.move ? pools.ratio : 0);
    pools.decode = 1 + static_cast<int>(random() % 2) + (pools.move ? 1 : 0);
    pools.slots = 2 + static_cast<int>(random() % 6);
    pools.room = 1800 + static_cast<int>(random() % 1500);
    pools.up_tokens = 500 + static_cast<std::int64_t>(random() % 2000);
    pools.up = 0.3 + 0.1 * static_cast<double>(random() % 7);
    pools.down = 0.2 + 0.1 * static_cast<double>(random() % 6);
    if (trial % 3 == 0) pools.most = pools.prefill + 1 + static_cast<int>(random() % 3);
    if (!pools.move) pools.decode_most = pools.decode + 1 + static_cast<int>(random() % 3);
    const std::vector<Asked> asked = draw_days(random, pools.move);
    RequestTrace trace;
    for (const Asked& one : asked) {
      Request& request = trace.requests.emplace_back();
      request.arrival = {one.at};
      request.prompt = one.prompt;
      request.output = one.output;
    }
    ServiceOptions options;
    options.rdma = {4'000'000'000'000'000'000};
    const ServiceResult result = serve(trace, deployment_of(pools), even_library(2 * pools.ratio), options);
    const ScaledModel model(asked, pools);
    for (std::size_t k = 0; k < asked.size(); ++k)
      ASSERT_EQ(result.served[k].done.ps, model.done[k]) << trial << " " << k;
    // The last look may end some more, when nothing else is to come.
    EXPECT_EQ(result.scaled_up, model.up) << trial;
    EXPECT_EQ(result.decode_scaled_up, model.decode_up) << trial;
    EXPECT_NEAR(static_cast<double>(result.scaled_down), model.down, 1) << trial;
    EXPECT_NEAR(static_cast<double>(result.decode_scaled_down), model.decode_down, 1) << trial;
    EXPECT_NEAR(static_cast<double>(result.role_switches), model.moved + model.moved_back, 1) << trial;
    EXPECT_NEAR(result.prefill_pool_s, model.prefill_s, 1e-6 * model.prefill_s) << trial;
    EXPECT_NEAR(result.decode_pool_s, model.decode_s, 1e-6 * model.decode_s) << trial;
    up += model.up;
    down += model.down;
    decode_up += model.decode_up;
    decode_down += model.decode_down;
    moved += model.moved;
    moved_back += model.moved_back;
    by_room += model.decode_up > 0 && 2 * pools.slots * 900 > pools.room ? 1 : 0;
  }
  EXPECT_GT(up, 50);
  EXPECT_GT(down, 40);
  EXPECT_GT(decode_up, 80);
  EXPECT_GT(decode_down, 60);
  EXPECT_GT(moved, 30);
  EXPECT_GT(moved_back, 30);
  EXPECT_GT(by_room, 20);
}

// Samples show the pools as they come and go.
TEST(PoolScaling, ShowsItsInstances) {
  Pools pools;
  pools.decode_most = 3;
  pools.slots = 2;
  pools.room = 2000;
  pools.up_tokens = 1'000'000;
  RequestTrace trace;
  for (int k = 0; k < 12; ++k) {
    Request& request = trace.requests.emplace_back();
    request.prompt = 10;
    request.output = 601;  // six seconds
  }
  ServiceOptions options;
  options.rdma = {4'000'000'000'000'000'000};
  options.sample = 100_ms;
  const ServiceResult result = serve(trace, deployment_of(pools), even_library(2), options);
  // 12 requests wait for four slots at the first look: one more at each of the next three, as far as three.
  EXPECT_EQ(result.decode_scaled_up, 2);
  std::map<std::int32_t, Time> first;
  for (const Occupancy& o : result.occupancy) first.try_emplace(o.decode_instances, o.at);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_NEAR(first[2].us() * 1e-6, 3.35, 0.06);
  EXPECT_NEAR(first[3].us() * 1e-6, 4.35, 0.06);
  for (const Occupancy& o : result.occupancy) EXPECT_EQ(o.prefill_instances, 1);
}

TEST(PoolScaling, RefusesWhatHasNoEffect) {
  const auto refusal = [](const std::vector<std::string>& changes) -> std::string {
    try {
      load_deployment(std::string(kPublishedDeployment), changes);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({"scale.up_use=0.8"}), HasSubstr("scale.up_use: has no effect; allowed: with"));
  EXPECT_THAT(refusal({"scale.most=8", "scale.down_use=0.3"}), HasSubstr("scale.down_use: has no effect"));
  EXPECT_THAT(refusal({"scale.decode_most=2", "scale.up_tokens=9"}),
              HasSubstr("scale.up_tokens: has no effect"));
  EXPECT_EQ(refusal({"scale.decode_most=2", "scale.up_use=0.8", "scale.start=5s", "scale.interval=5s"}), "");
  EXPECT_THAT(refusal({"scale.decode_most=1"}), HasSubstr("more than decode.instances, 1"));
  EXPECT_THAT(refusal({"scale.move=true"}), HasSubstr("2 or more of decode, or 11 or more of prefill"));
  EXPECT_EQ(refusal({"scale.move=true", "prefill.instances=11", "scale.up_tokens=9"}), "");
  EXPECT_EQ(refusal({"scale.move=true", "decode.instances=2", "scale.down_use=0.3"}), "");
  EXPECT_THAT(refusal({"scale.move=true", "decode.instances=2", "scale.start=5s"}),
              HasSubstr("scale.start: has no effect"));
  EXPECT_THAT(refusal({"scale.move=true", "decode.instances=2", "scale.most=9"}),
              HasSubstr("with scale.most or scale.decode_most"));
  EXPECT_THAT(refusal({"scale.move=true", "decode.instances=2", "prefill.npus=9"}),
              HasSubstr("multiples of prefill.npus, 9"));
  EXPECT_THAT(refusal({"prefill.pool=decode", "scale.decode_most=2"}),
              HasSubstr("scale.decode_most: has no effect with prefill.pool = decode"));
  // An instance that a plan names may be another one by then.
  Pools pools;
  pools.decode = 2;
  pools.decode_most = 3;
  ServiceOptions options;
  options.faults.switches.push_back({false, 1, 1, 1_s});
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 10;
  EXPECT_THROW(serve(trace, deployment_of(pools), even_library(2), options), InputError);
}

}  // namespace
}  // namespace cm384::service::scaling_test
