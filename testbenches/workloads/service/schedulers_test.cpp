// Schedulers against small models of them that go from batch to batch and step to step, token by token.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <random>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/simulation.h"

namespace cm384::service::schedulers_test {
namespace {

using ::testing::HasSubstr;

struct Asked {
  std::int64_t at = 0;  // ps
  int prompt = 0, output = 1, urgency = 0;
};

RequestTrace trace_of(const std::vector<Asked>& asked) {
  RequestTrace trace;
  for (const Asked& one : asked) {
    Request& request = trace.requests.emplace_back();
    request.arrival = {one.at};
    request.prompt = one.prompt;
    request.output = one.output;
    request.priority = static_cast<std::uint8_t>(one.urgency);
  }
  return trace;
}

std::vector<Asked> draw(std::mt19937& random, int count, int longest, int most_out, std::int64_t gap) {
  std::vector<Asked> asked;
  std::int64_t at = 0;
  for (int k = 0; k < count; ++k) {
    const bool is_long = random() % 5 == 0;
    asked.push_back(
        {at, 1 + static_cast<int>(random() % static_cast<unsigned>(is_long ? longest : longest / 8)),
         1 + static_cast<int>(random() % static_cast<unsigned>(most_out)), static_cast<int>(random() % 3)});
    at += 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(gap));
  }
  return asked;
}

constexpr std::int64_t kTokenPs = 100'000'000;  // small_deployment(): 1,000 tokens take 100 ms

struct Scheduler {
  int budget = 1000, prompts = 0, chunk = 0;
  std::string order = "fcfs";
  std::int64_t ageing = 0;
};

// First tokens of one instance without a cache. Urgency is looked at anew for each batch.
std::vector<std::int64_t> first_tokens(const std::vector<Asked>& asked, const Scheduler& by) {
  std::vector<std::int64_t> first(asked.size());
  std::vector<int> left, begun, waiting;
  for (const Asked& one : asked) left.push_back(one.prompt);
  std::size_t next = 0;
  std::int64_t now = 0;
  for (std::size_t ended = 0; ended < asked.size();) {
    if (begun.empty() && waiting.empty()) now = std::max(now, asked[next].at);
    while (next < asked.size() && asked[next].at <= now) waiting.push_back(static_cast<int>(next++));
    const auto urgency = [&](int k) {
      const Asked& one = asked[static_cast<std::size_t>(k)];
      if (by.order == "shortest") return static_cast<double>(one.prompt);
      if (by.order == "fcfs") return 0.0;
      const double aged =
          by.ageing == 0 ? 0 : static_cast<double>(now - one.at) / static_cast<double>(by.ageing);
      return one.urgency - aged;
    };
    std::ranges::stable_sort(waiting, {}, urgency);
    int budget = by.budget;
    std::vector<std::pair<int, int>> batch;
    const auto offer = [&](int k) {
      if (by.prompts > 0 && std::ssize(batch) == by.prompts) return false;
      int takes = left[static_cast<std::size_t>(k)];
      if (by.chunk > 0) takes = std::min({takes, by.chunk, budget});
      if (by.chunk > 0 ? takes == 0 : takes > budget && !batch.empty()) return false;
      budget -= takes;
      batch.emplace_back(k, takes);
      return true;
    };
    for (const int k : begun) offer(k);
    while (!waiting.empty() && offer(waiting.front())) {
      begun.push_back(waiting.front());
      waiting.erase(waiting.begin());
    }
    std::int64_t tokens = 0;
    for (const auto& [k, takes] : batch) tokens += takes;
    now += tokens * kTokenPs;
    for (const auto& [k, takes] : batch) {
      left[static_cast<std::size_t>(k)] -= takes;
      if (left[static_cast<std::size_t>(k)] > 0) continue;
      first[static_cast<std::size_t>(k)] = now;
      std::erase(begun, k);
      ++ended;
    }
  }
  return first;
}

std::vector<std::int64_t> served_first_tokens(const std::vector<Asked>& asked, const Scheduler& by) {
  Deployment deployment = small_deployment();
  deployment.prefill.instances = 1;
  deployment.prefill.batch_tokens = by.budget;
  deployment.prefill.sequences = by.prompts;
  deployment.prefill.chunk = by.chunk;
  deployment.prefill.order = by.order;
  deployment.prefill.ageing = {by.ageing};
  std::vector<std::int64_t> first;
  for (const Served& served : serve(trace_of(asked), deployment, small_library(), {}).served)
    first.push_back(served.first_token.ps);
  return first;
}

TEST(Schedulers, AreThatOfTheirModel) {
  std::mt19937 random(5);
  std::map<std::string, int> unlike_fcfs;
  for (int trial = 0; trial < 12; ++trial) {
    const std::vector<Asked> asked = draw(random, 50, 4000, 1, 60 * kTokenPs * 10);
    for (const int prompts : {0, 1, 3}) {
      for (const int chunk : {0, 7, 64, 300, 1000}) {
        std::vector<std::int64_t> fcfs;
        for (const auto& [order, ageing] :
             {std::pair{"fcfs", 0}, {"shortest", 0}, {"priority", 0}, {"priority", 1}, {"priority", 40}}) {
          const Scheduler by{1000, prompts, chunk, order,
                             ageing * std::int64_t{1'000'000'000} + (ageing > 0 ? 7 : 0)};
          const std::vector<std::int64_t> expected = first_tokens(asked, by);
          ASSERT_EQ(served_first_tokens(asked, by), expected)
              << trial << " " << order << " " << ageing << " prompts " << prompts << " chunk " << chunk;
          if (fcfs.empty()) fcfs = expected;
          unlike_fcfs[order + std::to_string(ageing)] += expected != fcfs ? 1 : 0;
        }
      }
    }
  }
  EXPECT_EQ(unlike_fcfs["fcfs0"], 0);
  for (const char* order : {"shortest0", "priority0", "priority1", "priority40"})
    EXPECT_GT(unlike_fcfs[order], 30) << order;
}

// A prompt of 100,000 tokens and one of 10 that comes just behind it.
TEST(Schedulers, LetAShortPromptPassALongOneInChunks) {
  const std::vector<Asked> asked{{0, 100'000}, {1, 10}};
  EXPECT_EQ(served_first_tokens(asked, {1000, 0, 0})[1], 100'010 * kTokenPs);
  EXPECT_EQ(served_first_tokens(asked, {1000, 0, 500})[1], (500 + 510) * kTokenPs);
  // With a chunk as large as the budget there is no room beside it.
  EXPECT_EQ(served_first_tokens(asked, {1000, 0, 1000})[1], 100'010 * kTokenPs);
}

TEST(Schedulers, RefuseRequestsThatFindTooManyWaiting) {
  Deployment deployment = small_deployment();
  deployment.prefill.instances = 1;
  deployment.prefill.most_waiting = 2;
  // One is computed, two wait, and the next two are refused; the last one finds nobody.
  const RequestTrace trace =
      trace_of({{0, 1000}, {1, 500}, {2, 500}, {3, 500}, {4, 500}, {500'000'000'000, 500}});
  const ServiceResult result = serve(trace, deployment, small_library(), {});
  std::vector<bool> refused;
  for (const Served& served : result.served) refused.push_back(served.state == RequestState::refused);
  EXPECT_THAT(refused, ::testing::ElementsAre(false, false, false, true, true, false));
  EXPECT_EQ(result.refused, 2);
  EXPECT_EQ(result.output_tokens, 4);
  EXPECT_EQ(result.served[3].arrival, Time{3});
}

// Steps of 10 ms whatever is in them; 97.003 ms for 1,000 tokens of prompts, so that no two things happen in
// one moment.
constexpr std::int64_t kStepPs = 10'000'000'000, kPromptTokenPs = 97'003'000;

Library even_steps() {
  Library library("small");
  for (const int batch : {8, 32, 64})
    library.add(DecodePoint{2, batch, 1024, 1, 2, 10, 3, 10, 100, 130, "run decode", "0"});
  for (const int sequences : {2, 16})
    for (const int kv : {128, 65'536}) library.add(AttentionPoint{sequences, kv, 1, 10, "run mla", "0"});
  return library;
}

struct Answer {
  std::int64_t done = 0;
  int preemptions = 0;
  std::int64_t longest_gap = 0;  // between two tokens
  bool operator==(const Answer&) const = default;
};
void PrintTo(const Answer& answer, std::ostream* out) {
  *out << answer.done << " (" << answer.preemptions << ", " << answer.longest_gap << ")";
}

// Host memory for so many blocks; a token takes so long to it and back.
struct Swapping {
  int blocks = 0;
  std::int64_t out_ps = 0, in_ps = 0;
};

// A service of one prefill instance with whole prompts and of two dies of `blocks` blocks, a token a step, a
// context's way takes no time.
class PreemptingModel {
 public:
  PreemptingModel(const std::vector<Asked>& asked, int blocks, int block, int slots, const Swapping& swap)
      : asked_(asked),
        swap_(swap),
        blocks_(blocks),
        block_(block),
        slots_(slots),
        answers_(asked.size()),
        made_(asked.size()),
        last_token_(asked.size(), -1) {
    for (std::size_t k = 0; k < asked.size(); ++k)
      events_.emplace(std::pair(asked[k].at, turn_++), [this, k] {
        queue_.push_back(static_cast<int>(k));
        compute();
      });
    for (; !events_.empty(); events_.erase(events_.begin())) {
      now_ = events_.begin()->first.first;
      events_.begin()->second();
    }
  }
  const std::vector<Answer>& answers() const { return answers_; }

 private:
  struct Resident {
    int request, tokens, blocks;
  };
  struct Die {
    int promised = 0, used = 0;
    std::vector<Resident> residents;
    std::int64_t way = 0;  // to the host, free from then on
  };
  struct Swapped {
    Resident resident;
    std::int64_t out = 0;
  };
  int blocks_of(int tokens) const { return (tokens + block_ - 1) / block_; }
  int& made(int k) { return made_[static_cast<std::size_t>(k)]; }
  int tokens_of(int k) { return asked_[static_cast<std::size_t>(k)].prompt + made(k); }
  void later(std::int64_t by, std::function<void()> what) {
    events_.emplace(std::pair(now_ + by, turn_++), what);
  }
  void end(int k) { answers_[static_cast<std::size_t>(k)].done = now_; }
  void give_token(int k) {
    std::int64_t& last = last_token_[static_cast<std::size_t>(k)];
    std::int64_t& longest = answers_[static_cast<std::size_t>(k)].longest_gap;
    if (last >= 0) longest = std::max(longest, now_ - last);
    last = now_;
  }

  void compute() {
    if (computing_ || queue_.empty()) return;
    computing_ = true;
    std::vector<int> batch;
    int tokens = 0;
    while (!queue_.empty() && (batch.empty() || tokens + tokens_of(queue_.front()) <= 1000)) {
      tokens += tokens_of(queue_.front());
      batch.push_back(queue_.front());
      queue_.pop_front();
    }
    later(tokens * kPromptTokenPs, [this, batch] {
      computing_ = false;
      for (const int k : batch) {
        give_token(k);
        if (made(k) + 1 == asked_[static_cast<std::size_t>(k)].output)
          end(k);
        else
          ready_.push_back(k);
      }
      send();
      compute();
    });
  }

  Die* best_die(int need) {
    Die* best = nullptr;
    for (Die& die : dies_) {
      if (die.promised == slots_ || die.used + need > blocks_) continue;
      if (best == nullptr || std::pair(die.promised, die.used) < std::pair(best->promised, best->used))
        best = &die;
    }
    return best;
  }

  void come_back() {
    while (!swapped_.empty()) {
      Resident resident = swapped_.front().resident;
      const int held = resident.blocks;
      resident.blocks = blocks_of(resident.tokens);
      Die* die = best_die(resident.blocks);
      if (die == nullptr) return;
      ++die->promised;
      die->used += resident.blocks;
      die->way = std::max({now_, swapped_.front().out, die->way}) + held * block_ * swap_.in_ps;
      swapped_.pop_front();
      later(die->way - now_, [this, die, resident, held] {
        on_host_ -= held;
        joining_.emplace_back(die, resident);
        step();
      });
    }
  }

  void send() {
    come_back();
    while (!ready_.empty() && swapped_.empty()) {
      const int k = ready_.front(), need = blocks_of(tokens_of(k));
      Die* best = best_die(need);
      if (best == nullptr) return;
      ready_.pop_front();
      ++best->promised;
      best->used += need;
      later(0, [this, k, best, need] {
        joining_.emplace_back(best, Resident{k, tokens_of(k), need});
        step();
      });
    }
  }

  void step() {
    if (stepping_) return;
    for (const auto& [die, resident] : joining_) die->residents.push_back(resident);
    joining_.clear();
    std::vector<int> preempted;
    std::vector<std::pair<Resident, Die*>> victims;
    for (Die& die : dies_) {
      for (std::size_t n = 0; n < die.residents.size(); ++n) {
        const auto fits = [&] { return die.residents[n].tokens + 1 <= die.residents[n].blocks * block_; };
        while (die.residents.size() > n && !fits()) {
          if (die.used < blocks_) {
            ++die.used;
            ++die.residents[n].blocks;
            continue;
          }
          const Resident last = die.residents.back();
          die.residents.pop_back();
          --die.promised;
          die.used -= last.blocks;
          ++answers_[static_cast<std::size_t>(last.request)].preemptions;
          victims.emplace_back(last, &die);
        }
      }
    }
    std::ranges::sort(victims, {}, [](const auto& victim) { return victim.first.request; });
    std::int64_t copied = now_;
    for (const auto& [last, die] : victims) {
      if (on_host_ + last.blocks <= swap_.blocks) {
        on_host_ += last.blocks;
        die->way = std::max(now_, die->way) + last.blocks * block_ * swap_.out_ps;
        copied = std::max(copied, die->way);
        swapped_.push_back({last, die->way});
        continue;
      }
      made(last.request) = last.tokens - asked_[static_cast<std::size_t>(last.request)].prompt + 1;
      preempted.push_back(last.request);
    }
    stepping_ = std::ranges::any_of(dies_, [](const Die& die) { return !die.residents.empty(); });
    if (stepping_) later(copied - now_ + kStepPs, [this] { end_step(); });
    queue_.insert(queue_.begin(), preempted.begin(), preempted.end());
    if (victims.empty()) return;
    compute();
    send();
  }

  void end_step() {
    stepping_ = false;
    for (Die& die : dies_) {
      for (Resident& resident : die.residents) {
        ++resident.tokens;
        give_token(resident.request);
        // The token that prefill made comes into the cache with the first step.
        if (resident.tokens + 1 < tokens_at_end(resident.request)) continue;
        end(resident.request);
        --die.promised;
        die.used -= resident.blocks;
        resident.request = -1;
      }
      std::erase_if(die.residents, [](const Resident& resident) { return resident.request < 0; });
    }
    send();
    step();
  }
  int tokens_at_end(int k) const {
    return asked_[static_cast<std::size_t>(k)].prompt + asked_[static_cast<std::size_t>(k)].output;
  }

  const std::vector<Asked>& asked_;
  Swapping swap_;
  int on_host_ = 0;
  std::deque<Swapped> swapped_;
  int blocks_, block_, slots_;
  std::vector<Answer> answers_;
  std::vector<int> made_;
  std::vector<std::int64_t> last_token_;
  std::map<std::pair<std::int64_t, int>, std::function<void()>> events_;
  int turn_ = 0;
  std::int64_t now_ = 0;
  std::deque<int> queue_, ready_;
  std::array<Die, 2> dies_;
  std::vector<std::pair<Die*, Resident>> joining_;
  bool computing_ = false, stepping_ = false;
};

TEST(GrowingRoom, PreemptsAsItsModel) {
  std::mt19937 random(7);
  int preempted = 0, full = 0;
  std::int64_t swapped = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int block = 1 + static_cast<int>(random() % 40), longest = 200, most_out = 120;
    const int blocks = (longest + most_out + block - 1) / block + static_cast<int>(random() % 20),
              slots = 2 + static_cast<int>(random() % 10);
    const std::vector<Asked> asked = draw(random, 40, longest, most_out, 8'000'000'000);
    Deployment deployment = small_deployment();
    deployment.prefill.instances = 1;
    deployment.prefill.batch_time = {1000 * kPromptTokenPs};
    deployment.decode.npus = 1;
    deployment.decode.batch = 2 * slots;
    deployment.decode.acceptance = 0;
    deployment.decode.reserve = "growing";
    deployment.decode.block = block;
    deployment.decode.kv_room = Bytes{1000 * blocks * block};
    ServiceOptions options;
    options.rdma = {4'000'000'000'000'000'000};
    Swapping swap;
    if (trial >= 200) {
      // 1,000 B a token; room of both dies together for so many blocks; copies that take a part of a step, or
      // several.
      const int slower = trial % 2 == 0 ? 1 : 50;
      swap = {2 * static_cast<int>(random() % static_cast<unsigned>(blocks)), slower * 4'000'000,
              slower * 2'000'000};
      deployment.decode.preempt = "swap";
      deployment.decode.swap_room = Bytes{1000 * block * swap.blocks / 2};
      deployment.decode.swap_out_rate = Bandwidth{250'000'000 / slower};
      deployment.decode.swap_in_rate = Bandwidth{500'000'000 / slower};
    }
    const ServiceResult result = serve(trace_of(asked), deployment, even_steps(), options);
    swapped += result.swapped;
    full += trial >= 200 && result.swapped < result.preempted ? 1 : 0;
    std::vector<Answer> served;
    std::int64_t outputs = 0, gaps = 0;
    double gaps_ms = 0, answered_ms = 0;
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const Served& one = result.served[k];
      served.push_back({one.done.ps, one.preemptions, one.longest_gap.ps});
      preempted += one.preemptions;
      outputs += asked[k].output;
      answered_ms += (one.done - one.first_token).us() * 1e-3;
    }
    for (const TokenGap& gap : result.gaps) {
      gaps += gap.requests;
      gaps_ms += gap.ms * static_cast<double>(gap.requests);
    }
    ASSERT_EQ(served, PreemptingModel(asked, blocks, block, slots, swap).answers()) << trial;
    EXPECT_EQ(result.output_tokens, outputs);
    EXPECT_EQ(gaps, outputs - 40) << "a gap behind every token but the first, one token a step";
    EXPECT_NEAR(gaps_ms, answered_ms, 1e-6 * answered_ms);
    EXPECT_LE(result.kv_peak, 1);
  }
  EXPECT_GT(preempted, 1000);
  EXPECT_GT(swapped, 500);
  EXPECT_GT(full, 20) << "trials in which host memory was full";
}

TEST(GrowingRoom, KeepsEveryTokenThroughFaults) {
  for (const char* preempt : {"recompute", "swap"}) {
    std::mt19937 random(9);
    const std::vector<Asked> asked = draw(random, 200, 400, 150, 6'000'000'000);
    Deployment deployment = small_deployment();
    deployment.decode.reserve = "growing";
    deployment.decode.kv_room = Bytes{800'000};
    deployment.prefill.chunk = 100;
    deployment.decode.preempt = preempt;
    deployment.decode.swap_room = Bytes{300'000};
    deployment.decode.swap_out_rate = deployment.decode.swap_in_rate = Bandwidth{20'000'000};
    ServiceOptions options;
    options.faults.dies.push_back({false, 0, 1, 2000_ms, Recovery::degrade});
    options.faults.outages.push_back({true, 0, 300_ms, 100_ms});
    options.faults.outages.push_back({false, 0, 500_ms, 100_ms});
    const ServiceResult result = serve(trace_of(asked), deployment, small_library(), options);
    std::int64_t outputs = 0;
    for (const Asked& one : asked) outputs += one.output;
    EXPECT_EQ(result.output_tokens, outputs);
    EXPECT_GT(result.preempted, 10);
    EXPECT_GT(result.restarted, 10);
    EXPECT_EQ(result.swapped > 10, std::string(preempt) == "swap");
    for (const Served& served : result.served) EXPECT_EQ(served.state, RequestState::done);
  }
}

TEST(Schedulers, RefuseWhatHasNoEffect) {
  const auto refusal = [](const std::vector<std::string>& changes) -> std::string {
    try {
      load_deployment(std::string(kPublishedDeployment), changes);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({"prefill.ageing=5s"}), HasSubstr("has no effect with prefill.order = fcfs"));
  EXPECT_EQ(refusal({"prefill.ageing=5s", "prefill.order=priority"}), "");
  EXPECT_THAT(refusal({"decode.block=16"}), HasSubstr("has no effect with decode.reserve = whole"));
  EXPECT_EQ(refusal({"decode.block=16", "decode.reserve=growing"}), "");
  EXPECT_THAT(refusal({"decode.preempt=swap"}), HasSubstr("has no effect with decode.reserve = whole"));
  EXPECT_THAT(refusal({"decode.swap_room=1GiB", "decode.reserve=growing"}),
              HasSubstr("has no effect with decode.preempt = recompute"));
  EXPECT_EQ(refusal({"decode.swap_room=1GiB", "decode.reserve=growing", "decode.preempt=swap"}), "");
  EXPECT_THAT(refusal({"prefill.chunk=512", "prefill.batch_tokens=511"}),
              HasSubstr("at most prefill.batch_tokens"));
  EXPECT_EQ(refusal({"prefill.chunk=512", "prefill.batch_tokens=512"}), "");
  EXPECT_THAT(refusal({"prefill.order=lifo"}), HasSubstr("fcfs"));
}

}  // namespace
}  // namespace cm384::service::schedulers_test
