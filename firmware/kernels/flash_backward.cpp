// Gradients of causal attention on cube and vector cores. Arguments: firmware/abi/flash_backward.h.
//
// In turn i the AIC multiplies the scores and the gradient's products of item i, then adds up the gradients
// of item i - 2: its AIVs have a turn for item i - 1. What they hand each other has three places: place i is
// written again when item i - 3 has been multiplied.
#include "firmware/abi/flash_backward.h"

#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kTile = CM384_BACKWARD_TILE, kHead = CM384_BACKWARD_HEAD;
constexpr uint16_t kScoresReady = 0, kWeightsReady = 1, kAllAdded = 2;

struct Item {
  uint32_t sequence, head;
  uint32_t tile, queries;  // of queries, and how many
  uint32_t keys, token;    // how many, and the first
  uint32_t task;           // of the block
  bool first, last;        // of its task; the first is the tile of the keys' own tokens
};

// Tiles of keys that most queries see come first.
class Walker {
 public:
  Walker(const cm384_flash_backward& a, uint32_t block, uint32_t blocks)
      : a_(a),
        tiles_((a.length + kTile - 1) / kTile),
        heads_(a.sequences * a.heads),
        task_(block),
        step_(blocks) {
    tile_ = task_ / heads_;
  }

  bool Next(Item& item) {
    if (task_ >= heads_ * tiles_) return false;
    const uint32_t of = task_ / heads_, pair = task_ - of * heads_;
    item.sequence = pair / a_.heads;
    item.head = pair - item.sequence * a_.heads;
    item.tile = tile_;
    item.queries = Count(tile_);
    item.token = of * kTile;
    item.keys = Count(of);
    item.task = number_;
    item.first = tile_ == of;
    item.last = ++tile_ == tiles_;
    if (item.last) {
      ++number_;
      task_ += step_;
      tile_ = task_ / heads_;
    }
    return true;
  }

 private:
  uint32_t Count(uint32_t tile) const {
    const uint32_t left = a_.length - tile * kTile;
    return left < kTile ? left : kTile;
  }

  const cm384_flash_backward& a_;
  const uint32_t tiles_, heads_;  // of a sequence; of all sequences
  uint32_t task_, step_, tile_, number_ = 0;
};

// Where a block's cores hand each other an item.
struct Turn {
  CM384_INLINE Turn(const cm384_flash_backward& a, uint32_t block, uint32_t item)
      : scores(a.workspace + block * static_cast<uint64_t>(CM384_BACKWARD_WORKSPACE) +
               item % CM384_BACKWARD_TURNS * CM384_BACKWARD_TURN),
        products(scores + CM384_BACKWARD_SCORES),
        weights(products + CM384_BACKWARD_SCORES),
        gradients(weights + CM384_BACKWARD_WEIGHTS) {}
  uint64_t scores, products;    // F32: K Q^T and V gradient^T
  uint64_t weights, gradients;  // BF16: P^T and dS^T
};

class Cube {
 public:
  Cube(const cm384_flash_backward& a, uint32_t block, uint32_t blocks)
      : a_(a), block_(block), walker_(a, block, blocks) {
    const uint64_t tokens = static_cast<uint64_t>(a.sequences) * a.length;
    dq_ = a.added;
    dk_ = dq_ + tokens * a.heads * kHead * 4;
    dv_ = dk_ + tokens * a.kv_heads * kHead * 4;
  }

  void Run() {
    for (int e = 0; e < kWeightsFree + 1 + static_cast<int>(kSlots); ++e) SetFlag<HardEvent::MTE1_MTE2>(e);
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::M_MTE1>(b);
      SetFlag<HardEvent::FIX_M>(b);
    }
    Item items[4];  // i - 2 .. i + 1, item n at n % 4
    uint32_t count = 0;
    bool more = walker_.Next(items[0]);
    if (more) Load(items[0], 0);
    for (uint32_t i = 0; more || i < count + 2; ++i) {
      if (more) {
        count = i + 1;
        Scores(items[i % 4], i);
      }
      if (i >= 2 && i - 2 < count) Products(items[(i - 2) % 4], i - 2);
      if (more) {
        more = walker_.Next(items[(i + 1) % 4]);
        if (more) Load(items[(i + 1) % 4], i + 1);
      }
    }
    CrossCoreSetFlag<2, PIPE_FIX>(kAllAdded);
    PipeBarrier<PIPE_ALL>();
  }

 private:
  // L1: queries and gradients of items, keys and values of tasks, P^T and dS^T. Events between MTE2 and MTE1
  // count slots of items, then the weights' place, then slots of tasks.
  static constexpr uint32_t kSlots = 3, kMatrix = kTile * kHead * 2;
  static constexpr uint32_t kItems = 0, kTasks = kItems + kSlots * 2 * kMatrix,
                            kWeights = kTasks + kSlots * 2 * kMatrix;
  static_assert(kWeights + 2 * kMatrix <= 512 * 1024);
  static constexpr int kWeightsFree = kSlots;
  static constexpr uint32_t kHeight = kTile * 32;     // of a column of NZ in L1
  static constexpr uint32_t kHalf = 32 * 1024;        // L0A and L0B have two buffers each
  static constexpr uint32_t kPlaceBytes = 64 * 1024;  // of L0C

  static CM384_INLINE uint32_t Queries(uint32_t i) { return kItems + i % kSlots * 2 * kMatrix; }
  static CM384_INLINE uint32_t Keys(const Item& item) { return kTasks + item.task % kSlots * 2 * kMatrix; }
  CM384_INLINE uint64_t Row(uint64_t of, const Item& item, uint32_t token, uint32_t heads, uint32_t head,
                            uint32_t bytes) const {
    return of + ((static_cast<uint64_t>(item.sequence) * a_.length + token) * heads + head) * kHead * bytes;
  }
  CM384_INLINE uint32_t KvHead(const Item& item) const { return item.head / (a_.heads / a_.kv_heads); }
  void LoadRows(uint32_t l1, uint64_t gm, uint32_t rows, uint32_t heads) {
    CopyNd2Nz(l1, gm, rows, kHead * 2, static_cast<uint64_t>(heads) * kHead * 2, kHeight);
  }

  void Load(const Item& item, uint32_t i) {
    if (item.first) {
      WaitFlag<HardEvent::MTE1_MTE2>(kWeightsFree + 1 + static_cast<int>(item.task % kSlots));
      LoadRows(Keys(item), Row(a_.k, item, item.token, a_.kv_heads, KvHead(item), 2), item.keys, a_.kv_heads);
      LoadRows(Keys(item) + kMatrix, Row(a_.v, item, item.token, a_.kv_heads, KvHead(item), 2), item.keys,
               a_.kv_heads);
    }
    const auto slot = static_cast<int>(i % kSlots);
    WaitFlag<HardEvent::MTE1_MTE2>(slot);
    LoadRows(Queries(i), Row(a_.q, item, item.tile * kTile, a_.heads, item.head, 2), item.queries, a_.heads);
    LoadRows(Queries(i) + kMatrix, Row(a_.gradient, item, item.tile * kTile, a_.heads, item.head, 2),
             item.queries, a_.heads);
    SetFlag<HardEvent::MTE2_MTE1>(slot);  // the keys' and values' too, which came before
  }

  void Scores(const Item& item, uint32_t i) {
    const Turn turn(a_, block_, i);
    WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(i % kSlots));
    for (uint32_t which = 0; which < 2; ++which) {  // K Q^T, V gradient^T
      Multiply(item.keys, item.queries, kHead, [&](uint32_t l0) {
        LoadA<bfloat16_t>(l0, Keys(item) + which * kMatrix, kHeight, item.keys / 16, kHead / 16);
        LoadB<bfloat16_t>(l0, Queries(i) + which * kMatrix, kHeight, item.queries / 16, kHead / 16);
      });
      Out(which == 0 ? turn.scores : turn.products, item.keys, item.queries, kTile * 4);
    }
    CrossCoreSetFlag<2, PIPE_FIX>(kScoresReady);
  }

  void Products(const Item& item, uint32_t i) {
    const Turn turn(a_, block_, i);
    CrossCoreWaitFlag(kWeightsReady);
    WaitFlag<HardEvent::MTE1_MTE2>(kWeightsFree);
    CopyNd2Nz(kWeights, turn.weights, item.keys, item.queries * 2, kTile * 2, kHeight);
    CopyNd2Nz(kWeights + kMatrix, turn.gradients, item.keys, item.queries * 2, kTile * 2, kHeight);
    SetFlag<HardEvent::MTE2_MTE1>(kWeightsFree);
    WaitFlag<HardEvent::MTE2_MTE1>(kWeightsFree);
    SetAtomicAdd<float>();
    for (uint32_t which = 0; which < 2; ++which) {  // P^T gradient, dS^T Q
      Multiply(item.keys, kHead, item.queries, [&](uint32_t l0) {
        LoadA<bfloat16_t>(l0, kWeights + which * kMatrix, kHeight, item.keys / 16, item.queries / 16);
        LoadBTransposed<bfloat16_t>(l0, Queries(i) + (1 - which) * kMatrix, kHeight, kHead / 16,
                                    item.queries / 16);
      });
      Out(Row(which == 0 ? dv_ : dk_, item, item.token, a_.kv_heads, KvHead(item), 4), item.keys, kHead,
          a_.kv_heads * kHead * 4);
    }
    SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(i % kSlots));
    // dS K, with dS from its transposed.
    Multiply(item.queries, kHead, item.keys, [&](uint32_t l0) {
      const uint32_t depth = item.keys / 16;
      for (uint32_t row = 0; row < item.queries / 16; ++row)
        LoadSteps<CM384_CUBE_LOAD_2D_A, bfloat16_t>(
            l0 + row * depth * 512, kWeights + kMatrix + row * kHeight, depth, true, 512, 512);
      LoadBTransposed<bfloat16_t>(l0, Keys(item), kHeight, kHead / 16, depth);
    });
    SetFlag<HardEvent::MTE1_MTE2>(kWeightsFree);
    if (item.last) SetFlag<HardEvent::MTE1_MTE2>(kWeightsFree + 1 + static_cast<int>(item.task % kSlots));
    Out(Row(dq_, item, item.tile * kTile, a_.heads, item.head, 4), item.queries, kHead, a_.heads * kHead * 4);
    SetAtomicNone();
  }

  // `load` fills the next halves of L0A and L0B; the product goes to the next place of L0C.
  template <class Load>
  CM384_INLINE void Multiply(uint32_t m, uint32_t n, uint32_t k, Load&& load) {
    const uint32_t b = steps_++ & 1;
    WaitFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    load(b * kHalf);
    SetFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    WaitFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    WaitFlag<HardEvent::FIX_M>(static_cast<int>(b));
    MmadParams p;
    p.m = static_cast<uint16_t>(m);
    p.n = static_cast<uint16_t>(n);
    p.k = static_cast<uint16_t>(k);
    p.cmatrixInitVal = true;
    Mmad<bfloat16_t>(b * kPlaceBytes, b * kHalf, b * kHalf, p);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }
  // Of the last product.
  void Out(uint64_t gm, uint32_t rows, uint32_t columns, uint64_t pitch) {
    const uint32_t b = (steps_ - 1) & 1;
    SetFlag<HardEvent::M_FIX>(static_cast<int>(b));
    WaitFlag<HardEvent::M_FIX>(static_cast<int>(b));
    Fixpipe<CM384_FIX_KEEP>(gm, b * kPlaceBytes, rows, columns, pitch);
    SetFlag<HardEvent::FIX_M>(static_cast<int>(b));
  }

  const cm384_flash_backward& a_;
  const uint32_t block_;
  Walker walker_;
  uint64_t dq_, dk_, dv_;
  uint32_t steps_ = 0;
};

class VectorPart {
 public:
  VectorPart(const cm384_flash_backward& a, uint32_t block, uint32_t blocks, uint32_t sub_block)
      : a_(a),
        block_(block),
        sub_(sub_block),
        core_(block * 2 + sub_block),
        cores_(blocks * 2),
        walker_(a, block, blocks),
        tokens_(static_cast<uint64_t>(a.sequences) * a.length) {}

  void Run() {
    Clear();
    RowProducts();
    SyncAll();
    PlaceMask();
    for (int b = 0; b < 2; ++b) SetFlag<HardEvent::MTE3_MTE2>(b);
    Item item;
    for (uint32_t i = 0; walker_.Next(item); ++i) Weights(item, i);
    CrossCoreWaitFlag(kAllAdded);
    SyncAll();
    Convert();
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr uint32_t kRows = kTile / 2, kElements = kRows * kTile;  // keys of this core; of a matrix
  static constexpr uint32_t kBytes = kElements * 4;
  // UBuffer: two matrices of each of two items, the mask, sums and D of two items.
  static constexpr uint32_t kMask = 4 * kBytes, kVectors = kMask + kBytes;
  static_assert(kVectors + 4 * kTile * 4 <= kUBufferBytes);
  static constexpr float kUnseen = -1e30f;

  using Vector = LocalTensor<float>;
  static Vector At(uint32_t offset, uint32_t count) { return Vector(offset, count); }
  uint64_t Elements() const { return tokens_ * (a_.heads + 2 * a_.kv_heads) * kHead; }
  CM384_INLINE uint64_t OfRow(uint64_t of, uint32_t sequence, uint32_t head, uint32_t token) const {
    return of + ((static_cast<uint64_t>(sequence) * a_.heads + head) * a_.length + token) * 4;
  }

  void Clear() {
    Duplicate(At(0, kElements), 0.0f, static_cast<int>(kElements));
    PipeBarrier<PIPE_ALL>();
    ForChunks([&](uint64_t first, uint32_t count) {
      CopyBursts<CM384_MTE_UB_TO_GM>(a_.added + first * 4, 0, count * 4);
    });
    PipeBarrier<PIPE_ALL>();
  }
  // Of all elements of the gradients.
  template <class Visit>
  CM384_INLINE void ForChunks(Visit&& visit) {
    for (uint64_t first = static_cast<uint64_t>(core_) * kElements; first < Elements();
         first += static_cast<uint64_t>(cores_) * kElements) {
      const uint64_t left = Elements() - first;
      visit(first, static_cast<uint32_t>(left < kElements ? left : kElements));
    }
  }

  // D of some tokens of a head at a time.
  void RowProducts() {
    constexpr uint32_t kSome = 64, kSmall = kSome * kHead * 2;
    const uint32_t parts = (a_.length + kSome - 1) / kSome;
    const Vector x = At(0, kSome * kHead), y = At(kSome * kHead * 4, kSome * kHead);
    const LocalTensor<bfloat16_t> out(2 * kSome * kHead * 4, kSome * kHead),
        gradient(2 * kSome * kHead * 4 + kSmall, kSome * kHead);
    for (uint32_t part = core_; part < a_.sequences * a_.heads * parts; part += cores_) {
      const uint32_t pair = part / parts, token = (part - pair * parts) * kSome;
      const uint32_t sequence = pair / a_.heads, head = pair - sequence * a_.heads;
      const uint32_t rows = a_.length - token < kSome ? a_.length - token : kSome;
      const uint64_t from =
          ((static_cast<uint64_t>(sequence) * a_.length + token) * a_.heads + head) * kHead * 2;
      const uint64_t pitch = static_cast<uint64_t>(a_.heads) * kHead * 2;
      CopyBursts<CM384_MTE_GM_TO_UB>(out.GetPhyAddr(), a_.out + from, kHead * 2, rows, pitch, kHead * 2);
      CopyBursts<CM384_MTE_GM_TO_UB>(gradient.GetPhyAddr(), a_.gradient + from, kHead * 2, rows, pitch,
                                     kHead * 2);
      SetFlag<HardEvent::MTE2_V>(0);
      WaitFlag<HardEvent::MTE2_V>(0);
      Cast(x, out, RoundMode::CAST_NONE, kSome * kHead);
      Cast(y, gradient, RoundMode::CAST_NONE, kSome * kHead);
      PipeBarrier<PIPE_V>();
      Mul(x, x, y, static_cast<int>(kSome * kHead));
      PipeBarrier<PIPE_V>();
      BlockReduceSum(y, x, kSome * 2, 64, 1, 1, 8);  // 16 of a row
      PipeBarrier<PIPE_V>();
      BlockReduceSum(x, y, kSome / 4, 64, 1, 1, 8);  // two
      PipeBarrier<PIPE_V>();
      PairReduceSum(y, x, kSome / 32, 64, 1, 1, 8);
      SetFlag<HardEvent::V_MTE3>(0);
      WaitFlag<HardEvent::V_MTE3>(0);
      CopyBursts<CM384_MTE_UB_TO_GM>(OfRow(a_.rows, sequence, head, token), y.GetPhyAddr(), rows * 4);
      PipeBarrier<PIPE_ALL>();
    }
  }

  // Row r of a diagonal tile is seen by queries from r on.
  void PlaceMask() {
    Duplicate(At(kMask, kElements), 0.0f, static_cast<int>(kElements));
    PipeBarrier<PIPE_V>();
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint32_t key = sub_ * kRows + row;
      if (key > 0) Duplicate(At(kMask + row * kTile * 4, kTile), kUnseen, static_cast<int>(key));
    }
    PipeBarrier<PIPE_V>();
  }

  // Takes a value of each column from all rows.
  static CM384_INLINE void Subtract(const Vector& matrix, const Vector& row) {
    for (uint32_t column = 0; column < kTile; column += 64)
      Sub(matrix[column], matrix[column], row[column], uint64_t{64}, static_cast<uint8_t>(kRows),
          {1, 1, 1, kTile / 8, kTile / 8, 0});
  }

  void Weights(const Item& item, uint32_t i) {
    const Turn turn(a_, block_, i);
    const auto b = static_cast<int>(i & 1);
    const uint32_t place = (i & 1) * 2 * kBytes, vectors = kVectors + (i & 1) * 2 * kTile * 4;
    const Vector scores = At(place, kElements), products = At(place + kBytes, kElements);
    const Vector sums = At(vectors, kTile), rows = At(vectors + kTile * 4, kTile);
    const auto count = static_cast<int>(kElements);
    CrossCoreWaitFlag(kScoresReady);
    WaitFlag<HardEvent::MTE3_MTE2>(b);
    DataCopy(scores, GlobalAt<float>(turn.scores + sub_ * kBytes), kElements);
    DataCopy(products, GlobalAt<float>(turn.products + sub_ * kBytes), kElements);
    DataCopy(sums, GlobalAt<float>(OfRow(a_.sums, item.sequence, item.head, item.tile * kTile)), kTile);
    DataCopy(rows, GlobalAt<float>(OfRow(a_.rows, item.sequence, item.head, item.tile * kTile)), kTile);
    SetFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE2_V>(b);
    Muls(scores, scores, a_.scale, count);
    Subtract(products, rows);
    PipeBarrier<PIPE_V>();
    Subtract(scores, sums);
    PipeBarrier<PIPE_V>();
    if (item.first) {
      Add(scores, scores, At(kMask, kElements), count);
      PipeBarrier<PIPE_V>();
    }
    Exp(scores, scores, count);
    Muls(products, products, a_.scale, count);
    PipeBarrier<PIPE_V>();
    Mul(products, products, scores, count);
    PipeBarrier<PIPE_V>();
    // In place: a repeat is read before it is written, and results are half as long.
    const LocalTensor<bfloat16_t> weights(place, kElements), gradients(place + kBytes, kElements);
    Cast(weights, scores, RoundMode::CAST_RINT, kElements);
    Cast(gradients, products, RoundMode::CAST_RINT, kElements);
    SetFlag<HardEvent::V_MTE3>(b);
    WaitFlag<HardEvent::V_MTE3>(b);
    DataCopy(GlobalAt<bfloat16_t>(turn.weights + sub_ * kElements * 2), weights, kElements);
    DataCopy(GlobalAt<bfloat16_t>(turn.gradients + sub_ * kElements * 2), gradients, kElements);
    SetFlag<HardEvent::MTE3_MTE2>(b);
    CrossCoreSetFlag<2, PIPE_MTE3>(kWeightsReady);
  }

  void Convert() {
    uint32_t turn = 0;
    ForChunks([&](uint64_t first, uint32_t count) {
      const auto b = static_cast<int>(turn++ & 1);
      const uint32_t place = static_cast<uint32_t>(b) * kBytes;
      const LocalTensor<bfloat16_t> rounded(place, count);
      WaitFlag<HardEvent::MTE3_MTE2>(b);
      DataCopy(At(place, count), GlobalAt<float>(a_.added + first * 4), count);
      SetFlag<HardEvent::MTE2_V>(b);
      WaitFlag<HardEvent::MTE2_V>(b);
      Cast(rounded, At(place, count), RoundMode::CAST_RINT, count);
      SetFlag<HardEvent::V_MTE3>(b);
      WaitFlag<HardEvent::V_MTE3>(b);
      DataCopy(GlobalAt<bfloat16_t>(a_.gradients + first * 2), rounded, count);
      SetFlag<HardEvent::MTE3_MTE2>(b);
    });
  }

  const cm384_flash_backward& a_;
  const uint32_t block_, sub_, core_, cores_;
  Walker walker_;
  const uint64_t tokens_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const auto& a = *reinterpret_cast<const cm384_flash_backward*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    Cube(a, block, blocks).Run();
    return;
  }
  VectorPart(a, block / 2, blocks, static_cast<uint32_t>(GetSubBlockIdx())).Run();
}
