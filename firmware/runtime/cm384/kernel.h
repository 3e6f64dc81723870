// A kernel's frame as Ascend C spells it: kind, tiling, communication context, small helpers.
#pragma once

#include "cm384/print.h"
#include "cm384/sync.h"
#include "firmware/abi/communication.h"

// Which kind of core this is. A kernel is built for each kind; one image of both asks the core.
#if defined(__DAV_C220_CUBE__)
#define ASCEND_IS_AIV (false)
#define ASCEND_IS_AIC (true)
#elif defined(__DAV_C220_VEC__)
#define ASCEND_IS_AIV (true)
#define ASCEND_IS_AIC (false)
#else
#define ASCEND_IS_AIV (cm384::read_csr<CM384_CSR_CORE_KIND>() == 0)
#define ASCEND_IS_AIC (cm384::read_csr<CM384_CSR_CORE_KIND>() == 1)
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

// Values of ORIG_DTYPE_*: any that differ.
#define DT_FLOAT 0
#define DT_FLOAT16 1
#define DT_INT8 2
#define DT_INT32 3
#define DT_UINT8 4
#define DT_INT16 6
#define DT_UINT16 7
#define DT_UINT32 8
#define DT_INT64 9
#define DT_UINT64 10
#define DT_DOUBLE 11
#define DT_BOOL 12
#define DT_BF16 27
#define DT_INT4 29
// Of other chips.
#define DT_HIFLOAT8 34
#define DT_FLOAT8_E5M2 35
#define DT_FLOAT8_E4M3FN 36
#define DT_FLOAT8_E8M0 37
#define DT_FLOAT4_E2M1 40
#define DT_FLOAT4_E1M2 41
// Values of FORMAT_*.
#define FORMAT_NCHW 0
#define FORMAT_NHWC 1
#define FORMAT_ND 2
#define FORMAT_NC1HWC0 3
#define FORMAT_FRACTAL_Z 4
#define FORMAT_HWCN 16
#define FORMAT_NDHWC 27
#define FORMAT_FRACTAL_NZ 29
#define FORMAT_NCDHW 30
#define FORMAT_NDC1HWC0 32
#define FORMAT_FRACTAL_Z_3D 33

#define REGISTER_TILING_DEFAULT(Struct) using Cm384TilingDefault [[maybe_unused]] = Struct
#define GET_TILING_DATA_WITH_STRUCT(Struct, name, address) \
  Struct name;                                             \
  AscendC::CopyTiling(&name, address, sizeof(Struct))
// What `kernel build` has found: the structure of a template's combination, or the project's.
#ifndef CM384_TILING_DEFAULT
#define CM384_TILING_DEFAULT Cm384TilingDefault
#endif
#define GET_TILING_DATA(name, address) GET_TILING_DATA_WITH_STRUCT(CM384_TILING_DEFAULT, name, address)
#ifdef CM384_TILING_KEY
#define TILING_KEY_IS(key) (static_cast<uint64_t>(CM384_TILING_KEY) == static_cast<uint64_t>(key))
#else
#define TILING_KEY_IS(key) (AscendC::LaunchOfProgram()->tiling_key == static_cast<uint64_t>(key))
#endif
#define GET_TILING_DATA_PTR_WITH_STRUCT(Struct, name, address) \
  Struct cm384_##name;                                         \
  AscendC::CopyTiling(&cm384_##name, address, sizeof(Struct)); \
  __tiling_data_ptr__ Struct* name = &cm384_##name
#define GET_TILING_DATA_MEMBER(Struct, member, name, address) \
  decltype(Struct::member) name;                              \
  AscendC::CopyTiling(&name, (address) + __builtin_offsetof(Struct, member), sizeof(name))
#define __tiling_data_ptr__
#define REGISTER_NONE_TILING
#define TILING_KEY_VAR (AscendC::LaunchOfProgram()->tiling_key)
#define REGISTER_TILING_FOR_TILINGKEY(expression, Struct)
// What a launch of the kernel starts, as symbols of the image: `kernel build` and `run program` read them.
#define KERNEL_TASK_TYPE_DEFAULT(type) \
  asm volatile(".globl cm384_kernel_type\n\t.set cm384_kernel_type, %0" : : "i"(static_cast<int>(type)))
#define KERNEL_TASK_TYPE(key, type)                                           \
  asm volatile(".globl cm384_kernel_type_%0\n\t.set cm384_kernel_type_%0, %1" \
               :                                                              \
               : "i"(static_cast<unsigned long>(key)), "i"(static_cast<int>(type)))
// The kernel that `kernel build` makes of a template: a jump to the instance that is named. Its parameters
// are looked up by the symbol.
#define CM384_TEMPLATE_KERNEL(name, ...)                                                         \
  extern "C" __global__ __attribute__((naked)) void cm384_instance() __asm__(#name);             \
  extern "C" __global__ __attribute__((naked)) void cm384_instance() {                           \
    asm volatile(".globl cm384_entry\n\t.set cm384_entry, %0\n\ttail %0" : : "i"(&__VA_ARGS__)); \
  }
// The call of a kernel whose arguments are not all words, by their types: `kernel build` adds it to the
// source where CM384_NEEDS_TYPES says so, and the runtime calls it in the kernel's place.
#define CM384_TYPED_KERNEL(...)                                   \
  extern "C" __attribute__((used)) void cm384_typed_entry() {     \
    asm volatile(                                                 \
        ".globl cm384_float_arguments\n\t"                        \
        ".set cm384_float_arguments, %0"                          \
        :                                                         \
        : "i"(AscendC::Cm384TypedKernel<&__VA_ARGS__>::kFloats)); \
    AscendC::Cm384TypedKernel<&__VA_ARGS__>::Call();              \
  }
#define CM384_NEEDS_TYPES(...) \
  static_assert(!AscendC::Cm384TypedKernel<&__VA_ARGS__>::kNeeded, "cm384: arguments have types");
enum KernelMetaType {
  KERNEL_TYPE_AIV_ONLY,
  KERNEL_TYPE_AIC_ONLY,
  KERNEL_TYPE_MIX_AIV_1_0,
  KERNEL_TYPE_MIX_AIC_1_0,
  KERNEL_TYPE_MIX_AIC_1_1,
  KERNEL_TYPE_MIX_AIC_1_2,
  KERNEL_TYPE_AICORE,
  KERNEL_TYPE_VECTORCORE,
  KERNEL_TYPE_MIX_AICORE,
  KERNEL_TYPE_MIX_VECTOR_CORE,
  KERNEL_TYPE_MAX
};

// Of the tiling data of communication kernels: their host side fills them, kernels do not look inside.
struct Mc2InitTiling {
  uint8_t reserved[64];
};
struct Mc2CcTiling {
  uint8_t reserved[280];
};

namespace AscendC {

// Tiling data is the host's: scalar loads through the data cache.
inline void CopyTiling(void* to, GM_ADDR from, uint32_t bytes) {
  auto* out = static_cast<uint8_t*>(to);
  uint32_t done = 0;
  for (; done + 4 <= bytes; done += 4)
    __builtin_memcpy(out + done, __builtin_assume_aligned(from + done, 4), 4);
  for (; done < bytes; ++done) out[done] = from[done];
}

// An argument from its word of the launch's block: a number's bits, or the address of a structure.
template <typename T>
CM384_INLINE T Cm384ArgumentOf(uint64_t word) {
  static_assert(!is_same_v<T, double>, "an argument of double: cores have float alone: docs/ascend-c.md");
  if constexpr (is_same_v<T, float>) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(word));
  } else if constexpr (is_same_v<T, half> || is_same_v<T, bfloat16_t>) {
    T made;
    made.bits = static_cast<uint16_t>(word);
    return made;
  } else if constexpr (__is_class(T) || __is_union(T)) {
    T made;
    CopyTiling(&made, reinterpret_cast<GM_ADDR>(word), sizeof(T));
    return made;
  } else {
    return (T)word;  // an address or a whole number
  }
}
template <typename T>
inline constexpr bool kInWords =
    !is_same_v<T, float> && !is_same_v<T, double> &&
    (is_same_v<T, half> || is_same_v<T, bfloat16_t> || !(__is_class(T) || __is_union(T)) || sizeof(T) > 16);
template <size_t... numbers>
struct Cm384Numbers {};
template <auto kernel>
struct Cm384TypedKernel;
template <typename... Types, void (*kernel)(Types...)>
struct Cm384TypedKernel<kernel> {
  // What registers and the stack hold as words is passed as it stands; the rest by the compiler.
  static constexpr bool kNeeded = !(kInWords<Types> && ...);
  static constexpr uint64_t FloatsOf() {
    uint64_t floats = 0, bit = 1;
    ((floats |= is_same_v<Types, float> ? bit : 0, bit <<= 1), ...);
    return floats;
  }
  static constexpr uint64_t kFloats = FloatsOf();  // bit n: argument n is one
  template <size_t... numbers>
  CM384_INLINE static void Call(Cm384Numbers<numbers...>) {
    kernel(Cm384ArgumentOf<Types>(LaunchOfProgram()->argument[numbers])...);
  }
  CM384_INLINE static void Call() { Call(Cm384Numbers<__integer_pack(sizeof...(Types))...>()); }
};

inline constexpr uint32_t HCCL_GROUP_ID_0 = 0;
// What the host has laid out for the kernel's communication group; ends the run where there is none.
template <uint32_t group>
CM384_INLINE __gm__ uint8_t* GetHcclContext() {
  static_assert(group < CM384_PROGRAM_CONTEXTS);
  return reinterpret_cast<uint8_t*>(LaunchOfProgram()->context[group]);
}
// Quotient, rounded up. Like the two below it gives way to a function of the kernel's own.
template <typename A, typename B, typename... None>
requires(ConvertsTo<A, float>) CM384_INLINE constexpr auto Ceil(A value, B by, None...) {
  static_assert(sizeof...(None) == 0);
  return (value + by - 1) / by;
}
template <typename A, typename B, typename... None>
CM384_INLINE constexpr auto min(A a, B b, None...) {
  static_assert(sizeof...(None) == 0);
  return a < b ? a : b;
}
template <typename A, typename B, typename... None>
CM384_INLINE constexpr auto max(A a, B b, None...) {
  static_assert(sizeof...(None) == 0);
  return a > b ? a : b;
}

// Kinds of cores.
inline constexpr int AIC = 1, AIV = 2, MIX = 3;
#ifdef __DAV_C220_CUBE__
inline constexpr int g_coreType = AIC;
#else
inline constexpr int g_coreType = AIV;
#endif
// Vector cores of a block, on a vector core; 1 on a cube core.
CM384_INLINE int64_t GetTaskRatio() {
  return g_coreType == AIC ? 1 : static_cast<int64_t>(LaunchOfProgram()->vector_cores);
}
CM384_INLINE int64_t GetTaskRation() {
  return GetTaskRatio();
}
CM384_INLINE int64_t GetSubBlockNum() {
  return GetTaskRatio();
}
CM384_INLINE GM_ADDR GetUserWorkspace(GM_ADDR workspace) {
  return workspace;
}
// Instructions are fetched when they are run; nothing is fetched ahead.
CM384_INLINE void ICachePreLoad(int64_t) {}
CM384_INLINE int64_t GetICachePreloadStatus() {
  return 0;
}
// Of the instruction that follows the call.
CM384_INLINE int64_t GetProgramCounter() {
  int64_t at;
  asm volatile("auipc %0, 0" : "=r"(at));
  return at;
}
// 2201: the part's architecture.
CM384_INLINE void GetArchVersion(uint32_t& version) {
  version = 2201;
}
// Nothing is dumped.
template <typename Tensor>
CM384_INLINE void DumpTensor(const Tensor&, uint32_t, uint32_t) {}
template <typename Tensor>
CM384_INLINE void DumpTensor(const Tensor&, uint32_t, uint32_t, const ShapeInfo&) {}
CM384_INLINE void PrintTimeStamp(uint32_t) {}
CM384_INLINE void MetricsProfStart() {}
CM384_INLINE void MetricsProfStop() {}
template <typename Tensor>
CM384_INLINE void DumpAccChkPoint(const Tensor&, uint32_t, uint32_t, uint32_t) {}

}  // namespace AscendC

// An assertion that does not hold ends the run.
#define CM384_TEXT_OF(x) CM384_TEXT_OF_(x)
#define CM384_TEXT_OF_(x) #x
#ifndef assert
#define assert(condition, ...) \
  ((condition) ? (void)0 : AscendC::Abort(__FILE__ ":" CM384_TEXT_OF(__LINE__) ": not so: " #condition))
#endif
#define ascendc_assert(...) assert(__VA_ARGS__)
#define ASCENDC_ASSERT(condition, ...) assert(condition)

// Names of the layer below Ascend C that kernels use beside it.
CM384_INLINE constexpr uint64_t get_imm(uint64_t value) {
  return value;
}
enum dcci_cache_line { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum dcci_target { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
CM384_INLINE void dcci(const volatile void* address, dcci_cache_line whole, dcci_target = CACHELINE_OUT) {
  AscendC::dcci(reinterpret_cast<uint64_t>(address), whole == SINGLE_CACHE_LINE ? 1 : 0);
}
enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };
CM384_INLINE void dsb(mem_dsb_t) {
  asm volatile("fence" : : : "memory");
}
CM384_INLINE void icache_preload(int64_t) {}
using cache_line_t = dcci_cache_line;
using dcci_dst_t = dcci_target;
#define TRACE_START(id)
#define TRACE_STOP(id)
CM384_INLINE void set_flag(pipe_t source, pipe_t destination, int32_t id) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_FLAG>(static_cast<uint64_t>(source) |
                                                            static_cast<uint64_t>(destination) << 8 |
                                                            static_cast<uint64_t>(id) << 16);
}
CM384_INLINE void wait_flag(pipe_t source, pipe_t destination, int32_t id) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_WAIT_FLAG>(static_cast<uint64_t>(source) |
                                                             static_cast<uint64_t>(destination) << 8 |
                                                             static_cast<uint64_t>(id) << 16);
}
CM384_INLINE void pipe_barrier(pipe_t pipe) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_PIPE_BARRIER>(pipe);
}
