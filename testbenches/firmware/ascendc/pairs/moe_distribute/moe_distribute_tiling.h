#ifndef MOE_DISTRIBUTE_TILING_H
#define MOE_DISTRIBUTE_TILING_H

#include "kernel_tiling/kernel_tiling.h"

struct MoeDistributeInfo {
  uint32_t epWorldSize;
  uint32_t tpWorldSize;
  uint32_t epRankId;
  uint32_t tpRankId;
  uint32_t moeExpertNum;  // of all EP ranks
  uint32_t globalBs;      // the most tokens of a rank, times epWorldSize
  uint32_t bs;            // tokens of this rank
  uint32_t k;
  uint32_t h;
  uint32_t aivNum;
  uint64_t totalUbSize;
};
struct MoeDistributeDispatchTilingData {
  Mc2InitTiling mc2InitTiling;
  Mc2CcTiling mc2CcTiling1;
  Mc2CcTiling mc2CcTiling2;
  MoeDistributeInfo moeDistributeDispatchInfo;
};
struct MoeDistributeCombineTilingData {
  Mc2InitTiling mc2InitTiling;
  Mc2CcTiling mc2CcTiling1;
  Mc2CcTiling mc2CcTiling2;
  MoeDistributeInfo moeDistributeCombineInfo;
};

#endif
