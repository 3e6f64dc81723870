// Small names that kernels use beside the calls: constants, rounding up, types and their comparison, names of
// the layer below. Functions give way to those of the kernel's own, as a pack makes them less special.
#pragma once

#include "cm384/kernel.h"
#include "standard/algorithm"
#include "standard/cmath"
#include "standard/limits"
#include "standard/tuple"
#include "standard/type_traits"

namespace AscendC {

// Of the machine; CUBE_MAX_SIZE and TOTAL_UB_SIZE are assumed.
inline constexpr int32_t BLOCK_CUBE = 16, DEFAULT_BLK_NUM = 8, DEFAULT_BLK_STRIDE = 1,
                         DEFAULT_REPEAT_STRIDE = 8, CUBE_MAX_SIZE = 256, BYTE_PER_C0 = 32,
                         TOTAL_UB_SIZE = 192 * 1024;

template <typename A, typename B>
struct IsSameType : std::is_same<A, B> {};
template <typename T>
using PrimT = T;
namespace Std {
using std::conditional;
using std::conditional_t;
using std::enable_if;
using std::enable_if_t;
using std::integral_constant;
using std::is_same;
using std::is_same_v;
template <typename A, typename B>
using IsSame = std::is_same<A, B>;
using std::bool_constant;
using std::false_type;
using std::forward;
using std::get;
template <typename A, typename B>
using is_base_of = std::bool_constant<std::is_base_of_v<A, B>>;
template <typename From, typename To>
using is_convertible = std::bool_constant<std::is_convertible_v<From, To>>;
using std::is_base_of_v;
using std::is_convertible_v;
using std::is_floating_point;
using std::is_floating_point_v;
using std::is_integral;
using std::is_integral_v;
using std::is_pointer;
using std::is_pointer_v;
using std::make_tuple;
using std::max;
using std::min;
using std::remove_cv;
using std::remove_cv_t;
using std::remove_reference;
using std::remove_reference_t;
using std::tie;
using std::true_type;
using std::tuple;
using std::tuple_element;
using std::tuple_element_t;
using std::tuple_size;
using std::tuple_size_v;
}  // namespace Std

// Sizes and names that communication kernels use undeclared; the first and the last are assumed.
inline constexpr uint32_t HCCL_MAX_RANK_NUM = 768;
inline constexpr uint32_t CACHE_LINE_SIZE = 64;
struct IbVerbsData {
  uint64_t reserved[8];
};

// Tensors behind one GM_ADDR, those of an input with DYNAMIC: an offset in bytes to the addresses, then of
// each the number of its dimensions (low half) and its index (high), then those; then an address a tensor
// (assumed).
template <typename T>
struct TensorDesc {
  CM384_INLINE void SetShapeAddr(uint64_t* address) { shape_ = address; }
  CM384_INLINE uint64_t GetDim() const { return dimensions_; }
  CM384_INLINE uint64_t GetIndex() const { return index_; }
  CM384_INLINE uint64_t GetShape(uint32_t n) const { return shape_[n]; }
  CM384_INLINE T* GetDataPtr() const { return data_; }
  CM384_INLINE GlobalTensor<T> GetDataObj() const {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(data_);
    return tensor;
  }
  uint64_t* shape_ = nullptr;
  uint64_t dimensions_ = 0, index_ = 0;
  T* data_ = nullptr;
};
class ListTensorDesc {
 public:
  ListTensorDesc() = default;
  CM384_INLINE explicit ListTensorDesc(__gm__ void* list, uint32_t = 0xffffffff, uint32_t = 0xffffffff) {
    Init(list);
  }
  CM384_INLINE void Init(__gm__ void* list, uint32_t = 0xffffffff, uint32_t = 0xffffffff) {
    list_ = static_cast<const uint64_t*>(list);
  }
  CM384_INLINE uint32_t GetSize() const {
    uint32_t count = 0;
    for (const uint64_t* at = list_ + 1; at < Addresses(); at += 1 + static_cast<uint32_t>(*at)) ++count;
    return count;
  }
  template <typename T>
  CM384_INLINE __gm__ T* GetDataPtr(uint32_t index) const {
    return reinterpret_cast<T*>(Addresses()[index]);
  }
  template <typename T>
  CM384_INLINE void GetDesc(TensorDesc<T>& desc, uint32_t index) const {
    const uint64_t* at = list_ + 1;
    for (uint32_t n = 0; n < index; ++n) at += 1 + static_cast<uint32_t>(*at);
    desc.dimensions_ = static_cast<uint32_t>(*at);
    desc.index_ = *at >> 32;
    for (uint32_t n = 0; desc.shape_ != nullptr && n < desc.dimensions_; ++n) desc.shape_[n] = at[1 + n];
    desc.data_ = GetDataPtr<T>(index);
  }

 private:
  CM384_INLINE const uint64_t* Addresses() const { return list_ + *list_ / 8; }
  const uint64_t* list_ = nullptr;
};

// Helpers of the vendor's own, which copied code calls: each names the public call in its place.
#define CM384_REFUSED_HELPER(Name, instead)                                          \
  template <typename... Types, typename... Arguments>                                \
  static void Name(const Arguments&...) {                                            \
    static_assert(sizeof...(Arguments) > 100,                                        \
                  "AscendCUtils::" #Name ": not there: docs/ascend-c.md: " instead); \
  }
class AscendCUtils {
 public:
  CM384_REFUSED_HELPER(SetMask, "SetVectorMask")
  CM384_REFUSED_HELPER(ResetMask, "ResetMask")
  CM384_REFUSED_HELPER(SetMaskCount, "SetMaskCount")
  CM384_REFUSED_HELPER(SetMaskNorm, "SetMaskNorm")
  CM384_REFUSED_HELPER(GetC0Size, "32 / sizeof(T)")
  CM384_REFUSED_HELPER(GetBitSize, "8 * sizeof(T)")
  CM384_REFUSED_HELPER(GetMaskFromCount, "a mask as a number")
};
#undef CM384_REFUSED_HELPER

#define CM384_ROUNDED(Name, expression)                                       \
  template <typename A, typename B, typename... None>                         \
  CM384_INLINE constexpr auto Name(A a, B b, None...) {                       \
    static_assert(sizeof...(None) == 0);                                      \
    using Common = decltype(a + b);                                           \
    const Common value = static_cast<Common>(a), by = static_cast<Common>(b); \
    return expression;                                                        \
  }
CM384_ROUNDED(DivCeil, (value + by - 1) / by)
CM384_ROUNDED(CeilDiv, (value + by - 1) / by)
CM384_ROUNDED(CeilDivision, (value + by - 1) / by)
CM384_ROUNDED(AlignUp, (value + by - 1) / by * by)
CM384_ROUNDED(Align, (value + by - 1) / by * by)
CM384_ROUNDED(CeilAlign, (value + by - 1) / by * by)
#undef CM384_ROUNDED

CM384_INLINE constexpr float ToFloat(bfloat16_t value) {
  return value;
}
CM384_INLINE constexpr bfloat16_t ToBfloat16(float value) {
  return bfloat16_t(value);
}
// On the scalar unit.
template <typename T, typename... None>
CM384_INLINE float sqrt(T value, None...) {
  static_assert(sizeof...(None) == 0);
  return std::sqrt(static_cast<float>(value));
}
template <typename T, typename... None>
CM384_INLINE constexpr auto abs(T value, None...) {
  static_assert(sizeof...(None) == 0);
  return value < 0 ? -value : value;
}

template <typename T, typename... None>
CM384_INLINE float ceil(T value, None...) {
  static_assert(sizeof...(None) == 0);
  return std::ceil(static_cast<float>(value));
}
template <typename T, typename... None>
CM384_INLINE float floor(T value, None...) {
  static_assert(sizeof...(None) == 0);
  return std::floor(static_cast<float>(value));
}

// The base of cross-core flags, which are the machine's own here.
CM384_INLINE void SetSyncBaseAddr(uint64_t) {}
// Older names of flags between cores.
template <pipe_t P, uint8_t modeId = 2>
CM384_INLINE void NotifyEvent(uint16_t flagId) {
  CrossCoreSetFlag<modeId, P>(flagId);
}
template <uint8_t modeId = 2>
CM384_INLINE void WaitEvent(uint16_t flagId) {
  CrossCoreWaitFlag(flagId);
}
// The system's part of a workspace has 0 B here: the buffer of the program file is the kernel's own.
CM384_INLINE void SetSysWorkspace(GM_ADDR) {}
CM384_INLINE void SetSysWorkspaceForce(GM_ADDR) {}
// What the cores of a group share.
CM384_INLINE __gm__ uint8_t* GetSysWorkSpacePtr() {
  return reinterpret_cast<uint8_t*>(LaunchOfProgram()->group_space);
}

// Numbers of the block's group, on its vector cores too.
CM384_INLINE int64_t GroupIndex() {
  return g_coreType == AIC ? GetBlockIdx() : GetBlockIdx() / GetTaskRatio();
}

}  // namespace AscendC

using AscendC::CACHE_LINE_SIZE;
using AscendC::ceil;
using AscendC::floor;
using AscendC::g_coreType;
using AscendC::HCCL_MAX_RANK_NUM;
using AscendC::IbVerbsData;
using AscendC::ListTensorDesc;
using AscendC::PRINTF;
using AscendC::SetSyncBaseAddr;
using AscendC::sqrt;
using AscendC::TensorDesc;
using float32_t = float;
using __bf16 = bfloat16_t;

#define ASSERT(...) ascendc_assert(__VA_ARGS__)

// An object, so that a kernel may have a variable of that name.
struct Cm384BlockIndex {
  CM384_INLINE operator int64_t() const { return AscendC::GroupIndex(); }
};
[[maybe_unused]] inline constexpr Cm384BlockIndex block_idx{};
CM384_INLINE int64_t get_block_idx() {
  return AscendC::GroupIndex();
}
CM384_INLINE int64_t get_block_num() {
  return AscendC::GetBlockNum();
}
CM384_INLINE int64_t get_subblockid() {
  return static_cast<int64_t>(cm384::read_csr<CM384_CSR_SUB_BLOCK>());
}
CM384_INLINE int64_t get_subblockdim() {
  return AscendC::GetSubBlockNum();
}
CM384_INLINE void set_ffts_base_addr(uint64_t) {}
// 1 | mode << 4 | flag << 8 (assumed).
template <typename... None>
CM384_INLINE void ffts_cross_core_sync(pipe_t pipe, uint64_t config, None...) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_CROSS_CORE_SET>(
      static_cast<uint64_t>(pipe) | (config >> 4 & 0x3) << 8 | (config >> 8 & 0xf) << 16);
}
CM384_INLINE void wait_flag_dev(int64_t flag) {
  AscendC::CrossCoreWaitFlag(static_cast<uint16_t>(flag));
}
CM384_INLINE uint64_t getFFTSMsg(uint16_t mode, uint16_t flag) {
  return 1u | static_cast<uint64_t>(mode) << 4 | static_cast<uint64_t>(flag) << 8;
}
