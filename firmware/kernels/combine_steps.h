// FusedCombine by AIV-Direct: every block writes its share of the experts' outputs straight into the windows
// of the ranks that the tokens came from and signals them row by row; then it waits for the rows of its share
// of the own tokens and sums them by weight. Follows ascend-facts B4 step by step (MoeDistributeCombineV2).
// Arguments, windows: firmware/abi/combine.h.
//
// No branch and no address depends on a row's values: triples, counts, ids, weights and flags are plain.
//
// A class of its own file, so that `combine_relay` adds to it. Kernels are one source file each.
#pragma once

#include "firmware/abi/combine.h"
#include "firmware/kernels/moe_prologue.h"
#include "firmware/kernels/row_sum.h"
#include "firmware/kernels/share.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

// In the `scalars` region of the UBuffer, as byte offsets.
constexpr uint32_t kState = 0, kStateOut = 32, kSum = 64, kWork = 96, kOnes = 256, kOne = 512;

class Combine {
 public:
  explicit Combine(const cm384_combine& arguments)
      : a_(arguments),
        block_(static_cast<uint32_t>(GetBlockIdx())),
        blocks_(static_cast<uint32_t>(GetBlockNum())),
        l_(cm384_combine_ubuffer(&a_, blocks_)),
        rows_a_token_(a_.top_k + a_.shared),
        sum_({l_.rows, l_.row_bytes, l_.row, l_.product, l_.sum, l_.out}, a_.hidden) {
    if (l_.end > kUBufferBytes) Abort("combine: batch, ranks and hidden size do not fit the UBuffer");
    if (a_.hidden == 0 || a_.hidden % 32 != 0) Abort("combine: the hidden size is no multiple of 32");
  }

  void Run() {
    MarkPhase(CM384_COMBINE_INIT);
    Init();
    MarkPhase(CM384_COMBINE_SEND);
    Send();
    Receive();
  }

 protected:
  template <typename T>
  LocalTensor<T> Scalar(uint32_t word) const {
    return At<T>(l_.scalars + word);
  }

  // Which half of the windows this call uses; the peers' windows; a block of ones and one of zeros.
  void Init() {
    const cm384_peer own = reinterpret_cast<const cm384_peer*>(a_.peers)[a_.rank];
    own_window_ = own.window;
    own_status_ = own.status;
    Duplicate(At<int32_t>(l_.scalars), 0, static_cast<int32_t>((l_.peers - l_.scalars) / 4));
    PipeBarrier<PIPE_V>();
    Duplicate(Scalar<float>(kOnes), 1.0f, 8);
    Duplicate(Scalar<int32_t>(kOne), 1, 8);
    SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);

    const GlobalTensor<uint32_t> state =
        GlobalAt<uint32_t>(own_status_ + CM384_STATUS_COMBINE_STATE + block_ * 512);
    DataCopy(Scalar<uint32_t>(kState), state, 8);
    Load(l_.peers, a_.peers, a_.ranks * sizeof(cm384_peer));
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    half_ = Scalar<uint32_t>(kState).GetValue(0) & 1;
    Scalar<uint32_t>(kStateOut).SetValue(0, half_ ^ 1);
    Sync<HardEvent::S_MTE3>(EVENT_ID0);
    DataCopy(state, Scalar<uint32_t>(kStateOut), 8);
  }

  // B4.1 and B4.2: an even share of the rows that this rank's experts made, in an order that starts elsewhere
  // on every rank.
  void Send() {
    const uint32_t entries = a_.own_experts * a_.ranks;
    const uint32_t rows = entries == 0 ? 0 : GlobalAt<uint32_t>(a_.send_counts).GetValue(entries - 1);
    const Range share = Share(rows, blocks_, block_);
    for (uint32_t b = 0; b < 2; ++b) SetFlag<HardEvent::MTE3_MTE2>(b);  // both buffers are free
    for (uint32_t first = share.first; first < share.last; first += CM384_COMBINE_TRIPLES) {
      const uint32_t left = share.last - first;
      const uint32_t n = left < CM384_COMBINE_TRIPLES ? left : CM384_COMBINE_TRIPLES;
      SetFlag<HardEvent::S_MTE2>(EVENT_ID0);
      WaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
      Load(l_.triples, a_.triples + first * 12ull, n * 12ull);
      SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
      uint32_t i = a_.rank % n;
      for (uint32_t loop = 0; loop < n; ++loop) {
        SendRow(first + i, At<uint32_t>(l_.triples + i * 12ull));
        if (++i == n) i = 0;
      }
    }
    for (uint32_t b = 0; b < 2; ++b) WaitFlag<HardEvent::MTE3_MTE2>(b);
  }

  // The barrier holds the row's completion back until all of it is acknowledged, and with it the next row.
  void SendRow(uint32_t row, const LocalTensor<uint32_t>& triple) {
    const uint32_t b = sent_++ & 1;
    const uint32_t token = triple.GetValue(1), slot = token * rows_a_token_ + triple.GetValue(2);
    const auto peer = At<uint64_t>(l_.peers + triple.GetValue(0) * sizeof(cm384_peer));
    const uint64_t to = CombineArea(peer.GetValue(0)) + slot * cm384_combine_slot_bytes(a_.hidden);
    const uint64_t status = StatusArea(peer.GetValue(1));
    const auto buffer = At<bfloat16_t>(l_.rows + b * l_.row_bytes);

    WaitFlag<HardEvent::MTE3_MTE2>(b);
    DataCopy(buffer, GlobalAt<bfloat16_t>(a_.expert_x + static_cast<uint64_t>(row) * a_.hidden * 2),
             a_.hidden);
    SetFlag<HardEvent::MTE2_MTE3>(b);
    WaitFlag<HardEvent::MTE2_MTE3>(b);
    DataCopy(GlobalAt<bfloat16_t>(to), buffer, a_.hidden);
    SetFlag<HardEvent::MTE3_MTE2>(b);
    PipeBarrier<PIPE_MTE3>();
    if (a_.completion == CM384_COMBINE_ATOMIC) {
      DataCopyAtomicAdd(GlobalAt<int32_t>(status + token * CM384_STATUS_ENTRY_BYTES), Scalar<int32_t>(kOne),
                        1);
    } else {
      DataCopy(GlobalAt<float>(status + slot * CM384_STATUS_ENTRY_BYTES), Scalar<float>(kOnes), 8);
    }
  }

  // B4.3: the weighted sums of this block's share of the own tokens.
  void Receive() {
    MarkPhase(CM384_COMBINE_WAIT);
    const Range share = Share(a_.batch, blocks_, block_);
    if (share.size() == 0) return;
    Load(l_.scales, a_.scales + share.first * a_.top_k * 4ull, share.size() * a_.top_k * 4ull);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    sum_.Open();
    for (uint32_t token = share.first; token < share.last; ++token) {
      MarkPhase(CM384_COMBINE_WAIT);
      AwaitToken(token);
      MarkPhase(CM384_COMBINE_SUM);
      SumToken(token, At<float>(l_.scales + (token - share.first) * a_.top_k * 4ull));
    }
    sum_.Close();
  }

  // Polls until all rows of a token are there, then clears their flags for the call after the next.
  void AwaitToken(uint32_t token) const {
    if (a_.completion == CM384_COMBINE_ATOMIC) {
      const uint64_t address = StatusArea(own_status_) + token * CM384_STATUS_ENTRY_BYTES;
      while (LoadStatus(address, CM384_STATUS_ENTRY_BYTES), CountOfStatus() != rows_a_token_)
        PollMark(address, CM384_STATUS_ENTRY_BYTES);
      DataCopy(GlobalAt<uint32_t>(address), At<uint32_t>(l_.zero), 8);
      return;
    }
    const uint32_t words = rows_a_token_ * 8;
    const uint64_t address =
        StatusArea(own_status_) + static_cast<uint64_t>(token) * rows_a_token_ * CM384_STATUS_ENTRY_BYTES;
    while (LoadStatus(address, words * 4), SumOfStatus(words) != static_cast<float>(words))
      PollMark(address, words * 4);
    DataCopy(GlobalAt<uint32_t>(address), At<uint32_t>(l_.zero), words);
  }
  void LoadStatus(uint64_t address, uint32_t bytes) const {
    SetFlag<HardEvent::S_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
    Load(l_.status, address, bytes);
  }
  uint32_t CountOfStatus() const {
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    return At<uint32_t>(l_.status).GetValue(0);
  }
  float SumOfStatus(uint32_t words) const {
    SetFlag<HardEvent::MTE2_V>(EVENT_ID2);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID2);
    TreeSum(Scalar<float>(kSum), At<float>(l_.status), Scalar<float>(kWork), static_cast<int32_t>(words));
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    return Scalar<float>(kSum).GetValue(0);
  }

  void SumToken(uint32_t token, const LocalTensor<float>& scales) {
    const uint64_t slot_bytes = cm384_combine_slot_bytes(a_.hidden), row_bytes = 2ull * a_.hidden;
    uint64_t from = CombineArea(own_window_) + token * rows_a_token_ * slot_bytes;
    sum_.Begin();
    for (uint32_t k = 0; k < a_.top_k; ++k, from += slot_bytes) {
      const uint32_t id = GlobalAt<uint32_t>(a_.expert_ids).GetValue(token * a_.top_k + k);
      if (id >= a_.experts) Abort("combine: an expert id is out of range");
      sum_.AddRow(from, scales.GetValue(k));
    }
    for (uint32_t k = 0; k < a_.shared; ++k, from += slot_bytes) sum_.AddRow(from);
    if (a_.shared_x != 0) sum_.AddRow(a_.shared_x + token * row_bytes);
    sum_.Store(a_.x + token * row_bytes);
  }

  // This call's half of a window.
  uint64_t CombineArea(uint64_t window) const { return window + half_ * a_.window_half_bytes; }
  uint64_t StatusArea(uint64_t status) const {
    return status + half_ * CM384_STATUS_HALF_BYTES + CM384_STATUS_COMBINE_OFFSET;
  }

  const cm384_combine a_;
  const uint32_t block_, blocks_;
  const cm384_combine_layout l_;
  const uint32_t rows_a_token_;
  uint64_t own_window_ = 0, own_status_ = 0;
  uint32_t half_ = 0;
  uint32_t sent_ = 0;
  RowSum sum_;
};

}  // namespace
