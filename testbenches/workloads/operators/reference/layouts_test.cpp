// Layouts of the reference, worked out by hand; and the headers that kernels and host place by, held to them.
#include "workloads/operators/reference/layouts.h"

#include <gtest/gtest.h>

#include <array>

#include "firmware/abi/combine.h"
#include "firmware/abi/dispatch_full_mesh.h"
#include "firmware/abi/flash_attention.h"
#include "firmware/abi/indexer.h"
#include "firmware/abi/mla_output.h"
#include "firmware/abi/mla_prolog.h"
#include "firmware/abi/sparse_mla.h"

namespace cm384::reference::layouts_test {
namespace {

// Every number below is worked out on paper from the published rules, at a hidden size of 7168 where none is
// said.
TEST(LayoutsByHand, SlotOfDispatch) {
  constexpr DispatchSlot kSlot{7168};
  EXPECT_EQ(kSlot.scale(), 7168u);   // 224 x 32: nothing is filled up
  EXPECT_EQ(kSlot.triple(), 7200u);  // a block of 32 B on
  EXPECT_EQ(kSlot.bytes(), 7680u);   // 7212 B are 14.09 blocks of 512 B: 15
  constexpr DispatchSlot kOdd{100};
  EXPECT_EQ(kOdd.scale(), 128u);
  EXPECT_EQ(kOdd.triple(), 160u);
  EXPECT_EQ(kOdd.bytes(), 512u);
  EXPECT_EQ(DispatchSlot{468}.bytes(), 1024u);  // 480 + 32 + 12 = 524
  EXPECT_EQ(DispatchSlot{448}.bytes(), 512u);   // 448 + 32 + 12 = 492
}

TEST(LayoutsByHand, PacketOfFullMesh) {
  EXPECT_EQ(FullMeshPacket{7168}.blocks(),
            16u);  // 7200 B of row and scale in 15 blocks of 480 B, one for the triple
  EXPECT_EQ(FullMeshPacket{7168}.bytes(), 8192u);
  EXPECT_EQ(FullMeshPacket{448}.blocks(), 2u);  // 448 + 32 = 480: one block
  EXPECT_EQ(FullMeshPacket{449}.blocks(), 3u);  // filled up to 480, + 32 = 512: two
}

// 4 ranks of 2 experts, 3 tokens with 2 experts and a shared one each.
TEST(LayoutsByHand, DataWindow) {
  constexpr DataWindow kWindow{
      .hidden = 7168, .tokens = 3, .places = 3, .ranks = 4, .local_experts = 2, .slot_bytes = 7680};
  EXPECT_EQ(kWindow.combine_slot_bytes(), 14'336u);  // 28 blocks of 512 B
  EXPECT_EQ(kWindow.combine(0, 2), 28'672u);
  EXPECT_EQ(kWindow.combine(2, 1), 100'352u);      // slot 2 x 3 + 1 = 7
  EXPECT_EQ(kWindow.dispatch(0, 0, 0), 129'024u);  // behind 9 slots of combine
  EXPECT_EQ(kWindow.dispatch(2, 1, 2), 259'584u);  // slot (2 x 2 + 1) x 3 + 2 = 17: 129,024 + 130,560
  EXPECT_EQ(kWindow.bytes(), 313'344u);            // 24 slots of dispatch: 129,024 + 184,320
  EXPECT_EQ((DataWindow{.hidden = 100}.combine_slot_bytes()), 512u);
}

TEST(LayoutsByHand, StatusWindow) {
  constexpr StatusWindow kWindow{.ranks = 8, .places = 9};
  EXPECT_EQ(kWindow.dispatch(3, 5), 928u);              // entry 3 x 8 + 5 = 29
  EXPECT_EQ(kWindow.combine(10, 2), 65'536u + 2'944u);  // entry 10 x 9 + 2 = 92
  EXPECT_EQ(StatusWindow::kDispatchEntries, 2'048u);    // 64 KiB of 32 B
  EXPECT_EQ(StatusWindow::kHalfBytes, 512'000u);
}

TEST(LayoutsByHand, PageOfMla) {
  EXPECT_EQ(MlaLayout::in_page(3, 17), 2'097u);      // column 1, row 3, element 1: (128 + 3) x 16 + 1
  EXPECT_EQ(MlaLayout::in_page(127, 575), 73'727u);  // the last of 36 columns
  EXPECT_EQ(MlaLayout::in_page(0, 512), 65'536u);    // the rope begins with column 32
  EXPECT_EQ(MlaLayout::kPageElements, 128u * 576u);
}

TEST(LayoutsByHand, CachesOfSparseAttention) {
  EXPECT_EQ(IndexLayout::key(3, 33), 4'193u);      // column 1, token 3, element 1: (128 + 3) x 32 + 1
  EXPECT_EQ(IndexLayout::key(127, 127), 16'383u);  // the last of 4 columns
  EXPECT_EQ(IndexLayout::scale(2), 16'392u);       // behind 128 keys of 128 B, the third float
  EXPECT_EQ(IndexLayout::kPageBytes, 128u * (128 + 4));
  EXPECT_EQ(SparseRow::element(255), 255u);  // half of the latent, then 64 of the rope, then the other half
  EXPECT_EQ(SparseRow::element(512), 256u);
  EXPECT_EQ(SparseRow::element(575), 319u);
  EXPECT_EQ(SparseRow::element(256), 320u);
  EXPECT_EQ(SparseRow::element(511), 575u);
}

TEST(Layouts, KernelsAndHostPlaceByThem) {
  for (std::uint64_t hidden = 32; hidden <= 8192; hidden += 32) {
    const DispatchSlot slot{hidden};
    ASSERT_EQ(cm384_dispatch_scale_offset(hidden), slot.scale()) << hidden;
    ASSERT_EQ(cm384_dispatch_triple_offset(hidden), slot.triple()) << hidden;
    ASSERT_EQ(cm384_dispatch_transfer_bytes(hidden), slot.triple() + 12) << hidden;
    ASSERT_EQ(cm384_dispatch_slot_bytes(hidden), slot.bytes()) << hidden;
    ASSERT_EQ(cm384_packet_blocks(hidden), FullMeshPacket{hidden}.blocks()) << hidden;
    ASSERT_EQ(cm384_packet_bytes(hidden), FullMeshPacket{hidden}.bytes()) << hidden;
    const DataWindow window{hidden, 24, 9, 16, 3, slot.bytes()};
    ASSERT_EQ(cm384_combine_slot_bytes(hidden), window.combine_slot_bytes()) << hidden;
    ASSERT_EQ(cm384_combine_area_bytes(24, 9, hidden), window.dispatch(0, 0, 0)) << hidden;
    ASSERT_EQ(cm384_combine_area_bytes(24, 9, hidden) + cm384_dispatch_area_bytes(16, 3, 24, hidden),
              window.bytes());
    for (const auto& [source, local, position] : {std::array{0u, 0u, 1u}, {0u, 2u, 5u}, {15u, 1u, 23u}}) {
      ASSERT_EQ(window.dispatch(0, 0, 0) + cm384_dispatch_slot_offset(source, local, position, 3, 24, hidden),
                window.dispatch(source, local, position))
          << hidden;
    }
  }
  EXPECT_EQ(CM384_STATUS_ENTRY_BYTES, StatusWindow::kEntryBytes);
  EXPECT_EQ(CM384_STATUS_HALF_BYTES, StatusWindow::kHalfBytes);
  EXPECT_EQ(CM384_STATUS_COMBINE_OFFSET, StatusWindow::kCombine);
  EXPECT_EQ(CM384_STATUS_MAX_ENTRIES, StatusWindow::kDispatchEntries);
  EXPECT_EQ(CM384_MLA_LATENT, MlaLayout::kLatent);
  EXPECT_EQ(CM384_MLA_ROPE, MlaLayout::kRope);
  EXPECT_EQ(CM384_MLA_WIDTH, MlaLayout::kWidth);
  EXPECT_EQ(CM384_MLA_PAGE_TOKENS, MlaLayout::kPageTokens);
  EXPECT_EQ(CM384_MLA_PAGE_BYTES, 2 * MlaLayout::kPageElements);
  EXPECT_EQ(CM384_MLA_NOPE, MlaLayout::kNope);
  EXPECT_EQ(CM384_MLA_HEAD, MlaLayout::kHead);
  EXPECT_EQ(CM384_MLA_VALUE, MlaLayout::kValue);
  EXPECT_EQ(CM384_INDEX_WIDTH, IndexLayout::kWidth);
  EXPECT_EQ(CM384_INDEX_PAGE_TOKENS, MlaLayout::kPageTokens);
  EXPECT_EQ(CM384_INDEX_KEY_BYTES, IndexLayout::scale(0));
  EXPECT_EQ(CM384_INDEX_PAGE_BYTES, IndexLayout::kPageBytes);
  EXPECT_EQ(CM384_SPARSE_ROW_BYTES, 2 * MlaLayout::kWidth);
  EXPECT_EQ(CM384_SPARSE_FIRST_BYTES, 2 * SparseRow::element(256));
  EXPECT_EQ(CM384_SPARSE_SECOND_BYTES, 2 * 256u);
  EXPECT_EQ(CM384_FLASH_KEY, MlaLayout::kHead);
  EXPECT_EQ(CM384_FLASH_VALUE, MlaLayout::kValue);
}

}  // namespace
}  // namespace cm384::reference::layouts_test
