#include "workloads/service/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/text/csv_table.h"
#include "base/text/error.h"
#include "base/text/quantity.h"
#include "workloads/service/benchmark_requests.h"
#include "workloads/service/trace_builder.h"

namespace cm384::service {
namespace {

const std::vector<std::string> kAzure{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
const std::vector<std::string> kBurstGpt{"Timestamp",       "Model",        "Request tokens",
                                         "Response tokens", "Total tokens", "Log Type"};
const std::vector<std::string> kBurstGptFurther{"Session ID", "Elapsed time"};

// The digits at the front, which they must fill up to `mark`; both are taken away.
std::optional<std::int64_t> read_number(std::string_view& text, std::size_t digits, char mark) {
  std::int64_t value = 0;
  if (text.size() < digits) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || value < 0) return {};
  text.remove_prefix(digits);
  if (mark != 0) {
    if (text.empty() || text.front() != mark) return {};
    text.remove_prefix(1);
  }
  return value;
}

const std::vector<std::string> kVidur{"arrived_at", "num_prefill_tokens", "num_decode_tokens"};
const std::vector<std::string> kVidurFurther{"num_total_tokens", "pd_ratio"};

// Points of time such as "2023-11-16 18:17:03.9799600", with a "T" for the blank or not, "+00:00" or "Z"
// behind or not.
class Calendar {
 public:
  // Picoseconds since the day of the first one; empty: no such time. Those days apart are not told apart.
  std::optional<std::int64_t> read(std::string_view text) {
    if (text.ends_with("+00:00")) text.remove_suffix(6);
    if (text.ends_with('Z')) text.remove_suffix(1);
    std::array<std::int64_t, 6> parts{};
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const bool of_day = k == 2 && text.size() > 2 && text[2] == 'T';
      const auto number = read_number(text, k == 0 ? 4 : 2, of_day ? 'T' : "-- ::\0"[k]);
      if (!number) return {};
      parts[k] = *number;
    }
    const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(parts[0])),
                                          std::chrono::month(static_cast<unsigned>(parts[1])),
                                          std::chrono::day(static_cast<unsigned>(parts[2]))};
    const auto fraction = fraction_ps(text);
    if (!day.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 59 || !fraction) return {};
    const std::int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
    if (!first_day_) first_day_ = days;
    const std::int64_t since = std::clamp<std::int64_t>(days - *first_day_, -kMostDays, kMostDays);
    return (((since * 24 + parts[3]) * 60 + parts[4]) * 60 + parts[5]) * kPsPerSecond + *fraction;
  }

 private:
  static constexpr std::int64_t kMostDays = 102;

  // ".9799600", or nothing.
  static std::optional<std::int64_t> fraction_ps(std::string_view text) {
    if (text.empty()) return 0;
    if (text.front() != '.' || text.size() < 2 || text.size() > 10) return {};
    std::string digits(text.substr(1));
    digits.resize(12, '0');
    std::string_view rest = digits;
    return read_number(rest, 12, 0);
  }

  std::optional<std::int64_t> first_day_;
};

RequestTrace read_azure(const std::string& path) {
  hw::CsvTable table(path, kAzure, {}, hw::CsvTable::Order::any);
  TraceBuilder builder(table.lines(), "Azure");
  Calendar calendar;
  const std::size_t time = table.column("TIMESTAMP"), prompt = table.column("ContextTokens"),
                    output = table.column("GeneratedTokens");
  table.each([&](const FieldReader& fields) {
    const auto ps = calendar.read(fields.text(time));
    if (!ps) fields.fail(time, "a time such as 2023-11-16 18:17:03.9799600");
    builder.add(*ps, fields.integer(prompt, 1, kMostTokens), fields.integer(output, 0, kMostTokens),
                "TIMESTAMP");
  });
  return builder.finish();
}

RequestTrace read_vidur(const std::string& path) {
  hw::CsvTable table(path, kVidur, kVidurFurther, hw::CsvTable::Order::any);
  TraceBuilder builder(table.lines(), "Vidur");
  const std::size_t time = table.column("arrived_at"), prompt = table.column("num_prefill_tokens"),
                    output = table.column("num_decode_tokens");
  table.each([&](const FieldReader& fields) {
    builder.add(seconds_ps(fields, time), fields.integer(prompt, 1, kMostTokens),
                fields.integer(output, 0, kMostTokens), "arrived_at");
  });
  return builder.finish();
}

RequestTrace read_burstgpt(const std::string& path) {
  hw::CsvTable table(path, kBurstGpt, kBurstGptFurther, hw::CsvTable::Order::any);
  const std::size_t time = table.column("Timestamp"), asked = table.column("Request tokens"),
                    answered = table.column("Response tokens");
  TraceBuilder builder(table.lines(), "BurstGPT");
  std::unordered_map<std::string, std::uint32_t> sessions;
  table.each([&](const FieldReader& fields) {
    const std::int64_t ps = seconds_ps(fields, time);
    const std::int64_t output = fields.integer(answered, 0, kMostTokens);
    if (output == 0) {
      builder.add_failed(ps, "Timestamp");
      return;
    }
    Request& request = builder.add(ps, fields.integer(asked, 1, kMostTokens), output, "Timestamp");
    const std::string session(table.further(fields, "Session ID"));
    if (!session.empty())
      request.session =
          sessions.try_emplace(session, static_cast<std::uint32_t>(sessions.size())).first->second;
  });
  return builder.finish();
}

// All of the names, in any order, with blanks around them or not.
bool has_header(const std::string& line, const std::vector<std::string>& names) {
  const auto fields = split_fields(line);
  return std::ranges::all_of(
      names, [&](const std::string& name) { return std::ranges::find(fields, name) != fields.end(); });
}

}  // namespace

RequestTrace read_requests(const std::string& path, int block_tokens) {
  if (is_benchmark_result(path)) return read_benchmark_result(path);
  LineReader lines(path);
  std::string line;
  do {
    if (!lines.next(line)) lines.fail("line: the file has no request");
  } while (line.find_first_not_of(" \t\r") == std::string::npos);
  if (line[line.find_first_not_of(" \t")] == '{') return read_json_requests(lines, line, block_tokens);
  if (has_header(line, kAzure)) return read_azure(path);
  if (has_header(line, kBurstGpt)) return read_burstgpt(path);
  if (has_header(line, kVidur)) return read_vidur(path);
  lines.fail(fmt::format(
      "line: '{}'; allowed: the first line of a file of Azure ({},..), BurstGPT ({},..), Vidur "
      "({},..), Mooncake, ServeGen, Bailian, AIBrix, LLMServingSim or a benchmark ({{\"timestamp\": or "
      "{{\"input_toks\":), or one that --export wrote",
      line.substr(0, 60), kAzure[0], kBurstGpt[0], kVidur[0]));
}

}  // namespace cm384::service
