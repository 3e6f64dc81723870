// A study's measurements as the tests call them: the default machine with changes, no display, no signals.
#pragma once

#include <string>
#include <vector>

#include "workloads/collectives/exchange.h"
#include "workloads/fabric/p2p.h"
#include "workloads/fabric/p2p_sdma.h"
#include "workloads/kernels/ffn.h"
#include "workloads/kernels/gemm.h"
#include "workloads/kernels/mla.h"
#include "workloads/kernels/op_run.h"
#include "workloads/kernels/stream.h"
#include "workloads/moe/combine.h"
#include "workloads/moe/dispatch.h"
#include "workloads/moe/moe.h"
#include "workloads/prefill/overlap.h"

namespace cm384::testing {

using Changes = std::vector<std::string>;  // of the machine, "key=value"

studies::DispatchReading run_dispatch(const studies::DispatchCase& setting, const Changes& changes = {},
                                      std::uint64_t seed = 1, studies::SimulatorCounts* counts = nullptr,
                                      unsigned threads = 1);
studies::CombineReading run_combine(const studies::CombineCase& setting, const Changes& changes = {},
                                    std::uint64_t seed = 1);
studies::MoeReading run_moe(const studies::MoeCase& setting, const Changes& changes = {});
studies::GemmReading run_gemm(const studies::GemmSetting& setting, const Changes& changes = {});
studies::CubeReading run_ffn(const studies::FfnSetting& setting, const Changes& changes = {});
studies::OpReading run_operator(const studies::OpSetting& setting, const studies::MakeOperator& make,
                                const Changes& changes = {});
studies::OpReading run_collective(const studies::OpSetting& setting, const studies::CollectiveRun& collective,
                                  const Changes& changes = {});
studies::OpReading run_copies(const studies::OpSetting& setting, const studies::CopyRun& copies,
                              const Changes& changes = {}, unsigned threads = 1);
studies::Summary run_exchange(const studies::ExchangeCase& exchange, const Changes& changes = {});
studies::Overlap run_overlap(int ranks, const studies::Sequence& sequence, const Changes& changes = {});
studies::MlaReading run_mla(const studies::MlaSetting& setting, const Changes& changes = {});
studies::P2pReading run_p2p(const studies::P2pPoint& point, const Changes& changes = {});
enum class SdmaBy { host, core, core_prefetch };
studies::SdmaReading run_sdma(SdmaBy by, const studies::P2pPoint& point, const Changes& changes = {});
double run_shared_p2p(const studies::P2pPoint& point);
// `share`: the part of the measured matrix's rows that is read.
studies::StreamReading run_stream(const std::string& shape, const Changes& changes = {}, double share = 1,
                                  int cores = 48);
// Of a shape of one's own.
studies::StreamReading run_stream(const studies::StreamShape& shape, const Changes& changes = {},
                                  int cores = 48);

// A dispatch that takes a second: 16 elements of everything that can be small.
studies::DispatchCase small_dispatch(int ranks, int batch, int hidden, int cores);

// A combine over such a dispatch.
studies::CombineCase small_combine(int ranks, int batch, int hidden, int cores);

// The first difference in the times of two runs' tasks, to the picosecond; empty: none, and there are tasks.
std::string times_differ(const studies::DispatchReading& one, const studies::DispatchReading& other);

// The recorded routing: the full log beside the checkout where it exists, else the part in the repository.
std::string full_trace();
std::string sample_trace();

}  // namespace cm384::testing
