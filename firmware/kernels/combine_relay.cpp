// FusedCombine over several supernodes by relays: what experts made of a token from another supernode goes to
// the rank of the token's rank's number here, by the Unified Bus; that one adds the rows up by weight, in the
// order of k, and sends the sum, rounded to BF16, to the place of its first row. There sums and rows of the
// own supernode are added in the order of k. Arguments, windows: firmware/abi/relay.h.
#include "firmware/abi/relay.h"
#include "firmware/kernels/combine_steps.h"
#include "firmware/kernels/relay_steps.h"

namespace {

class CombineRelay : private Combine {
 public:
  explicit CombineRelay(const cm384_combine_relay& arguments)
      : Combine(arguments.combine),
        r_(arguments.relay),
        tables_({arguments.expert_copies, arguments.expert_slots, arguments.slots}),
        w_(cm384_relay_window_of(&r_, a_.top_k, a_.hidden)),
        m_(cm384_combine_relay_ubuffer(&arguments, blocks_)),
        side_(r_, w_, {m_.relays, m_.copies, m_.slots, m_.flag, l_.zero, m_.ones}) {
    if (m_.end > kUBufferBytes) Abort("combine_relay: batch and experts do not fit the UBuffer");
    if (a_.shared != 0) Abort("combine_relay: shared experts have no ranks here");
  }

  void Run() {
    MarkPhase(CM384_COMBINE_RELAY_INIT);
    Init();
    InitRelay();
    MarkPhase(CM384_COMBINE_RELAY_SEND);
    SendTables();
    Send();
    MarkPhase(CM384_COMBINE_RELAY_RELAY);
    Relay();
    Receive();
  }

 private:
  void InitRelay() {
    Duplicate(At<float>(m_.ones), 1.0f, static_cast<int32_t>(blocks_ * 8));
    Sync<HardEvent::V_MTE3>(EVENT_ID1);
    Load(m_.relays, r_.across, r_.supernodes * sizeof(cm384_relay_peer));
    Load(m_.inside, r_.inside, r_.each * 8);
    Load(m_.copies, tables_.copies, a_.experts * sizeof(cm384_expert_copies));
    Load(m_.slots, tables_.slots, tables_.count * sizeof(cm384_expert_slot));
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
  }

  // Ids and weights of the own tokens to each other supernode's relay, each by one of the blocks.
  void SendTables() const {
    const uint32_t bytes = a_.batch * a_.top_k * 4, whole = static_cast<uint32_t>(cm384_align(bytes, 32));
    if (bytes == 0 || block_ >= side_.others()) return;
    Load(m_.ids, a_.expert_ids, bytes);
    Load(m_.weights, a_.scales, bytes);
    Sync<HardEvent::MTE2_MTE3>(EVENT_ID2);
    for (uint32_t step = block_; step < side_.others(); step += blocks_) {
      const uint64_t window = Half(side_.Window(side_.Other(step))), to = Tables(window, r_.own);
      DataCopyPad(GlobalAt<uint8_t>(to), At<uint8_t>(m_.ids), {1, whole, 0, 0});
      DataCopyPad(GlobalAt<uint8_t>(to + w_.list_bytes), At<uint8_t>(m_.weights), {1, whole, 0, 0});
      side_.Signal(side_.Flag(window, w_.table_flags, r_.own, 0), blocks_);
    }
    Sync<HardEvent::MTE3_MTE2>(EVENT_ID2);
  }

  // As `combine`, but for rows of tokens of other supernodes.
  void Send() {
    const uint32_t entries = a_.own_experts * a_.ranks;
    const uint32_t rows = entries == 0 ? 0 : GlobalAt<uint32_t>(a_.send_counts).GetValue(entries - 1);
    const Range share = Share(rows, blocks_, block_);
    for (uint32_t b = 0; b < 2; ++b) SetFlag<HardEvent::MTE3_MTE2>(b);  // both buffers are free
    for (uint32_t first = share.first; first < share.last; first += CM384_COMBINE_TRIPLES) {
      const uint32_t left = share.last - first;
      const uint32_t n = left < CM384_COMBINE_TRIPLES ? left : CM384_COMBINE_TRIPLES;
      Sync<HardEvent::S_MTE2>(EVENT_ID0);
      Load(l_.triples, a_.triples + first * 12ull, n * 12ull);
      Sync<HardEvent::MTE2_S>(EVENT_ID0);
      uint32_t i = a_.rank % n;
      for (uint32_t loop = 0; loop < n; ++loop) {
        const auto triple = At<uint32_t>(l_.triples + i * 12ull);
        if (side_.SupernodeOf(triple.GetValue(0)) == r_.own) {
          SendRow(first + i, triple);
        } else {
          SendToRelay(first + i, triple.GetValue(0), triple.GetValue(1), triple.GetValue(2));
        }
        if (++i == n) i = 0;
      }
    }
    for (uint32_t b = 0; b < 2; ++b) WaitFlag<HardEvent::MTE3_MTE2>(b);
  }

  void SendToRelay(uint32_t row, uint32_t rank, uint32_t token, uint32_t k) {
    const uint32_t b = sent_++ & 1, from = side_.SupernodeOf(rank);
    const uint64_t window = Half(At<uint64_t>(m_.inside).GetValue(rank - from * r_.each));
    const auto buffer = At<bfloat16_t>(l_.rows + b * l_.row_bytes);
    WaitFlag<HardEvent::MTE3_MTE2>(b);
    DataCopy(buffer, GlobalAt<bfloat16_t>(a_.expert_x + static_cast<uint64_t>(row) * a_.hidden * 2),
             a_.hidden);
    SetFlag<HardEvent::MTE2_MTE3>(b);
    WaitFlag<HardEvent::MTE2_MTE3>(b);
    DataCopy(GlobalAt<bfloat16_t>(Output(window, from, token, k)), buffer, a_.hidden);
    SetFlag<HardEvent::MTE3_MTE2>(b);
    PipeBarrier<PIPE_MTE3>();
    DataCopy(GlobalAt<float>(OutputFlag(window, from, token, k)), At<float>(m_.ones), 8);
  }

  // Sums of this block's share of the tokens of each rank that this one stands for.
  void Relay() {
    sum_.Open();
    for (uint32_t step = 0; step < side_.others(); ++step) {
      const uint32_t from = side_.Other(step), batch = side_.BatchIn(from);
      const Range share = Share(batch, blocks_, block_);
      if (batch == 0) continue;
      side_.Await(side_.Flag(Half(OwnWindow()), w_.table_flags, from, block_));
      if (share.size() == 0) continue;
      const uint64_t tables = Tables(Half(OwnWindow()), from);
      Sync<HardEvent::S_MTE2>(EVENT_ID0);
      Load(m_.ids, tables, batch * a_.top_k * 4);
      Load(m_.weights, tables + w_.list_bytes, batch * a_.top_k * 4);
      Sync<HardEvent::MTE2_S>(EVENT_ID0);
      for (uint32_t token = share.first; token < share.last; ++token) SumForToken(from, token);
    }
    sum_.Close();
  }

  void SumForToken(uint32_t from, uint32_t token) {
    const uint32_t source = side_.RankIn(from);
    const auto ids = At<uint32_t>(m_.ids + token * a_.top_k * 4);
    uint32_t here = 0, rows = 0, first = 0;  // bit k: its expert is in this supernode
    for (uint32_t k = a_.top_k; k-- > 0;) {
      if (side_.SupernodeOf(side_.Place(ids.GetValue(k), source).GetValue(0)) != r_.own) continue;
      here |= 1u << k;
      first = k;
      ++rows;
    }
    if (rows == 0) return;
    const uint64_t window = Half(OwnWindow());
    AwaitRows(OutputFlag(window, from, token, 0), rows);
    sum_.Begin();
    for (uint32_t k = first; k < a_.top_k; ++k) {
      if ((here >> k & 1) != 0)
        sum_.AddRow(Output(window, from, token, k), At<float>(m_.weights).GetValue(token * a_.top_k + k));
    }
    const auto peer = At<uint64_t>(l_.peers + source * sizeof(cm384_peer));
    const uint32_t slot = token * rows_a_token_ + first;
    sum_.Store(CombineArea(peer.GetValue(0)) + slot * cm384_combine_slot_bytes(a_.hidden));
    PipeBarrier<PIPE_MTE3>();
    DataCopy(GlobalAt<float>(StatusArea(peer.GetValue(1)) + slot * CM384_STATUS_ENTRY_BYTES),
             At<float>(m_.ones), 8);
  }

  // Polls until so many of a token's flags are set, and clears all.
  void AwaitRows(uint64_t address, uint32_t rows) const {
    const uint32_t words = a_.top_k * 8;
    while (LoadStatus(address, words * 4), SumOfStatus(words) != static_cast<float>(rows * 8))
      PollMark(address, words * 4);
    DataCopy(GlobalAt<uint32_t>(address), At<uint32_t>(l_.zero), words);
  }

  void Receive() {
    MarkPhase(CM384_COMBINE_RELAY_WAIT);
    const Range share = Share(a_.batch, blocks_, block_);
    if (share.size() == 0) return;
    Sync<HardEvent::S_MTE2>(EVENT_ID0);
    Load(m_.ids, a_.expert_ids, a_.batch * a_.top_k * 4);
    Load(l_.scales, a_.scales + share.first * a_.top_k * 4ull, share.size() * a_.top_k * 4ull);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
    sum_.Open();
    for (uint32_t token = share.first; token < share.last; ++token) {
      MarkPhase(CM384_COMBINE_RELAY_WAIT);
      const auto ids = At<uint32_t>(m_.ids + token * a_.top_k * 4);
      uint32_t seen = 0, sums = 0, inside = 0, rows = 0;  // bits: supernodes; places of sums, of own rows
      for (uint32_t k = 0; k < a_.top_k; ++k) {
        const uint32_t id = ids.GetValue(k);
        if (id >= a_.experts) Abort("combine_relay: an expert id is out of range");
        const uint32_t supernode = side_.SupernodeOf(side_.Place(id, a_.rank).GetValue(0));
        if (supernode == r_.own) {
          inside |= 1u << k;
        } else if ((seen >> supernode & 1) == 0) {
          sums |= 1u << k;
        } else {
          continue;
        }
        seen |= 1u << supernode;
        ++rows;
      }
      AwaitRows(
          StatusArea(own_status_) + static_cast<uint64_t>(token) * rows_a_token_ * CM384_STATUS_ENTRY_BYTES,
          rows);
      MarkPhase(CM384_COMBINE_RELAY_SUM);
      SumToken(token, inside, sums, At<float>(l_.scales + (token - share.first) * a_.top_k * 4ull));
    }
    sum_.Close();
  }

  void SumToken(uint32_t token, uint32_t inside, uint32_t sums, const LocalTensor<float>& scales) {
    const uint64_t slot_bytes = cm384_combine_slot_bytes(a_.hidden), row_bytes = 2ull * a_.hidden;
    uint64_t from = CombineArea(own_window_) + token * rows_a_token_ * slot_bytes;
    sum_.Begin();
    for (uint32_t k = 0; k < a_.top_k; ++k, from += slot_bytes) {
      if ((inside >> k & 1) != 0) sum_.AddRow(from, scales.GetValue(k));
      if ((sums >> k & 1) != 0) sum_.AddRow(from);
    }
    if (a_.shared_x != 0) sum_.AddRow(a_.shared_x + token * row_bytes);
    sum_.Store(a_.x + token * row_bytes);
  }

  uint64_t OwnWindow() const { return side_.Window(r_.own); }
  uint64_t Half(uint64_t window) const { return window + half_ * w_.bytes; }
  // In a half.
  uint64_t Tables(uint64_t window, uint32_t from) const {
    return window + w_.tables + from * 2 * w_.list_bytes;
  }
  uint64_t Place(uint32_t from, uint32_t token, uint32_t k) const {
    return (static_cast<uint64_t>(from) * r_.max_tokens + token) * a_.top_k + k;
  }
  uint64_t Output(uint64_t window, uint32_t from, uint32_t token, uint32_t k) const {
    return window + w_.outputs + Place(from, token, k) * cm384_combine_slot_bytes(a_.hidden);
  }
  uint64_t OutputFlag(uint64_t window, uint32_t from, uint32_t token, uint32_t k) const {
    return window + w_.output_flags + Place(from, token, k) * CM384_STATUS_ENTRY_BYTES;
  }

  struct ExpertTables {
    uint64_t copies, slots;
    uint32_t count;
  };
  const cm384_relay r_;
  const ExpertTables tables_;
  const cm384_relay_window w_;
  const cm384_combine_relay_layout m_;
  const RelaySide side_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR arguments) {
  CombineRelay combine(*reinterpret_cast<const cm384_combine_relay*>(arguments));
  combine.Run();
}
