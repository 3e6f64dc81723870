#include "base/text/quantity.h"

#include <fmt/format.h>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <limits>
#include <span>

#include "base/text/error.h"
#include "base/text/number.h"

namespace cm384::hw {
namespace {

__extension__ using Wide = __int128;

// One unit: `name` stands for `factor` / `divisor` of the type's resolution.
struct Unit {
  std::string_view name;
  std::int64_t factor;
  std::int64_t divisor = 1;
};

constexpr std::int64_t kKilo = 1000, kMega = 1'000'000, kGiga = 1'000'000'000, kTera = 1'000'000'000'000;
constexpr std::int64_t kKibi = 1ll << 10, kMebi = 1ll << 20, kGibi = 1ll << 30, kTebi = 1ll << 40;

constexpr Unit kTimes[] = {{"ps", 1}, {"ns", kKilo}, {"us", kMega}, {"ms", kGiga}, {"s", kTera}};
// Each binary unit after the decimal one: where both are as short, the later one is written.
constexpr Unit kSizes[] = {{"B", 1},      {"kB", kKilo},  {"KiB", kKibi}, {"MB", kMega}, {"MiB", kMebi},
                           {"GB", kGiga}, {"GiB", kGibi}, {"TB", kTera},  {"TiB", kTebi}};
constexpr Unit kRates[] = {
    {"B/s", 1},           {"kB/s", kKilo},      {"MB/s", kMega},      {"GB/s", kGiga},     {"TB/s", kTera},
    {"KiB/s", kKibi},     {"MiB/s", kMebi},     {"GiB/s", kGibi},     {"TiB/s", kTebi},    {"bit/s", 1, 8},
    {"kbit/s", kKilo, 8}, {"Mbit/s", kMega, 8}, {"Gbit/s", kGiga, 8}, {"Tbit/s", kTera, 8}};
constexpr std::size_t kRatesWritten = 5;  // bytes only, powers of 1000
constexpr Unit kFrequencies[] = {{"Hz", 1}, {"kHz", kKilo}, {"MHz", kMega}, {"GHz", kGiga}};

struct QuantityKind {
  std::string_view noun;     // "a time"
  std::string_view example;  // "47.5ns"
  std::string_view resolution;
  std::span<const Unit> units;
};
constexpr QuantityKind kTime{"a time", "47.5ns", "1 ps", kTimes};
constexpr QuantityKind kSize{"a size", "7.5KiB", "1 B", kSizes};
constexpr QuantityKind kRate{"a bandwidth", "28GB/s", "1 B/s", kRates};
constexpr QuantityKind kFrequency{"a frequency", "1.85GHz", "1 Hz", kFrequencies};

std::string unit_list(const QuantityKind& kind) {
  std::string names;
  for (const Unit& unit : kind.units) names += fmt::format("{}{}", names.empty() ? "" : ", ", unit.name);
  return names;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why, const QuantityKind& kind) {
  throw InputError(fmt::format("'{}' {}; allowed: {} such as {} (units: {})", text, why, kind.noun,
                               kind.example, unit_list(kind)));
}

std::string_view trim(std::string_view text) {
  return boost::algorithm::trim_copy_if(text, boost::algorithm::is_any_of(" \t"));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The decimal number at the head of `text` as digits * 10^-decimals; removes it from `text`.
struct Decimal {
  Wide digits = 0;
  std::int64_t scale = 1;  // 10^decimals
  bool negative = false;
  bool found = false;
};

Decimal take_decimal(std::string_view& rest, std::string_view text, const QuantityKind& kind) {
  Decimal number;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    number.negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  bool point = false;
  int significant = 0;
  while (!rest.empty() && (is_digit(rest.front()) || (rest.front() == '.' && !point))) {
    if (rest.front() == '.') {
      point = true;
    } else {
      number.digits = number.digits * 10 + (rest.front() - '0');
      number.found = true;
      if (number.digits != 0 && ++significant > 18) refuse(text, "has too many digits", kind);
      if (point) {
        if (number.scale > kTera * kKilo) refuse(text, "has too many decimals", kind);
        number.scale *= 10;
      }
    }
    rest.remove_prefix(1);
  }
  return number;
}

std::int64_t parse(std::string_view text, const QuantityKind& kind) {
  std::string_view rest = trim(text);
  const Decimal number = take_decimal(rest, text, kind);
  if (!number.found) refuse(text, fmt::format("is not {}", kind.noun), kind);
  rest = trim(rest);
  if (rest.empty()) refuse(text, "has no unit", kind);
  for (const Unit& unit : kind.units) {
    if (unit.name != rest) continue;
    const Wide scaled = number.digits * unit.factor;
    const Wide divisor = static_cast<Wide>(number.scale) * unit.divisor;
    if (scaled % divisor != 0) refuse(text, fmt::format("is finer than {}", kind.resolution), kind);
    const Wide value = scaled / divisor;
    if (value > std::numeric_limits<std::int64_t>::max()) refuse(text, "is too large", kind);
    return static_cast<std::int64_t>(number.negative ? -value : value);
  }
  if (rest.substr(0, 2) == "KB") {
    refuse(text, "is ambiguous (KiB is 1024 bytes, kB is 1000)", kind);
  }
  refuse(text, fmt::format("has the unknown unit '{}'", rest), kind);
}

// The number that stands for `value` in `unit`; empty where that takes more than six decimals or is below 1.
std::string exact_number(std::int64_t value, const Unit& unit) {
  const std::int64_t whole = value / unit.factor;
  if (whole == 0) return {};
  Wide remainder = value % unit.factor;
  std::string decimals;
  while (remainder != 0) {
    if (decimals.size() == 6) return {};
    remainder *= 10;
    decimals += static_cast<char>('0' + static_cast<int>(remainder / unit.factor));
    remainder %= unit.factor;
  }
  return fmt::format("{}{}{}", whole, decimals.empty() ? "" : ".", decimals);
}

// In the unit that makes the number shortest, the largest of equals.
std::string write(std::int64_t value, std::span<const Unit> units) {
  if (value < 0) return fmt::format("-{}", write(-value, units));
  std::string number = std::to_string(value);
  std::string_view name = units.front().name;
  for (const Unit& unit : units.subspan(1)) {
    const std::string shorter = exact_number(value, unit);
    if (!shorter.empty() && shorter.size() <= number.size()) {
      number = shorter;
      name = unit.name;
    }
  }
  return number + std::string(name);
}

}  // namespace

Time parse_time(std::string_view text) {
  return {parse(text, kTime)};
}
Bytes parse_bytes(std::string_view text) {
  return {parse(text, kSize)};
}
Bandwidth parse_bandwidth(std::string_view text) {
  return {parse(text, kRate)};
}
Frequency parse_frequency(std::string_view text) {
  return {parse(text, kFrequency)};
}

std::int64_t parse_integer(std::string_view text) {
  const std::string_view body = trim(text);
  const auto value = number_of<std::int64_t>(body);
  if (!value)
    throw InputError(fmt::format("'{}' is not a whole number; allowed: a whole number such as 16", text));
  return *value;
}

double parse_real(std::string_view text) {
  const std::string_view body = trim(text);
  const auto value = number_of<double>(body);
  if (!value || !std::isfinite(*value))
    throw InputError(fmt::format("'{}' is not a number; allowed: a number such as 0.7", text));
  return *value;
}

bool parse_bool(std::string_view text) {
  const std::string_view body = trim(text);
  if (body == "true") return true;
  if (body == "false") return false;
  throw InputError(fmt::format("'{}' is neither true nor false", text));
}

std::string format(Time value) {
  return write(value.ps, kTimes);
}
std::string format(Bytes value) {
  return write(value.count, kSizes);
}
std::string format(Bandwidth value) {
  return write(value.bytes_per_second, std::span<const Unit>(kRates).first(kRatesWritten));
}
std::string format(Frequency value) {
  return write(value.hertz, kFrequencies);
}
std::string format(double value) {
  return fmt::format("{}", value);
}

}  // namespace cm384::hw
