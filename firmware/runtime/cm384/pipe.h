// The objects that hand out the UBuffer, a cube core's buffers, and their flags: TPipe, TBuf, TQue, TQueBind,
// TQueSync.
//
// A queue's buffer goes round: AllocTensor takes a free one, EnQue says that it is full, DeQue takes it over,
// FreeTensor says that it is free. Which pipes wait for each other follows from the queue's positions: VECIN
// is filled by MTE2 and emptied by V, VECOUT filled by V and emptied by MTE3; a bind of both is filled by
// MTE2 and emptied by MTE3; A1 and B1 by MTE2 and MTE1, A2 and B2 by MTE1 and M, CO1 by M and FIX. The flags
// come from the same eight ids a pair of pipes as those of SetFlag.
#pragma once

#include "cm384/position.h"
#include "cm384/sync.h"
#include "cm384/system.h"

namespace AscendC {

using TEventID = int8_t;

class TPipe {
 public:
  static constexpr uint32_t kMostBuffers = 64;  // of a kernel, as on the part
  struct Buffer {
    uint32_t address = 0, bytes = 0;
    TEventID full = -1, free = -1;  // ids of flags that are set and not yet waited for
    bool taken = false;
    HardEvent on_free{};  // the flag of `free`
  };

  CM384_INLINE TPipe() { current = this; }
  CM384_INLINE ~TPipe() { Destroy(); }
  CM384_INLINE void Init() { Reset(); }
  // Takes all buffers back, after their last users.
  inline void Reset() {
    for (uint32_t n = 0; n < buffers_; ++n) WaitFree(buffer_[n]);
    buffers_ = 0;
    for (uint32_t& next : next_) next = 0;
  }
  CM384_INLINE void Destroy() { Reset(); }

  // `bytes` of each of `num` buffers, rounded up to 32 B.
  template <typename Queue>
  CM384_INLINE bool InitBuffer(Queue& queue, uint8_t num, uint32_t bytes) {
    queue.Place(buffer_ + Take<Queue::kBuffer>(num, bytes), num);
    return true;
  }
  template <typename Buf>
  CM384_INLINE bool InitBuffer(Buf& buf, uint32_t bytes) {
    const Buffer& taken = buffer_[Take<Buf::kBuffer>(1, bytes)];
    buf.Place(taken.address, taken.bytes);
    return true;
  }

  // A part of a local buffer, to be dealt out again and again; of the same bytes as another part.
  template <typename Pool>
  CM384_INLINE bool InitBufPool(Pool& pool, uint32_t bytes) {
    const Buffer& taken = buffer_[Take<Pool::kBuffer>(1, bytes)];
    pool.Place(taken.address, taken.bytes);
    return true;
  }
  template <typename Pool, typename Other>
  CM384_INLINE bool InitBufPool(Pool& pool, uint32_t bytes, const Other& other) {
    if (bytes > other.bytes()) Abort("InitBufPool: more bytes than the pool has that it shares with");
    pool.Place(other.address(), bytes);
    return true;
  }

  // An id that stays taken until it is released; one that is free now.
  CM384_INLINE TEventID AllocEventID(HardEvent event) {
    const TEventID id = FetchEventID(event);
    taken_[Pair(event)] |= static_cast<uint8_t>(1u << id);
    return id;
  }
  template <HardEvent E>
  CM384_INLINE TEventID AllocEventID() {
    return AllocEventID(E);
  }
  CM384_INLINE void ReleaseEventID(HardEvent event, TEventID id) {
    taken_[Pair(event)] &= static_cast<uint8_t>(~(1u << id));
  }
  template <HardEvent E>
  CM384_INLINE void ReleaseEventID(TEventID id) {
    ReleaseEventID(E, id);
  }
  inline TEventID FetchEventID(HardEvent event) {
    const uint32_t taken = taken_[Pair(event)];
    for (TEventID id = 0; id < 8; ++id) {
      if ((taken >> id & 1u) == 0) return id;
    }
    Abort("TPipe: all 8 event ids of a pair of pipes are taken");
  }
  template <HardEvent E>
  CM384_INLINE TEventID FetchEventID() {
    return FetchEventID(E);
  }

  // Of the UBuffer, from its start.
  CM384_INLINE uint32_t UsedBytes() const { return next_[cm384::LocalBufferOf(TPosition::VECCALC)]; }

  inline static TPipe* current = nullptr;

 private:
  template <TPosition, TPosition, int32_t>
  friend class TQueBind;
  template <TPosition, uint32_t>
  friend class TBufPool;
  static constexpr uint32_t kPipes = 16;
  CM384_INLINE static uint32_t Pair(HardEvent event) {
    const auto e = static_cast<uint32_t>(event);
    return (e & 0xf) * kPipes + (e >> 8 & 0xf);
  }
  template <int of>
  inline uint32_t Take(uint32_t num, uint32_t bytes) {
    const uint32_t each = (bytes + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE, first = buffers_;
    if (buffers_ + num > kMostBuffers) Abort("TPipe: more than 64 buffers");
    if (next_[of] + num * each > cm384::kBufferSizes[of].bytes) Abort(cm384::kBufferSizes[of].full);
    for (uint32_t n = 0; n < num; ++n, next_[of] += each) {
      Buffer& buffer = buffer_[buffers_++];
      buffer = Buffer{};
      buffer.address = next_[of];
      buffer.bytes = each;
    }
    return first;
  }
  inline void WaitFree(Buffer& buffer) {
    if (buffer.free < 0) return;
    WaitFlagOf(buffer.on_free, buffer.free);
    ReleaseEventID(buffer.on_free, buffer.free);
    buffer.free = -1;
  }

  Buffer buffer_[kMostBuffers];
  uint32_t buffers_ = 0, next_[cm384::kBuffers] = {};
  uint8_t taken_[kPipes * kPipes] = {};  // ids, by pair of pipes
};

// Buffers out of a part of a local buffer. Pools that share bytes do not wait for each other: the kernel
// resets the one that it has used (assumed). `bufIDSize` has no effect.
template <TPosition position, uint32_t bufIDSize = 4>
class TBufPool {
 public:
  static constexpr int kBuffer = cm384::LocalBufferOf(position);
  static constexpr uint32_t kMost = 16;

  template <typename Queue>
  CM384_INLINE bool InitBuffer(Queue& queue, uint8_t num, uint32_t bytes) {
    queue.Place(buffer_ + Take(num, bytes), num);
    return true;
  }
  template <typename Buf>
  CM384_INLINE bool InitBuffer(Buf& buf, uint32_t bytes) {
    const TPipe::Buffer& taken = buffer_[Take(1, bytes)];
    buf.Place(taken.address, taken.bytes);
    return true;
  }
  template <typename Pool>
  CM384_INLINE bool InitBufPool(Pool& pool, uint32_t bytes) {
    const TPipe::Buffer& taken = buffer_[Take(1, bytes)];
    pool.Place(taken.address, taken.bytes);
    return true;
  }
  template <typename Pool, typename Other>
  CM384_INLINE bool InitBufPool(Pool& pool, uint32_t bytes, const Other& other) {
    return TPipe::current->InitBufPool(pool, bytes, other);
  }
  // Takes its buffers back, after their last users.
  inline void Reset() {
    for (uint32_t n = 0; n < buffers_; ++n) TPipe::current->WaitFree(buffer_[n]);
    buffers_ = next_ = 0;
  }
  CM384_INLINE void Place(uint32_t address, uint32_t bytes) {
    address_ = address;
    bytes_ = bytes;
    buffers_ = next_ = 0;
  }
  CM384_INLINE uint32_t address() const { return address_; }
  CM384_INLINE uint32_t bytes() const { return bytes_; }

 private:
  inline uint32_t Take(uint32_t num, uint32_t bytes) {
    const uint32_t each = (bytes + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE, first = buffers_;
    if (buffers_ + num > kMost) Abort("TBufPool: more than 16 buffers");
    if (next_ + num * each > bytes_) Abort("TBufPool: the buffers take more than the pool has");
    for (uint32_t n = 0; n < num; ++n, next_ += each) {
      TPipe::Buffer& buffer = buffer_[buffers_++];
      buffer = TPipe::Buffer{};
      buffer.address = address_ + next_;
      buffer.bytes = each;
    }
    return first;
  }

  TPipe::Buffer buffer_[kMost];
  uint32_t buffers_ = 0, next_ = 0, address_ = 0, bytes_ = 0;
};

// One place in a buffer.
template <TPosition position = TPosition::VECCALC>
class TBuf {
 public:
  static constexpr int kBuffer = cm384::LocalBufferOf(position);
  static_assert(kBuffer != cm384::kNoBuffer, "TBuf: of a position that has a local buffer: docs/ascend-c.md");

  template <typename T>
  CM384_INLINE LocalTensor<T> Get() const {
    Cm384Ensure(bytes_ != 0, "TBuf: Get before InitBuffer");
    return LocalTensor<T>(position, address_, bytes_ / static_cast<uint32_t>(sizeof(T)) * kPacked<T>);
  }
  template <typename T>
  CM384_INLINE LocalTensor<T> Get(uint32_t count) const {
    return LocalTensor<T>(position, address_, count);
  }
  // `count` elements from `offset` bytes on.
  template <typename T>
  CM384_INLINE LocalTensor<T> GetWithOffset(uint32_t count, uint32_t offset) const {
    return LocalTensor<T>(position, address_ + offset, count);
  }
  template <typename T>
  CM384_INLINE LocalTensor<T> AllocTensor() const {
    return Get<T>();
  }
  template <typename T>
  CM384_INLINE void FreeTensor(const LocalTensor<T>&) const {}
  CM384_INLINE uint32_t GetBufLen() const { return bytes_; }
  CM384_INLINE void Place(uint32_t address, uint32_t bytes) {
    address_ = address;
    bytes_ = bytes;
  }

 private:
  uint32_t address_ = 0, bytes_ = 0;
};

template <TPosition source, TPosition destination, int32_t depth>
class TQueBind {
 public:
  static constexpr int kBuffer = cm384::LocalBufferOf(source);
  static_assert(kBuffer != cm384::kNoBuffer && kBuffer == cm384::LocalBufferOf(destination),
                "queues are of one of a core's local buffers: docs/ascend-c.md");

  template <typename T>
  inline LocalTensor<T> AllocTensor() {
    for (uint32_t n = 0; n < count_; ++n) {
      TPipe::Buffer& buffer = first_[next_];
      next_ = next_ + 1 == count_ ? 0 : next_ + 1;
      if (buffer.taken) continue;
      TPipe::current->WaitFree(buffer);
      buffer.taken = true;
      return LocalTensor<T>(source, buffer.address,
                            buffer.bytes / static_cast<uint32_t>(sizeof(T)) * kPacked<T>);
    }
    Abort("AllocTensor: the queue has no free buffer");
  }
  template <typename T>
  CM384_INLINE void AllocTensor(LocalTensor<T>& tensor) {
    tensor = AllocTensor<T>();
  }
  // Of a bind: from which to which position, in both of which it stands.
  template <TPosition, TPosition, typename T>
  CM384_INLINE bool EnQue(const LocalTensor<T>& tensor) {
    return EnQue(tensor);
  }
  template <TPosition, TPosition, typename T>
  CM384_INLINE LocalTensor<T> DeQue() {
    return DeQue<T>();
  }
  template <typename T>
  CM384_INLINE void DeQue(LocalTensor<T>& tensor) {
    tensor = DeQue<T>();
  }
  template <typename T>
  inline bool EnQue(const LocalTensor<T>& tensor) {
    TPipe::Buffer& buffer = BufferOf(static_cast<uint32_t>(tensor.GetPhyAddr()));
    if constexpr (kFiller != kEmptier) {
      buffer.full = TPipe::current->AllocEventID(kFull);
      SetFlag<kFull>(buffer.full);
    }
    if (waiting_ == kMost) Abort("EnQue: the queue is full");
    queue_[(begin_ + waiting_++) % kMost] = static_cast<uint8_t>(&buffer - first_);
    return true;
  }
  template <typename T>
  inline LocalTensor<T> DeQue() {
    if (waiting_ == 0) Abort("DeQue: the queue is empty");
    TPipe::Buffer& buffer = first_[queue_[begin_]];
    begin_ = (begin_ + 1) % kMost;
    --waiting_;
    if constexpr (kFiller == kEmptier) {
      PipeBarrier<PIPE_V>();
    } else {
      WaitFlag<kFull>(buffer.full);
      TPipe::current->ReleaseEventID(kFull, buffer.full);
      buffer.full = -1;
    }
    return LocalTensor<T>(destination, buffer.address,
                          buffer.bytes / static_cast<uint32_t>(sizeof(T)) * kPacked<T>);
  }
  template <typename T>
  inline void FreeTensor(const LocalTensor<T>& tensor) {
    TPipe::Buffer& buffer = BufferOf(static_cast<uint32_t>(tensor.GetPhyAddr()));
    Cm384Ensure(buffer.taken, "FreeTensor: the tensor is free already");
    buffer.taken = false;
    if constexpr (kFiller == kEmptier) return PipeBarrier<PIPE_V>();
    buffer.free = TPipe::current->AllocEventID(kFree);
    buffer.on_free = kFree;
    SetFlag<kFree>(buffer.free);
  }
  CM384_INLINE bool VacantInQue() const { return waiting_ < count_; }
  CM384_INLINE bool HasIdleBuffer() const {
    for (uint32_t n = 0; n < count_; ++n) {
      if (!first_[n].taken) return true;
    }
    return false;
  }
  CM384_INLINE bool HasTensorInQue() const { return waiting_ != 0; }
  CM384_INLINE int32_t GetTensorCountInQue() const { return static_cast<int32_t>(waiting_); }
  inline void FreeAllEvent() {
    for (uint32_t n = 0; n < count_; ++n) TPipe::current->WaitFree(first_[n]);
  }
  CM384_INLINE void Place(TPipe::Buffer* first, uint32_t count) {
    first_ = first;
    count_ = count;
    next_ = begin_ = waiting_ = 0;
  }

 private:
  static constexpr uint32_t kMost = 8;
  static constexpr uint32_t kFiller = cm384::FillerOf(source);
  static constexpr uint32_t kEmptier = cm384::EmptierOf(destination);
  static constexpr HardEvent kFull = static_cast<HardEvent>(kFiller | kEmptier << 8);
  static constexpr HardEvent kFree = static_cast<HardEvent>(kEmptier | kFiller << 8);

  inline TPipe::Buffer& BufferOf(uint32_t address) const {
    for (uint32_t n = 0; n < count_; ++n) {
      if (address - first_[n].address < first_[n].bytes) return first_[n];
    }
    Abort("a tensor goes to a queue that it does not come from");
  }

  TPipe::Buffer* first_ = nullptr;
  uint32_t count_ = 0, next_ = 0, begin_ = 0, waiting_ = 0;
  uint8_t queue_[kMost] = {};
};
// `mask`: a number or a constant TQueConfig, which says how a queue is checked and laid out: nothing here.
template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position, position, depth> {};
struct TQueConfig {
  bool nd2nz = false, nz2nd = false, scmBlockGroup = false;
  uint32_t bufferLen = 0, bufferNumber = 0, consumerSize = 0;
  TPosition consumer[8] = {};
  bool enableStaticEvtId = false, enableLoopQueue = false;
};

// A flag between two pipes as an object.
template <pipe_t source, pipe_t destination>
class TQueSync {
 public:
  CM384_INLINE void SetFlag(TEventID id) { AscendC::SetFlag<kEvent>(id); }
  CM384_INLINE void WaitFlag(TEventID id) { AscendC::WaitFlag<kEvent>(id); }

 private:
  static constexpr HardEvent kEvent = static_cast<HardEvent>(source | destination << 8);
};

}  // namespace AscendC

CM384_INLINE AscendC::TPipe* GetTPipePtr() {
  return AscendC::TPipe::current;
}
