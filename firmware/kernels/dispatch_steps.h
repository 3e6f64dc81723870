// FusedDispatch by AIV-Direct: every block quantises its share of (token, expert) pairs and writes the rows
// straight into the windows of the ranks that own the experts; counts and flags follow; what has arrived is
// copied out. Follows ascend-facts B2 step by step (MoeDistributeDispatchV2). Arguments, windows:
// firmware/abi/dispatch.h.
//
// No branch and no address depends on a row's values or its scale: counts, ids, triples and flags are plain.
//
// A class of its own file, so that `dispatch_relay` adds to it. Kernels are one source file each.
#pragma once

#include "firmware/abi/dispatch.h"
#include "firmware/kernels/count_equal.h"
#include "firmware/kernels/moe_prologue.h"
#include "firmware/kernels/quantise.h"
#include "firmware/kernels/share.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

// Words in the `scalars` region of the UBuffer, as byte offsets: results of reductions that the scalar unit
// reads. The maximum of a row is payload and has a block of its own.
constexpr uint32_t kState = 0, kStateOut = 32, kSum = 64, kMaximum = 96, kPartial = 128, kWork = 1280;

class Dispatch {
 public:
  explicit Dispatch(const cm384_dispatch& arguments)
      : a_(arguments),
        block_(static_cast<uint32_t>(GetBlockIdx())),
        blocks_(static_cast<uint32_t>(GetBlockNum())),
        l_(cm384_dispatch_ubuffer(&a_, blocks_)) {
    if (l_.end > kUBufferBytes) Abort("dispatch: batch, experts and hidden size do not fit the UBuffer");
    if (a_.hidden == 0 || a_.hidden % 32 != 0) Abort("dispatch: the hidden size is no multiple of 32");
    if (a_.batch > a_.max_tokens) Abort("dispatch: the batch is larger than the windows' slots");
  }

  void Run() {
    MarkPhase(CM384_DISPATCH_INIT);
    Init();
    MarkPhase(CM384_DISPATCH_SEND);
    Send();
    MarkPhase(CM384_DISPATCH_STATUS);
    SetStatus();
    MarkPhase(CM384_DISPATCH_WAIT);
    WaitDispatch();
    MarkPhase(CM384_DISPATCH_COPY);
    LocalWindowCopy();
  }

 protected:
  template <typename T>
  LocalTensor<T> Scalar(uint32_t word) const {
    return At<T>(l_.scalars + word);
  }

  // Tables and expert ids to the UBuffer; which half of the windows this call uses.
  void Init() {
    const cm384_peer own = reinterpret_cast<const cm384_peer*>(a_.peers)[a_.rank];
    own_window_ = own.window;
    own_status_ = own.status;
    pairs_ = a_.batch * a_.top_k;

    // What scalar stores and masked vector instructions touch later starts as zeros: ids, work, scalars,
    // triples.
    Duplicate(At<int32_t>(l_.ids), 0, static_cast<int32_t>((l_.copies - l_.ids) / 4));
    const uint64_t triple = cm384_dispatch_triple_offset(a_.hidden);
    for (uint32_t b = 0; b < 2; ++b) Duplicate(At<int32_t>(l_.x_out + b * l_.slot_bytes + triple), 0, 64);
    SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);

    const GlobalTensor<uint32_t> state =
        GlobalAt<uint32_t>(own_status_ + CM384_STATUS_DISPATCH_STATE + block_ * 512);
    DataCopy(Scalar<uint32_t>(kState), state, 8);
    if (pairs_ != 0)
      DataCopyPad(At<int32_t>(l_.ids), GlobalAt<int32_t>(a_.expert_ids), {1, pairs_ * 4, 0, 0});
    LoadTables(a_, l_);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);

    half_ = Scalar<uint32_t>(kState).GetValue(0) & 1;
    Scalar<uint32_t>(kStateOut).SetValue(0, half_ ^ 1);
    Sync<HardEvent::S_MTE3>(EVENT_ID1);
    DataCopy(state, Scalar<uint32_t>(kStateOut), 8);
  }

  // How many of the first `count` pairs chose `expert`.
  uint32_t CountPairs(uint32_t expert, uint32_t count) const {
    return CountEqual(At<int32_t>(l_.ids), At<int32_t>(l_.work0), At<int32_t>(l_.work1),
                      Scalar<int32_t>(kSum), expert, count);
  }

  // B2.2 to B2.4. The last shared / (top_k + shared) of the blocks send to shared experts, the others the
  // pairs.
  void Send() {
    uint32_t shared_blocks = 0;
    if (a_.shared != 0) {
      shared_blocks = blocks_ * a_.shared / (a_.top_k + a_.shared);
      if (shared_blocks == 0) shared_blocks = 1;
    }
    const uint32_t pair_blocks = blocks_ > shared_blocks ? blocks_ - shared_blocks : blocks_;

    for (uint32_t b = 0; b < 2; ++b) {  // both input and both output buffers are free
      SetFlag<HardEvent::V_MTE2>(b);
      SetFlag<HardEvent::MTE3_V>(b);
    }
    if (block_ < pair_blocks) {
      const Range share = Share(pairs_, pair_blocks, block_);
      uint32_t token = share.first / a_.top_k, k = share.first % a_.top_k;
      for (uint32_t i = share.first; i < share.last; ++i) {
        const uint32_t expert = At<uint32_t>(l_.ids).GetValue(i);
        SendRow(token, k, SlotOf(l_.copies, expert, a_.rank), CountPairs(expert, i));
        if (++k == a_.top_k) k = 0, ++token;
      }
    }
    if (block_ >= blocks_ - shared_blocks) {
      const Range share = Share(a_.batch * a_.shared, shared_blocks, block_ - (blocks_ - shared_blocks));
      for (uint32_t i = share.first; i < share.last; ++i) {
        const uint32_t token = i / a_.shared, which = i % a_.shared;
        SendRow(token, a_.top_k + which, SlotOf(l_.copies, a_.experts + which, a_.rank), token);
      }
    }
    for (uint32_t b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::V_MTE2>(b);
      WaitFlag<HardEvent::MTE3_V>(b);
    }
  }

  // Loads and quantises a row and writes it to position `position` of a slot. The wait of MTE3 -> S, which
  // the triple needs, makes the send of each row wait for the transfer before it, as in the original.
  void SendRow(uint32_t token, uint32_t k, uint32_t slot, uint32_t position) {
    const uint32_t b = sent_++ & 1;
    const auto place = At<uint32_t>(l_.slots + slot * sizeof(cm384_expert_slot));
    const uint32_t rank = place.GetValue(0), local = place.GetValue(1);
    const uint64_t window = At<uint64_t>(l_.peers + rank * sizeof(cm384_peer)).GetValue(0);
    const uint64_t to =
        window + DispatchArea() +
        cm384_dispatch_slot_offset(a_.rank, local, position, a_.local_experts, a_.max_tokens, a_.hidden);

    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(At<bfloat16_t>(l_.x_in + b * l_.x_in_bytes),
             GlobalAt<bfloat16_t>(a_.x + static_cast<uint64_t>(token) * a_.hidden * 2), a_.hidden);
    SetFlag<HardEvent::MTE2_V>(b);

    const uint64_t out = l_.x_out + b * l_.slot_bytes;
    const float scale =
        QuantiseRow(At<bfloat16_t>(l_.x_in + b * l_.x_in_bytes), At<float>(l_.row), At<float>(l_.absolute),
                    Scalar<float>(kMaximum), At<int8_t>(out), a_.hidden, static_cast<event_t>(b));

    WaitFlag<HardEvent::V_MTE3>(b);
    SetFlag<HardEvent::MTE3_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
    At<float>(out + cm384_dispatch_scale_offset(a_.hidden)).SetValue(0, scale);
    const auto triple = At<uint32_t>(out + cm384_dispatch_triple_offset(a_.hidden));
    triple.SetValue(0, a_.rank);
    triple.SetValue(1, token);
    triple.SetValue(2, k);
    SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    DataCopyPad(GlobalAt<int8_t>(to), At<int8_t>(out), {1, Transfer(), 0, 0});
    SetFlag<HardEvent::MTE3_V>(b);
  }

  // B2.5: after a barrier, so that all rows of this rank have arrived, one entry {1.0f, count} to every slot.
  void SetStatus() {
    const Range share = Share(a_.slots, blocks_, block_);
    const auto entries = At<uint32_t>(l_.status_out);
    PipeBarrier<PIPE_V>();
    Duplicate(entries, 0, static_cast<int32_t>((l_.entries - l_.status_out) / 4));
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    for (uint32_t slot = share.first; slot < share.last; ++slot) {
      const uint32_t expert = At<uint32_t>(l_.slots + slot * sizeof(cm384_expert_slot)).GetValue(2);
      uint32_t count = 0;
      if (SlotOf(l_.copies, expert, a_.rank) == slot)
        count = expert < a_.experts ? CountPairs(expert, pairs_) : a_.batch;
      entries.ReinterpretCast<float>().SetValue((slot - share.first) * 8, 1.0f);
      entries.SetValue((slot - share.first) * 8 + 1, count);
    }
    SyncAll();
    SetFlag<HardEvent::S_MTE3>(EVENT_ID1);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID1);
    for (uint32_t slot = share.first; slot < share.last; ++slot) {
      const auto place = At<uint32_t>(l_.slots + slot * sizeof(cm384_expert_slot));
      const uint64_t status = At<uint64_t>(l_.peers + place.GetValue(0) * sizeof(cm384_peer)).GetValue(1);
      DataCopy(GlobalAt<uint32_t>(StatusEntry(status, place.GetValue(1) * a_.ranks + a_.rank)),
               entries[(slot - share.first) * 8], 8);
    }
  }

  // B2.6: waits for this block's share of the status entries, keeps their counts, clears them, and tells the
  // other blocks of this rank the sum.
  void WaitDispatch() {
    share_ = Share(a_.own_experts * a_.ranks, blocks_, block_);
    Duplicate(At<uint32_t>(l_.entries), 0, static_cast<int32_t>((l_.rows_out - l_.entries) / 4));
    SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);

    const auto entries = At<uint32_t>(l_.entries), counts = At<uint32_t>(l_.counts);
    uint32_t sum = 0;
    for (uint32_t first = share_.first; first < share_.last;) {
      const uint32_t left = share_.last - first;
      const auto n = left < l_.chunk_entries ? left : static_cast<uint32_t>(l_.chunk_entries);
      const uint64_t address = StatusEntry(own_status_, first);
      AwaitEntries(address, n);
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t count = entries.GetValue(i * 8 + 1);
        counts.SetValue(first - share_.first + i, count);
        sum += count;
      }
      DataCopy(GlobalAt<uint32_t>(address), At<uint32_t>(l_.zero), n * 8);
      first += n;
    }

    // One copy of the sum for every block, each 512 B from the next so that no two readers share a request.
    Duplicate(At<uint32_t>(l_.sums), sum, uint64_t{1}, static_cast<uint8_t>(blocks_), 1, 1);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID1);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID1);
    CopyBursts<CM384_MTE_UB_TO_GM>(a_.workspace + block_ * 512, l_.sums, 32, blocks_, 32, blocks_ * 512);
    if (share_.size() != 0) {
      SetFlag<HardEvent::S_MTE3>(EVENT_ID2);
      WaitFlag<HardEvent::S_MTE3>(EVENT_ID2);
      DataCopyPad(
          GlobalAt<uint32_t>(a_.workspace + cm384_dispatch_workspace_counts(blocks_) + share_.first * 4),
          counts, {1, share_.size() * 4, 0, 0});
    }
    SyncAll();
  }

  // Polls until the flags of n entries, 1.0f each, add up.
  void AwaitEntries(uint64_t address, uint32_t n) const {
    const auto partial = Scalar<float>(kPartial), sum = Scalar<float>(kSum);
    for (;;) {
      SetFlag<HardEvent::S_MTE2>(EVENT_ID0);
      WaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
      DataCopy(At<uint32_t>(l_.entries), GlobalAt<uint32_t>(address), n * 8);
      SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
      WholeReduceSum(partial, At<float>(l_.entries), 1, static_cast<int32_t>(n), 1, 1, 1);
      PipeBarrier<PIPE_V>();
      TreeSum(sum, partial, Scalar<float>(kWork), static_cast<int32_t>(n));
      SetFlag<HardEvent::V_S>(EVENT_ID0);
      WaitFlag<HardEvent::V_S>(EVENT_ID0);
      if (sum.GetValue(0) == static_cast<float>(n)) return;
      PollMark(address, n * CM384_STATUS_ENTRY_BYTES);
    }
  }

  // B2.7: copies this block's entries out of the window, in the order local expert, source rank, position.
  void LocalWindowCopy() {
    uint32_t row = FirstRow();
    const auto counts = At<uint32_t>(l_.counts);
    uint32_t local = share_.first / a_.ranks, source = share_.first % a_.ranks;
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);  // both buffers are free
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
    for (uint32_t i = 0; i < share_.size(); ++i) {
      const uint32_t count = counts.GetValue(i);
      uint64_t from =
          own_window_ + DispatchArea() +
          cm384_dispatch_slot_offset(source, local, 0, a_.local_experts, a_.max_tokens, a_.hidden);
      for (uint32_t position = 0; position < count; ++position, ++row) {
        CopyRowOut(from, row);
        from += cm384_dispatch_slot_bytes(a_.hidden);
      }
      counts.SetValue(i, row);
      if (++source == a_.ranks) source = 0, ++local;
    }
    if (share_.size() != 0) {
      SetFlag<HardEvent::S_MTE3>(EVENT_ID3);
      WaitFlag<HardEvent::S_MTE3>(EVENT_ID3);
      DataCopyPad(GlobalAt<uint32_t>(a_.send_counts + share_.first * 4), counts,
                  {1, share_.size() * 4, 0, 0});
    }
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
    if (block_ == blocks_ - 1 && a_.own_experts != 0) WriteTokenNums();
  }

  // Rows that the blocks before this one copy.
  uint32_t FirstRow() const {
    if (block_ == 0) return 0;
    const auto sums = At<uint32_t>(l_.sums), gathered = Scalar<uint32_t>(kPartial);
    CopyBursts<CM384_MTE_GM_TO_UB>(l_.sums, a_.workspace + static_cast<uint64_t>(block_) * blocks_ * 512, 32,
                                   block_, 512, 32);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    uint64_t gathered_count;
    // Words 0 and 4 of each 32 B block; word 4 is 0.
    GatherMask(gathered, sums, 3, false, 0, {1, static_cast<uint16_t>((block_ + 7) / 8), 8, 0},
               gathered_count);
    PipeBarrier<PIPE_V>();
    TreeSum(Scalar<uint32_t>(kSum), gathered, Scalar<uint32_t>(kWork), static_cast<int32_t>(2 * block_));
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    return Scalar<uint32_t>(kSum).GetValue(0);
  }

  void CopyRowOut(uint64_t from, uint32_t row) {
    const uint32_t b = copied_++ & 1;
    const uint64_t buffer = l_.rows_out + b * l_.slot_bytes;
    GlobalTensor<int8_t> window = GlobalAt<int8_t>(from);
    window.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
    WaitFlag<HardEvent::MTE3_MTE2>(b);
    DataCopyPad(At<int8_t>(buffer), window, {1, Transfer(), 0, 0});
    SetFlag<HardEvent::MTE2_MTE3>(b);
    WaitFlag<HardEvent::MTE2_MTE3>(b);
    DataCopyPad(GlobalAt<int8_t>(a_.expand_triples + row * 12ull),
                At<int8_t>(buffer + cm384_dispatch_triple_offset(a_.hidden)), {1, 12, 0, 0});
    DataCopyPad(GlobalAt<int8_t>(a_.expand_scales + row * 4ull),
                At<int8_t>(buffer + cm384_dispatch_scale_offset(a_.hidden)), {1, 4, 0, 0});
    DataCopyPad(GlobalAt<int8_t>(a_.expand_x + static_cast<uint64_t>(row) * a_.hidden), At<int8_t>(buffer),
                {1, a_.hidden, 0, 0});
    SetFlag<HardEvent::MTE3_MTE2>(b);
  }

  // Tokens of each local expert, from the counts that all blocks left in the workspace before the last
  // barrier.
  void WriteTokenNums() const {
    CopyBursts<CM384_MTE_GM_TO_UB>(l_.token_counts, a_.workspace + cm384_dispatch_workspace_counts(blocks_),
                                   a_.ranks * 4, a_.own_experts, a_.ranks * 4, l_.count_row_bytes);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    const auto sums = At<uint32_t>(l_.token_sums);
    for (uint32_t local = 0; local < a_.own_experts; ++local) {
      TreeSum(sums[local], At<uint32_t>(l_.token_counts + local * l_.count_row_bytes),
              Scalar<uint32_t>(kWork), static_cast<int32_t>(a_.ranks));
      if (a_.ranks > 64) PipeBarrier<PIPE_V>();  // the partial sums are used again
    }
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    const auto nums = At<uint64_t>(l_.token_nums);
    for (uint32_t local = 0; local < a_.own_experts; ++local) nums.SetValue(local, sums.GetValue(local));
    SetFlag<HardEvent::S_MTE3>(EVENT_ID2);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID2);
    DataCopyPad(GlobalAt<uint64_t>(a_.expert_token_nums), nums, {1, a_.own_experts * 8, 0, 0});
  }

  // Offset of this call's dispatch area in a data window.
  uint64_t DispatchArea() const { return half_ * a_.window_half_bytes + a_.window_dispatch_offset; }
  uint64_t StatusEntry(uint64_t status, uint32_t index) const {
    return status + half_ * CM384_STATUS_HALF_BYTES + static_cast<uint64_t>(index) * CM384_STATUS_ENTRY_BYTES;
  }
  uint32_t Transfer() const { return static_cast<uint32_t>(cm384_dispatch_transfer_bytes(a_.hidden)); }

  const cm384_dispatch a_;
  const uint32_t block_, blocks_;
  const cm384_dispatch_layout l_;
  uint64_t own_window_ = 0, own_status_ = 0;
  uint32_t pairs_ = 0;
  uint32_t half_ = 0;
  uint32_t sent_ = 0, copied_ = 0;
  Range share_ = {0, 0};  // of the status entries of this rank
};

}  // namespace
