#include "workloads/service/trace_builder.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/error.h"
#include "base/text/quantity.h"
#include "traces/random.h"

namespace cm384::service {

TraceBuilder::TraceBuilder(const LineReader& lines, std::string format) : lines_(lines) {
  trace_.format = std::move(format);
}

Time TraceBuilder::arrival_at(std::int64_t ps, const char* field) {
  if (first_ps_ < 0) first_ps_ = last_ps_ = ps;
  const auto seconds = [](std::int64_t value) {
    return static_cast<double>(value) / static_cast<double>(kPsPerSecond);
  };
  if (ps < last_ps_)
    lines_.fail(
        fmt::format("{}: {:.6f} s before the request before it; allowed: times that do not run backwards",
                    field, seconds(last_ps_ - ps)));
  if (ps - first_ps_ > kLongestTracePs)
    lines_.fail(fmt::format("{}: {:.0f} s after the first request; allowed: 100 days", field,
                            seconds(ps - first_ps_)));
  last_ps_ = ps;
  return {ps - first_ps_};
}

Request& TraceBuilder::append(Time arrival, std::int64_t prompt, std::int64_t output) {
  Request& request = trace_.requests.emplace_back();
  request.arrival = arrival;
  request.prompt = static_cast<std::int32_t>(prompt);
  request.output = static_cast<std::int32_t>(output);
  request.first_block = static_cast<std::uint32_t>(trace_.keys.size());
  return request;
}

Request& TraceBuilder::add(std::int64_t ps, std::int64_t prompt, std::int64_t output, const char* field) {
  return append(arrival_at(ps, field), prompt, output);
}

Request& TraceBuilder::add_follower(std::int32_t follows, std::int64_t delay_ps, std::int64_t prompt,
                                    std::int64_t output) {
  Request& request = append({delay_ps}, prompt, output);
  request.follows = follows;
  return request;
}

void TraceBuilder::set_blocks(Request& request, const std::vector<std::uint64_t>& keys, int block_tokens) {
  trace_.block_tokens = block_tokens;
  trace_.keys.insert(trace_.keys.end(), keys.begin(), keys.end());
  request.blocks = static_cast<std::uint32_t>(keys.size());
}

void TraceBuilder::add_failed(std::int64_t ps, const char* field) {
  arrival_at(ps, field);
  ++trace_.failed;
}

RequestTrace TraceBuilder::take() {
  if (trace_.requests.empty()) lines_.fail("line: the file has no request");
  return std::move(trace_);
}

std::vector<std::uint64_t> keys_of_tokens(const std::vector<std::int64_t>& tokens, int block_tokens) {
  std::vector<std::uint64_t> keys;
  std::uint64_t key = 0;
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    key = traces::mix(key * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(tokens[k]) + 1);
    if ((k + 1) % static_cast<std::size_t>(block_tokens) == 0) keys.push_back(key);
  }
  return keys;
}

std::int64_t seconds_ps(const FieldReader& fields, std::size_t column) {
  double seconds = -1;
  try {
    seconds = hw::parse_real(fields.text(column));
  } catch (const InputError&) {
  }
  if (!(seconds >= 0 && seconds < 9e6)) fields.fail(column, "seconds from 0 to 9000000");
  return std::llround(seconds * static_cast<double>(kPsPerSecond));
}

}  // namespace cm384::service
