// What the readers of all formats share: checks of a record, and the trace that it joins.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/text/lines.h"
#include "workloads/service/requests.h"

namespace cm384::service {

class TraceBuilder {
 public:
  TraceBuilder(const LineReader& lines, std::string format);

  // A request at `ps` of the file's own clock, in any order. `field` names the time in messages. Throws
  // InputError where it is 100 days from another one.
  Request& add(std::int64_t ps, std::int64_t prompt, std::int64_t output, const char* field);
  // The next of a session, `delay_ps` behind the end of request `follows`.
  Request& add_follower(std::int32_t follows, std::int64_t delay_ps, std::int64_t prompt,
                        std::int64_t output);
  void set_blocks(Request& request, const std::vector<std::uint64_t>& keys, int block_tokens);
  // One without output: nothing was served.
  void add_failed(std::int64_t ps, const char* field);
  // Throws InputError for a trace without requests.
  RequestTrace finish();

  RequestTrace& trace() { return trace_; }
  const RequestTrace& trace() const { return trace_; }
  const LineReader& lines() const { return lines_; }

 private:
  void check_span(std::int64_t ps, const char* field);
  void sort();
  Request& append(Time arrival, std::int64_t prompt, std::int64_t output);

  const LineReader& lines_;
  RequestTrace trace_;
  std::optional<std::int64_t> first_ps_, last_ps_;  // the earliest and the latest
};

inline constexpr std::int64_t kPsPerMs = 1'000'000'000, kPsPerSecond = 1000 * kPsPerMs;
inline constexpr std::int64_t kLongestTracePs = std::int64_t{100} * 86400 * kPsPerSecond;

// Seconds in a column of a table, as ps.
std::int64_t seconds_ps(const FieldReader& fields, std::size_t column);

// Lines of objects: Mooncake, ServeGen, Bailian, AIBrix, LLMServingSim. `line` is the first of them.
RequestTrace read_json_requests(LineReader& lines, std::string line, int block_tokens);

// Keys of the whole blocks of a prompt: of the tokens in a block and of all before it.
std::vector<std::uint64_t> keys_of_tokens(const std::vector<std::int64_t>& tokens, int block_tokens);

}  // namespace cm384::service
