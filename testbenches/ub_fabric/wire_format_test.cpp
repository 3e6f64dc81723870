#include "ub_fabric/wire_format.h"

#include <gtest/gtest.h>

namespace cm384::ub::wire_format_test {
namespace {

// ascend-facts D2.
TEST(WireFormat, PublishedPacketSizes) {
  EXPECT_EQ(packet_flits(PacketKind::write_request, 512), 28);
  EXPECT_EQ(packet_flits(PacketKind::read_response, 512), 27);
  EXPECT_EQ(packet_flits(PacketKind::read_request, 0), 2);
  EXPECT_EQ(packet_flits(PacketKind::write_ack, 0), 1);
  EXPECT_EQ(packet_flits(PacketKind::write_request, 32), 4);
  EXPECT_EQ(packet_flits(PacketKind::read_response, 64), 5);
  EXPECT_EQ(packet_flits(PacketKind::atomic_request, 4), 2);
}

TEST(WireFormat, BlocksEndAtThirtyTwoFlits) {
  // 640 B hold 636 B and a CRC; one byte more takes a second block with its header and CRC.
  EXPECT_EQ(wire_flits(28, 608), 32);
  EXPECT_EQ(wire_flits(28, 609), 33);
  // The second block is full with 634 B more.
  EXPECT_EQ(wire_flits(28, 608 + 634), 64);
  EXPECT_EQ(wire_flits(28, 608 + 635), 65);
  // 4 KiB: 4124 B are 636 + 5 x 634 + 318; the last block has 324 B, 17 flits.
  EXPECT_EQ(wire_flits(28, 4096), 6 * 32 + 17);
}

TEST(WireFormat, GrowsByFlitsOfTwentyBytes) {
  for (int payload = 1; payload <= 512; ++payload) {
    EXPECT_EQ(packet_flits(PacketKind::write_request, payload), (28 + payload + 4 + 19) / 20) << payload;
  }
}

TEST(Hop, CarriesWhatSwitchesNeed) {
  Packet p;
  p.destination = 959;
  p.flits = 28;
  p.lane = 7;
  p.flow = 0xa5;
  p.kind = PacketKind::read_response;
  const Hop hop((1u << 28) - 1, p);
  EXPECT_EQ(hop.packet(), (1u << 28) - 1);
  EXPECT_EQ(hop.destination(), 959);
  EXPECT_EQ(hop.flits(), 28u);
  EXPECT_EQ(hop.cells(), 4);
  EXPECT_EQ(hop.lane(), 7u);
  EXPECT_EQ(hop.flow(), 0xa5u);
  EXPECT_EQ(hop.inbound(), InboundClass::response);
  p.flits = 8;
  EXPECT_EQ(Hop(0, p).cells(), 1);
  p.flits = 9;
  EXPECT_EQ(Hop(0, p).cells(), 2);
}

}  // namespace
}  // namespace cm384::ub::wire_format_test
