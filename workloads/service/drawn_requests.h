// Requests that nobody recorded: times and lengths drawn by a seed; and recorded ones at another rate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/random.h"
#include "workloads/service/requests.h"

namespace cm384::service {

// How many tokens a prompt or an output has.
class LengthDistribution {
 public:
  // "fixed:N", "uniform:LOW:HIGH" or "lognormal:MEDIAN:SIGMA" (of the logarithm). Throws InputError for these
  // and for lengths below `least`.
  explicit LengthDistribution(std::string_view text, std::int64_t least = 1);
  std::int32_t draw(traces::Random& random) const;  // at least `least`

 private:
  enum class Kind { kFixed, kUniform, kLognormal } kind_ = Kind::kFixed;
  double least_ = 1, first_ = 1, second_ = 1;
};
// For Form: of prompts, and of answers, which may have no token.
void check_length_distribution(std::string_view text);
void check_answer_distribution(std::string_view text);

// Distances between arrivals, 1 on the average. A shape below 1 makes bursts: a gamma distribution's
// coefficient of variation is 1 / sqrt(shape).
class GapDistribution {
 public:
  // "exponential", "gamma:SHAPE" or "weibull:SHAPE", shapes from 0.05 to 100. Throws InputError.
  explicit GapDistribution(std::string_view text);
  double draw(traces::Random& random) const;

 private:
  enum class Kind { kExponential, kGamma, kWeibull } kind_ = Kind::kExponential;
  double shape_ = 1, mean_ = 1;  // of the Weibull distribution with scale 1
};
void check_gap_distribution(std::string_view text);

// The rate over the time of a trace, in shares of the rate asked for: "FROM:TO", or more of them at equal
// distances, evenly from each to the next.
struct Ramp {
  std::vector<double> shares;
  explicit Ramp(std::string_view text);  // Throws InputError.
};
void check_ramp(std::string_view text);

// Limits of a trace in memory: some GB.
inline constexpr std::size_t kMostRequests = 20'000'000, kMostKeys = 200'000'000;

struct DrawnRequests {
  double rate = 1;  // requests a second, those of later turns too
  Time duration{};  // from the first on, which comes at time 0: on the average rate x duration more follow
  std::string prompt = "fixed:4096", output = "fixed:256";
  std::vector<std::pair<std::int32_t, std::int32_t>> lengths;  // drawn from instead: prompt, output
  double reuse = 0;  // share of each prompt that all have in common, in whole blocks
  std::string gaps = "exponential", ramp = "1:1";
  // A session's requests: each prompt is the one before it, its answer, and a prompt as drawn; it comes
  // `think` on the average (exponential) behind the end of the one before.
  int turns = 1;
  Time think{};
  // A closed loop instead of a rate and a duration: so many users, of whom each asks again `think` behind the
  // end of what they asked before, until there are `count` requests. 0: none.
  int concurrency = 0;
  std::int64_t count = 0;
  int block_tokens = kMooncakeBlock;
  std::uint64_t seed = 1;
};

// Arrivals are seen from one of them on.
RequestTrace draw_requests(const DrawnRequests& drawn);

// The trace in other time: `rate` requests a second on the average (0: as recorded), repeated until
// `duration` (0: once), or cut there. A repetition has blocks of its own. Throws InputError for a trace of
// one moment.
RequestTrace at_rate(const RequestTrace& trace, double rate, Time duration);
// Requests a second from the first to the last; 0 where there is one moment only. Followers count.
double rate_of(const RequestTrace& trace);

}  // namespace cm384::service
