// Decode attention over a compressed KV cache on one die.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/mla.h"
#include "testbenches/studies/gemm.h"

namespace cm384::studies {

struct MlaSetting {
  std::vector<std::uint32_t> kv_lens;  // a sequence
  std::uint32_t queries = 1;           // 2 with one token of multi-token prediction
  std::uint32_t heads = 128;
  int blocks = 24;
  bool full = false;
};

struct MlaReading {
  double task_us = 0, kernel_us = 0;
  double operations = 0;  // two a multiplication with its addition
  double kv_bytes = 0;    // of the cache, each token once
  double hbm_bytes = 0;
  double l2_hit_rate = 0;
  std::uint32_t block_tokens = 0, splits = 0;
  std::vector<PipeShare> pipes;
  std::optional<bool> correct;
  std::string first_difference;
};

MlaReading measure_mla(const StudyContext& context, const MlaSetting& setting, SimulatorCounts& counts);

// The largest KV block of which L1 holds three beside queries and probabilities.
std::uint32_t choose_block_tokens(std::uint32_t heads);
// Into how many parts every sequence's tokens go, so that the busiest block has the least of them.
std::uint32_t choose_splits(std::uint32_t pairs, std::uint32_t blocks, std::uint32_t most);

}  // namespace cm384::studies
