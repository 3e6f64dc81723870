// Requests as a service meets them: when they come, how long they are, and which blocks of tokens they share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/text/units.h"

namespace cm384::service {

struct Request {
  Time arrival{};  // after the first request; of a follower: after the end of the request before it
  std::int32_t prompt = 0, output = 0;        // tokens: at least one, and 0 or more
  std::uint32_t first_block = 0, blocks = 0;  // in RequestTrace::keys
  std::uint32_t answer_blocks = 0;            // behind these: whole ones that the answer fills
  std::int32_t follows = -1;                  // number of the request before it in its session; -1: none
  std::uint32_t session = 0;                  // or client: who asks
  std::uint8_t priority = 0;                  // its class: 0 is the most urgent
};

struct RequestTrace {
  std::string format;
  // In the order of arrival, whatever that of the file; a follower stands behind what it follows.
  std::vector<Request> requests;
  std::vector<std::uint64_t> keys;  // of blocks; equal keys: equal tokens in the block and in front of it
  int block_tokens = 0;             // of every block but a prompt's last one; 0: the trace has none
  std::int64_t failed = 0;          // records without output tokens, which are left out
  bool timed = true;                // it is told when requests come; otherwise they are lengths alone

  std::span<const std::uint64_t> blocks_of(const Request& request) const {
    return std::span(keys).subspan(request.first_block, request.blocks);
  }
  std::span<const std::uint64_t> blocks_with_answer(const Request& request) const {
    return std::span(keys).subspan(request.first_block, request.blocks + request.answer_blocks);
  }
};

inline constexpr int kMooncakeBlock = 512;               // tokens that an id of `hash_ids` stands for
inline constexpr int kBailianBlock = 16;                 // likewise
inline constexpr std::int32_t kMostTokens = 10'000'000;  // of a prompt or an output

// Reads a file, packed by gzip or not, whose format is recognised by its first line:
//   Azure          TIMESTAMP,ContextTokens,GeneratedTokens                          (Splitwise; 2023, 2024)
//   BurstGPT       Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type and further columns
//   Mooncake       {"timestamp" (ms), "input_length", "output_length", "hash_ids"}
//   ServeGen       the same with "client" in place of the ids
//   Bailian        {"chat_id", "parent_chat_id", "timestamp" (s), "input_length", "output_length", "type",
//                  "turn", "hash_ids"}
//   AIBrix         {"timestamp" (ms), "requests": [{"Prompt Length", "Output Length", ..}]}
//   Vidur          arrived_at (s),num_prefill_tokens,num_decode_tokens and further columns
//   LLMServingSim  {"input_toks", "output_toks", "arrival_time_ns"}, with "input_tok_ids" or without, or
//                  sessions {"session_id", "arrival_time_ns", "sub_requests"}
//   benchmark      {"input_lens": [..], "output_lens": [..]}, with "start_times" (s) or without: a result of
//                  vLLM or SGLang
//   cm384          {"format": "cm384-requests-1"}: what requests_text() wrote
// `block_tokens`: of the blocks that are made of token ids. Throws InputError: one line, file:line: field:
// what was found; what is allowed.
RequestTrace read_requests(const std::string& path, int block_tokens = kMooncakeBlock);
// A trace as lines of JSON that read_requests() makes the same trace of.
std::string requests_text(const RequestTrace& trace);

}  // namespace cm384::service
