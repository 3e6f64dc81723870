// What a packet looks like on the wire, against the specification's sizes and fields, computed apart from the
// RTL.
#include <gtest/gtest.h>

#include "testbenches/hw/rtl/ub_link/small_link.h"
#include "ub_fabric/wire_format.h"

namespace cm384::rtl::framing_test {
namespace {

using Block = std::vector<Flit>;

// Cuts what end 0 puts on the wire into data blocks.
class BlockTap {
 public:
  explicit BlockTap(SmallLink& bench) {
    bench.on_wire = [this](int e, Flit& flit) {
      if (e == 0) see(flit);
    };
  }
  std::vector<Block> blocks;

 private:
  void see(const Flit& flit) {
    if (left_ == 0) {
      if (block_header(flit).format == 0) return;
      const int header = rest_ == 0 ? kHeaderBytes : kBlockHeaderBytes;
      if (rest_ == 0) rest_ = static_cast<int>(field(flit, 2));
      const int room = kSmall.block_flits * kSmall.flit_bytes - header - kCrcBytes;
      const int taken = std::min(rest_, room);
      left_ = (taken + header + kCrcBytes + kSmall.flit_bytes - 1) / kSmall.flit_bytes;
      rest_ -= taken;
      blocks.emplace_back();
    }
    blocks.back().push_back(flit);
    --left_;
  }
  int left_ = 0, rest_ = 0;
};

std::vector<std::uint8_t> joined(const Block& block) {
  std::vector<std::uint8_t> bytes;
  for (const Flit& flit : block) bytes.insert(bytes.end(), flit.begin(), flit.end());
  return bytes;
}

TEST(LinkFraming, PacketsTakeTheFlitsOfTheWireFormat) {
  for (int length = 1; length <= kSmall.max_length(); ++length)
    ASSERT_EQ(kSmall.flits(length), ub::wire_flits(kHeaderBytes + length, 0)) << length;
  SmallLink bench(2);
  BlockTap tap(bench);
  Random random(1);
  std::vector<int> lengths;
  for (int length = 1; length<1400; length += length % 100> 50 ? 7 : 1) lengths.push_back(length);
  for (int length = kSmall.max_length() - 5; length <= kSmall.max_length(); ++length)
    lengths.push_back(length);
  int flits = 0;
  for (const int length : lengths) {
    bench.send(0, random_packet(random, static_cast<unsigned>(length) % 4, length));
    bench.drain(5'000);
    ASSERT_FALSE(HasFatalFailure()) << length;
    int seen = 0;
    for (const Block& block : tap.blocks) seen += static_cast<int>(block.size());
    ASSERT_EQ(seen - flits, kSmall.flits(length)) << length;
    flits = seen;
  }
}

TEST(LinkFraming, BlocksCarryHeadersContentAndCrc) {
  SmallLink bench(2);
  BlockTap tap(bench);
  Random random(2);
  const Packet packet = random_packet(random, 3, 632 + 634 + 100);
  bench.send(0, packet);
  bench.drain(500);
  ASSERT_EQ(tap.blocks.size(), 3u);
  std::vector<std::uint8_t> content;
  for (std::size_t b = 0; b < 3; ++b) {
    const std::vector<std::uint8_t> bytes = joined(tap.blocks[b]);
    EXPECT_TRUE(is_sealed(bytes)) << "block " << b;
    const BlockHeader header = block_header(tap.blocks[b].front());
    EXPECT_EQ(header.lane, 3u);
    EXPECT_EQ(header.format, packet.format);
    EXPECT_EQ(header.route, packet.route);
    content.insert(content.end(), bytes.begin() + (b == 0 ? kHeaderBytes : kBlockHeaderBytes),
                   bytes.end() - kCrcBytes);
  }
  EXPECT_EQ(field(tap.blocks[0].front(), 2), packet.bytes.size());
  EXPECT_TRUE(std::equal(packet.bytes.begin(), packet.bytes.end(), content.begin()));
  // Behind the last byte there are zeros.
  EXPECT_TRUE(std::all_of(content.begin() + static_cast<std::ptrdiff_t>(packet.bytes.size()), content.end(),
                          [](std::uint8_t byte) { return byte == 0; }));
}

TEST(LinkFraming, AnIdleWireCarriesNullBlocks) {
  SmallLink bench(2);
  int flits = 0;
  bench.on_wire = [&](int, Flit& flit) {
    EXPECT_TRUE(is_control(flit, Control::null));
    ++flits;
  };
  bench.run(100);
  EXPECT_GE(flits, 190);
}

// From the cycle that takes a one-flit packet to the cycle that delivers it: choice and framing one each, the
// retry buffer two, output register to input register the latency, check one, choice with the lane buffer
// one.
TEST(LinkFraming, AnUnloadedPacketTakesItsStages) {
  for (const int latency : {2, 3, 50}) {
    SmallLink bench(latency);
    bench.run(10);
    Random random(3);
    bench.send(0, random_packet(random, 0, 12));
    std::uint64_t arrived = 0;
    bench.on_packet = [&](int, const Packet&) { arrived = bench.cycle(); };
    const std::uint64_t start = bench.cycle();
    bench.drain(200);
    EXPECT_EQ(arrived - start, static_cast<std::uint64_t>(latency) + 6);
  }
}

}  // namespace
}  // namespace cm384::rtl::framing_test
