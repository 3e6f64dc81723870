// A layer's decode attention on one die: what stands before it, attention over the compressed KV cache,
// output projection.
#pragma once

#include "workloads/kernels/cube_run.h"
#include "workloads/operators/sparse/sparse.h"

namespace cm384::studies {

struct MlaSetting : operators::MlaSetting, CubeSetting {
  // Which stages run, one launch each; a later one works on what an earlier one left.
  bool prolog = false, attention = true, output = false;
  // Tokens that an indexer of so many heads chooses, whose scores and choice stand before the attention; 0:
  // attention sees all tokens.
  std::uint32_t chosen = 0, index_heads = 64;

  operators::IndexSetting index() const { return {kv_lens, queries, index_heads, chosen}; }
};

struct AttentionReading : CubeReading {
  double kv_bytes = 0;  // of the cache, each token once
  std::uint32_t block_tokens = 0, splits = 0;
};

struct MlaReading {
  CubeReading prolog, output;                // empty where the stage did not run
  CubeReading index_prolog, scores, choice;  // of an indexer
  AttentionReading attention;
};

MlaReading measure_mla(const StudyContext& context, const MlaSetting& setting, SimulatorCounts& counts);

}  // namespace cm384::studies
