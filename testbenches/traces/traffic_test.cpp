// Traffic traces: both formats say the same, and every damage is refused with its place.
#include "traces/traffic.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/text/error.h"
#include "traces/random.h"
#include "traces/traffic_file.h"

namespace cm384::traces::traffic_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string scratch(const std::string& name) {
  return ::testing::TempDir() + "cm384-traffic-" + name;
}

// What a host does, in turn.
void add_host(TrafficRecord& r, std::size_t n, Random& random) {
  using Kind = TrafficRecord::Kind;
  r.target = r.source;
  r.end = r.start;
  const std::uint64_t address = std::uint64_t{1} << 62 | random.below(1u << 30);
  switch (n / 17 % 8) {
    case 0:
      r.kind = Kind::idle;
      break;
    case 1:
      r.kind = Kind::stream;
      r.words = {1 + random.below(8), 64 * random.below(1u << 20), 64 * random.below(1u << 20), 1024};
      break;
    case 2:
      r.kind = Kind::kernel;
      r.words = {random.below(8), 1, 48, 49, 3};
      break;
    case 3:
      r.kind = Kind::given;
      r.words = {0, 1, address, address, 7, 0, 0, 0, ~std::uint64_t{0}};
      break;
    case 4:
      r.kind = Kind::call;
      r.words = {0, 3, 11, address, address, 4096, 0, 0, 0, 0};
      break;
    case 5:
      r.kind = Kind::call;
      r.words = {3, random.below(8), 5, 8};
      break;
    case 6:
      r.kind = Kind::end;
      r.words = {random.below(100), random.below(48)};
      break;
    default:
      r.kind = Kind::transfer;
      r.engine = TrafficRecord::Engine::sdma;
      r.bytes = 4096;
      r.words = {2, random.below(1000)};
  }
}

// A trace of all kinds of records, by a generator of its own.
std::vector<TrafficRecord> make_records(std::size_t count) {
  Random random(7);
  std::vector<TrafficRecord> records;
  Time now{};
  for (std::size_t n = 0; n < count; ++n) {
    TrafficRecord r;
    now += Time{static_cast<std::int64_t>(random.below(5000))};
    r.start = now;
    r.end = now + Time{static_cast<std::int64_t>(random.below(3'000'000))};
    r.source.number = static_cast<std::uint16_t>(random.below(8));
    r.target.number = static_cast<std::uint16_t>(random.below(8));
    if (n % 17 == 3) {
      r.kind = TrafficRecord::Kind::barrier;
      r.end = r.start;
      r.target = r.source;
    } else if (n % 17 == 5) {
      r.kind = TrafficRecord::Kind::fill;
      r.target = r.source;
      r.bytes = 128;
    } else if (n % 17 == 7) {
      r.engine = TrafficRecord::Engine::sdma;
      r.operation = static_cast<sim::Operation>(random.below(2));
      r.offset = random.below(std::uint64_t{1} << 36);
      r.bytes = 1 + random.below(std::uint64_t{1} << 24);
    } else if (n % 17 == 8) {
      add_host(r, n, random);
    } else if (n % 17 == 9) {
      r.engine = TrafficRecord::Engine::fix;
      r.operation = sim::Operation::write;
      r.core = 48 + static_cast<int>(random.below(24));
      r.target = r.source;
      r.bytes = 256;
      r.bursts = 16;
      r.stride = 4096;
    } else {
      r.operation = static_cast<sim::Operation>(random.below(4));
      r.core = static_cast<int>(random.below(49)) - 1;
      r.target.cpu = random.below(10) == 0;
      r.by_ub = random.below(10) == 0;
      r.by_rdma = !r.by_ub && !r.target.cpu && n % 5 == 0;
      r.allocate = random.below(2) == 0;
      r.lane = static_cast<std::uint8_t>(random.below(16));
      r.offset = random.below(std::uint64_t{1} << 36);
      r.bytes = 1 + random.below(7680);
      r.bursts = r.core >= 0 && random.below(3) == 0 ? 4 : 1;
      r.stride = r.bursts > 1 ? static_cast<std::int64_t>(random.below(1u << 20)) - (1 << 19) : 0;
    }
    for (std::uint64_t k = 0; k < random.below(4) && n != 0; ++k)
      r.dependencies.push_back({n - 1 - random.below(std::min<std::size_t>(n, 100)),
                                static_cast<TrafficDependency::Kind>(random.below(3)),
                                Time{static_cast<std::int64_t>(random.below(1000)) - 200}});
    records.push_back(r);
  }
  return records;
}

std::string write(const std::string& name, const std::vector<TrafficRecord>& records) {
  const std::string path = scratch(name);
  const auto sink = create_traffic(path, {"node8", "test", {}});
  for (const TrafficRecord& r : records) sink->add(r);
  sink->finish();
  return path;
}

std::vector<TrafficRecord> read(const std::string& path) {
  const auto source = open_traffic(path);
  std::vector<TrafficRecord> records;
  for (TrafficRecord r; source->next(r);) records.push_back(r);
  return records;
}

std::string refusal_of(const std::string& path) {
  try {
    read(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string write_bytes(const std::string& name, const std::string& bytes) {
  const std::string path = scratch(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(Traffic, ComesBackFromBothFormatsAsItWent) {
  const auto records = make_records(40'000);
  const std::string path = write("round.trace", records);
  EXPECT_TRUE(read(path) == records);
  EXPECT_EQ(open_traffic(path)->header().machine, "node8");
  EXPECT_TRUE(read(write("round.csv", records)) == records);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(Traffic, QueuesOfComputeComeBack) {
  std::vector<TrafficRecord> records;
  for (std::uint8_t queue = 0; queue < 16; ++queue) {
    TrafficRecord r;
    r.kind = TrafficRecord::Kind::compute;
    r.end = 5_us;
    r.lane = queue;
    records.push_back(r);
  }
  EXPECT_TRUE(read(write("queues.trace", records)) == records);
  EXPECT_TRUE(read(write("queues.csv", records)) == records);
}

// Without what the host does, a file of version 2 differs in its number alone.
TEST(Traffic, FilesOfOlderVersionsAreRead) {
  std::vector<TrafficRecord> records;
  for (TrafficRecord& r : make_records(5'000)) {
    r.dependencies.clear();
    if (!r.of_host()) records.push_back(r);
  }
  std::string bytes = bytes_of(write("new.trace", records));
  for (const char version : {'\1', '\2', '\3'}) {
    bytes[8] = version;
    EXPECT_TRUE(read(write_bytes("old.trace", bytes)) == records) << int{version};
  }
  bytes[8] = 5;
  EXPECT_THAT(refusal_of(write_bytes("old.trace", bytes)), HasSubstr("version: 5; allowed: 1 to 4"));
  // A CSV without the column of words.
  EXPECT_EQ(
      read(write_bytes("old.csv",
                       "id,kind,start_ps,end_ps,source,core,target,operation,offset,bytes,bursts,stride,lane,"
                       "via,l2,dependencies\n0,transfer,5,9,die1,3,die2,write,0,64,1,0,0,,yes,\n"))
          .size(),
      1u);
}

TEST(Traffic, WordsThatMakeNoSenseAreRefused) {
  using Kind = TrafficRecord::Kind;
  const auto refusal = [](Kind kind, std::vector<std::uint64_t> words) {
    TrafficRecord r;
    r.kind = kind;
    r.words = std::move(words);
    if (kind == Kind::transfer) {
      r.engine = TrafficRecord::Engine::sdma;
      r.bytes = 64;
    }
    return fault_of(r, 0);
  };
  EXPECT_EQ(refusal(Kind::transfer, {3, 4}), "");
  EXPECT_THAT(refusal(Kind::transfer, {3}), HasSubstr("words: 1 of them; allowed: 2"));
  EXPECT_THAT(refusal(Kind::transfer, {1 << 15, 4}), HasSubstr("words: stream 32768"));
  EXPECT_THAT(refusal(Kind::barrier, {3, 4}), HasSubstr("words: 2 of them; allowed: 0"));
  EXPECT_THAT(refusal(Kind::launch, {3, 1 << 16}), HasSubstr("words: block"));
  EXPECT_THAT(refusal(Kind::stream, {1, 64, 65, 8}), HasSubstr("no multiple of 64"));
  EXPECT_THAT(refusal(Kind::kernel, {1, 3}), HasSubstr("words: type 3"));
  EXPECT_THAT(refusal(Kind::kernel, {1, 0, 128}), HasSubstr("words: core 128"));
  EXPECT_THAT(refusal(Kind::call, {}), HasSubstr("words: 0 of them"));
  EXPECT_THAT(refusal(Kind::call, {6, 0}), HasSubstr("words: 2 of them; allowed: 0"));
  EXPECT_THAT(refusal(Kind::call, {4, 0}), HasSubstr("words: 2 of them; allowed: 10"));
  EXPECT_THAT(refusal(Kind::call, {5, std::uint64_t{1} << 31}), HasSubstr("words: entries"));
  EXPECT_THAT(refusal(Kind::call, {1, 1 << 15}), HasSubstr("words: stream"));
  EXPECT_EQ(refusal(Kind::call, {1, 0xffffffff}), "");
  EXPECT_THAT(refusal(Kind::call, {3, 2048, 0, 1}), HasSubstr("words: die 2048"));
}

TEST(Traffic, AnEmptyTraceIsGood) {
  EXPECT_TRUE(read(write("empty.trace", {})).empty());
  EXPECT_TRUE(read(write("empty.csv", {})).empty());
}

TEST(Traffic, ATruncatedFileIsRefusedAtItsEndWhereverThatIs) {
  const auto records = make_records(200);
  const std::string whole = bytes_of(write("cut.trace", records));
  for (std::size_t length = 0; length < whole.size(); length += 1 + length / 50) {
    const std::string path = write_bytes("cut-off.trace", whole.substr(0, length));
    EXPECT_THAT(refusal_of(path), AllOf(HasSubstr(path), HasSubstr("offset " + std::to_string(length))))
        << length;
  }
}

TEST(Traffic, EveryChangedByteIsRefused) {
  const std::string whole = bytes_of(write("flip.trace", make_records(60)));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THAT(refusal_of(write_bytes("flipped.trace", damaged)), HasSubstr("offset ")) << "byte " << at;
  }
}

TEST(Traffic, WhatStandsBeforeDamageIsRead) {
  const auto records = make_records(60'000);
  const std::string whole = bytes_of(write("salvage.trace", records));
  TrafficFileReader reader(write_bytes("salvaged.trace", whole.substr(0, whole.size() * 2 / 3)));
  std::size_t read = 0;
  TrafficRecord r;
  try {
    for (; reader.next(r); ++read) EXPECT_TRUE(r == records[read]) << read;
    FAIL() << "nothing was refused";
  } catch (const InputError&) {
  }
  EXPECT_GT(read, records.size() / 3);
}

TEST(Traffic, TheIndexFindsATime) {
  const auto records = make_records(60'000);
  TrafficFileReader reader(write("seek.trace", records));
  const Time wanted = records[45'000].start;
  const std::uint64_t first = reader.seek(wanted);
  EXPECT_GT(first, 20'000u);
  EXPECT_LE(first, 45'000u);
  TrafficRecord r;
  ASSERT_TRUE(reader.next(r));
  EXPECT_TRUE(r == records[first]);
  // The same block by its first record, the one before it by the record before.
  EXPECT_EQ(reader.seek_record(first), first);
  ASSERT_TRUE(reader.next(r));
  EXPECT_TRUE(r == records[first]);
  EXPECT_LT(reader.seek_record(first - 1), first);
}

TEST(Traffic, ACsvLineIsRefusedByLineAndField) {
  const std::string head =
      "id,kind,start_ps,end_ps,source,core,target,operation,offset,bytes,bursts,stride,lane,via,l2,"
      "dependencies\n";
  const std::string good = "0,transfer,5,9,die1,3,die2,write,0,64,1,0,0,,yes,\n";
  const auto refusal = [&](const std::string& line) {
    return refusal_of(write_bytes("line.csv", head + good + line));
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("1,transfer,5,9,die1,3,die2,write,0,64,1,0,0,,yes,0:arrival:7\n"), "");
  EXPECT_THAT(refusal("1,transfer,x,9,die1,3,die2,write,0,64,1,0,0,,yes,\n"), HasSubstr(":3: start_ps: 'x'"));
  EXPECT_THAT(refusal("7,transfer,5,9,die1,3,die2,write,0,64,1,0,0,,yes,\n"), HasSubstr(":3: id: '7'"));
  EXPECT_THAT(refusal("1,tranfer,5,9,die1,3,die2,write,0,64,1,0,0,,yes,\n"),
              HasSubstr(":3: kind: 'tranfer'"));
  EXPECT_THAT(refusal("1,transfer,5,4,die1,3,die2,write,0,64,1,0,0,,yes,\n"), HasSubstr(":3: end: 4 ps"));
  EXPECT_THAT(refusal("1,transfer,5,9,dice1,3,die2,write,0,64,1,0,0,,yes,\n"),
              HasSubstr(":3: source: 'dice1'"));
  EXPECT_THAT(refusal("1,transfer,5,9,die1,128,die2,write,0,64,1,0,0,,yes,\n"),
              HasSubstr(":3: core: 128; allowed: 0 to 127"));
  EXPECT_THAT(refusal("1,transfer,5,9,die1,3,die2,write,0,0,1,0,0,,yes,\n"), HasSubstr(":3: bytes: 0"));
  EXPECT_THAT(refusal("1,transfer,5,9,die1,3,die2,write,0,64,1,0,16,,yes,\n"), HasSubstr(":3: lane: '16'"));
  EXPECT_THAT(refusal("1,transfer,5,9,die1,3,die2,write,0,64,1,0,0,,yes,1:arrival:0\n"),
              HasSubstr(":3: dependencies: record 1 waits for 1"));
  EXPECT_THAT(refusal("1,transfer,5\n"), HasSubstr(":3: line: 3 fields"));
  EXPECT_THAT(refusal_of(write_bytes("head.csv", "id,kind\n")), HasSubstr(":1: header"));
}

TEST(Traffic, ADependencyReachesOnlySoFarBack) {
  TrafficRecord r;
  r.bytes = 1;
  r.dependencies = {{5, TrafficDependency::Kind::completion, {}}};
  EXPECT_EQ(fault_of(r, 5 + kReach), "");
  EXPECT_THAT(fault_of(r, 6 + kReach), HasSubstr("reaches back"));
}

TEST(Traffic, APartForgetsTheHost) {
  Selection selection;
  TrafficRecord call, copy;
  call.kind = TrafficRecord::Kind::call;
  call.words = {1, 0xffffffff};
  copy.engine = TrafficRecord::Engine::sdma;
  copy.words = {1, 0};
  EXPECT_FALSE(selection.select(call, true));
  EXPECT_TRUE(selection.select(copy, true));
  EXPECT_TRUE(copy.at_recorded_time());
}

TEST(Traffic, APartPointsAtItsOwnRecords) {
  Selection selection;
  auto records = make_records(6);
  for (auto& r : records) r.dependencies.clear();
  records[4].dependencies = {{1, TrafficDependency::Kind::completion, 3_ps},
                             {3, TrafficDependency::Kind::issue, 4_ps}};
  std::vector<TrafficRecord> kept;
  for (std::size_t n = 0; n < records.size(); ++n) {
    if (selection.select(records[n], n >= 2)) kept.push_back(records[n]);
  }
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_THAT(kept[2].dependencies,
              ::testing::ElementsAre(TrafficDependency{1, TrafficDependency::Kind::issue, 4_ps}));
}

}  // namespace
}  // namespace cm384::traces::traffic_test
