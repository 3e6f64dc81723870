// A deployment and a library small enough to reckon with.
#pragma once

#include <string>

#include "workloads/service/deployment.h"
#include "workloads/service/library.h"

namespace cm384::service {

// Four dies that take 8 to 32 requests per NPU of 128 to 4,096 tokens.
inline Library small_library() {
  Library library("small");
  for (const auto& [batch, ms] : {std::pair{8, 10.0}, {16, 12.0}, {32, 20.0}})
    library.add(DecodePoint{4, batch, 1024, 1, 2, 10, 3, ms, 100, 130, "run decode", "0"});
  for (const int sequences : {2, 8}) {
    for (const auto& [kv, us] : {std::pair{128, 10.0}, {1024, 30.0}, {4096, 90.0}})
      library.add(AttentionPoint{sequences, kv, 1, us * sequences / 2, "run mla", "0"});
  }
  return library;
}

// Two NPUs of decode, one per prefill instance; a batch of 1,000 tokens takes 100 ms and any token a
// thousandth of it.
inline Deployment small_deployment() {
  Deployment deployment;
  deployment.prefill = {2, 1, 1000, 1000, 1000, 100_ms, 0_ms, 0};
  deployment.decode = {1, 2, 32, 1, 8, 0.7, Bytes{1'000'000'000}, Bytes{1000}, 0_ms};
  deployment.cache.on = false;
  deployment.cache.servers = 1;
  deployment.cache.dram_rate = deployment.cache.evs_rate = 1_GBps;
  deployment.prices = {1, 1000};
  return deployment;
}

}  // namespace cm384::service
