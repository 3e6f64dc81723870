// LocalTensor: a range of the core's UBuffer, in images of cube cores of the buffer that its position names.
// GlobalTensor: a range of global memory.
#pragma once

#include "cm384/types.h"

namespace AscendC {

// A tensor's TPosition. Tensors of vector cores have one buffer and do not keep it.
#ifdef __DAV_C220_CUBE__
class LogicPosition {
 public:
  LogicPosition() = default;
  CM384_INLINE constexpr LogicPosition(TPosition position) : position_(position) {}
  template <typename T>
  CM384_INLINE constexpr void operator=(const T& position) {
    position_ = static_cast<TPosition>(position);
  }
  CM384_INLINE constexpr TPosition Get() const { return position_; }

 private:
  TPosition position_ = TPosition::VECCALC;
};
#else
struct LogicPosition {
  LogicPosition() = default;
  CM384_INLINE constexpr LogicPosition(TPosition) {}
  template <typename T>
  CM384_INLINE constexpr void operator=(const T&) const {}
  CM384_INLINE static constexpr TPosition Get() { return TPosition::VECCALC; }
};
#endif
// A field that kernels set and nothing looks at.
struct Unkept {
  CM384_INLINE constexpr void operator=(uint64_t) const {}
};
// Where a tensor stands in the core's local memory. `dataLen`: bytes; a tensor counts its elements itself.
struct TBuffAddr {
  uint32_t bufferAddr = 0;  // offset
  [[no_unique_address]] LogicPosition logicPos{};
  [[no_unique_address]] Unkept dataLen{};
};

// A shape, for DumpTensor and SetShapeInfo, which print and check nothing here.
enum class DataFormat : uint8_t { ND = 0, NZ, NCHW, NC1HWC0, NHWC };
struct ShapeInfo {
  ShapeInfo() = default;
  CM384_INLINE ShapeInfo(uint8_t dimensions, const uint32_t* of, uint8_t originalDimensions,
                         const uint32_t* original, DataFormat format)
      : shapeDim(dimensions), originalShapeDim(originalDimensions), dataFormat(format) {
    for (uint8_t n = 0; n < dimensions && n < 8; ++n) shape[n] = of[n];
    for (uint8_t n = 0; n < originalDimensions && n < 8; ++n) originalShape[n] = original[n];
  }
  CM384_INLINE ShapeInfo(uint8_t dimensions, const uint32_t* of, DataFormat format = DataFormat::ND)
      : ShapeInfo(dimensions, of, dimensions, of, format) {}
  uint8_t shapeDim = 0;
  uint8_t originalShapeDim = 0;
  uint32_t shape[8] = {};
  uint32_t originalShape[8] = {};
  DataFormat dataFormat = DataFormat::ND;
};
CM384_INLINE int GetShapeSize(const ShapeInfo& info) {
  int size = 1;
  for (uint8_t n = 0; n < info.shapeDim; ++n) size *= static_cast<int>(info.shape[n]);
  return size;
}

template <typename T>
class LocalTensor {
 public:
  using PrimType = T;
  LocalTensor() = default;
  // `address`: offset in the UBuffer, a multiple of 32 B for vector and MTE use. `count`: elements.
  CM384_INLINE LocalTensor(TPosition position, uint32_t address, uint32_t count)
      : address_{address, position}, count_(count) {}
  CM384_INLINE explicit LocalTensor(uint32_t address, uint32_t count = 0)
      : address_{address}, count_(count) {}

  // Plain scalar load and store. They order with the pipes by flags alone.
  CM384_INLINE T GetValue(uint32_t index) const {
    static_assert(kPacked<T> == 1, "GetValue: of int4b_t not there: docs/ascend-c.md");
    return data()[index];
  }
  template <typename U>
  CM384_INLINE void SetValue(uint32_t index, U value) const {
    static_assert(kPacked<T> == 1, "SetValue: of int4b_t not there: docs/ascend-c.md");
    data()[index] = static_cast<T>(value);
  }
  CM384_INLINE T& operator()(uint32_t index) const { return data()[index]; }
  CM384_INLINE LocalTensor operator[](uint32_t offset) const {
    return LocalTensor(GetPosition(),
                       address_.bufferAddr + offset * static_cast<uint32_t>(sizeof(T)) / kPacked<T>,
                       count_ - offset);
  }
  template <typename U>
  CM384_INLINE LocalTensor<U> ReinterpretCast() const {
    return LocalTensor<U>(GetPosition(), address_.bufferAddr,
                          static_cast<uint32_t>(count_ * sizeof(T) * kPacked<U> / (sizeof(U) * kPacked<T>)));
  }
  CM384_INLINE uint32_t GetSize() const { return count_; }
  CM384_INLINE void SetSize(uint32_t count) { count_ = count; }
  CM384_INLINE uint64_t GetPhyAddr() const { return address_.bufferAddr; }
  CM384_INLINE uint64_t GetPhyAddr(uint32_t offset) const {
    return address_.bufferAddr + offset * sizeof(T) / kPacked<T>;
  }
  CM384_INLINE TPosition GetPosition() const { return address_.logicPos.Get(); }
  CM384_INLINE void SetAddr(const TBuffAddr& address) { address_ = address; }

  CM384_INLINE uint32_t GetLength() const { return static_cast<uint32_t>(count_ * sizeof(T) / kPacked<T>); }
  CM384_INLINE void SetBufferLen(uint32_t count) { count_ = count; }
  // From `offset` elements of another one on.
  template <typename U>
  CM384_INLINE void SetAddrWithOffset(const LocalTensor<U>& other, uint32_t offset) {
    address_ = other.address_;
    address_.bufferAddr += offset * static_cast<uint32_t>(sizeof(U));
  }
  // Kernels name their tensors; nothing looks at it.
  CM384_INLINE void SetUserTag(int32_t) const {}
  CM384_INLINE static int32_t GetUserTag() { return 0; }
  CM384_INLINE void SetShapeInfo(const ShapeInfo&) const {}
  // `dst = a + b`: the result goes into this tensor, where `dst = a` only means another one.
  template <typename Expression>
  requires(requires(const Expression& e, const LocalTensor& t) { e.To(t); }) CM384_INLINE const LocalTensor&
  operator=(const Expression& expression) {
    expression.To(*this);
    return *this;
  }

  TBuffAddr address_;  // public, as kernels set it

 private:
  CM384_INLINE T* data() const { return reinterpret_cast<T*>(CM384_UBUFFER_BASE + address_.bufferAddr); }

  uint32_t count_ = 0;
};

template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;
  CM384_INLINE void SetGlobalBuffer(__gm__ T* buffer, uint64_t count = 0) {
    address_ = reinterpret_cast<uint64_t>(buffer);
    count_ = count;
  }
  // Scalar accesses go through the data cache, which is not coherent with the pipes and other cores: see
  // DataCacheCleanAndInvalid.
  CM384_INLINE T GetValue(uint64_t index) const { return reinterpret_cast<const T*>(address_)[index]; }
  CM384_INLINE void SetValue(uint64_t index, T value) const { reinterpret_cast<T*>(address_)[index] = value; }
  CM384_INLINE T& operator()(uint64_t index) const { return reinterpret_cast<T*>(address_)[index]; }
  CM384_INLINE GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor part = *this;
    part.address_ += offset * sizeof(T) / kPacked<T>;
    return part;
  }
  CM384_INLINE uint64_t GetSize() const { return count_; }
  CM384_INLINE __gm__ T* GetPhyAddr(uint64_t offset = 0) const {
    return reinterpret_cast<T*>(address_) + offset;
  }
  CM384_INLINE uint64_t address() const { return address_; }
  // Whether copies of this tensor allocate in L2.
  template <CacheRwMode = CacheRwMode::RW>
  CM384_INLINE void SetL2CacheHint(CacheMode mode) {
    allocate_ = mode == CacheMode::CACHE_MODE_NORMAL;
  }
  CM384_INLINE bool allocate() const { return allocate_; }
  CM384_INLINE void SetShapeInfo(const ShapeInfo&) const {}

 private:
  uint64_t address_ = 0;
  uint64_t count_ = 0;
  bool allocate_ = true;
};

// What so many elements take.
template <typename T>
CM384_INLINE constexpr uint64_t BytesOf(uint64_t elements) {
  return elements * sizeof(T) / kPacked<T>;
}

// A GM address as a tensor.
template <typename T>
CM384_INLINE GlobalTensor<T> GlobalAt(uint64_t address) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<T*>(address));
  return tensor;
}

enum class Hardware { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF };

// Hands out a buffer from its start, in order, 32 B aligned.
template <Hardware H = Hardware::UB>
class LocalMemAllocator {
 public:
  template <typename T, uint32_t Count>
  CM384_INLINE LocalTensor<T> Alloc() {
    return Take<T>(Count);
  }
  template <TPosition P, typename T>
  CM384_INLINE LocalTensor<T> Alloc(uint32_t count) {
    return Take<T>(count);
  }
  template <TPosition P, typename T, uint32_t Count>
  CM384_INLINE LocalTensor<T> Alloc() {
    return Take<T>(Count);
  }
  CM384_INLINE uint32_t GetCurAddr() const { return next_; }

 private:
  static_assert(H != Hardware::GM, "LocalMemAllocator: of local memory");
  static constexpr TPosition kPosition = H == Hardware::L1       ? TPosition::A1
                                         : H == Hardware::L0A    ? TPosition::A2
                                         : H == Hardware::L0B    ? TPosition::B2
                                         : H == Hardware::L0C    ? TPosition::CO1
                                         : H == Hardware::BIAS   ? TPosition::C2
                                         : H == Hardware::FIXBUF ? TPosition::C2PIPE2GM
                                                                 : TPosition::VECCALC;
  template <typename T>
  CM384_INLINE LocalTensor<T> Take(uint32_t count) {
    const LocalTensor<T> tensor(kPosition, next_, count);
    next_ += (count * static_cast<uint32_t>(sizeof(T)) / kPacked<T> + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE *
             ONE_BLK_SIZE;
    return tensor;
  }
  uint32_t next_ = 0;
};

}  // namespace AscendC
