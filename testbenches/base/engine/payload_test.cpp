// The pool of request bytes and the arithmetic of tags.
#include "base/engine/payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace cm384::sim::payload_test {
namespace {

TEST(PayloadPool, GivesDistinctChunks) {
  PayloadPool pool;
  std::set<std::uint32_t> chunks;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(chunks.insert(pool.allocate()).second);
  EXPECT_EQ(pool.in_use(), 1000u);
  EXPECT_FALSE(chunks.contains(kNoChunk));
}

TEST(PayloadPool, ReusesWhatIsReleased) {
  PayloadPool pool;
  Payload p{pool.allocate(), 0};
  const std::uint32_t chunk = p.chunk;
  pool.release(p);
  EXPECT_EQ(p.chunk, kNoChunk);
  EXPECT_EQ(pool.in_use(), 0u);
  pool.release(p);  // holds nothing any more: no effect
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.allocate(), chunk);
  EXPECT_NE(pool.allocate(), chunk);
}

TEST(PayloadPool, BytesStayWhereTheyAreWhileItGrows) {
  PayloadPool pool;
  const std::uint32_t first = pool.allocate();
  std::byte* bytes = pool.bytes(first);
  std::memset(bytes, 0x5a, kRequestBytes);
  std::vector<std::uint32_t> more;
  for (int i = 0; i < 10'000; ++i) {
    more.push_back(pool.allocate());
    std::memset(pool.bytes(more.back()), 0xff, kRequestBytes);
  }
  EXPECT_EQ(pool.bytes(first), bytes);
  for (std::uint32_t i = 0; i < kRequestBytes; ++i) ASSERT_EQ(bytes[i], std::byte{0x5a});
}

// Chunks that one worker takes and another gives back, whichever they are.
TEST(PayloadPool, BalancesTheListsOfWorkers) {
  for (const unsigned taker : {0u, 1u, 2u}) {
    PayloadPool pool;
    pool.set_workers(3);
    std::set<std::uint32_t> known;
    for (int round = 0; round < 100; ++round) {
      std::vector<Payload> taken;
      {
        const WorkerScope scope(taker);
        for (int n = 0; n < 3000; ++n) {
          taken.push_back({pool.allocate(), 0});
          known.insert(taken.back().chunk);
        }
      }
      EXPECT_EQ(pool.in_use(), 3000u);
      {
        const WorkerScope scope((taker + 1) % 3);
        for (Payload& payload : taken) pool.release(payload);
      }
      EXPECT_EQ(pool.in_use(), 0u);
      pool.balance();
    }
    EXPECT_LT(known.size(), 30'000u) << taker;  // 300,000 without
  }
}

TEST(TagMask, CoversEveryBlockThatIsTouched) {
  EXPECT_EQ(all_tags(0), 0u);
  EXPECT_EQ(all_tags(1), 0b1u);
  EXPECT_EQ(all_tags(32), 0b1u);
  EXPECT_EQ(all_tags(33), 0b11u);
  EXPECT_EQ(all_tags(96), 0b111u);
  EXPECT_EQ(all_tags(511), 0xffffu);
  EXPECT_EQ(all_tags(512), 0xffffu);
}

}  // namespace
}  // namespace cm384::sim::payload_test
