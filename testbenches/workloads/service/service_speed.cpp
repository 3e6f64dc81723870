// How many requests of a service one core simulates per second, and how much memory a million take: the
// published deployment, its own library, prompts in chunks, near its limit and nearly idle.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "workloads/service/drawn_requests.h"
#include "workloads/service/simulation.h"

namespace cm384::service {
namespace {

void serve_drawn(benchmark::State& state, double rate, std::int64_t requests, int instances) {
  DrawnRequests drawn;
  drawn.rate = rate;
  drawn.duration = Time{static_cast<std::int64_t>(static_cast<double>(requests) / rate * 1e12)};
  drawn.prompt = "lognormal:1000:0.8";
  drawn.output = "fixed:200";
  const Library library = Library::load("cloudmatrix384");
  Deployment deployment =
      load_deployment(std::string(kPublishedDeployment),
                      {"prefill.chunk=4096", "decode.instances=" + std::to_string(instances)});
  for (auto _ : state) {
    const RequestTrace trace = draw_requests(drawn);
    const ServiceResult result = serve(trace, deployment, library, {});
    benchmark::DoNotOptimize(result.end);
    state.counters["requests/s"] = benchmark::Counter(static_cast<double>(trace.requests.size()),
                                                      benchmark::Counter::kIsIterationInvariantRate);
    state.counters["steps"] = static_cast<double>(result.steps);
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["most_MB"] = static_cast<double>(used.ru_maxrss) / 1e3;  // of the program so far
}

BENCHMARK_CAPTURE(serve_drawn, near_its_limit, 150, 1'000'000, 1)->Unit(benchmark::kSecond);
// Steps of few requests each: eight times as many steps.
BENCHMARK_CAPTURE(serve_drawn, nearly_idle, 20, 1'000'000, 4)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace cm384::service
