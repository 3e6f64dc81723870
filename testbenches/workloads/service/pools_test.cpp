// Routes of prompts, warm caches, and one pool for prompts and answers, against small models of their own.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/simulation.h"

namespace cm384::service::pools_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kPromptTokenPs = 97'003'000, kBlock = 100;

// Steps of 10 ms whatever is in them.
Library constant_steps(int dies = 2) {
  Library library("small");
  for (const int batch : {8, 32, 64})
    library.add(DecodePoint{dies, batch, 1024, 1, 2, 10, 3, 10, 100, 130, "run decode", "0"});
  for (const int sequences : {2, 16})
    for (const int kv : {128, 65'536}) library.add(AttentionPoint{sequences, kv, 1, 10, "run mla", "0"});
  return library;
}
constexpr std::int64_t kStepPs = 10'000'000'000;

struct Prompted {
  std::int64_t at = 0;
  int prompt = 0, output = 1;
  std::vector<std::uint64_t> keys;
};

RequestTrace trace_of(const std::vector<Prompted>& asked) {
  RequestTrace trace;
  trace.block_tokens = kBlock;
  for (const Prompted& one : asked) {
    Request& request = trace.requests.emplace_back();
    request.arrival = {one.at};
    request.prompt = one.prompt;
    request.output = one.output;
    request.first_block = static_cast<std::uint32_t>(trace.keys.size());
    request.blocks = static_cast<std::uint32_t>(one.keys.size());
    trace.keys.insert(trace.keys.end(), one.keys.begin(), one.keys.end());
  }
  return trace;
}

// From 1 ps on.
std::int64_t draw_gap(std::mt19937& random, std::int64_t most) {
  return 1 + static_cast<std::int64_t>((std::uint64_t{random()} << 20) % static_cast<std::uint64_t>(most));
}

// Conversations of a few groups, each with a prefix of its own.
std::vector<Prompted> draw_groups(std::mt19937& random, int count, int groups, std::int64_t gap) {
  std::vector<Prompted> asked;
  std::int64_t at = 0;
  for (int k = 0; k < count; ++k) {
    const auto group = random() % static_cast<unsigned>(groups);
    const int blocks = 1 + static_cast<int>(random() % 12);
    Prompted one{at, static_cast<int>(kBlock) * blocks + static_cast<int>(random() % 100), 1, {}};
    for (int b = 0; b < blocks; ++b)
      one.keys.push_back(b < 8 ? group * 1000 + static_cast<unsigned>(b)
                               : 1'000'000u + static_cast<unsigned>(k) * 100u + static_cast<unsigned>(b));
    asked.push_back(one);
    at += draw_gap(random, gap);
  }
  return asked;
}

struct First {
  std::int64_t token = 0;
  int instance = 0, cached = 0;
  bool operator==(const First&) const = default;
};
void PrintTo(const First& first, std::ostream* out) {
  *out << first.token << "@" << first.instance << "/" << first.cached;
}

// Instances with a queue and a cache without limit each; whole prompts, 1,000 tokens a batch, cached ones
// too.
std::vector<First> routed(const std::vector<Prompted>& asked, const std::string& route, int instances,
                          bool own) {
  struct Instance {
    std::deque<std::size_t> queue;
    std::vector<std::size_t> batch;
    std::int64_t end = 0, load = 0;
  };
  std::vector<Instance> all(static_cast<std::size_t>(instances));
  std::vector<std::set<std::uint64_t>> caches(own ? all.size() : 1);
  std::vector<First> first(asked.size());
  std::vector<std::int64_t> cost(asked.size());
  const auto cached = [&](std::size_t i, std::size_t k) {
    const auto& cache = caches[own ? i : 0];
    std::int64_t tokens = 0;
    for (const std::uint64_t key : asked[k].keys) {
      if (!cache.contains(key)) break;
      tokens += kBlock;
    }
    return std::min<std::int64_t>(tokens, asked[k].prompt - 1);
  };
  const auto start = [&](std::size_t i, std::int64_t now) {
    Instance& at = all[i];
    if (!at.batch.empty() || at.queue.empty()) return;
    std::int64_t tokens = 0, ps = 0;
    while (!at.queue.empty()) {
      const std::size_t k = at.queue.front();
      if (!at.batch.empty() && tokens + asked[k].prompt > 1000) break;
      const std::int64_t known = cached(i, k);
      tokens += asked[k].prompt;
      ps += (asked[k].prompt - known) * kPromptTokenPs + known;  // read at 1 PB/s, 1,000 B a token
      first[k].instance = static_cast<int>(i);
      first[k].cached = static_cast<int>(known);
      at.batch.push_back(k);
      at.queue.pop_front();
    }
    at.end = now + ps;
  };
  std::size_t next = 0, turn = 0;
  while (true) {
    std::size_t soonest = all.size();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].batch.empty() && (soonest == all.size() || all[i].end < all[soonest].end)) soonest = i;
    if (next < asked.size() && (soonest == all.size() || asked[next].at < all[soonest].end)) {
      const std::size_t k = next++;
      std::size_t best = 0;
      if (route == "round-robin") {
        best = turn++ % all.size();
      } else {
        const auto own_cost = [&](std::size_t i) {
          return asked[k].prompt - (route == "prefix" ? cached(i, k) : 0);
        };
        for (std::size_t i = 1; i < all.size(); ++i)
          if (all[i].load + own_cost(i) < all[best].load + own_cost(best)) best = i;
        cost[k] = own_cost(best);
        all[best].load += cost[k];
      }
      all[best].queue.push_back(k);
      for (std::size_t i = 0; i < all.size(); ++i) start(i, asked[k].at);
    } else if (soonest < all.size()) {
      Instance& at = all[soonest];
      const std::int64_t now = at.end;
      for (const std::size_t k : at.batch) {
        first[k].token = now;
        at.load -= cost[k];
        caches[own ? soonest : 0].insert(asked[k].keys.begin(), asked[k].keys.end());
      }
      at.batch.clear();
      start(soonest, now);
    } else {
      return first;
    }
  }
}

std::vector<First> served_by(const std::vector<Prompted>& asked, const Deployment& deployment) {
  std::vector<First> first;
  for (const Served& served : serve(trace_of(asked), deployment, constant_steps(), {}).served)
    first.push_back({served.first_token.ps, served.instance, served.cached()});
  return first;
}

Deployment routing_deployment(const std::string& route, int instances, bool own) {
  Deployment deployment = small_deployment();
  deployment.prefill.instances = instances;
  deployment.prefill.batch_time = {1000 * kPromptTokenPs};
  deployment.prefill.route = route;
  deployment.decode.npus = 1;
  deployment.cache.on = true;
  deployment.cache.scope = own ? "instance" : "shared";
  deployment.cache.dram = Bytes{std::int64_t{1} << 50};
  deployment.cache.dram_rate = Bandwidth{1'000'000'000'000'000};
  return deployment;
}

TEST(Routes, AreThoseOfTheirModel) {
  std::mt19937 random(11);
  std::map<std::string, std::int64_t> computed;
  for (int trial = 0; trial < 40; ++trial) {
    const int instances = 1 + trial % 5;
    const std::vector<Prompted> asked = draw_groups(random, 120, 6, 120'000'000'000 / instances);
    for (const char* route : {"round-robin", "least-loaded", "prefix"}) {
      for (const bool own : {true, false}) {
        const std::vector<First> expected = routed(asked, route, instances, own);
        ASSERT_EQ(served_by(asked, routing_deployment(route, instances, own)), expected) << route << own;
        for (std::size_t k = 0; k < asked.size(); ++k)
          if (own) computed[route] += asked[k].prompt - expected[k].cached;
      }
    }
  }
  EXPECT_LT(computed["prefix"], computed["round-robin"]) << "more of the prefixes are found";
}

// What waits for an instance that is away goes to another; nobody waits for its return.
TEST(Routes, LeaveAnInstanceThatIsAway) {
  std::mt19937 random(3);
  const std::vector<Prompted> asked = draw_groups(random, 60, 3, 20'000'000'000);
  for (const char* route : {"round-robin", "least-loaded", "prefix"}) {
    ServiceOptions options;
    options.faults.outages.push_back({true, 1, 200_ms, 1'000_s});
    const ServiceResult result =
        serve(trace_of(asked), routing_deployment(route, 3, true), constant_steps(), options);
    for (const Served& served : result.served) {
      EXPECT_EQ(served.state, RequestState::done);
      EXPECT_LT(served.done, 100_s);
      EXPECT_TRUE(served.arrival <= 200_ms || served.instance != 1) << route;
    }
  }
}

// The cache is as if the requests of before had come long ago.
TEST(WarmStarts, AreAsIfTheFileHadBeenServedBefore) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 10; ++trial) {
    const std::vector<Prompted> before = draw_groups(random, 40, 6, 5'000'000'000'000),
                                asked = draw_groups(random, 40, 6, 5'000'000'000);
    std::vector<Prompted> both = before;
    for (Prompted one : asked) {
      one.at += 1'000'000'000'000'000;
      both.push_back(one);
    }
    Deployment deployment = routing_deployment("common", 2, false);
    deployment.cache.dram = Bytes{kBlock * 1000 * 60};
    deployment.cache.evs = Bytes{kBlock * 1000 * 40};
    const RequestTrace warm = trace_of(before);
    ServiceOptions options;
    options.warm = &warm;
    const ServiceResult warmed = serve(trace_of(asked), deployment, constant_steps(), options),
                        whole = serve(trace_of(both), deployment, constant_steps(), {}),
                        cold = serve(trace_of(asked), deployment, constant_steps(), {});
    std::int64_t cached = 0, cold_cached = 0;
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const Served &one = warmed.served[k], &two = whole.served[before.size() + k];
      // A block that was read has moved up; so the file may leave another order in the cache.
      cached += one.cached();
      cold_cached += cold.served[k].cached();
      EXPECT_EQ(one.cached(), two.cached()) << trial << " " << k;
    }
    EXPECT_GT(cached, cold_cached + 1000);
  }
}

// Two tenants with prompts waiting all the time. In any interval what they are given over their shares
// differs by no more than a longest prompt of each over its share (Goyal, Vin, Cheng: theorem 1).
TEST(FairOrder, KeepsTheBoundOfItsTheorem) {
  struct Shared {
    double first, second;
    const char* text;
  };
  for (const Shared shares : {Shared{1, 1, ""}, {3, 1, "3:1"}, {0.5, 2, "0.5:2"}}) {
    std::mt19937 random(8);
    RequestTrace trace;
    for (unsigned k = 0; k < 400; ++k) {
      Request& request = trace.requests.emplace_back();
      request.session = k % 5 == 0 ? 0 : 1;
      request.prompt = 1 + static_cast<int>(random() % (k % 5 == 0 ? 900 : 200));
      request.output = 1;
    }
    const double bound = 900 / shares.first + 200 / shares.second;
    for (const bool fair : {true, false}) {
      Deployment deployment = small_deployment();
      deployment.prefill.instances = 1;
      deployment.prefill.sequences = 1;
      deployment.prefill.order = fair ? "fair" : "shortest";
      if (fair) deployment.prefill.shares = shares.text;
      ServiceOptions options;
      options.tenants = 2;
      const ServiceResult result = serve(trace, deployment, small_library(), options);
      std::vector<std::size_t> order(trace.requests.size());
      for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
      std::ranges::sort(order, {}, [&](std::size_t k) { return result.served[k].prefill_start; });
      std::array<double, 2> left{}, given{};
      for (const Request& request : trace.requests) left[request.session] += request.prompt;
      double low = 0, high = 0;
      for (const std::size_t k : order) {
        const Request& request = trace.requests[k];
        left[request.session] -= request.prompt;
        if (std::min(left[0], left[1]) <= 0) break;  // one of them has nothing left
        given[request.session] += request.prompt / (request.session == 0 ? shares.first : shares.second);
        low = std::min(low, given[0] - given[1]);
        high = std::max(high, given[0] - given[1]);
      }
      EXPECT_EQ(high - low <= bound, fair) << shares.text << " " << high - low;
    }
  }
}

// Who comes when others have long been served gets his share from then on, and nothing for before.
TEST(FairOrder, OwesNothingToWhoComesLate) {
  RequestTrace trace;
  for (unsigned k = 0; k < 200; ++k) {
    Request& request = trace.requests.emplace_back();
    request.arrival = k < 100 ? Time{} : 5_s;  // the first has had 50 prompts by then
    request.session = k < 100 ? 0 : 1;
    request.prompt = 1000;
    request.output = 1;
  }
  Deployment deployment = small_deployment();
  deployment.prefill.instances = 1;
  deployment.prefill.order = "fair";
  ServiceOptions options;
  options.tenants = 2;
  const ServiceResult result = serve(trace, deployment, small_library(), options);
  // From 5 s on they take turns, 100 ms each: the 50 prompts of the first that are left end at 15 s.
  EXPECT_NEAR(result.served[99].first_token.us() * 1e-6, 15, 0.2);
}

// Prompts of 100 ms each, one at a time. Servers that come and go, looked at every second.
struct Scaled {
  std::vector<std::int64_t> first;
  int up = 0, down = 0;
};
Scaled scaled(const std::vector<std::int64_t>& arrivals, int least, int most, std::int64_t tokens,
              std::int64_t start) {
  constexpr std::int64_t kServicePs = 100'000'000'000, kLookPs = 1'000'000'000'000;
  struct Server {
    std::int64_t free = 0;
    std::size_t serves = SIZE_MAX;
  };
  Scaled made;
  made.first.resize(arrivals.size());
  std::deque<std::size_t> waiting;
  std::vector<Server> open(static_cast<std::size_t>(least));

  std::deque<std::int64_t> starting;
  std::size_t next = 0, ended = 0;
  std::int64_t look = kLookPs, now = 0;
  while (ended < arrivals.size()) {
    for (Server& server : open) {
      if (server.serves != SIZE_MAX || waiting.empty()) continue;
      server.serves = waiting.front();
      server.free = now + kServicePs;
      waiting.pop_front();
    }
    now = look;
    if (next < arrivals.size()) now = std::min(now, arrivals[next]);
    if (!starting.empty()) now = std::min(now, starting.front());
    for (const Server& server : open)
      if (server.serves != SIZE_MAX) now = std::min(now, server.free);
    for (Server& server : open) {
      if (server.serves == SIZE_MAX || server.free != now) continue;
      made.first[server.serves] = now;
      server.serves = SIZE_MAX;
      ++ended;
    }
    if (next < arrivals.size() && arrivals[next] == now) waiting.push_back(next++);
    if (!starting.empty() && starting.front() == now) {
      starting.pop_front();
      open.emplace_back();
    }
    if (look != now) continue;
    look += kLookPs;
    // What is idle has begun what waits before anybody looks.
    for (Server& server : open) {
      if (server.serves != SIZE_MAX || waiting.empty()) continue;
      server.serves = waiting.front();
      server.free = now + kServicePs;
      waiting.pop_front();
    }
    const auto there = static_cast<std::int64_t>(open.size() + starting.size());
    const auto idle =
        std::find_if(open.rbegin(), open.rend(), [](const Server& s) { return s.serves == SIZE_MAX; });
    if (1000 * std::ssize(waiting) > tokens * there && there < most) {
      starting.push_back(now + start);
      ++made.up;
    } else if (waiting.empty() && idle != open.rend() && std::ssize(open) > least) {
      open.erase(std::next(idle).base());
      ++made.down;
    }
  }
  return made;
}

TEST(Scaling, IsThatOfItsModel) {
  std::mt19937 random(31);
  int up = 0, down = 0;
  for (int trial = 0; trial < 40; ++trial) {
    RequestTrace trace;
    std::vector<std::int64_t> arrivals;
    std::int64_t at = 0;
    for (int k = 0; k < 600; ++k) {
      Request& request = trace.requests.emplace_back();
      request.prompt = 1000;
      request.output = 1;
      request.arrival = {at};
      arrivals.push_back(at);
      // Days and nights.
      const std::int64_t mean = k / 150 % 2 == 0 ? 30'000'000'000 : 150'000'000'000;
      at += draw_gap(random, 2 * mean);
    }
    Deployment deployment = small_deployment();
    const int least = 1 + trial % 3, most = least + 1 + trial % 4;
    deployment.prefill.instances = least;
    deployment.prefill.sequences = 1;
    deployment.scale.most = most;
    deployment.scale.up_tokens = 1000 + 500 * (trial % 5);
    deployment.scale.interval = 1_s;
    deployment.scale.start = Time{2'300'000'000'007};
    const ServiceResult result = serve(trace, deployment, small_library(), {});
    const Scaled model = scaled(arrivals, least, most, deployment.scale.up_tokens, deployment.scale.start.ps);
    for (std::size_t k = 0; k < arrivals.size(); ++k)
      ASSERT_EQ(result.served[k].first_token.ps, model.first[k]) << trial << " " << k;
    EXPECT_EQ(result.scaled_up, model.up);
    // It may end some more while nothing but the last look is to come.
    EXPECT_GE(result.scaled_down, model.down);
    EXPECT_LE(result.scaled_down, model.down + 1);
    up += model.up;
    down += model.down;
  }
  EXPECT_GT(up, 60);
  EXPECT_GT(down, 40);
}

// One pool: steps of one instance of four dies, of which two and two compute prompts. Token by token.
class MixedModel {
 public:
  MixedModel(const std::vector<Prompted>& asked, int budget, int chunk, int slots, int room)
      : done(asked.size()), first(asked.size()) {
    std::deque<std::size_t> waiting;
    std::vector<int> left, made(asked.size());
    for (const Prompted& one : asked) left.push_back(one.prompt);
    std::array<std::vector<std::size_t>, 2> begun;  // by group
    std::array<std::vector<std::size_t>, 4> dies;
    std::array<int, 4> used{}, promised{};
    std::vector<int> die_of(asked.size());
    std::size_t next = 0;
    std::int64_t now = 0;
    for (std::size_t ended = 0; ended < asked.size();) {
      int decoding = 0;
      for (const auto& die : dies) decoding += static_cast<int>(die.size());
      if (waiting.empty() && begun[0].empty() && begun[1].empty() && decoding == 0)
        now = std::max(now, asked[next].at);
      while (next < asked.size() && asked[next].at <= now) waiting.push_back(next++);
      std::int64_t prompts = 0;
      std::array<std::vector<std::pair<std::size_t, int>>, 2> batches;
      for (std::size_t g = 0; g < 2; ++g) {
        // A token and a predicted one of each answer, of which each group has half.
        const int rest = budget - decoding;
        int all = 0;
        const auto offer = [&](std::size_t k) {
          const int tokens = std::min({left[k], chunk, rest - all});
          if (tokens <= 0) return false;
          all += tokens;
          batches[g].emplace_back(k, tokens);
          return true;
        };
        for (const std::size_t k : begun[g]) offer(k);
        while (!waiting.empty()) {
          const std::size_t k = waiting.front();
          const int need = asked[k].prompt + asked[k].output;
          int best = -1;
          for (int d = 0; d < 4; ++d) {
            const auto die = static_cast<std::size_t>(d);
            if (promised[die] == slots || used[die] + need > room) continue;
            if (best < 0 ||
                std::pair(promised[die], used[die]) <
                    std::pair(promised[static_cast<std::size_t>(best)], used[static_cast<std::size_t>(best)]))
              best = d;
          }
          if (best < 0 || !offer(k)) break;
          die_of[k] = best;
          ++promised[static_cast<std::size_t>(best)];
          used[static_cast<std::size_t>(best)] += need;
          begun[g].push_back(k);
          waiting.pop_front();
        }
        prompts = std::max(prompts, all * kPromptTokenPs);
      }
      now += prompts + (decoding > 0 ? kStepPs : 0);
      const auto end = [&](std::size_t k) {
        done[k] = now;
        ++ended;
        --promised[static_cast<std::size_t>(die_of[k])];
        used[static_cast<std::size_t>(die_of[k])] -= asked[k].prompt + asked[k].output;
      };
      for (std::vector<std::size_t>& die : dies) {
        for (const std::size_t k : die)
          if (++made[k] == asked[k].output) end(k);
        std::erase_if(die, [&](std::size_t k) { return made[k] == asked[k].output; });
      }
      for (std::size_t g = 0; g < 2; ++g) {
        for (const auto& [k, tokens] : batches[g]) {
          if ((left[k] -= tokens) > 0) continue;
          std::erase(begun[g], k);
          first[k] = now;
          made[k] = 1;
          if (asked[k].output == 1)
            end(k);
          else
            dies[static_cast<std::size_t>(die_of[k])].push_back(k);
        }
      }
    }
  }
  std::vector<std::int64_t> done, first;
};

Deployment mixed_deployment() {
  Deployment deployment = small_deployment();
  deployment.prefill.pool = "decode";
  deployment.prefill.batch_time = {1000 * kPromptTokenPs};
  deployment.prefill.npus = 1;
  deployment.decode.npus = 2;
  deployment.decode.acceptance = 0;
  return deployment;
}

TEST(OnePool, ServesAsItsModel) {
  std::mt19937 random(21);
  const Library library = constant_steps(4);
  int waited = 0;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Prompted> asked;
    std::int64_t at = 0;
    for (int k = 0; k < 60; ++k) {
      asked.push_back({at,
                       1 + static_cast<int>(random() % (k % 7 == 0 ? 3000 : 300)),
                       1 + static_cast<int>(random() % 40),
                       {}});
      at += draw_gap(random, 40'000'000'000);
    }
    const int chunk = 20 + static_cast<int>(random() % 400),
              budget = chunk + static_cast<int>(random() % 300), slots = 1 + static_cast<int>(random() % 6),
              room = 3100 + static_cast<int>(random() % 2000);
    Deployment deployment = mixed_deployment();
    deployment.prefill.batch_tokens = budget;
    deployment.prefill.chunk = chunk;
    deployment.decode.batch = 2 * slots;
    deployment.decode.kv_room = Bytes{1000 * room};
    const ServiceResult result = serve(trace_of(asked), deployment, library, {});
    const MixedModel model(asked, budget, chunk, slots, room);
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const Served& served = result.served[k];
      ASSERT_EQ(served.first_token.ps, model.first[k]) << trial << " " << k;
      ASSERT_EQ(served.done.ps, model.done[k]) << trial << " " << k;
      waited += served.prefill_start - served.arrival > 100_ms ? 1 : 0;
    }
  }
  EXPECT_GT(waited, 100);
}

// With room that grows, by both ways of preemption: every token is made, once.
TEST(OnePool, MakesEveryTokenWhereRoomGrows) {
  for (const char* preempt : {"recompute", "swap"}) {
    std::mt19937 random(2);
    std::vector<Prompted> asked;
    std::int64_t outputs = 0;
    for (int k = 0; k < 200; ++k) {
      asked.push_back({k * 2'000'000'000ll,
                       1 + static_cast<int>(random() % 300),
                       1 + static_cast<int>(random() % 200),
                       {}});
      outputs += asked.back().output;
    }
    Deployment deployment = mixed_deployment();
    deployment.decode.acceptance = 0.7;
    deployment.prefill.chunk = 200;
    deployment.decode.reserve = "growing";
    deployment.decode.kv_room = Bytes{900'000};
    deployment.decode.preempt = preempt;
    deployment.decode.swap_room = Bytes{300'000};
    const ServiceResult result = serve(trace_of(asked), deployment, small_library(), {});
    EXPECT_EQ(result.output_tokens, outputs);
    EXPECT_GT(result.preempted, 20);
    EXPECT_EQ(result.swapped > 20, std::string(preempt) == "swap");
    for (const Served& served : result.served) EXPECT_EQ(served.state, RequestState::done);
  }
}

TEST(OnePool, RefusesWhatItDoesNotHave) {
  const std::vector<Prompted> asked{{0, 10, 1, {}}};
  ServiceOptions options;
  options.faults.outages.push_back({false, 0, 1_s, 1_s});
  try {
    serve(trace_of(asked), mixed_deployment(), small_library(), options);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not with prefill.pool = decode"));
  }
  EXPECT_THROW(load_deployment(std::string(kPublishedDeployment), {"prefill.pool=decode", "prefill.npus=7"}),
               InputError);
  EXPECT_THROW(
      load_deployment(std::string(kPublishedDeployment), {"prefill.pool=decode", "prefill.instances=7"}),
      InputError);
  EXPECT_EQ(load_deployment(std::string(kPublishedDeployment), {"prefill.pool=decode"}).npus(), 160);
}

}  // namespace
}  // namespace cm384::service::pools_test
