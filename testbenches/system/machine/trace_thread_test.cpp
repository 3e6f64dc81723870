// The log of a traced machine and the thread that plays it.
#include "system/observe/trace_thread.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace cm384::supernode::trace_thread_test {
namespace {

using npu::TraceEntry;
using npu::TraceLog;

TEST(TraceThread, PlaysEveryEntryOnceAndInOrder) {
  constexpr std::uint64_t kEntries = 2'000'000;  // dozens of chunks
  std::uint64_t next = 0, wrong = 0;
  observe::TraceThread log([&](std::span<const std::uint64_t> words) {
    for (std::size_t at = 0; at < words.size();) {
      const TraceEntry entry = TraceLog::entry_of(words[at]);
      const bool good = entry.kind == TraceEntry::written && entry.words == 1 + next % 2 &&
                        entry.die == next % 768 && entry.core == next % 72 && entry.small == next % 65536 &&
                        words[at + 1] == next;
      wrong += good ? 0 : 1;
      ++next;
      at += std::size_t{1} + entry.words;
    }
  });
  for (std::uint64_t n = 0; n < kEntries; ++n) {
    const TraceEntry entry{TraceEntry::written, 0, static_cast<std::uint16_t>(n % 768),
                           static_cast<std::uint16_t>(n % 72), static_cast<std::uint16_t>(n)};
    n % 2 == 0 ? log.append(entry, n) : log.append(entry, n, std::int64_t{-1});
    if (n % 700'000 != 0) continue;
    log.drain();
    EXPECT_EQ(next, n + 1);
  }
  log.drain();
  EXPECT_EQ(next, kEntries);
  EXPECT_EQ(wrong, 0u);
}

TEST(TraceThread, WhatFailsInItIsThrownToTheOneWhoWrites) {
  observe::TraceThread log([](std::span<const std::uint64_t>) { throw std::runtime_error("no room"); });
  log.append({TraceEntry::read, 0, 0, 0, 0}, 1);
  EXPECT_THROW(log.drain(), std::runtime_error);
  EXPECT_THROW(for (int n = 0; n < 10'000'000; ++n) log.append({TraceEntry::read, 0, 0, 0, 0}, n),
               std::runtime_error);
}

TEST(TraceThread, MayBeGivenUpWithEntriesLeft) {
  observe::TraceThread log([](std::span<const std::uint64_t>) {});
  for (int n = 0; n < 200'000; ++n) log.append({TraceEntry::read, 0, 0, 0, 0}, n);
}

}  // namespace
}  // namespace cm384::supernode::trace_thread_test
