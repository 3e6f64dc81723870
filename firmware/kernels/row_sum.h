// The weighted sum of rows of BF16: FP32 in the UBuffer, rounded once at the end.
#pragma once

#include "kernel_operator.h"

// Where it stands in the UBuffer: two input rows of `row_bytes`; row, product and sum are rows of float.
struct RowSumPlaces {
  uint64_t rows, row_bytes, row, product, sum, out;
};

// Every product and every sum is rounded to FP32, in the order of the calls. Uses V_MTE2, MTE2_V 0 and 1,
// V_MTE3 and MTE3_V 0.
class RowSum {
 public:
  RowSum(const RowSumPlaces& places, uint32_t hidden) : l_(places), hidden_(hidden) {}

  // Before the first row and after the last one of a block.
  void Open() const {
    using namespace AscendC;
    for (int32_t b = 0; b < 2; ++b) SetFlag<HardEvent::V_MTE2>(b);
    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
  }
  void Close() const {
    using namespace AscendC;
    for (int32_t b = 0; b < 2; ++b) WaitFlag<HardEvent::V_MTE2>(b);
    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
  }

  void Begin() const {
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Duplicate(At<float>(l_.sum), 0.0f, Count());
  }
  void AddRow(uint64_t from, float weight) {
    using namespace AscendC;
    LoadRow(from);
    PipeBarrier<PIPE_V>();
    Muls(At<float>(l_.product), At<float>(l_.row), weight, Count());
    PipeBarrier<PIPE_V>();
    Add(At<float>(l_.sum), At<float>(l_.sum), At<float>(l_.product), Count());
  }
  void AddRow(uint64_t from) {
    using namespace AscendC;
    LoadRow(from);
    PipeBarrier<PIPE_V>();
    Add(At<float>(l_.sum), At<float>(l_.sum), At<float>(l_.row), Count());
  }
  void Store(uint64_t to) const {
    using namespace AscendC;
    const auto out = At<bfloat16_t>(l_.out);
    PipeBarrier<PIPE_V>();
    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
    Cast(out, At<float>(l_.sum), RoundMode::CAST_RINT, hidden_);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(GlobalAt<bfloat16_t>(to), out, hidden_);
    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
  }

 private:
  template <typename T>
  AscendC::LocalTensor<T> At(uint64_t offset) const {
    return AscendC::LocalTensor<T>(static_cast<uint32_t>(offset));
  }
  int32_t Count() const { return static_cast<int32_t>(hidden_); }

  // A row as float in `row`, through the queue of two input rows.
  void LoadRow(uint64_t from) {
    using namespace AscendC;
    const uint32_t b = loaded_++ & 1;
    const auto buffer = At<bfloat16_t>(l_.rows + b * l_.row_bytes);
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(buffer, GlobalAt<bfloat16_t>(from), hidden_);
    SetFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE2_V>(b);
    PipeBarrier<PIPE_V>();
    Cast(At<float>(l_.row), buffer, RoundMode::CAST_NONE, hidden_);
    SetFlag<HardEvent::V_MTE2>(b);
  }

  RowSumPlaces l_;
  uint32_t hidden_;
  uint32_t loaded_ = 0;
};
