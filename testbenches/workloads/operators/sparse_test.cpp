// Sparse attention: scores of an indexer, the choice of the largest, attention over the chosen tokens: values
// against a reference, ties, lengths around the number of chosen tokens; times on both sides of what the
// slowest pipe needs; lines of memory that gathers touch.
#include "workloads/operators/sparse/sparse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/operators/die_rig.h"

namespace cm384::operators::sparse_test {
namespace {

IndexSetting index_of(std::vector<std::uint32_t> kv_lens, std::uint32_t queries, std::uint32_t heads,
                      std::uint32_t chosen) {
  return {std::move(kv_lens), queries, heads, chosen};
}
MlaSetting attention_of(const IndexSetting& index, std::uint32_t heads) {
  MlaSetting setting;
  setting.kv_lens = index.kv_lens;
  setting.queries = index.queries;
  setting.heads = heads;
  setting.one_prompt = index.one_prompt;
  return setting;
}
Site vectors_of(DieRig& rig, host::DeviceMemory& memory, int groups, bool full) {
  Site site = rig.site(memory, 0, groups, full);
  site.cores = cores_from(0, 2 * groups);
  return site;
}

struct Times {
  Time scores, choice;
  friend bool operator==(const Times&, const Times&) = default;
};

Times run_choice(const IndexSetting& setting, int groups, bool full) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  Indexer indexer(setting, 1);
  TopK top(indexer);
  indexer.place(rig.site(memory, 0, groups, full));
  top.place(vectors_of(rig, memory, groups, full));
  for (KernelOperator* stage : std::initializer_list<KernelOperator*>{&indexer, &top}) {
    // The second time its code is in L2.
    for (int n = 0; n < 2; ++n) {
      stage->enqueue(host::Runtime::default_stream(0));
      EXPECT_TRUE(rig.runtime.wait());
    }
    if (full) {
      EXPECT_EQ(stage->check(), "") << stage->size();
    }
  }
  return {kernel_time(indexer), kernel_time(top)};
}

class Choice : public ::testing::TestWithParam<IndexSetting> {};

TEST_P(Choice, IsThatOfItsScoresAndTimesDoNotDependOnValues) {
  EXPECT_EQ(run_choice(GetParam(), 3, true), run_choice(GetParam(), 3, false));
}

// As many tokens as are chosen, one fewer and one more; one token; queries that fall on both sides; lengths
// that end within a page, at its end, within a block of the sort and at its end; sequences without scores
// between others; parts; all numbers of heads; more blocks than lists that are merged at a time, on
// one core, too.
INSTANTIATE_TEST_SUITE_P(
    Lengths, Choice,
    ::testing::Values(index_of({64}, 1, 64, 64), index_of({63, 65, 1}, 1, 16, 64), index_of({63}, 3, 32, 64),
                      index_of({64, 300, 20, 128, 129}, 2, 48, 64), index_of({2048, 2049}, 1, 64, 2048),
                      index_of({5000, 100, 2100}, 1, 16, 2048), index_of({1000}, 2, 16, 128),
                      index_of({9000, 3000, 4096}, 1, 16, 256), index_of({17000}, 1, 16, 2048),
                      index_of(std::vector<std::uint32_t>(30, 200), 1, 64, 128),
                      index_of(std::vector<std::uint32_t>(6, 13000), 1, 16, 64)));

// Queries of a prompt, four at a time, whose tokens are before them in the same pages: from the first one on,
// around the number of chosen tokens, and behind cached ones.
IndexSetting prompt_of(std::uint32_t first, std::uint32_t count, std::uint32_t chosen) {
  IndexSetting made = index_of({}, 4, 64, chosen);
  for (std::uint32_t n = 0; n < count; ++n) made.kv_lens.push_back(first + 4 * n);
  made.one_prompt = true;
  return made;
}
INSTANTIATE_TEST_SUITE_P(Prompts, Choice, ::testing::Values(prompt_of(1, 40, 64), prompt_of(385, 20, 128)));

// All of its sequences read the pages of the longest one.
TEST(Choice, OfAPromptHasOneCache) {
  const auto pages = [](IndexSetting setting, bool one_prompt) {
    setting.one_prompt = one_prompt;
    const Indexer indexer(setting, 1);
    return reference::pages_of(indexer.page_table());
  };
  EXPECT_EQ(pages(prompt_of(1, 100, 64), true), 4u);
  EXPECT_EQ(pages(prompt_of(1, 100, 64), false), 400u);
}

// Made-up scores of a few values: most of the choice is decided by the order of tokens.
TEST(Choice, OfEqualScoresIsTheEarlierToken) {
  for (const std::uint32_t tokens : {700u, 9001u}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    Indexer indexer(index_of({tokens, 300}, 2, 16, 256), 2);
    indexer.skip_run();
    TopK top(indexer);
    indexer.place(rig.site(memory, 0, 2, true));
    top.place(vectors_of(rig, memory, 2, true));
    top.enqueue(host::Runtime::default_stream(0));
    ASSERT_TRUE(rig.runtime.wait());
    EXPECT_EQ(top.check(), "");
    // Another value in the place of the best token.
    const auto best = rig.runtime.get<std::uint32_t>(top.arguments().chosen, 2);
    rig.runtime.put(top.arguments().chosen, best[1]);
    EXPECT_THAT(top.check(), ::testing::HasSubstr("row 0 choice 0"));
  }
}

struct SparseCase {
  IndexSetting index;
  std::uint32_t heads;
  int groups;
};
class SparseValues : public ::testing::TestWithParam<SparseCase> {};

TEST_P(SparseValues, AreWithinTheirBoundAndTimesDoNotDependOnThem) {
  const SparseCase& of = GetParam();
  Time times[2];
  for (const bool full : {true, false}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    SparseAttention attention(attention_of(of.index, of.heads), of.index, 1);
    attention.place(rig.site(memory, 0, of.groups, full));
    attention.enqueue(host::Runtime::default_stream(0));
    ASSERT_TRUE(rig.runtime.wait());
    if (full) {
      EXPECT_EQ(attention.check(), "");
    }
    times[full ? 1 : 0] = kernel_time(attention);
  }
  EXPECT_EQ(times[0], times[1]);
}

// Fewer tokens than are chosen, all of them; one token; several KV blocks and one with a rest; several tasks
// of a block, which swap queries; splits.
INSTANTIATE_TEST_SUITE_P(Shapes, SparseValues,
                         ::testing::Values(SparseCase{index_of({1, 17, 200}, 1, 16, 64), 16, 2},
                                           SparseCase{index_of({300, 64}, 2, 16, 128), 32, 1},
                                           SparseCase{index_of({900}, 1, 16, 512), 128, 3},
                                           SparseCase{index_of({400, 700}, 2, 16, 320), 128, 2},
                                           SparseCase{index_of({500, 333, 64}, 1, 16, 256), 64, 2},
                                           SparseCase{prompt_of(125, 10, 128), 16, 2}));

// One after another: what attention sees is what scores have chosen.
TEST(SparseAttention, FollowsTheChoice) {
  const IndexSetting index = index_of({700, 90, 129}, 2, 32, 128);
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  Indexer indexer(index, 3);
  TopK top(indexer);
  SparseAttention attention(attention_of(index, 16), index, 3);
  attention.follows_choice(top);
  indexer.place(rig.site(memory, 0, 3, true));
  top.place(vectors_of(rig, memory, 3, true));
  attention.place(rig.site(memory, 0, 3, true));
  for (KernelOperator* stage : std::initializer_list<KernelOperator*>{&indexer, &top, &attention})
    stage->enqueue(host::Runtime::default_stream(0));
  ASSERT_TRUE(rig.runtime.wait());
  EXPECT_EQ(indexer.check(), "");
  EXPECT_EQ(top.check(), "");
  EXPECT_EQ(attention.check(), "");
}

struct PrologCase {
  IndexSetting index;
  std::uint32_t hidden, q_lora, nope, value;
  bool int8;
};
class SparseLayer : public ::testing::TestWithParam<PrologCase> {};

// From a token's row to its output projection.
TEST_P(SparseLayer, IsWithinItsBoundsStageAfterStage) {
  const PrologCase& of = GetParam();
  MlaSetting setting = attention_of(of.index, 16);
  setting.hidden = of.hidden;
  setting.q_lora = of.q_lora;
  setting.nope = of.nope;
  setting.value = of.value;
  setting.int8 = of.int8;
  std::vector<Time> times[2];
  for (const bool full : {true, false}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    SparseAttention attention(setting, of.index, 1);
    MlaProlog prolog(setting, 1, attention);
    Indexer indexer(of.index, 1);
    IndexProlog before(1, prolog, indexer);
    TopK top(indexer);
    MlaOutput output(setting, 1, attention);
    attention.follows_prolog();
    indexer.follows_prolog();
    for (KernelOperator* stage :
         std::initializer_list<KernelOperator*>{&attention, &prolog, &indexer, &before, &output})
      stage->place(rig.site(memory, 0, 3, full));
    top.place(vectors_of(rig, memory, 3, full));
    for (KernelOperator* stage :
         std::initializer_list<KernelOperator*>{&prolog, &before, &indexer, &top, &attention, &output}) {
      stage->enqueue(host::Runtime::default_stream(0));
      ASSERT_TRUE(rig.runtime.wait());
      if (full) {
        EXPECT_EQ(stage->check(), "") << stage->size();
      }
      times[full ? 1 : 0].push_back(kernel_time(*stage));
    }
  }
  EXPECT_EQ(times[0], times[1]);
}

// BF16 and INT8; heads of both widths; newest tokens at the begin and the end of a page; further queries.
INSTANTIATE_TEST_SUITE_P(
    Shapes, SparseLayer,
    ::testing::Values(PrologCase{index_of({129, 1, 300}, 1, 64, 128), 192, 128, 128, 128, false},
                      PrologCase{index_of({128, 200}, 3, 16, 64), 320, 192, 192, 256, true},
                      PrologCase{index_of({77}, 2, 32, 64), 128, 64, 192, 256, false}));

// Rows of 1,152 B touch three lines of 512 B each: memory is read by whole lines, each once.
TEST(SparseAttention, ReadsTheLinesOfItsTokens) {
  const IndexSetting index = index_of(std::vector<std::uint32_t>(24, 8192), 1, 64, 512);
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  SparseAttention attention(attention_of(index, 16), index, 1);
  attention.place(rig.site(memory, 0, 24));
  attention.enqueue(host::Runtime::default_stream(0));
  rig.runtime.wait();
  std::set<std::uint64_t> lines;
  const reference::IndexCase drawn{1, index.kv_lens, 1, 64, 512};
  for (const std::uint64_t place : draw_places(drawn)) {
    for (std::uint64_t at = place * 1152 / 512; at <= (place * 1152 + 1151) / 512; ++at) lines.insert(at);
  }
  EXPECT_GT(lines.size(), 24u * 512 * 2);
  const double gathered = static_cast<double>(lines.size()) * 512;
  const auto read = static_cast<double>(rig.machine.die(0).memory().statistics().read_bytes);
  EXPECT_GT(read, gathered);
  EXPECT_LT(read, gathered * 1.1);
}

// 64 heads, two queries, 128 pages a core: the fixpipe writes 2 B a head and token, 64 B a cycle, and 4 B a
// token. It waits a third of that for the scalar unit, which puts some 25 instructions on the pipes for each
// page and query.
TEST(Indexer, IsBoundByTheFixpipe) {
  const IndexSetting setting = index_of(std::vector<std::uint32_t>(3, 128 * 128), 2, 64, 2048);
  const double cycles = 128.0 * 2 * 128 * (64 * 2 + 4) / 64;  // a block of the launch has 128 pages
  const double us = cycles / 1850;
  const Times times = run_choice(setting, 3, false);
  EXPECT_GT(times.scores.us(), us);
  EXPECT_LT(times.scores.us(), 1.45 * us);
}

// A merge takes 20 cycles and 19.5 for each 32 structures that come out: for each block of 2,048 tokens three
// turns of merges, and a third of one of four lists of 2,048; a sort of each 32 takes 2.
TEST(TopK, IsBoundByTheMerges) {
  const IndexSetting setting = index_of(std::vector<std::uint32_t>(6, 24 * 2048), 1, 16, 2048);
  const auto merge = [](double structures) { return 20 + structures / 32 * 19.5; };
  const double block = 64 * 2 + 16 * merge(128) + 4 * merge(512) + merge(2048) + merge(8192) / 3;
  const double us = 24 * block / 1850;
  const Times times = run_choice(setting, 3, false);
  EXPECT_GT(times.choice.us(), us);
  EXPECT_LT(times.choice.us(), 1.1 * us);
}

TEST(TopK, PartsSpreadTokensOverCores) {
  const auto parts = [](std::vector<std::uint32_t> blocks, std::uint32_t cores) {
    return choose_parts(blocks, cores);
  };
  EXPECT_EQ(parts({0, 0, 0}, 4), 1u);
  EXPECT_EQ(parts(std::vector<std::uint32_t>(48, 32), 48), 1u);
  // One query: 32 blocks on 8 cores are 4 each, and 8 lists cost 2.4; on 6 they are 6 and 1.8.
  EXPECT_EQ(parts({32}, 8), 8u);
  // Eight lists of two cost as much as they save.
  EXPECT_EQ(parts({3}, 8), 3u);
  EXPECT_EQ(parts({1}, 8), 1u);
}

TEST(SparseWork, IsWhatItsShapeSays) {
  const IndexSetting index = index_of({100, 3000, 2047}, 2, 32, 2048);
  const Work scores = Indexer(index, 1).work();
  // The last sequence: its second query sees 2,048 tokens, which are all chosen.
  EXPECT_EQ(scores.operations, 2.0 * (3000 + 3001) * 32 * 128);
  EXPECT_TRUE(scores.int8);
  EXPECT_EQ(scores.cache, 3001 * 128.0);
  const Work attention = SparseAttention(attention_of(index, 128), index, 1).work();
  const double seen = 100 + 101 + 2048 + 2048 + 2047 + 2048;
  EXPECT_EQ(attention.operations, 2.0 * seen * 128 * (576 + 512));
  EXPECT_EQ(attention.cache, seen * 1152);
}

TEST(SparseSetting, IsRefusedWhereKernelsDoNotFit) {
  using cm384::refusal;
  EXPECT_EQ(refusal([] { check_index(index_of({1}, 1, 65, 64)); }),
            "--index-heads 65: allowed: 16, 32, 48 or 64 with an indexer's kernel");
  EXPECT_EQ(refusal([] { check_index(index_of({1}, 1, 64, 2112)); }),
            "--sparse 2112: allowed: multiples of 64 up to 2048");
}

}  // namespace
}  // namespace cm384::operators::sparse_test
