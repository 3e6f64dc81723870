// Results of the benchmarks of vLLM (`vllm bench serve --save-result --save-detailed`) and SGLang
// (`bench_serving --output-details`): one JSON object with a list entry per request.
#pragma once

#include <string>

#include "workloads/service/requests.h"

namespace cm384::service {

// True for a JSON object with input_lens.
bool is_benchmark_result(const std::string& path);
// input_lens, output_lens, and where they are there start_times (s) and errors; the rest, texts of answers
// among it, is not kept. Throws InputError naming file, field and entry.
RequestTrace read_benchmark_result(const std::string& path);

}  // namespace cm384::service
