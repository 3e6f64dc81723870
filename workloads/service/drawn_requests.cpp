#include "workloads/service/drawn_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"
#include "traces/fixed_math.h"
#include "workloads/service/trace_builder.h"

namespace cm384::service {

LengthDistribution::LengthDistribution(std::string_view text, std::int64_t least)
    : least_(static_cast<double>(least)) {
  const auto parts = split_fields(text, ':');
  const auto wrong = [&] {
    return InputError(
        fmt::format("'{}'; allowed: fixed:N, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, lengths of {} "
                    "to {} tokens",
                    text, least, kMostTokens));
  };
  const auto tokens = [&](std::string_view word) {
    const std::int64_t value = hw::parse_integer(word);
    if (value < least || value > kMostTokens) throw wrong();
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
  return static_cast<std::int32_t>(std::clamp(std::round(value), least_, static_cast<double>(kMostTokens)));
}

void check_length_distribution(std::string_view text) {
  LengthDistribution{text};
}

void check_answer_distribution(std::string_view text) {
  LengthDistribution(text, 0);
}

namespace {

// Of a number above 0: Stirling's series from 20 on, to 1e-15; below by what it has more there. The C
// library's differs between machines.
double log_gamma(double x) {
  double more = 0;
  for (; x < 20; ++x) more += traces::natural_log(x);
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const double y = 1 / (x * x);
  return (x - 0.5) * traces::natural_log(x) - x + kHalfLogTwoPi +
         (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y / 1680))) / x - more;
}

double to_the_power(double base, double exponent) {
  return traces::exponential(exponent * traces::natural_log(base));
}

// 0 and 1 have no logarithm or quantile.
double open_share(traces::Random& random) {
  return std::clamp(random.real(), 0x1p-53, 1 - 0x1p-53);
}

// Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 26 (2000), with scale 1.
double draw_gamma(double shape, traces::Random& random) {
  if (shape < 1) {
    const double more = draw_gamma(shape + 1, random);
    return more * to_the_power(open_share(random), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = traces::normal_quantile(open_share(random)), v = 1 + c * x;
    if (v <= 0) continue;
    const double cube = v * v * v;
    if (traces::natural_log(open_share(random)) < x * x / 2 + d - d * cube + d * traces::natural_log(cube))
      return d * cube;
  }
}

}  // namespace

GapDistribution::GapDistribution(std::string_view text) {
  const auto parts = split_fields(text, ':');
  const auto wrong = [&] {
    return InputError(
        fmt::format("'{}'; allowed: exponential, gamma:SHAPE, weibull:SHAPE, shapes from 0.05 to 100", text));
  };
  if (parts[0] == "exponential" && parts.size() == 1) return;
  if ((parts[0] != "gamma" && parts[0] != "weibull") || parts.size() != 2) throw wrong();
  kind_ = parts[0] == "gamma" ? Kind::kGamma : Kind::kWeibull;
  shape_ = hw::parse_real(parts[1]);
  if (!(shape_ >= 0.05 && shape_ <= 100)) throw wrong();
  mean_ = traces::exponential(log_gamma(1 + 1 / shape_));
}

double GapDistribution::draw(traces::Random& random) const {
  switch (kind_) {
    case Kind::kGamma:
      return draw_gamma(shape_, random) / shape_;
    case Kind::kWeibull:
      return to_the_power(-traces::natural_log(open_share(random)), 1 / shape_) / mean_;
    case Kind::kExponential:
      break;
  }
  return -traces::natural_log(1 - random.real());
}

void check_gap_distribution(std::string_view text) {
  GapDistribution{text};
}

Ramp::Ramp(std::string_view text) {
  constexpr std::size_t kMost = 1000;
  const auto parts = split_fields(text, ':');
  double sum = 0;
  bool allowed = parts.size() >= 2 && parts.size() <= kMost;
  for (std::size_t k = 0; allowed && k < parts.size(); ++k) {
    shares.push_back(hw::parse_real(parts[k]));
    allowed = shares.back() >= 0 && shares.back() <= 1e6;
    sum += shares.back();
  }
  if (!allowed || sum <= 0)
    throw InputError(fmt::format(
        "'{}'; allowed: FROM:TO, or up to {} shares of the rate, of 0 to 1000000, one of them above 0", text,
        kMost));
}

void check_ramp(std::string_view text) {
  Ramp{text};
}

namespace {

void check_size(double requests, std::size_t keys, const std::string& of) {
  if (requests < static_cast<double>(kMostRequests) && keys < kMostKeys) return;
  throw InputError(fmt::format("{} makes more than {} requests, or {} blocks of them; allowed: less", of,
                               kMostRequests, kMostKeys));
}

constexpr double kPs = static_cast<double>(kPsPerSecond);

// Arrival times of sessions, in seconds: distances in a time in which the rate is one, which runs as fast as
// the rate is.
class Arrivals {
 public:
  explicit Arrivals(const DrawnRequests& drawn)
      : gaps_(drawn.gaps),
        ramp_(drawn.ramp),
        rate_(drawn.rate / drawn.turns),
        duration_(drawn.duration.us() * 1e-6),
        piece_(duration_ / static_cast<double>(ramp_.shares.size() - 1)),
        random_(drawn.seed, 1) {}

  double now() const { return now_; }
  void advance() {
    const double gap = gaps_.draw(random_);
    const std::vector<double>& shares = ramp_.shares;
    if (std::ranges::all_of(shares, [](double share) { return share == 1; })) {
      now_ += gap / rate_;
      return;
    }
    past_ += gap / rate_;
    for (double all; number_ + 2 < shares.size(); past_ -= all, ++number_)
      if (all = piece_ * (shares[number_] + shares[number_ + 1]) / 2; past_ <= all) break;
    // The time until when the rate comes to so many arrivals: a square equation, in the form that holds for
    // an even rate too. A rate that falls to 0 at last never comes to more.
    const double from = shares[number_], bend = 2 * (shares[number_ + 1] - from) / piece_;
    const double root = from * from + bend * past_;
    const bool last = number_ + 2 == shares.size();
    now_ = root < 0 && last
               ? 2 * duration_ + 1
               : piece_ * static_cast<double>(number_) + 2 * past_ / (from + std::sqrt(std::max(0.0, root)));
  }

 private:
  GapDistribution gaps_;
  Ramp ramp_;
  double rate_, duration_, piece_;  // s; from one share of the ramp to the next
  traces::Random random_;
  double now_ = 0, past_ = 0;  // arrivals over the rate, since the beginning of the piece
  std::size_t number_ = 0;     // of the piece
};

// Requests one behind the other in their sessions.
class SessionDrawer {
 public:
  // What a session's next prompt begins with.
  struct Session {
    std::int32_t tokens = 0, last = -1;
    int turn = 0;
    std::vector<std::uint64_t> keys;
  };

  SessionDrawer(const DrawnRequests& drawn, std::string name)
      : drawn_(drawn),
        name_(std::move(name)),
        prompt_(drawn.prompt),
        output_(drawn.output, 0),
        lengths_(drawn.seed, 2),
        thinking_(drawn.seed, 3) {
    trace_.format = "drawn";
    trace_.block_tokens = drawn.block_tokens;
  }

  std::int64_t size() const { return std::ssize(trace_.requests); }
  // The first of a session comes at `arrival` unless `session` has one before it.
  void add(Session& session, Time arrival, std::uint32_t number) {
    check_size(static_cast<double>(trace_.requests.size()), trace_.keys.size(), name_);
    if (session.turn == drawn_.turns) {
      session.turn = 0;
      session.tokens = 0;
      session.keys.clear();
    }
    Request& request = trace_.requests.emplace_back();
    request.arrival = session.last < 0 ? arrival : think();
    request.follows = session.last;
    request.session = number;
    draw_lengths(request);
    if (request.prompt > kMostTokens - session.tokens)
      throw InputError(
          fmt::format("{}: a session of more than {} tokens; allowed: fewer --turns", name_, kMostTokens));
    request.prompt += session.tokens;
    if (drawn_.reuse > 0 || drawn_.turns > 1) add_blocks(session, request);
    session.tokens = request.prompt + request.output;
    session.last = static_cast<std::int32_t>(size() - 1);
    ++session.turn;
  }
  RequestTrace release() { return std::move(trace_); }

 private:
  void draw_lengths(Request& request) {
    if (drawn_.lengths.empty()) {
      request.prompt = prompt_.draw(lengths_);
      request.output = output_.draw(lengths_);
    } else {
      std::tie(request.prompt, request.output) = drawn_.lengths[lengths_.below(drawn_.lengths.size())];
    }
  }
  Time think() {
    if (drawn_.think == Time{}) return {};
    return {std::llround(-traces::natural_log(open_share(thinking_)) * static_cast<double>(drawn_.think.ps))};
  }
  // What is in the cache is all but the last token, which is not computed.
  void add_blocks(Session& session, Request& request) {
    const int block = drawn_.block_tokens;
    const auto whole = static_cast<std::size_t>(request.prompt / block);
    const auto with_answer =
        drawn_.turns == 1
            ? whole
            : static_cast<std::size_t>((request.prompt + std::max(0, request.output - 1)) / block);
    if (session.turn == 0) {
      const auto common = std::lround(drawn_.reuse * static_cast<double>(whole));
      for (long k = 0; k < common; ++k) session.keys.push_back(static_cast<std::uint64_t>(k));
    }
    while (session.keys.size() < with_answer) session.keys.push_back(unique_++);
    request.first_block = static_cast<std::uint32_t>(trace_.keys.size());
    request.blocks = static_cast<std::uint32_t>(whole);
    request.answer_blocks = static_cast<std::uint32_t>(with_answer - whole);
    trace_.keys.insert(trace_.keys.end(), session.keys.begin(),
                       session.keys.begin() + static_cast<std::ptrdiff_t>(with_answer));
  }

  const DrawnRequests& drawn_;
  std::string name_;
  LengthDistribution prompt_, output_;
  traces::Random lengths_, thinking_;
  RequestTrace trace_;
  std::uint64_t unique_ = 1u << 20;  // above the keys that are common
};

// Users ask in turn, so that each follows what it asked before.
RequestTrace draw_closed_loop(const DrawnRequests& drawn) {
  const std::string name = fmt::format("{} requests", drawn.count);
  check_size(static_cast<double>(drawn.count), 0, name);
  SessionDrawer requests(drawn, name);
  std::vector<SessionDrawer::Session> users(
      static_cast<std::size_t>(std::min<std::int64_t>(drawn.concurrency, drawn.count)));
  while (requests.size() < drawn.count) {
    const auto user = static_cast<std::size_t>(requests.size()) % users.size();
    requests.add(users[user], {}, static_cast<std::uint32_t>(user));
  }
  return requests.release();
}

}  // namespace

RequestTrace draw_requests(const DrawnRequests& drawn) {
  if (drawn.concurrency > 0) return draw_closed_loop(drawn);
  const double seconds_of_trace = drawn.duration.us() * 1e-6;
  const std::string name =
      fmt::format("a rate of {:g} per second for {:.0f} s", drawn.rate, seconds_of_trace);
  check_size(drawn.rate * seconds_of_trace, 0, name);
  SessionDrawer requests(drawn, name);
  Arrivals arrivals(drawn);
  std::uint32_t sessions = 0;
  for (; arrivals.now() * kPs <= static_cast<double>(drawn.duration.ps); arrivals.advance()) {
    SessionDrawer::Session session;
    for (int turn = 0; turn < drawn.turns; ++turn)
      requests.add(session, {std::llround(arrivals.now() * kPs)}, sessions);
    ++sessions;
  }
  return requests.release();
}

double rate_of(const RequestTrace& trace) {
  Time last{};
  std::size_t count = 0;
  for (const Request& request : trace.requests) {
    if (request.follows >= 0) continue;
    last = request.arrival;
    ++count;
  }
  if (last == Time{}) return 0;
  return static_cast<double>(count - 1) / (static_cast<double>(last.ps) / static_cast<double>(kPsPerSecond));
}

RequestTrace at_rate(const RequestTrace& trace, double rate, Time duration) {
  if (rate == 0 && duration == Time{}) return trace;
  const double own = rate_of(trace);
  if (own == 0)
    throw InputError(
        fmt::format("--{}: the requests all come at one moment; allowed: a trace of some duration",
                    rate > 0 ? "rate" : "duration"));
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
