// Recordings: what of() makes of steps and waits, files of them, and what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "system/host/recording_file.h"
#include "testbenches/hw/refusal.h"

namespace cm384::host::recording_test {
namespace {

using npu::Recording;
using Step = Recording::Step;
using ::testing::HasSubstr;

Step step_of(Step::Kind kind, std::uint16_t block, std::uint64_t offset = 0, std::uint8_t engine = 0) {
  Step step;
  step.kind = kind;
  step.block = block;
  step.offset = offset;
  step.engine = engine;
  step.burst_bytes = 64;
  return step;
}

// Two blocks: each reads, a barrier, one writes.
Recording sample() {
  using enum Step::Kind;
  std::vector<Step> steps{step_of(begin, 0),        step_of(begin, 1), step_of(transfer, 0, 0),
                          step_of(transfer, 1, 64), step_of(join, 0),  step_of(transfer, 1, 128, 1),
                          step_of(end, 0),          step_of(end, 1)};
  for (std::size_t n = 0; n < steps.size(); ++n)
    steps[n].recorded = Time{static_cast<std::int64_t>(n) * 1000};
  std::vector<Recording::Wait> waits{{4, 2, npu::DependencyKind::completion, 5_ns},
                                     {4, 3, npu::DependencyKind::issue, Time{-7}},
                                     {5, 4, npu::DependencyKind::completion, 1_ns},
                                     {6, 4, npu::DependencyKind::completion, 2_ns},
                                     {7, 5, npu::DependencyKind::completion, 3_ns}};
  return Recording::of(2, std::move(steps), std::move(waits));
}

TEST(Recording, WhatWaitsForNothingFollowsItsBlocksBegin) {
  const Recording made = sample();
  EXPECT_THAT(made.begin_of, ::testing::ElementsAre(0, 1));
  // Of block 0 from the first begin: the read after 2 ns, as recorded; the end, which waits for the barrier
  // too.
  ASSERT_EQ(made.first_edge[1] - made.first_edge[0], 2u);
  EXPECT_EQ(made.edges[0].to, 2u);
  EXPECT_EQ(made.edges[0].delay, 2_ns);
  EXPECT_EQ(made.edges[1].to, 6u);
  EXPECT_EQ(made.edges[1].delay, Time{});
  EXPECT_THAT(made.waits, ::testing::ElementsAre(0, 0, 1, 1, 2, 2, 2, 2));
}

TEST(Recording, LanesHaveTheTransfersOfAnEngineInOrder) {
  const Recording made = sample();
  EXPECT_THAT(made.lane_steps, ::testing::ElementsAre(2, 3, 5));
  EXPECT_THAT(made.first_of_lane, ::testing::ElementsAre(0, 1, 1, 1, 2, 3, 3));
}

struct File {
  explicit File(std::string content) { std::ofstream(path, std::ios::binary) << content; }
  ~File() { std::filesystem::remove(path); }
  std::string path = ::testing::TempDir() + "sample.recording";
};

TEST(RecordingFile, ComesBackAsItWas) {
  const std::string bytes = bytes_of("a key", {std::make_shared<Recording>(sample())});
  const File file(bytes);
  const Recordings back = load_recordings(file.path, "a key");
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0]->blocks, 2u);
  EXPECT_EQ(back[0]->lane_steps, sample().lane_steps);
  EXPECT_EQ(bytes_of("a key", back), bytes);
}

TEST(RecordingFile, OfSomethingElseIsRefusedByItsName) {
  const std::string bytes = bytes_of("a key", {std::make_shared<Recording>(sample())});
  const File file(bytes);
  EXPECT_THAT(refusal([&] { load_recordings(file.path, "another"); }),
              HasSubstr("sample.recording: recorded of a key; this run is another"));
  EXPECT_THAT(refusal([&] { load_recordings("/nonexistent/file", "a key"); }), HasSubstr("cannot be read"));
}

// Cut anywhere, or with any bit turned over: a refusal, never other times.
TEST(RecordingFile, ThatIsBrokenIsRefused) {
  const std::string bytes = bytes_of("a key", {std::make_shared<Recording>(sample())});
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const File cut(bytes.substr(0, n));
    EXPECT_NE(refusal([&] { load_recordings(cut.path, "a key"); }), "(accepted)") << n;
  }
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string other = bytes;
      other[n] = static_cast<char>(static_cast<unsigned char>(other[n]) ^ (1u << bit));
      const File file(other);
      EXPECT_NE(refusal([&] { load_recordings(file.path, "a key"); }), "(accepted)") << n << ", bit " << bit;
    }
  }
}

// Those of before had no checksum: they are read, and whoever asks is told; a damaged one is still bounded.
TEST(RecordingFile, OfFormatOneIsReadUnchecked) {
  std::string bytes = bytes_of("a key", {std::make_shared<Recording>(sample())});
  bytes.resize(bytes.size() - std::string("xxh3:").size() - 32);
  const std::size_t format = bytes.find("recording 2");
  ASSERT_NE(format, std::string::npos);
  bytes[format + std::string("recording ").size()] = '1';
  bool checked = true;
  EXPECT_EQ(load_recordings(File(bytes).path, "a key", &checked).size(), 1u);
  EXPECT_FALSE(checked);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    std::string other = bytes;
    other[n] = static_cast<char>(static_cast<unsigned char>(other[n]) ^ 0x81u);
    const File file(other);
    refusal([&] {
      for (const auto& r : load_recordings(file.path, "a key"))
        check_fits(*r, 2, std::vector<std::uint64_t>{192});
    });
  }
}

TEST(RecordingFile, MustFitTheLaunchAndItsMemory) {
  const Recording made = sample();
  const auto refuses = [&](std::size_t blocks, std::vector<std::uint64_t> regions) {
    return refusal([&] { check_fits(made, blocks, regions); });
  };
  EXPECT_EQ(refuses(2, {192}), "(accepted)");
  EXPECT_THAT(refuses(2, {191}), HasSubstr("outside of the operator's memory"));
  EXPECT_THAT(refuses(2, {}), HasSubstr("outside of the operator's memory"));
  EXPECT_THAT(refuses(3, {192}), HasSubstr("of 2 cores; allowed: 3"));
}

}  // namespace
}  // namespace cm384::host::recording_test
