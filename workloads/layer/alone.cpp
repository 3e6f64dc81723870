#include "workloads/layer/alone.h"

#include <fmt/format.h>

namespace cm384::studies {

double Alone::row_operator(const char* name, std::uint64_t rows, int width) {
  return one({.name = name, .shape = fmt::format("{}x{}", rows, width)});
}

double Alone::product(int groups, int m, int n, int k, const char* type, const char* layout) {
  OpRequest request{
      .name = groups == 1 ? "matmul" : "batch-matmul", .shape = {}, .type = type, .layout = layout};
  request.shape =
      groups == 1 ? fmt::format("{}x{}x{}", m, n, k) : fmt::format("{}x{}x{}x{}", groups, m, n, k);
  return one(request);
}

double Alone::one(const OpRequest& request) {
  return one(fmt::format("{} {}", request.name, request.shape), operator_of(request));
}

double Alone::one(const std::string& what, const MakeOperator& make) {
  if (interrupted_) return 0;
  OpSetting setting;
  setting.groups = context_.machine.die.groups();
  setting.graph = true;
  setting.warmup = warmup_;
  const auto reading = run_operator_alone(context_, what, setting, make, result_.simulator);
  interrupted_ = !reading;
  return reading ? reading->task_us : 0;
}

}  // namespace cm384::studies
