// Calls of Ascend C that are not there: each ends the build by its name. None of them is in the kernels whose
// calls docs/ascend-c.md lists as supported.
#pragma once

#include "cm384/mask.h"

namespace AscendC {

#define CM384_REFUSED(Name)                                                           \
  template <typename... Types, typename... Arguments>                                 \
  inline void Name(const Arguments&...) {                                             \
    static_assert(sizeof...(Arguments) > 100, #Name ": not there: docs/ascend-c.md"); \
  }
CM384_REFUSED(Ceils)
CM384_REFUSED(GetCmpMask)
CM384_REFUSED(SetCmpMask)
CM384_REFUSED(SetAtomicType)
CM384_REFUSED(LoadDataWithSparse)
CM384_REFUSED(MmadWithSparse)
CM384_REFUSED(BroadCastVecToMM)
CM384_REFUSED(SoftmaxFlashV3)
CM384_REFUSED(Lgamma)
CM384_REFUSED(Digamma)
CM384_REFUSED(BilinearInterpolation)
CM384_REFUSED(ReduceProd)
CM384_REFUSED(ReduceXorSum)
CM384_REFUSED(GetReduceRepeatSumSpr)
CM384_REFUSED(GetReduceRepeatMaxMinSpr)
#undef CM384_REFUSED
// Calls of other chips.
#define CM384_OF_OTHERS(Name)                                                         \
  template <typename... Types, typename... Arguments>                                 \
  inline void Name(const Arguments&...) {                                             \
    static_assert(sizeof...(Arguments) > 100,                                         \
                  #Name ": not there: docs/ascend-c.md: this chip does not have it"); \
  }
CM384_OF_OTHERS(Scatter)
CM384_OF_OTHERS(MrgSort4)
CM384_OF_OTHERS(RpSort16)
CM384_OF_OTHERS(ProposalConcat)
CM384_OF_OTHERS(ProposalExtract)
CM384_OF_OTHERS(Prelu)
CM384_OF_OTHERS(Where)
CM384_OF_OTHERS(Clamp)
#undef CM384_OF_OTHERS

template <typename T, typename Mask>
inline void Compare(const LocalTensor<T>&, const LocalTensor<T>&, CMPMODE, Mask, const BinaryRepeatParams&) {
  static_assert(sizeof(T) == 0, "Compare: to a tensor alone: docs/ascend-c.md");
}

#define CM384_REFUSED_TYPE(Name)                                          \
  template <typename T>                                                   \
  struct Name {                                                           \
    static_assert(sizeof(T) == 0, #Name ": not there: docs/ascend-c.md"); \
  }
CM384_REFUSED_TYPE(LoadData3DParamsV1);
#undef CM384_REFUSED_TYPE

}  // namespace AscendC
