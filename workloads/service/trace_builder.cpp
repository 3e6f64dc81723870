#include "workloads/service/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text/error.h"
#include "base/text/quantity.h"
#include "traces/random.h"

namespace cm384::service {

TraceBuilder::TraceBuilder(const LineReader& lines, std::string format) : lines_(lines) {
  trace_.format = std::move(format);
}

void TraceBuilder::check_span(std::int64_t ps, const char* field) {
  first_ps_ = std::min(first_ps_.value_or(ps), ps);
  last_ps_ = std::max(last_ps_.value_or(ps), ps);
  if (*last_ps_ - *first_ps_ > kLongestTracePs)
    lines_.fail(fmt::format("{}: {:.0f} s between the first request and the last one; allowed: 100 days",
                            field,
                            static_cast<double>(*last_ps_ - *first_ps_) / static_cast<double>(kPsPerSecond)));
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
  check_span(ps, field);
  return append({ps}, prompt, output);
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
  check_span(ps, field);
  ++trace_.failed;
}

// By arrival; those of one time, and what follows a request, as the file has them.
void TraceBuilder::sort() {
  std::vector<Request>& all = trace_.requests;
  std::vector<Time> begin(all.size());  // of the session
  for (std::size_t k = 0; k < all.size(); ++k)
    begin[k] = all[k].follows < 0 ? all[k].arrival : begin[static_cast<std::size_t>(all[k].follows)];
  if (std::ranges::is_sorted(begin)) return;
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return begin[k]; });
  std::vector<std::int32_t> place(all.size());
  for (std::size_t n = 0; n < order.size(); ++n) place[order[n]] = static_cast<std::int32_t>(n);
  std::vector<Request> sorted;
  sorted.reserve(all.size());
  for (const std::size_t k : order) {
    Request& request = sorted.emplace_back(all[k]);
    if (request.follows >= 0) request.follows = place[static_cast<std::size_t>(request.follows)];
  }
  all = std::move(sorted);
}

RequestTrace TraceBuilder::finish() {
  if (trace_.requests.empty()) lines_.fail("line: the file has no request");
  for (Request& request : trace_.requests) {
    if (request.follows < 0) request.arrival.ps -= *first_ps_;
  }
  sort();
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
