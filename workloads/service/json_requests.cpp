// Requests as lines of JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text/error.h"
#include "workloads/service/trace_builder.h"

namespace cm384::service {
namespace {

using SortedJson = nlohmann::json;

constexpr std::int64_t kMostNs = kLongestTracePs / 1000;
constexpr const char* kOwnFormat = "cm384-requests-1";
constexpr std::int64_t kMostId = std::int64_t{1} << 62;

std::string brief(const SortedJson& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return value.dump(-1, ' ', true, SortedJson::error_handler_t::replace).substr(0, 60);
}

class JsonRequestsReader {
 public:
  JsonRequestsReader(LineReader& lines, int block_tokens, const char* format)
      : lines_(lines), builder_(lines, format), block_tokens_(block_tokens) {}

  void line(const std::string& text) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) return;
    const SortedJson json = SortedJson::parse(text, nullptr, false);
    if (json.is_discarded()) lines_.fail("line: is not JSON; allowed: one object per line");
    if (!json.is_object()) lines_.fail(fmt::format("line: is {}; allowed: one object per line", brief(json)));
    if (json.contains("format")) {
      header(json);
    } else if (json.contains("arrival_ps")) {
      own(json);
    } else if (json.contains("requests")) {
      together(json);
    } else if (json.contains("sub_requests")) {
      session(json);
    } else if (json.contains("input_toks") || json.contains("arrival_time_ns")) {
      by_tokens(json);
    } else {
      by_length(json);
    }
  }
  RequestTrace release() { return builder_.finish(); }

 private:
  std::int64_t integer(const SortedJson& json, const char* field, std::int64_t low, std::int64_t high) const {
    const auto value = json.find(field);
    if (value == json.end()) lines_.fail(fmt::format("{}: is missing", field));
    // A count beyond what is signed is one too many as well.
    const bool whole =
        value->is_number_integer() &&
        !(value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(kMostId));
    if (!whole || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high)
      lines_.fail(
          fmt::format("{}: {}; allowed: a whole number from {} to {}", field, brief(*value), low, high));
    return value->get<std::int64_t>();
  }

  std::vector<std::int64_t> integers(const SortedJson& json, const char* field) const {
    const SortedJson& list = json.at(field);
    if (!list.is_array()) lines_.fail(fmt::format("{}: {}; allowed: a list of numbers", field, brief(list)));
    std::vector<std::int64_t> numbers;
    numbers.reserve(list.size());
    for (const SortedJson& value : list) {
      if (!value.is_number_integer() || value < 0 || value > kMostId)
        lines_.fail(fmt::format("{}[{}]: {}; allowed: a whole number, 0 or more", field, numbers.size(),
                                brief(value)));
      numbers.push_back(value.get<std::int64_t>());
    }
    return numbers;
  }

  // What requests_text() writes.
  void header(const SortedJson& json) {
    if (json.at("format") != kOwnFormat || lines_.number() != 1)
      lines_.fail(
          fmt::format("format: {}; allowed: {} in the first line", brief(json.at("format")), kOwnFormat));
    block_tokens_ = static_cast<int>(integer(json, "block_tokens", 0, kMostTokens));
  }

  void own(const SortedJson& json) {
    const std::int64_t ps = integer(json, "arrival_ps", 0, kLongestTracePs),
                       prompt = integer(json, "prompt", 1, kMostTokens),
                       output = integer(json, "output", 0, kMostTokens);
    const std::int64_t count = std::ssize(builder_.trace().requests);
    Request* request = nullptr;
    if (json.contains("follows")) {
      if (count == 0) lines_.fail("follows: the first request follows none");
      const std::int64_t before = integer(json, "follows", 0, count - 1);
      request = &builder_.add_follower(static_cast<std::int32_t>(before), ps, prompt, output);
    } else {
      request = &builder_.add(ps, prompt, output, "arrival_ps");
    }
    request->session = static_cast<std::uint32_t>(integer(json, "session", 0, UINT32_MAX));
    read_priority(json, *request);
    if (!json.contains("blocks")) return;
    const SortedJson& list = json.at("blocks");
    if (block_tokens_ == 0 || !list.is_array() ||
        !std::ranges::all_of(list, [](const SortedJson& key) { return key.is_number_unsigned(); }))
      lines_.fail("blocks: allowed: a list of whole numbers, with block_tokens in the first line");
    const std::int64_t tokens = prompt + std::max<std::int64_t>(0, output - 1), size = std::ssize(list);
    const std::int64_t answer = json.contains("answer_blocks") ? integer(json, "answer_blocks", 0, size) : 0;
    if (size > (tokens + block_tokens_ - 1) / block_tokens_ ||
        size - answer > (prompt + block_tokens_ - 1) / block_tokens_)
      lines_.fail(fmt::format("blocks: {} of {} tokens; the request has {} + {} tokens", size, block_tokens_,
                              prompt, output));
    builder_.set_blocks(*request, list.get<std::vector<std::uint64_t>>(), block_tokens_);
    request->blocks -= static_cast<std::uint32_t>(answer);
    request->answer_blocks = static_cast<std::uint32_t>(answer);
  }

  void check_fields(const SortedJson& json, std::initializer_list<std::string_view> known) const {
    for (const auto& [field, value] : json.items()) {
      if (std::ranges::find(known, field) == known.end())
        lines_.fail(fmt::format("{}: is not a field of {}; allowed: {}", field.substr(0, 40),
                                builder_.trace().format, fmt::join(known, ", ")));
    }
  }

  std::int64_t picoseconds(const SortedJson& json, std::int64_t unit_ps, const char* unit) const {
    const auto at = json.find("timestamp");
    if (at == json.end()) lines_.fail("timestamp: is missing");
    const std::int64_t most = kLongestTracePs / unit_ps;
    if (!at->is_number() || !(at->get<double>() >= 0 && at->get<double>() < static_cast<double>(most)))
      lines_.fail(fmt::format("timestamp: {}; allowed: {} from 0 to {}", brief(*at), unit, most));
    return at->is_number_integer() ? at->get<std::int64_t>() * unit_ps
                                   : std::llround(at->get<double>() * static_cast<double>(unit_ps));
  }

  // Mooncake, ServeGen in ms; Bailian in s.
  void by_length(const SortedJson& json) {
    const bool bailian = builder_.trace().format == "Bailian";
    if (bailian) {
      check_fields(json, {"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "type",
                          "turn", "hash_ids", "priority"});
    } else {
      check_fields(json, {"timestamp", "input_length", "output_length", "hash_ids", "client", "priority"});
    }
    const std::int64_t ps =
        bailian ? picoseconds(json, kPsPerSecond, "s") : picoseconds(json, kPsPerMs, "ms");
    const std::int64_t prompt = integer(json, "input_length", 1, kMostTokens),
                       output = integer(json, "output_length", 0, kMostTokens);
    Request& request = builder_.add(ps, prompt, output, "timestamp");
    read_priority(json, request);
    if (json.contains("client"))
      request.session = static_cast<std::uint32_t>(integer(json, "client", 0, UINT32_MAX));
    if (bailian) request.session = chat(json);
    if (!json.contains("hash_ids")) return;
    const int block = bailian ? kBailianBlock : kMooncakeBlock;
    const std::vector<std::int64_t> ids = integers(json, "hash_ids");
    const int whole = request.prompt / block, all = (request.prompt + block - 1) / block;
    if (static_cast<int>(ids.size()) < whole || static_cast<int>(ids.size()) > all)
      lines_.fail(fmt::format("hash_ids: {} ids; allowed: {}, one for each {} tokens of input_length {}",
                              ids.size(), all, block, request.prompt));
    builder_.set_blocks(request, {ids.begin(), ids.end()}, block);
  }

  // The session of a chat is that of its first turn.
  std::uint32_t chat(const SortedJson& json) {
    const std::int64_t id = integer(json, "chat_id", 0, kMostId),
                       parent = json.contains("parent_chat_id") ? integer(json, "parent_chat_id", -1, kMostId)
                                                                : -1;
    const auto known = chats_.find(parent);
    const auto session = known != chats_.end() ? known->second : static_cast<std::uint32_t>(chats_.size());
    chats_[id] = session;
    return session;
  }

  // AIBrix: in ms; those of a line come together.
  void together(const SortedJson& json) {
    check_fields(json, {"timestamp", "requests"});
    const std::int64_t ps = picoseconds(json, kPsPerMs, "ms");
    const SortedJson& list = json.at("requests");
    if (!list.is_array()) lines_.fail("requests: allowed: a list of requests");
    for (const SortedJson& one : list) {
      if (!one.is_object()) lines_.fail("requests: allowed: a list of objects");
      const bool spaced = one.contains("Prompt Length");
      const std::int64_t prompt = integer(one, spaced ? "Prompt Length" : "prompt_length", 1, kMostTokens),
                         output = integer(one, spaced ? "Output Length" : "output_length", 0, kMostTokens);
      builder_.add(ps, prompt, output, "timestamp");
    }
  }

  // LLMServingSim.
  void by_tokens(const SortedJson& json) {
    const std::int64_t ps = integer(json, "arrival_time_ns", 0, kMostNs) * 1000;
    Request& request = builder_.add(ps, integer(json, "input_toks", 1, kMostTokens),
                                    integer(json, "output_toks", 0, kMostTokens), "arrival_time_ns");
    request.session = static_cast<std::uint32_t>(number_);
    read_priority(json, request);
    read_tokens(json, request);
    ++number_;
  }

  void read_priority(const SortedJson& json, Request& request) const {
    if (json.contains("priority"))
      request.priority = static_cast<std::uint8_t>(integer(json, "priority", 0, UINT8_MAX));
  }

  void read_tokens(const SortedJson& json, Request& request) {
    if (!json.contains("input_tok_ids")) return;
    const std::vector<std::int64_t> tokens = integers(json, "input_tok_ids");
    if (static_cast<std::int64_t>(tokens.size()) != request.prompt)
      lines_.fail(fmt::format("input_tok_ids: {} ids; allowed: input_toks of them, {}", tokens.size(),
                              request.prompt));
    builder_.set_blocks(request, keys_of_tokens(tokens, block_tokens_), block_tokens_);
  }

  // Requests of which each waits for the one before it and for a tool.
  void session(const SortedJson& json) {
    const std::int64_t ps = integer(json, "arrival_time_ns", 0, kMostNs) * 1000;
    const SortedJson& list = json.at("sub_requests");
    if (!list.is_array() || list.empty()) lines_.fail("sub_requests: allowed: a list of requests");
    std::int64_t delay_ps = 0;
    std::int32_t before = -1;
    for (const SortedJson& sub : list) {
      if (!sub.is_object()) lines_.fail("sub_requests: allowed: a list of objects");
      const std::int64_t prompt = integer(sub, "input_toks", 1, kMostTokens),
                         output = integer(sub, "output_toks", 0, kMostTokens);
      Request& request = before < 0 ? builder_.add(ps, prompt, output, "arrival_time_ns")
                                    : builder_.add_follower(before, delay_ps, prompt, output);
      request.session = static_cast<std::uint32_t>(number_);
      read_priority(sub, request);
      read_tokens(sub, request);
      delay_ps = sub.contains("tool_duration_ns") ? integer(sub, "tool_duration_ns", 0, kMostNs) * 1000 : 0;
      before = static_cast<std::int32_t>(builder_.trace().requests.size()) - 1;
    }
    ++number_;
  }

  LineReader& lines_;
  TraceBuilder builder_;
  int block_tokens_;
  std::int64_t number_ = 0;                      // of sessions
  std::map<std::int64_t, std::uint32_t> chats_;  // sessions of chats
};

const char* format_of(const std::string& line) {
  const SortedJson json = SortedJson::parse(line, nullptr, false);
  if (json.is_object() && json.contains("format")) return "cm384";
  if (json.is_object() && json.contains("chat_id")) return "Bailian";
  if (json.is_object() && json.contains("requests")) return "AIBrix";
  if (json.is_object() && json.contains("hash_ids")) return "Mooncake";
  if (json.is_object() && (json.contains("timestamp") || json.contains("input_length"))) return "ServeGen";
  return "LLMServingSim";
}

}  // namespace

std::string requests_text(const RequestTrace& trace) {
  std::string text =
      fmt::format("{{\"format\":\"{}\",\"block_tokens\":{}}}\n", kOwnFormat, trace.block_tokens);
  auto out = std::back_inserter(text);
  for (const Request& request : trace.requests) {
    fmt::format_to(out, R"({{"arrival_ps":{},"prompt":{},"output":{},"session":{})", request.arrival.ps,
                   request.prompt, request.output, request.session);
    if (request.follows >= 0) fmt::format_to(out, R"(,"follows":{})", request.follows);
    if (request.priority > 0) fmt::format_to(out, R"(,"priority":{})", request.priority);
    if (request.answer_blocks > 0) fmt::format_to(out, R"(,"answer_blocks":{})", request.answer_blocks);
    if (request.blocks + request.answer_blocks > 0)
      fmt::format_to(out, R"(,"blocks":[{}])", fmt::join(trace.blocks_with_answer(request), ","));
    text += "}\n";
  }
  return text;
}

RequestTrace read_json_requests(LineReader& lines, std::string line, int block_tokens) {
  JsonRequestsReader reader(lines, block_tokens, format_of(line));
  do {
    reader.line(line);
  } while (lines.next(line));
  return reader.release();
}

}  // namespace cm384::service
