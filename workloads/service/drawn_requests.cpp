#include "workloads/service/drawn_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"
#include "traces/fixed_math.h"
#include "workloads/service/trace_builder.h"

namespace cm384::service {

LengthDistribution::LengthDistribution(std::string_view text) {
  const auto parts = split_fields(text, ':');
  const auto wrong = [&] {
    return InputError(
        fmt::format("'{}'; allowed: fixed:N, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, lengths of 1 "
                    "to {} tokens",
                    text, kMostTokens));
  };
  const auto tokens = [&](std::string_view word) {
    const std::int64_t value = hw::parse_integer(word);
    if (value < 1 || value > kMostTokens) throw wrong();
    return static_cast<double>(value);
  };
  if (parts[0] == "fixed" && parts.size() == 2) {
    first_ = second_ = tokens(parts[1]);
  } else if (parts[0] == "uniform" && parts.size() == 3) {
    kind_ = Kind::kUniform;
    first_ = tokens(parts[1]);
    second_ = tokens(parts[2]);
    if (first_ > second_) throw wrong();
  } else if (parts[0] == "lognormal" && parts.size() == 3) {
    kind_ = Kind::kLognormal;
    first_ = tokens(parts[1]);
    second_ = hw::parse_real(parts[2]);
    if (!(second_ >= 0 && second_ <= 5)) throw wrong();
  } else {
    throw wrong();
  }
}

std::int32_t LengthDistribution::draw(traces::Random& random) const {
  double value = first_;
  if (kind_ == Kind::kUniform)
    value = first_ + static_cast<double>(random.below(static_cast<std::uint64_t>(second_ - first_) + 1));
  if (kind_ == Kind::kLognormal) {
    // By inversion: one number is drawn for each length. 0 and 1 have no inverse.
    const double share = std::clamp(random.real(), 0x1p-53, 1 - 0x1p-53);
    value = first_ * traces::exponential(second_ * traces::normal_quantile(share));
  }
  return static_cast<std::int32_t>(std::clamp(std::round(value), 1.0, static_cast<double>(kMostTokens)));
}

void check_length_distribution(std::string_view text) {
  LengthDistribution{text};
}

namespace {

void check_size(double requests, std::size_t keys, const std::string& of) {
  if (requests < static_cast<double>(kMostRequests) && keys < kMostKeys) return;
  throw InputError(fmt::format("{} makes more than {} requests, or {} blocks of them; allowed: less", of,
                               kMostRequests, kMostKeys));
}

}  // namespace

RequestTrace draw_requests(const DrawnRequests& drawn) {
  traces::Random times(drawn.seed, 1), lengths(drawn.seed, 2);
  const LengthDistribution prompt(drawn.prompt), output(drawn.output);
  RequestTrace trace;
  trace.format = "drawn";
  trace.block_tokens = drawn.block_tokens;
  const double seconds_of_trace = drawn.duration.us() * 1e-6;
  const std::string name =
      fmt::format("a rate of {:g} per second for {:.0f} s", drawn.rate, seconds_of_trace);
  check_size(drawn.rate * seconds_of_trace, 0, name);
  std::uint64_t unique = 1u << 20;  // above the keys that are common
  for (double seconds = 0;
       seconds * static_cast<double>(kPsPerSecond) <= static_cast<double>(drawn.duration.ps);
       seconds -= traces::natural_log(1 - times.real()) / drawn.rate) {
    check_size(static_cast<double>(trace.requests.size()), trace.keys.size(), name);
    Request& request = trace.requests.emplace_back();
    request.arrival = {std::llround(seconds * static_cast<double>(kPsPerSecond))};
    request.prompt = prompt.draw(lengths);
    request.output = output.draw(lengths);
    request.session = static_cast<std::uint32_t>(trace.requests.size() - 1);
    if (drawn.reuse == 0) continue;
    const int whole = request.prompt / drawn.block_tokens;
    const auto common = static_cast<int>(std::lround(drawn.reuse * whole));
    request.first_block = static_cast<std::uint32_t>(trace.keys.size());
    request.blocks = static_cast<std::uint32_t>(whole);
    for (int k = 0; k < whole; ++k)
      trace.keys.push_back(k < common ? static_cast<std::uint64_t>(k) : unique++);
  }
  return trace;
}

double rate_of(const RequestTrace& trace) {
  Time last{};
  for (const Request& request : trace.requests)
    if (request.follows < 0) last = request.arrival;
  if (last == Time{}) return 0;
  return static_cast<double>(trace.requests.size() - 1) /
         (static_cast<double>(last.ps) / static_cast<double>(kPsPerSecond));
}

RequestTrace at_rate(const RequestTrace& trace, double rate, Time duration) {
  if (rate == 0 && duration == Time{}) return trace;
  const double own = rate_of(trace);
  if (own == 0)
    throw InputError("--rate: the requests all come at one moment; allowed: a trace of some duration");
  const double factor = rate == 0 ? 1 : own / rate;
  RequestTrace made;
  made.format = trace.format;
  made.block_tokens = trace.block_tokens;
  made.keys = trace.keys;
  made.failed = trace.failed;
  Time last{};
  for (const Request& request : trace.requests)
    if (request.follows < 0) last = request.arrival;
  // The next repetition begins one mean distance behind the last request.
  const double period = (static_cast<double>(last.ps) + static_cast<double>(kPsPerSecond) / own) * factor;
  for (std::int64_t pass = 0;; ++pass) {
    const std::int64_t begin = std::llround(period * static_cast<double>(pass));
    if (pass > 0 && (duration == Time{} || begin > duration.ps)) return made;
    const auto base = static_cast<std::int32_t>(made.requests.size());
    check_size(static_cast<double>(made.requests.size()), made.keys.size(),
               fmt::format("the trace, repeated for {:.0f} s,", duration.us() * 1e-6));
    const std::uint64_t salt = pass == 0 ? 0 : traces::mix(static_cast<std::uint64_t>(pass));
    const auto shift = static_cast<std::uint32_t>(made.keys.size());
    if (pass > 0)
      for (const std::uint64_t key : trace.keys) made.keys.push_back(traces::mix(key + salt));
    for (const Request& request : trace.requests) {
      Request moved = request;
      if (request.follows < 0) {
        moved.arrival = {begin + std::llround(static_cast<double>(request.arrival.ps) * factor)};
        if (duration != Time{} && moved.arrival > duration) return made;
      } else {
        moved.follows += base;
      }
      if (pass > 0) moved.first_block += shift;
      made.requests.push_back(moved);
    }
  }
}

}  // namespace cm384::service
