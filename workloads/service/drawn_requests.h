// Requests that nobody recorded: times and lengths drawn by a seed; and recorded ones at another rate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/random.h"
#include "workloads/service/requests.h"

namespace cm384::service {

// How many tokens a prompt or an output has.
class LengthDistribution {
 public:
  // "fixed:N", "uniform:LOW:HIGH" or "lognormal:MEDIAN:SIGMA" (of the logarithm). Throws InputError.
  explicit LengthDistribution(std::string_view text);
  std::int32_t draw(traces::Random& random) const;  // at least 1

 private:
  enum class Kind { kFixed, kUniform, kLognormal } kind_ = Kind::kFixed;
  double first_ = 1, second_ = 1;
};
// For Form.
void check_length_distribution(std::string_view text);

// Of a trace in memory: some GB.
inline constexpr std::size_t kMostRequests = 20'000'000, kMostKeys = 200'000'000;

struct DrawnRequests {
  double rate = 1;  // requests a second
  Time duration{};  // from the first on, which comes at time 0: on the average rate x duration more follow
  std::string prompt = "fixed:4096", output = "fixed:256";
  double reuse = 0;  // share of each prompt that all have in common, in whole blocks
  int block_tokens = kMooncakeBlock;
  std::uint64_t seed = 1;
};

// Arrivals are Poisson, seen from one of them on.
RequestTrace draw_requests(const DrawnRequests& drawn);

// The trace in other time: `rate` requests a second on the average (0: as recorded), repeated until
// `duration` (0: once), or cut there. A repetition has blocks of its own. Throws InputError for a trace of
// one moment.
RequestTrace at_rate(const RequestTrace& trace, double rate, Time duration);
// Requests a second from the first to the last; 0 where there is one moment only. Followers count.
double rate_of(const RequestTrace& trace);

}  // namespace cm384::service
