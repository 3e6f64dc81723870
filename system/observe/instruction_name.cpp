#include "system/observe/instruction_name.h"

#include <array>
#include <span>

#include "firmware/abi/isa.h"

namespace cm384::observe {
namespace {

constexpr std::array<const char*, 28> kVectorNames{
    "VADD", "VSUB",  "VMUL",  "VDIV",  "VMAX",  "VMIN",   "VADDS", "VMULS", "VMAXS", "VMINS",
    "VABS", "VRELU", "VEXP",  "VLN",   "VSQRT", "VRSQRT", "VREC",  "VDUP",  "VCOPY", "VAND",
    "VOR",  "VNOT",  "VMADD", "VAXPY", "VSHLS", "VSHRS",  "VSHRU", "VINDEX"};
constexpr std::array<const char*, 27> kReduceNames{
    "VCADD",    "VCMAX",    "VCMIN",    "VCGADD",   "VCGMAX",  "VCGMIN",       "VCMP_EQ",
    "VCMP_NE",  "VCMP_LT",  "VCMP_LE",  "VCMP_GT",  "VCMP_GE", "VCMPS_EQ",     "VCMPS_NE",
    "VCMPS_LT", "VCMPS_LE", "VCMPS_GT", "VCMPS_GE", "VSEL",    "VGATHER_MASK", "VBRCB",
    "VGATHER",  "VSELS",    "VCPADD",   "VSORT32",  "VMERGE",  "VTRANSPOSE"};
constexpr std::array<const char*, 12> kCubeNames{
    "LOAD_L0A", "LOAD_L0B",    "LOAD_L0B_TRANSPOSED", "LOAD_BIAS",   "LOAD_FIXPIPE", "MMAD",
    "FIXPIPE",  "LOAD_2D_L0A", "LOAD_2D_L0B",         "LOAD_3D_L0A", "FILL",         "FIXPIPE_TO_L1"};
constexpr std::array<const char*, 7> kCopyNames{
    "MOV_GM_TO_UB", "MOV_UB_TO_GM",       "MOV_UB_TO_GM_ADD_S32", "MOV_UB_TO_GM_ADD_F32",
    "MOV_GM_TO_L1", "MOV_GM_TO_L1_ND2NZ", "MOV_L1_TO_GM"};
constexpr std::array<const char*, 13> kSyncNames{
    "SET_FLAG", "WAIT_FLAG",  "PIPE_BARRIER", "CROSS_CORE_SET", "CROSS_CORE_WAIT",
    "SET_MASK", "SET_STRIDE", "DCCI",         "POLL_MARK",      "SET_L2_ALLOCATE",
    "PHASE",    "SET_ATOMIC", "SET_PADDING"};

const char* named(std::span<const char* const> names, std::uint8_t operation, const char* other) {
  return operation < names.size() ? names[operation] : other;
}

}  // namespace

const char* name_of(const npu::PipeInstruction& in) {
  switch (in.instruction_class) {
    case CM384_CLASS_SYNC:
      return named(kSyncNames, in.operation, "sync");
    case CM384_CLASS_MTE:
      // An atomic mode stands in the number of a copy to memory.
      return named(kCopyNames, in.operation, "MOV_UB_TO_GM");
    case CM384_CLASS_CUBE:
      return named(kCubeNames, in.operation, "FIXPIPE");
    case CM384_CLASS_VECTOR:
      return named(kVectorNames, in.operation, "vector");
    case CM384_CLASS_REDUCE:
      return named(kReduceNames, in.operation, "reduce");
    default:
      return "VCONV";
  }
}

const char* type_of(const npu::PipeInstruction& in) {
  static constexpr std::array<const char*, 4> kTypes{"float", "half", "int32_t", "int16_t"};
  static constexpr std::array<const char*, 4> kCubeTypes{"int8_t", "half", "bfloat16_t", "float"};
  switch (in.instruction_class) {
    case CM384_CLASS_VECTOR:
    case CM384_CLASS_REDUCE:
      return kTypes[in.type & 3u];
    case CM384_CLASS_CUBE:
      return kCubeTypes[in.type & 3u];
    default:
      return "";
  }
}

}  // namespace cm384::observe
