// What the benchmarks of vLLM and SGLang say of the requests that they sent.
#include "workloads/service/benchmark_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/text/error.h"
#include "base/text/unpacked_input.h"
#include "workloads/service/trace_builder.h"

namespace cm384::service {
namespace {

using BenchmarkJson = nlohmann::json;

constexpr std::size_t kHead = std::size_t{1} << 20, kMostOfList = std::size_t{1} << 24;

// Of a result, which holds the texts of all answers as well.
BenchmarkJson read_result(const std::string& path) {
  const std::set<std::string> kept{"input_lens", "output_lens", "start_times", "errors"};
  const auto keep = [&](int depth, BenchmarkJson::parse_event_t event, BenchmarkJson& parsed) {
    return depth != 1 || event != BenchmarkJson::parse_event_t::key ||
           kept.contains(parsed.get<std::string>());
  };
  const auto stream = open_unpacked(path);
  BenchmarkJson document = BenchmarkJson::parse(*stream, keep, false);
  if (!document.is_object())
    throw InputError(
        fmt::format("{}: not a JSON object; allowed: the result of one run of a benchmark", path));
  return document;
}

}  // namespace

bool is_benchmark_result(const std::string& path) {
  const auto stream = open_unpacked(path);
  std::string head(kHead, '\0');
  stream->read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream->gcount()));
  if (head.starts_with("\xef\xbb\xbf")) head.erase(0, 3);
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && head[begin] == '{' && head.find("\"input_lens\"") != std::string::npos;
}

RequestTrace read_benchmark_result(const std::string& path) {
  const BenchmarkJson result = read_result(path);
  const auto list = [&](const char* field) -> const BenchmarkJson& {
    static const BenchmarkJson kNone = BenchmarkJson::array();
    const auto found = result.find(field);
    if (found == result.end()) return kNone;
    if (!found->is_array() || found->size() > kMostOfList)
      throw InputError(fmt::format("{}: {}: allowed: a list", path, field));
    return *found;
  };
  const BenchmarkJson &inputs = list("input_lens"), &outputs = list("output_lens"),
                      &starts = list("start_times"), &errors = list("errors");
  for (const auto& [field, values] : {std::pair("output_lens", &outputs), std::pair("start_times", &starts),
                                      std::pair("errors", &errors)}) {
    if (values->size() != inputs.size() && (values == &outputs || !values->empty()))
      throw InputError(fmt::format("{}: {}: {} entries; allowed: as many as input_lens, {}", path, field,
                                   values->size(), inputs.size()));
  }
  const auto fail = [&](const char* field, std::size_t n, const std::string& allowed) {
    throw InputError(fmt::format("{}: {}[{}]: allowed: {}", path, field, n, allowed));
  };
  std::vector<double> seconds(inputs.size());
  for (std::size_t n = 0; n < starts.size(); ++n) {
    if (!starts[n].is_number() || !(starts[n].get<double>() >= 0 && starts[n].get<double>() < 1e12))
      fail("start_times", n, "seconds");
    seconds[n] = starts[n].get<double>();
  }
  const double first = seconds.empty() ? 0 : *std::ranges::min_element(seconds);
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return seconds[n]; });
  const LineReader lines(path);
  TraceBuilder builder(lines, "benchmark");
  for (const std::size_t n : order) {
    const double since = (seconds[n] - first) * static_cast<double>(kPsPerSecond);
    if (since > static_cast<double>(kLongestTracePs)) fail("start_times", n, "within 100 days");
    const bool failed = !errors.empty() && errors[n].is_string() && !errors[n].get<std::string>().empty();
    const auto tokens = [&](const char* field, const BenchmarkJson& value, std::int64_t low) {
      const bool good = value.is_number_integer() && value >= low && value <= kMostTokens;
      if (!good) fail(field, n, fmt::format("a whole number from {} to {}", low, kMostTokens));
      return value.get<std::int64_t>();
    };
    if (failed) {
      builder.add_failed(std::llround(since), "start_times");
    } else {
      builder.add(std::llround(since), tokens("input_lens", inputs[n], 1),
                  tokens("output_lens", outputs[n], 0), "start_times");
    }
  }
  RequestTrace trace = builder.finish();
  trace.timed = !starts.empty();
  return trace;
}

}  // namespace cm384::service
