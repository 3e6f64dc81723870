// Pages of UBuffers that several cores of a die have loaded alike stand once, and nobody sees it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "npu_core/vector/ubuffer.h"

namespace cm384::npu::testing::siblings_test {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::uint32_t kPage = LocalBuffer::kPageBytes;

Bytes table(std::uint32_t bytes, std::uint32_t salt) {
  Bytes made(bytes);
  std::mt19937 values(salt);
  for (std::byte& byte : made) byte = static_cast<std::byte>(values());
  return made;
}

// As an engine does: in requests that end at multiples of 512 B of global memory, here of `phase` bytes less.
void copy_in(LocalBuffer& to, std::uint32_t begin, const Bytes& bytes, std::uint32_t phase = 0) {
  for (std::uint32_t done = 0; done < bytes.size();) {
    const std::uint32_t n =
        std::min(static_cast<std::uint32_t>(bytes.size()) - done, kPage - (phase + done) % kPage);
    to.store(begin + done, bytes.data() + done, n);
    done += n;
    to.loaded(begin + done, n);
  }
}

Bytes content(const LocalBuffer& buffer, std::uint32_t begin, std::size_t bytes) {
  Bytes read(bytes);
  buffer.load(begin, read.data(), static_cast<std::uint32_t>(bytes));
  return read;
}

struct Siblings : ::testing::Test {
  Siblings() {
    for (UBuffer* buffer : {&a, &b, &c}) buffer->join(siblings);
  }
  LocalBuffer::Siblings siblings{kUBufferBytes};
  UBuffer a, b, c;
};

TEST_F(Siblings, PagesLoadedAlikeStandOnce) {
  // From the middle of a page to the middle of another, which is not complete.
  const Bytes bytes = table(4 * kPage, 1);
  for (UBuffer* buffer : {&a, &b, &c}) copy_in(*buffer, kPage / 2, bytes, 96);
  for (UBuffer* buffer : {&a, &b, &c}) {
    EXPECT_EQ(buffer->pages(), 5u);
    EXPECT_EQ(buffer->shared_pages(), 4u);
    EXPECT_EQ(content(*buffer, kPage / 2, bytes.size()), bytes);
  }
}

TEST_F(Siblings, WhatOneWritesTheOthersDoNotSee) {
  const Bytes bytes = table(2 * kPage, 2);
  for (UBuffer* buffer : {&a, &b, &c}) copy_in(*buffer, 0, bytes);
  ASSERT_EQ(a.shared_pages(), 2u);
  const Bytes other = table(4, 3);
  a.store(kPage + 8, other.data(), 4);  // the first of its owners
  b.fill_zero(kPage, 4);                // one in the middle
  EXPECT_EQ(content(c, 0, bytes.size()), bytes);
  Bytes of_a = bytes, of_b = bytes;
  std::ranges::copy(other, of_a.begin() + kPage + 8);
  std::fill_n(of_b.begin() + kPage, 4, std::byte{0});
  EXPECT_EQ(content(a, 0, bytes.size()), of_a);
  EXPECT_EQ(content(b, 0, bytes.size()), of_b);
  EXPECT_EQ(c.shared_pages(), 1u);  // the other page is its own again
  c.write(kPage)[0] = std::byte{7};
  EXPECT_EQ(content(a, 0, bytes.size()), of_a);
}

TEST_F(Siblings, ATableLoadedAnewStaysShared) {
  const Bytes bytes = table(2 * kPage, 4);
  for (int n = 0; n < 2; ++n) {
    for (UBuffer* buffer : {&a, &b}) copy_in(*buffer, 0, bytes, 32);
    EXPECT_EQ(a.shared_pages(), 2u);
  }
  // Another one: each has its own again, then both share that.
  const Bytes next = table(2 * kPage, 5);
  copy_in(a, 0, next, 32);
  EXPECT_EQ(a.shared_pages(), 0u);
  EXPECT_EQ(content(b, 0, bytes.size()), bytes);
  copy_in(b, 0, next, 32);
  EXPECT_EQ(b.shared_pages(), 2u);
}

TEST_F(Siblings, UnlikePagesStayApart) {
  const Bytes bytes = table(kPage, 6);
  copy_in(a, 0, bytes);
  Bytes other = bytes;
  other.back() = ~other.back();
  copy_in(b, 0, other);
  // Loaded alike, but what stood before is not.
  other = table(kPage - 1, 7);
  c.write(kPage)[0] = std::byte{1};
  for (UBuffer* buffer : {&b, &c}) copy_in(*buffer, kPage + 1, other);
  EXPECT_EQ(a.shared_pages() + b.shared_pages() + c.shared_pages(), 0u);
}

// Larger buffers than the UBuffer join none.
TEST(SiblingsOfNone, ABufferAloneWritesAllOfItsPages) {
  struct Guarded {
    LocalBuffer buffer{512 * 1024};
    std::array<std::uint64_t, 16> behind{};
  };
  const auto guarded = std::make_unique<Guarded>();
  guarded->behind.fill(~std::uint64_t{0});
  for (std::uint32_t at = 0; at < guarded->buffer.bytes(); at += kPage)
    guarded->buffer.write(at)[0] = std::byte{1};
  EXPECT_EQ(guarded->buffer.pages(), 1024u);
  EXPECT_EQ(guarded->buffer.shared_pages(), 0u);
  for (const std::uint64_t word : guarded->behind) EXPECT_EQ(word, ~std::uint64_t{0});
}

// Rows that differ from core to core are soon compared no more; a table is found again all the same.
TEST_F(Siblings, ATableIsFoundBehindManyRows) {
  for (std::uint32_t n = 0; n < 300; ++n) copy_in(n % 2 == 0 ? a : b, 0, table(kPage, 100 + n));
  const Bytes bytes = table(kPage, 9);
  for (int n = 0; n < 300; ++n) copy_in(n % 2 == 0 ? a : b, 0, bytes);
  EXPECT_EQ(a.shared_pages(), 1u);
}

// A long history of writes against buffers that share nothing.
TEST_F(Siblings, SharedOrNotTheBytesAreTheSame) {
  UBuffer plain[3];
  UBuffer* const shared[3] = {&a, &b, &c};
  std::mt19937 draw(11);
  const auto below = [&draw](std::uint32_t end) { return static_cast<std::uint32_t>(draw() % end); };
  std::uint32_t most = 0;
  for (int n = 0; n < 4000; ++n) {
    const std::uint32_t who = below(3), begin = below(6 * kPage), length = 1 + below(3 * kPage);
    const Bytes bytes = table(length, below(3));
    const std::uint32_t what = below(4);
    for (UBuffer* buffer : {shared[who], &plain[who]}) {
      if (what < 2) {
        copy_in(*buffer, begin / kPage * kPage, bytes);
      } else if (what == 2) {
        buffer->fill_zero(begin, static_cast<std::uint32_t>(bytes.size()));
      } else {
        buffer->write(begin)[0] = bytes[0];
      }
    }
    most = std::max(most, a.shared_pages() + b.shared_pages() + c.shared_pages());
    for (int k = 0; k < 3; ++k)
      ASSERT_EQ(content(*shared[k], 0, 10 * kPage), content(plain[k], 0, 10 * kPage)) << n;
  }
  EXPECT_GT(most, 2u);
}

}  // namespace
}  // namespace cm384::npu::testing::siblings_test
