#include "studies/alone.h"

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
  if (interrupted_) return 0;
  OpSetting setting;
  setting.groups = context_.machine.die.aic;
  setting.graph = true;
  setting.warmup = warmup_;
  const auto reading = run_operator_alone(context_, fmt::format("{} {}", request.name, request.shape),
                                          setting, operator_of(request), result_.simulator);
  interrupted_ = !reading;
  return reading ? reading->task_us : 0;
}

}  // namespace cm384::studies
