// Choice of experts, by groups or among all, and their weights. Arguments: firmware/abi/tokens.h. No branch
// depends on a score: what is chosen is a row of ones and zeros, made from the distance to the maximum.
// `Choice` says what is asked for; what is a constant there costs no instruction.
#pragma once

#include "firmware/abi/tokens.h"
#include "row_pipeline.h"

template <class Choice>
class Gate {
  using Vector = AscendC::LocalTensor<float>;

 public:
  explicit Gate(const cm384_gate& a) : a_(a), experts_(a.experts), repeats_(a.experts / 64), choice_(a) {
    Places places;
    const auto row = [&](uint32_t rows) { return Vector(places.Allocate(rows * experts_ * 4)); };
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = row(1);
      weights_[b] = Vector(places.Allocate(256));
      ids_[b] = AscendC::LocalTensor<int32_t>(places.Allocate(256));
    }
    bias_ = row(1);
    numbers_ = row(1);
    keys_ = row(1);
    work_ = row(1);
    hot_ = row(choice_.chosen());
    lanes_ = Vector(places.Allocate(choice_.chosen() * 256));
    products_ = Vector(places.Allocate(choice_.chosen() * 256));
    most_ = Vector(places.Allocate(256));
    second_ = Vector(places.Allocate(256));
    chosen_ = Vector(places.Allocate(256));
    spread_ = Vector(places.Allocate(Choice::kFixed ? 512 : 2048));
    value_ = Vector(places.Allocate(256));
  }

  // Once: biases, and the experts' numbers: eight by the scalar unit, then twice as many each time.
  void Open() {
    using namespace AscendC;
    DataCopy(bias_, GlobalAt<float>(a_.bias), experts_);
    SetFlag<HardEvent::MTE2_V>(2);
    if constexpr (!Choice::kFixed) {
      // Places behind the chosen ones, and experts behind those in groups.
      for (uint32_t b = 0; b < 2; ++b) {
        Duplicate(weights_[b], 0.0f, 64);
        Duplicate(ids_[b], int32_t{0}, 64);
      }
      Duplicate(work_, 0.0f, Count());
    }
    for (uint32_t n = 0; n < 8; ++n) numbers_.SetValue(n, static_cast<float>(n));
    SetFlag<HardEvent::S_V>(1);
    WaitFlag<HardEvent::S_V>(1);
    for (uint32_t n = 8; n < experts_; n *= 2) {
      PipeBarrier<PIPE_V>();
      Adds(numbers_[n], numbers_, static_cast<float>(n),
           static_cast<int>(n < experts_ - n ? n : experts_ - n));
    }
  }
  void Load(uint32_t token, uint32_t b) {
    using namespace AscendC;
    DataCopy(in_[b], GlobalAt<float>(a_.logits + static_cast<uint64_t>(token) * experts_ * 4), experts_);
  }
  void Compute(uint32_t, uint32_t b) {
    using namespace AscendC;
    if (first_) WaitFlag<HardEvent::MTE2_V>(2);
    first_ = false;
    if (choice_.softmax()) {
      Exponentials(in_[b]);
    } else {
      Sigmoids(in_[b]);
    }
    if (choice_.group() > 0) ChooseGroups();
    for (uint32_t k = 0; k < choice_.chosen(); ++k) Choose(k);
    Weigh(in_[b], b);
  }
  void Store(uint32_t token, uint32_t b) {
    using namespace AscendC;
    const uint32_t places = cm384_gate_places(choice_.chosen());
    DataCopy(GlobalAt<float>(a_.weights + token * places * 4ull), weights_[b], places);
    DataCopy(GlobalAt<int32_t>(a_.ids + token * places * 4ull), ids_[b], places);
  }

 private:
  static constexpr float kOut = 1e4f;  // what takes a score out of the choice

  int Count() const { return static_cast<int>(experts_); }

  // Sigmoids in place; in keys_ with the bias, less 2^-22 for each place in the row, so that none are equal.
  void Sigmoids(const Vector& scores) {
    using namespace AscendC;
    PipeBarrier<PIPE_V>();
    Muls(scores, scores, -1.0f, Count());
    Muls(keys_, numbers_, -0x1p-22f, Count());
    PipeBarrier<PIPE_V>();
    Exp(scores, scores, Count());
    Add(keys_, keys_, bias_, Count());
    PipeBarrier<PIPE_V>();
    Adds(scores, scores, 1.0f, Count());
    PipeBarrier<PIPE_V>();
    Reciprocal(scores, scores, Count());
    PipeBarrier<PIPE_V>();
    Add(keys_, keys_, scores, Count());
    PipeBarrier<PIPE_V>();
  }

  // exp of the distance to the largest logit, in place, logits having their bias; in keys_ that distance,
  // less 2^-19 for each place in the row. Their sum, where it is asked for, in choice_.
  void Exponentials(const Vector& scores) {
    using namespace AscendC;
    PipeBarrier<PIPE_V>();
    Add(scores, scores, bias_, Count());
    Muls(keys_, numbers_, -0x1p-19f, Count());
    const float largest = LargestOf(scores);
    Adds(scores, scores, -largest, Count());
    PipeBarrier<PIPE_V>();
    Add(keys_, keys_, scores, Count());
    Exp(scores, scores, Count());
    PipeBarrier<PIPE_V>();
    if (choice_.normalised()) return;
    Duplicate(lanes_, 0.0f, 64);
    PipeBarrier<PIPE_V>();
    Add(lanes_, lanes_, scores, uint64_t{64}, static_cast<uint8_t>(repeats_), {1, 1, 1, 0, 0, 8});
    PipeBarrier<PIPE_V>();
    WholeReduceSum(value_, lanes_, 64, 1, 1, 1, 8);
    choice_.keep_sum(FromVector(value_));
    ToVector();
  }

  // 1 where a distance to the maximum is 0, else 0.
  void Mark(const Vector& hot, const Vector& distance, int count) {
    using namespace AscendC;
    PipeBarrier<PIPE_V>();
    Muls(hot, distance, 1e30f, count);
    PipeBarrier<PIPE_V>();
    Maxs(hot, hot, -1.0f, count);
    PipeBarrier<PIPE_V>();
    Adds(hot, hot, 1.0f, count);
    PipeBarrier<PIPE_V>();
  }

  // Of every group its largest key, and takes it for a moment out of `work_` for the second.
  void ChooseGroups() {
    using namespace AscendC;
    const uint32_t group = choice_.group();
    const auto groups = static_cast<uint8_t>(choice_.groups(experts_));
    const auto blocks = static_cast<uint8_t>(group / 8);
    const BinaryRepeatParams by_group{1, 1, 0, blocks, blocks, 1};
    const int count = groups;
    WholeReduceMax(most_, keys_, static_cast<int>(group), groups, 1, 1, blocks,
                   ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    Brcb(spread_, most_, static_cast<uint8_t>((groups + 7) / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    Sub(work_, keys_, spread_, uint64_t{group}, groups, by_group);
    Mark(work_, work_, Count());
    Muls(work_, work_, -kOut, Count());
    PipeBarrier<PIPE_V>();
    Add(work_, work_, keys_, Count());
    PipeBarrier<PIPE_V>();
    WholeReduceMax(second_, work_, static_cast<int>(group), groups, 1, 1, blocks,
                   ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    Add(most_, most_, second_, count);
    Duplicate(chosen_, -1.0f, count);
    for (uint32_t g = 0; g < a_.top_groups; ++g) {
      PipeBarrier<PIPE_V>();
      WholeReduceMax(value_, most_, count, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
      const float largest = FromVector(value_);
      ToVector();
      Adds(second_, most_, -largest, count);
      Mark(second_, second_, count);
      Add(chosen_, chosen_, second_, count);
      Muls(second_, second_, -kOut, count);
      PipeBarrier<PIPE_V>();
      Add(most_, most_, second_, count);
    }
    PipeBarrier<PIPE_V>();
    Muls(chosen_, chosen_, kOut, count);
    PipeBarrier<PIPE_V>();
    Brcb(spread_, chosen_, static_cast<uint8_t>((groups + 7) / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    Add(keys_, keys_, spread_, uint64_t{group}, groups, by_group);
    PipeBarrier<PIPE_V>();
  }

  // Of all experts' values, for the scalar unit.
  CM384_INLINE float LargestOf(const Vector& values) {
    using namespace AscendC;
    Duplicate(lanes_, -__builtin_inff(), 64);
    PipeBarrier<PIPE_V>();
    Max(lanes_, lanes_, values, uint64_t{64}, static_cast<uint8_t>(repeats_), {1, 1, 1, 0, 0, 8});
    PipeBarrier<PIPE_V>();
    WholeReduceMax(value_, lanes_, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    const float largest = FromVector(value_);
    ToVector();
    return largest;
  }

  // The largest key that is left, as row k of hot_.
  void Choose(uint32_t k) {
    using namespace AscendC;
    const Vector hot = hot_[k * experts_];
    const float largest = LargestOf(keys_);
    Adds(work_, keys_, -largest, Count());
    Mark(hot, work_, Count());
    Muls(work_, hot, -kOut, Count());
    PipeBarrier<PIPE_V>();
    Add(keys_, keys_, work_, Count());
    PipeBarrier<PIPE_V>();
  }

  // Sums over the experts of each row of hot_ times `values`: one per row.
  void Pick(const Vector& to, const Vector& values) {
    using namespace AscendC;
    const uint32_t chosen = choice_.chosen();
    const auto row = static_cast<uint8_t>(experts_ / 8);
    for (uint32_t q = 0; q < repeats_; ++q) {
      const Vector product = q == 0 ? lanes_ : products_;
      Mul(product, hot_[q * 64], values[q * 64], uint64_t{64}, static_cast<uint8_t>(chosen),
          {1, 1, 1, 8, row, 0});
      PipeBarrier<PIPE_V>();
      if (q > 0) Add(lanes_, lanes_, product, static_cast<int>(chosen * 64));
      PipeBarrier<PIPE_V>();
    }
    WholeReduceSum(to, lanes_, 64, static_cast<int>(chosen), 1, 1, 8);
    PipeBarrier<PIPE_V>();
  }

  void Weigh(const Vector& scores, uint32_t b) {
    using namespace AscendC;
    const auto chosen = static_cast<int>(choice_.chosen());
    Pick(value_, numbers_);
    Cast(ids_[b], value_, RoundMode::CAST_RINT, choice_.chosen());
    Pick(weights_[b], scores);
    float factor = a_.scale;
    if (choice_.normalised()) {
      WholeReduceSum(value_, weights_[b], chosen, 1, 1, 1, 8);
      factor = a_.scale / FromVector(value_);
      ToVector();
    } else if (choice_.softmax()) {
      factor = a_.scale / choice_.sum();
    }
    Muls(weights_[b], weights_[b], factor, chosen);
  }

  const cm384_gate& a_;
  const uint32_t experts_, repeats_;
  bool first_ = true;
  Vector in_[2], weights_[2], bias_, numbers_, keys_, work_, hot_, lanes_, most_, second_, chosen_, spread_,
      value_, products_;
  AscendC::LocalTensor<int32_t> ids_[2];
  [[no_unique_address]] Choice choice_;
};
