// A layer's decode attention on one die: what stands before it, attention over the compressed KV cache,
// output projection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/mla.h"
#include "studies/cube_run.h"

namespace cm384::studies {

struct MlaSetting {
  std::vector<std::uint32_t> kv_lens;  // a sequence: tokens that query 0 sees, the newest inside
  std::uint32_t queries = 1;           // 2 with one token of multi-token prediction
  std::uint32_t heads = 128;
  int blocks = 24;
  bool full = false;
  // Which stages run, one launch each; a later one works on what an earlier one left.
  bool prolog = false, attention = true, output = false;
  std::uint32_t hidden = 7168, q_lora = 1536;  // multiples of 64

  std::uint32_t tokens() const { return static_cast<std::uint32_t>(kv_lens.size()) * queries; }
};

struct AttentionReading : CubeReading {
  double kv_bytes = 0;  // of the cache, each token once
  std::uint32_t block_tokens = 0, splits = 0;
};

struct MlaReading {
  CubeReading prolog, output;  // empty where the stage did not run
  AttentionReading attention;
};

MlaReading measure_mla(const StudyContext& context, const MlaSetting& setting, SimulatorCounts& counts);

// How a KV block passes through L1.
struct KvBlocking {
  std::uint32_t block_tokens = 0, chunks = 0, slots = 0;  // firmware/abi/mla.h
};
// Three KV blocks in L1, so that MTE2 never waits for the vector cores, where such a block is large enough
// for the fixpipe, which writes a row of products a head and block; else the largest block of which two and a
// third fit.
KvBlocking choose_blocking(std::uint32_t heads);
// Into how many parts every sequence's tokens go, so that the busiest block has the least of them.
std::uint32_t choose_splits(std::uint32_t pairs, std::uint32_t blocks, std::uint32_t most);

}  // namespace cm384::studies
