// FusedDispatch with the flags inside the rows' 512 B blocks (ascend-facts B3): nothing waits until all rows
// of a rank have arrived. The last blocks of a launch send counts, which say where rows stand in the output
// and how many to wait for; the others own whole experts and send rows. The last block makes the counts
// cumulative and hands them to the others, which poll the rows' own flags and copy them out, a few of one
// entry at a time. Arguments: firmware/abi/dispatch.h; windows: firmware/abi/dispatch_full_mesh.h.
#include "firmware/abi/dispatch_full_mesh.h"

#include "firmware/kernels/moe_prologue.h"
#include "firmware/kernels/quantise.h"
#include "firmware/kernels/share.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kState = 0, kStateOut = 32, kSum = 64, kMaximum = 96, kPartial = 128, kWork = 1280,
                   kOnes = 1664;

class FullMesh {
 public:
  explicit FullMesh(const cm384_dispatch& arguments)
      : a_(arguments),
        block_(static_cast<uint32_t>(GetBlockIdx())),
        blocks_(static_cast<uint32_t>(GetBlockNum())),
        l_(cm384_full_mesh_ubuffer(&a_, blocks_)),
        counters_(static_cast<uint32_t>(cm384_full_mesh_count_blocks(a_.slots, blocks_))),
        senders_(blocks_ > counters_ ? blocks_ - counters_ : blocks_),
        packet_blocks_(static_cast<uint32_t>(cm384_packet_blocks(a_.hidden))) {
    if (l_.end > kUBufferBytes) Abort("dispatch: batch, experts and hidden size do not fit the UBuffer");
    if (a_.hidden == 0 || a_.hidden % 32 != 0) Abort("dispatch: the hidden size is no multiple of 32");
    if (a_.batch > a_.max_tokens) Abort("dispatch: the batch is larger than the windows' slots");
  }

  void Run() {
    MarkPhase(CM384_FULL_MESH_INIT);
    Init();
    MarkPhase(CM384_FULL_MESH_SEND);
    if (block_ >= blocks_ - counters_) SendCounts(block_ - (blocks_ - counters_));
    if (block_ < senders_) SendRows();
    PipeBarrier<PIPE_ALL>();  // receiving uses the same places of the UBuffer
    MarkPhase(CM384_FULL_MESH_COUNTS);
    PrepareToReceive();
    if (block_ == blocks_ - 1) GatherCounts();
    AwaitCounts();
    MarkPhase(CM384_FULL_MESH_COPY);
    CopyRows();
  }

 private:
  template <typename T>
  LocalTensor<T> Scalar(uint32_t word) const {
    return At<T>(l_.scalars + word);
  }

  // Tables and expert ids to the UBuffer; packets with their flags set; which half of the windows to use.
  void Init() {
    const cm384_peer own = reinterpret_cast<const cm384_peer*>(a_.peers)[a_.rank];
    own_window_ = own.window;
    own_status_ = own.status;
    pairs_ = a_.batch * a_.top_k;
    Duplicate(At<int32_t>(l_.ids), 0, static_cast<int32_t>((l_.copies - l_.ids) / 4));
    Duplicate(At<int32_t>(l_.stage), 0, static_cast<int32_t>((l_.x_out - l_.stage) / 4));
    Duplicate(At<float>(l_.x_out), 1.0f, static_cast<int32_t>(2 * l_.packet_bytes / 4));
    PipeBarrier<PIPE_V>();
    Duplicate(Scalar<float>(kOnes), 1.0f, 16);
    Sync<HardEvent::V_MTE2>(EVENT_ID0);
    const GlobalTensor<uint32_t> state =
        GlobalAt<uint32_t>(own_status_ + CM384_STATUS_DISPATCH_STATE + block_ * 512);
    DataCopy(Scalar<uint32_t>(kState), state, 8);
    if (pairs_ != 0) Load(l_.ids, a_.expert_ids, pairs_ * 4);
    LoadTables(a_, l_);
    Sync<HardEvent::MTE2_V>(EVENT_ID0);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
    half_ = Scalar<uint32_t>(kState).GetValue(0) & 1;
    Scalar<uint32_t>(kStateOut).SetValue(0, half_ ^ 1);
    Sync<HardEvent::S_MTE3>(EVENT_ID1);
    DataCopy(state, Scalar<uint32_t>(kStateOut), 8);
  }

  // Which pairs chose `expert`: one bit a pair, in `mask`.
  void MaskPairs(uint32_t expert) const {
    CompareScalar(At<uint8_t>(l_.mask), At<int32_t>(l_.ids), static_cast<int32_t>(expert), CMPMODE::EQ,
                  pairs_);
    Sync<HardEvent::V_S>(EVENT_ID1);
  }
  uint32_t CountMask() const {
    uint32_t count = 0;
    for (uint32_t word = 0; word * 64 < pairs_; ++word)
      count += static_cast<uint32_t>(__builtin_popcountll(At<uint64_t>(l_.mask).GetValue(word)));
    return count;
  }

  // One entry {1.0f, count} to every slot of this block's share, without waiting for rows.
  void SendCounts(uint32_t index) const {
    const Range share = Share(a_.slots, counters_, index);
    const auto entries = At<uint32_t>(l_.status_out);
    if (share.size() == 0) return;
    PipeBarrier<PIPE_V>();
    Duplicate(entries, 0, static_cast<int32_t>(share.size() * 8));
    Sync<HardEvent::V_S>(EVENT_ID0);
    for (uint32_t slot = share.first; slot < share.last; ++slot) {
      const uint32_t expert = PlaceOf(slot).GetValue(2), entry = (slot - share.first) * 8;
      entries.ReinterpretCast<float>().SetValue(entry, 1.0f);
      entries.SetValue(entry + 1, SlotOf(l_.copies, expert, a_.rank) == slot ? CountOf(expert) : 0);
    }
    Sync<HardEvent::S_MTE3>(EVENT_ID0);
    for (uint32_t slot = share.first; slot < share.last; ++slot) {
      const auto place = PlaceOf(slot);
      const uint64_t status = At<uint64_t>(l_.peers + place.GetValue(0) * sizeof(cm384_peer)).GetValue(1);
      DataCopy(GlobalAt<uint32_t>(StatusEntry(status, place.GetValue(1) * a_.ranks + a_.rank)),
               entries[(slot - share.first) * 8], 8);
    }
    PipeBarrier<PIPE_ALL>();  // a block may send rows next, from the same places
    Sync<HardEvent::S_MTE2>(EVENT_ID1);
  }
  // cm384_expert_slot as words.
  LocalTensor<uint32_t> PlaceOf(uint32_t slot) const {
    return At<uint32_t>(l_.slots + slot * sizeof(cm384_expert_slot));
  }
  uint32_t CountOf(uint32_t expert) const {
    if (expert >= a_.experts) return a_.batch;
    if (pairs_ == 0) return 0;
    MaskPairs(expert);
    return CountMask();
  }

  // Whole experts, beginning at another one on every rank; what is left over is shared by groups of blocks.
  void SendRows() {
    if (block_ >= blocks_ - counters_)
      Duplicate(At<float>(l_.x_out), 1.0f, static_cast<int32_t>(2 * l_.packet_bytes / 4));
    for (uint32_t b = 0; b < 2; ++b) {
      SetFlag<HardEvent::V_MTE2>(b);
      SetFlag<HardEvent::MTE3_V>(b);
    }
    const uint32_t each = a_.experts / senders_, rest = a_.experts % senders_;
    for (uint32_t i = 0; i < each; ++i) SendExpert(Rotated(block_ * each + i), 0, 1);
    if (rest != 0) {
      const uint32_t group = block_ % rest;  // of blocks group, group + rest, ...
      SendExpert(Rotated(senders_ * each + group), block_ / rest, (senders_ - group + rest - 1) / rest);
    }
    for (uint32_t which = 0; which < a_.shared; ++which) {
      const Range share = Share(a_.batch, senders_, block_);
      for (uint32_t token = share.first; token < share.last; ++token)
        SendRow(token, a_.top_k + which, SlotOf(l_.copies, a_.experts + which, a_.rank), token);
    }
    for (uint32_t b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::V_MTE2>(b);
      WaitFlag<HardEvent::MTE3_V>(b);
    }
  }
  uint32_t Rotated(uint32_t expert) const {
    const uint32_t moved = expert + a_.rank % a_.experts;
    return moved < a_.experts ? moved : moved - a_.experts;
  }

  // Member `member` of `members` sends every members-th pair of those that chose the expert.
  void SendExpert(uint32_t expert, uint32_t member, uint32_t members) {
    if (pairs_ == 0) return;
    MaskPairs(expert);
    const auto mask = At<uint64_t>(l_.mask);
    const uint32_t slot = SlotOf(l_.copies, expert, a_.rank);
    uint32_t position = 0, turn = 0;
    for (uint32_t word = 0; word * 64 < pairs_; ++word) {
      for (uint64_t bits = mask.GetValue(word); bits != 0; bits &= bits - 1) {
        const uint32_t pair = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
        if (turn == member) SendRow(pair / a_.top_k, pair % a_.top_k, slot, position);
        if (++turn == members) turn = 0;
        ++position;
      }
    }
  }

  // Loads and quantises a row, spreads it over the payloads of a packet's blocks, and writes the packet. The
  // transfer before it may still be under way, from the other buffer.
  void SendRow(uint32_t token, uint32_t k, uint32_t slot, uint32_t position) {
    const uint32_t b = sent_++ & 1;
    const auto place = PlaceOf(slot);
    const uint64_t window = At<uint64_t>(l_.peers + place.GetValue(0) * sizeof(cm384_peer)).GetValue(0);
    const uint64_t to = window + Slot(a_.rank, place.GetValue(1), position);
    const auto in = At<bfloat16_t>(l_.x_in + b * l_.x_in_bytes);
    const uint64_t out = l_.x_out + b * l_.packet_bytes;

    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(in, GlobalAt<bfloat16_t>(a_.x + static_cast<uint64_t>(token) * a_.hidden * 2), a_.hidden);
    SetFlag<HardEvent::MTE2_V>(b);
    const float scale = QuantiseRow(in, At<float>(l_.row), At<float>(l_.absolute), Scalar<float>(kMaximum),
                                    At<int8_t>(l_.stage), a_.hidden, static_cast<event_t>(b));
    WaitFlag<HardEvent::V_MTE3>(b);
    Sync<HardEvent::V_S>(EVENT_ID1);  // a partial repeat reaches into the scale's block
    // What the vector unit copied out of `stage` and `triple` for the row before was read before it found
    // this row's maximum.
    At<float>(l_.stage + cm384_dispatch_scale_offset(a_.hidden)).SetValue(0, scale);
    const auto triple = At<uint32_t>(l_.triple);
    triple.SetValue(0, a_.rank);
    triple.SetValue(1, token);
    triple.SetValue(2, k);
    Sync<HardEvent::S_V>(EVENT_ID1);
    PipeBarrier<PIPE_V>();
    // 15 blocks of 32 B to each 16, as two copies of 8 that overlap; the 16th keeps its flag.
    const auto row_blocks = static_cast<uint8_t>(packet_blocks_ - 1);
    const auto from = At<int32_t>(l_.stage), packet = At<int32_t>(out);
    Copy(packet, from, 64, row_blocks, {1, 1, 16, 15});
    PipeBarrier<PIPE_V>();
    Copy(packet[56], from[56], 64, row_blocks, {1, 1, 16, 15});
    Copy(packet[row_blocks * 128u], At<int32_t>(l_.triple), 64, 1, {1, 1, 8, 8});
    SetFlag<HardEvent::V_MTE3>(EVENT_ID2);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID2);
    DataCopy(GlobalAt<int32_t>(to), packet, packet_blocks_ * 128);
    SetFlag<HardEvent::MTE3_V>(b);
  }

  // Zeros to write over flags that were consumed.
  void PrepareToReceive() {
    share_ = a_.own_experts * a_.ranks;
    Duplicate(At<int32_t>(l_.counts), 0, static_cast<int32_t>((l_.rows - l_.counts) / 4));
    Sync<HardEvent::V_MTE2>(EVENT_ID0);
    Sync<HardEvent::V_MTE3>(EVENT_ID0);
    Sync<HardEvent::V_S>(EVENT_ID0);
  }

  // The last block: waits for the counts of all entries, makes them cumulative, gives each block a copy.
  void GatherCounts() const {
    const auto entries = At<uint32_t>(l_.entries), counts = At<uint32_t>(l_.counts);
    uint32_t sum = 0;
    for (uint32_t first = 0; first < share_;) {
      const uint32_t left = share_ - first;
      const auto n = left < l_.chunk_entries ? left : static_cast<uint32_t>(l_.chunk_entries);
      const uint64_t address = StatusEntry(own_status_, first);
      AwaitFlags(address, n, 32, l_.entries);
      for (uint32_t i = 0; i < n; ++i) {
        sum += entries.GetValue(i * 8 + 1);
        counts.SetValue(first + i, sum);
      }
      DataCopy(GlobalAt<uint32_t>(address), At<uint32_t>(l_.zero), n * 8);
      first += n;
    }
    if (share_ == 0) return;
    const auto nums = At<uint64_t>(l_.token_nums);
    uint32_t before = 0;
    for (uint32_t local = 0; local < a_.own_experts; ++local) {
      const uint32_t upto = counts.GetValue((local + 1) * a_.ranks - 1);
      nums.SetValue(local, upto - before);
      before = upto;
    }
    Sync<HardEvent::S_MTE3>(EVENT_ID2);
    DataCopyPad(GlobalAt<uint32_t>(a_.send_counts), counts, {1, share_ * 4, 0, 0});
    DataCopyPad(GlobalAt<uint64_t>(a_.expert_token_nums), nums, {1, a_.own_experts * 8, 0, 0});
    for (uint32_t block = 0; block < blocks_; ++block)
      DataCopyPad(GlobalAt<uint32_t>(CountsOf(block)), counts, {1, share_ * 4, 0, 0});
    PipeBarrier<PIPE_MTE3>();
    for (uint32_t block = 0; block < blocks_; ++block)
      DataCopy(GlobalAt<float>(CountsFlagOf(block)), Scalar<float>(kOnes), 16);
    PipeBarrier<PIPE_ALL>();  // its own copy comes back to the same place
  }

  // This block's copy of the cumulative counts.
  void AwaitCounts() const {
    if (share_ == 0) return;
    AwaitFlags(CountsFlagOf(block_), 1, 32, l_.flags);
    DataCopy(GlobalAt<uint32_t>(CountsFlagOf(block_)), At<uint32_t>(l_.zero), 16);
    Load(l_.counts, CountsOf(block_), share_ * 4);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
  }

  // Polls until the first words of n places `stride` apart, 1.0f each when set, add up to n.
  void AwaitFlags(uint64_t address, uint32_t n, uint32_t stride, uint64_t into) const {
    const auto partial = Scalar<float>(kPartial), sum = Scalar<float>(kSum);
    for (;;) {
      Sync<HardEvent::S_MTE2>(EVENT_ID0);
      if (stride == 32)
        DataCopy(At<uint32_t>(into), GlobalAt<uint32_t>(address), n * 8);
      else
        CopyBursts<CM384_MTE_GM_TO_UB>(into, address, 4, n, stride, 32);
      Sync<HardEvent::MTE2_V>(EVENT_ID0);
      WholeReduceSum(partial, At<float>(into), 1, static_cast<int32_t>(n), 1, 1, 1);
      PipeBarrier<PIPE_V>();
      TreeSum(sum, partial, Scalar<float>(kWork), static_cast<int32_t>(n));
      Sync<HardEvent::V_S>(EVENT_ID0);
      if (sum.GetValue(0) == static_cast<float>(n)) return;
      PollMark(address, static_cast<uint64_t>(n) * stride);
    }
  }

  // An even share of all rows, in the order of the output: local expert, source rank, position.
  void CopyRows() {
    if (share_ == 0) return;
    const auto counts = At<uint32_t>(l_.counts);
    const Range rows = Share(counts.GetValue(share_ - 1), blocks_, block_);
    for (uint32_t b = 0; b < 2; ++b) SetFlag<HardEvent::MTE3_MTE2>(b);
    uint32_t entry = 0;
    for (uint32_t row = rows.first; row < rows.last;) {
      while (counts.GetValue(entry) <= row) ++entry;
      const uint32_t begin = entry == 0 ? 0 : counts.GetValue(entry - 1), end = counts.GetValue(entry);
      const uint32_t last = end < rows.last ? end : rows.last;
      const uint32_t n = last - row < CM384_PACKET_BATCH ? last - row : CM384_PACKET_BATCH;
      CopyBatch(own_window_ + Slot(entry % a_.ranks, entry / a_.ranks, row - begin), row, n);
      row += n;
    }
    for (uint32_t b = 0; b < 2; ++b) WaitFlag<HardEvent::MTE3_MTE2>(b);
  }

  // Waits for n packets that stand together, copies them without their flags, clears those.
  void CopyBatch(uint64_t from, uint32_t row, uint32_t n) {
    const uint32_t b = copied_++ & 1, packets = n * packet_blocks_;
    const uint64_t buffer = l_.rows + b * CM384_PACKET_BATCH * l_.packet_payload;
    const auto payload = static_cast<uint32_t>(l_.packet_payload);
    AwaitFlags(from + CM384_PACKET_PAYLOAD, packets, CM384_PACKET_BLOCK, l_.flags);
    WaitFlag<HardEvent::MTE3_MTE2>(b);
    CopyBursts<CM384_MTE_GM_TO_UB>(buffer, from, CM384_PACKET_PAYLOAD, packets, CM384_PACKET_BLOCK,
                                   CM384_PACKET_PAYLOAD, false);
    SetFlag<HardEvent::MTE2_MTE3>(b);
    WaitFlag<HardEvent::MTE2_MTE3>(b);
    CopyBursts<CM384_MTE_UB_TO_GM>(from + CM384_PACKET_PAYLOAD, l_.zero, 32, packets, 0, CM384_PACKET_BLOCK);
    CopyBursts<CM384_MTE_UB_TO_GM>(a_.expand_triples + row * 12ull,
                                   buffer + (packet_blocks_ - 1) * CM384_PACKET_PAYLOAD, 12, n, payload, 12);
    CopyBursts<CM384_MTE_UB_TO_GM>(a_.expand_scales + row * 4ull,
                                   buffer + cm384_dispatch_scale_offset(a_.hidden), 4, n, payload, 4);
    CopyBursts<CM384_MTE_UB_TO_GM>(a_.expand_x + static_cast<uint64_t>(row) * a_.hidden, buffer, a_.hidden, n,
                                   payload, a_.hidden);
    SetFlag<HardEvent::MTE3_MTE2>(b);
  }

  // Offset of a slot of this call's half in a data window.
  uint64_t Slot(uint32_t source, uint32_t local, uint32_t position) const {
    return half_ * a_.window_half_bytes + a_.window_dispatch_offset +
           ((static_cast<uint64_t>(source) * a_.local_experts + local) * a_.max_tokens + position) *
               l_.packet_bytes;
  }
  uint64_t StatusEntry(uint64_t status, uint32_t index) const {
    return status + half_ * CM384_STATUS_HALF_BYTES + static_cast<uint64_t>(index) * CM384_STATUS_ENTRY_BYTES;
  }
  uint64_t CountsOf(uint32_t block) const {
    return a_.workspace + block * (cm384_full_mesh_counts_bytes(a_.own_experts, a_.ranks) + 512);
  }
  uint64_t CountsFlagOf(uint32_t block) const {
    return CountsOf(block) + cm384_full_mesh_counts_bytes(a_.own_experts, a_.ranks);
  }

  const cm384_dispatch a_;
  const uint32_t block_, blocks_;
  const cm384_full_mesh_layout l_;
  const uint32_t counters_, senders_, packet_blocks_;
  uint64_t own_window_ = 0, own_status_ = 0;
  uint32_t pairs_ = 0;
  uint32_t half_ = 0;
  uint32_t sent_ = 0, copied_ = 0;
  uint32_t share_ = 0;  // entries of this rank
};

}  // namespace

extern "C" void kernel_main(GM_ADDR arguments) {
  FullMesh dispatch(*reinterpret_cast<const cm384_dispatch*>(arguments));
  dispatch.Run();
}
