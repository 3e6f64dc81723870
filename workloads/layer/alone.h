// Operators that stand alone on a die: a part of a step or of a layer that nothing else runs beside.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/frame/study.h"
#include "workloads/kernels/op_cases.h"

namespace cm384::studies {

// Each on all cores of a die of its own machine, in a captured graph; task times in microseconds. Counters
// are added to the result's. After an interruption times are 0.
class Alone {
 public:
  // `warmup` launches of each before the one that counts.
  Alone(const StudyContext& context, StudyResult& result, int warmup = 1)
      : context_(context), result_(result), warmup_(warmup) {}

  bool interrupted() const { return interrupted_; }
  // On rows x width, by its name in `run op`.
  double row_operator(const char* name, std::uint64_t rows, int width);
  // m x n x k, of each group. `type` bf16 or int8, `layout` nz or nd.
  double product(int groups, int m, int n, int k, const char* type, const char* layout);
  double one(const OpRequest& request);
  // Of any operator; `what` it is, for the file of statistics.
  double one(const std::string& what, const MakeOperator& make);

 protected:
  const StudyContext& context() const { return context_; }
  SimulatorCounts& counts() { return result_.simulator; }

 private:
  const StudyContext& context_;
  StudyResult& result_;
  int warmup_;
  bool interrupted_ = false;
};

}  // namespace cm384::studies
