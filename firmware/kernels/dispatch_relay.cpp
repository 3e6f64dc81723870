// FusedDispatch over several supernodes by relays: a row goes once to each other supernode that has experts
// for its token, by the RDMA plane, and from there to their ranks by the Unified Bus; inside its supernode as
// in kernel `dispatch`, whose receivers see no difference. Arguments, windows: firmware/abi/relay.h.
//
// A relay is told the ids of the rank that it stands for and works out slots and positions as that would.
// Block b of a rank sends rows across of its share of the tokens; block b of the relay forwards the same
// share.
#include "firmware/abi/relay.h"
#include "firmware/kernels/dispatch_steps.h"
#include "firmware/kernels/relay_steps.h"

namespace {

class DispatchRelay : private Dispatch {
 public:
  explicit DispatchRelay(const cm384_dispatch_relay& arguments)
      : Dispatch(arguments.dispatch),
        r_(arguments.relay),
        w_(cm384_relay_window_of(&r_, a_.top_k, a_.hidden)),
        m_(cm384_dispatch_relay_ubuffer(&arguments, blocks_)),
        side_(r_, w_, {m_.relays, l_.copies, l_.slots, m_.status, m_.zero, m_.ones}) {
    if (m_.end > kUBufferBytes) Abort("dispatch_relay: batch and experts do not fit the UBuffer");
    if (a_.shared != 0) Abort("dispatch_relay: shared experts have no ranks here");
  }

  void Run() {
    MarkPhase(CM384_DISPATCH_RELAY_INIT);
    Init();
    InitRelay();
    MarkPhase(CM384_DISPATCH_RELAY_SEND);
    Send();
    MarkPhase(CM384_DISPATCH_RELAY_FORWARD);
    Forward();
    MarkPhase(CM384_DISPATCH_RELAY_STATUS);
    SetStatus();
    MarkPhase(CM384_DISPATCH_RELAY_WAIT);
    WaitDispatch();
    MarkPhase(CM384_DISPATCH_RELAY_COPY);
    LocalWindowCopy();
  }

 private:
  void InitRelay() {
    Duplicate(At<uint32_t>(m_.status), 0, static_cast<int32_t>((m_.ones - m_.status) / 4));
    Duplicate(At<float>(m_.ones), 1.0f, static_cast<int32_t>(blocks_ * 8));
    Sync<HardEvent::V_MTE2>(EVENT_ID0);
    Sync<HardEvent::V_MTE3>(EVENT_ID0);
    Load(m_.relays, r_.across, r_.supernodes * sizeof(cm384_relay_peer));
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
  }

  void Send() {
    for (uint32_t b = 0; b < 2; ++b) {  // both input and both output buffers are free
      SetFlag<HardEvent::V_MTE2>(b);
      SetFlag<HardEvent::MTE3_V>(b);
      SetFlag<HardEvent::MTE3_S>(kBufferFree + b);
    }
    SendIds();
    SendAcross();
    SendInside();
    for (uint32_t b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::V_MTE2>(b);
      WaitFlag<HardEvent::MTE3_V>(b);
      WaitFlag<HardEvent::MTE3_S>(kBufferFree + b);
    }
  }

  // Each other supernode's list by one of the blocks.
  void SendIds() const {
    if (pairs_ == 0) return;
    for (uint32_t step = 0; step < side_.others(); ++step) {
      if (step % blocks_ != block_) continue;
      const uint64_t window = Half(side_.Window(side_.Other(step)));
      DataCopyPad(GlobalAt<uint8_t>(window + w_.ids + r_.own * w_.list_bytes), At<uint8_t>(l_.ids),
                  {1, static_cast<uint32_t>(cm384_align(pairs_ * 4, 32)), 0, 0});
      side_.Signal(side_.Flag(window, w_.id_flags, r_.own, 0), blocks_);
    }
  }

  void SendAcross() {
    const Range share = Share(a_.batch, blocks_, block_);
    for (uint32_t token = share.first; token < share.last; ++token) {
      const uint32_t wanted =
          side_.Wanted(At<uint32_t>(l_.ids + token * a_.top_k * 4), a_.top_k, a_.rank) & ~(1u << r_.own);
      if (wanted != 0) SendRowAcross(token, wanted);
    }
    if (share.size() == 0) return;
    for (uint32_t step = 0; step < side_.others(); ++step)
      side_.Signal(side_.Flag(Half(side_.Window(side_.Other(step))), w_.row_flags, r_.own, block_), 1);
  }

  // Quantised once, sent to each of the supernodes. The scale waits for the transfer before the last.
  void SendRowAcross(uint32_t token, uint32_t wanted) {
    const uint32_t b = sent_++ & 1;
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(At<bfloat16_t>(l_.x_in + b * l_.x_in_bytes),
             GlobalAt<bfloat16_t>(a_.x + static_cast<uint64_t>(token) * a_.hidden * 2), a_.hidden);
    SetFlag<HardEvent::MTE2_V>(b);
    const uint64_t out = l_.x_out + b * l_.slot_bytes;
    const float scale =
        QuantiseRow(At<bfloat16_t>(l_.x_in + b * l_.x_in_bytes), At<float>(l_.row), At<float>(l_.absolute),
                    Scalar<float>(kMaximum), At<int8_t>(out), a_.hidden, static_cast<event_t>(b));
    WaitFlag<HardEvent::V_MTE3>(b);
    WaitFlag<HardEvent::MTE3_S>(kBufferFree + b);
    At<float>(out + cm384_dispatch_scale_offset(a_.hidden)).SetValue(0, scale);
    Sync<HardEvent::S_MTE3>(EVENT_ID0);
    for (uint32_t step = 0; step < side_.others(); ++step) {
      const uint32_t to = side_.Other(step);
      if ((wanted >> to & 1) == 0) continue;
      DataCopyPad(GlobalAt<int8_t>(RelayedRow(side_.Window(to), r_.own, token)), At<int8_t>(out),
                  {1, RowBytes(), 0, 0});
    }
    SetFlag<HardEvent::MTE3_V>(b);
    SetFlag<HardEvent::MTE3_S>(kBufferFree + b);
  }

  // As `dispatch`, the pairs whose experts are in this supernode.
  void SendInside() {
    const Range share = Share(pairs_, blocks_, block_);
    uint32_t token = share.first / a_.top_k, k = share.first % a_.top_k;
    for (uint32_t i = share.first; i < share.last; ++i) {
      const uint32_t expert = At<uint32_t>(l_.ids).GetValue(i);
      const uint32_t slot = SlotOf(l_.copies, expert, a_.rank);
      if (IsInside(slot)) SendRow(token, k, slot, CountPairs(expert, i));
      if (++k == a_.top_k) k = 0, ++token;
    }
  }

  void Forward() {
    for (uint32_t b = 0; b < 2; ++b) {  // both buffers are free
      SetFlag<HardEvent::MTE3_MTE2>(b);
      SetFlag<HardEvent::MTE3_S>(kBufferFree + b);
    }
    for (uint32_t step = 0; step < side_.others(); ++step) {
      const uint32_t from = side_.Other(step), source = side_.RankIn(from);
      const Range share = Share(side_.BatchIn(from), blocks_, block_);
      AwaitIds(from);
      if (share.size() == 0) continue;
      side_.Await(side_.Flag(Half(OwnWindow()), w_.row_flags, from, block_));
      for (uint32_t token = share.first; token < share.last; ++token) {
        for (uint32_t k = 0; k < a_.top_k; ++k) {
          const uint32_t i = token * a_.top_k + k, expert = At<uint32_t>(m_.ids).GetValue(i);
          const auto place = side_.Place(expert, source);
          if (side_.SupernodeOf(place.GetValue(0)) != r_.own) continue;
          ForwardRow(from, token, k, place, CountIds(expert, i));
        }
      }
    }
    for (uint32_t b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::MTE3_MTE2>(b);
      WaitFlag<HardEvent::MTE3_S>(kBufferFree + b);
    }
  }

  // The triple has a block of its own in the buffer, behind what is loaded.
  void ForwardRow(uint32_t from, uint32_t token, uint32_t k, const LocalTensor<uint32_t>& place,
                  uint32_t position) {
    const uint32_t b = forwarded_++ & 1, source = side_.RankIn(from);
    const uint64_t buffer = l_.x_out + b * l_.slot_bytes;
    WaitFlag<HardEvent::MTE3_MTE2>(b);
    DataCopyPad(At<int8_t>(buffer), GlobalAt<int8_t>(RelayedRow(OwnWindow(), from, token)),
                {1, RowBytes(), 0, 0});
    SetFlag<HardEvent::MTE2_MTE3>(b);
    WaitFlag<HardEvent::MTE3_S>(kBufferFree + b);
    const auto triple = At<uint32_t>(buffer + cm384_dispatch_triple_offset(a_.hidden));
    triple.SetValue(0, source);
    triple.SetValue(1, token);
    triple.SetValue(2, k);
    Sync<HardEvent::S_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(b);
    const uint64_t window = At<uint64_t>(l_.peers + place.GetValue(0) * sizeof(cm384_peer)).GetValue(0);
    const uint64_t to = window + DispatchArea() +
                        cm384_dispatch_slot_offset(source, place.GetValue(1), position, a_.local_experts,
                                                   a_.max_tokens, a_.hidden);
    DataCopyPad(GlobalAt<int8_t>(to), At<int8_t>(buffer), {1, RowBytes() + 32, 0, 0});
    SetFlag<HardEvent::MTE3_MTE2>(b);
    SetFlag<HardEvent::MTE3_S>(kBufferFree + b);
  }

  // After a barrier, so that all rows that this rank sends and forwards have arrived: counts of its own
  // tokens and of those that it stands for, to the slots of its supernode.
  void SetStatus() {
    const auto entries = At<uint32_t>(m_.entries);
    PipeBarrier<PIPE_V>();
    Duplicate(entries, 0, static_cast<int32_t>((m_.end - m_.entries) / 4));
    Sync<HardEvent::V_S>(EVENT_ID0);
    for (uint32_t from = 0; from < r_.supernodes; ++from) {
      const uint32_t source = side_.RankIn(from), pairs = side_.BatchIn(from) * a_.top_k;
      if (from != r_.own) LoadIds(from);
      uint32_t n = 0;
      for (uint32_t slot = block_; slot < a_.slots; slot += blocks_) {
        if (!IsInside(slot)) continue;
        const uint32_t expert = At<uint32_t>(l_.slots + slot * sizeof(cm384_expert_slot)).GetValue(2);
        uint32_t count = 0;
        if (SlotOf(l_.copies, expert, source) == slot)
          count = from == r_.own ? CountPairs(expert, pairs) : CountIds(expert, pairs);
        const uint32_t entry = static_cast<uint32_t>(from * m_.entry_share + n++) * 8;
        entries.ReinterpretCast<float>().SetValue(entry, 1.0f);
        entries.SetValue(entry + 1, count);
      }
    }
    SyncAll();
    Sync<HardEvent::S_MTE3>(EVENT_ID1);
    for (uint32_t from = 0; from < r_.supernodes; ++from) {
      const uint32_t source = side_.RankIn(from);
      uint32_t n = 0;
      for (uint32_t slot = block_; slot < a_.slots; slot += blocks_) {
        if (!IsInside(slot)) continue;
        const auto place = At<uint32_t>(l_.slots + slot * sizeof(cm384_expert_slot));
        const uint64_t status = At<uint64_t>(l_.peers + place.GetValue(0) * sizeof(cm384_peer)).GetValue(1);
        DataCopy(GlobalAt<uint32_t>(StatusEntry(status, place.GetValue(1) * a_.ranks + source)),
                 entries[static_cast<uint32_t>(from * m_.entry_share + n++) * 8], 8);
      }
    }
  }

  // Ids of the rank of this number in another supernode.
  void AwaitIds(uint32_t from) const {
    if (side_.BatchIn(from) == 0) return;
    side_.Await(side_.Flag(Half(OwnWindow()), w_.id_flags, from, block_));
    LoadIds(from);
  }
  void LoadIds(uint32_t from) const {
    if (side_.BatchIn(from) == 0) return;
    Sync<HardEvent::S_MTE2>(EVENT_ID0);
    Load(m_.ids, Half(OwnWindow()) + w_.ids + from * w_.list_bytes, side_.BatchIn(from) * a_.top_k * 4);
    Sync<HardEvent::MTE2_V>(EVENT_ID0);
    Sync<HardEvent::MTE2_S>(EVENT_ID0);
  }
  uint32_t CountIds(uint32_t expert, uint32_t count) const {
    return CountEqual(At<int32_t>(m_.ids), At<int32_t>(m_.work0), At<int32_t>(m_.work1),
                      Scalar<int32_t>(kSum), expert, count);
  }

  bool IsInside(uint32_t slot) const {
    return side_.SupernodeOf(At<uint32_t>(l_.slots + slot * sizeof(cm384_expert_slot)).GetValue(0)) == r_.own;
  }
  uint64_t OwnWindow() const { return side_.Window(r_.own); }
  uint64_t Half(uint64_t window) const { return window + half_ * w_.bytes; }
  uint64_t RelayedRow(uint64_t window, uint32_t from, uint32_t token) const {
    return Half(window) + w_.rows +
           (static_cast<uint64_t>(from) * r_.max_tokens + token) * cm384_dispatch_slot_bytes(a_.hidden);
  }
  uint32_t RowBytes() const { return static_cast<uint32_t>(cm384_relay_row_bytes(a_.hidden)); }

  static constexpr int32_t kBufferFree = 2;  // of MTE3_S, by buffer
  const cm384_relay r_;
  const cm384_relay_window w_;
  const cm384_dispatch_relay_layout m_;
  const RelaySide side_;
  uint32_t forwarded_ = 0;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR arguments) {
  DispatchRelay dispatch(*reinterpret_cast<const cm384_dispatch_relay*>(arguments));
  dispatch.Run();
}
