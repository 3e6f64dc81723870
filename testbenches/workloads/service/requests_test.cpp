// Files of requests: what each format becomes, and what is refused where.
#include "workloads/service/requests.h"

#include <gmock/gmock.h>

#include "base/text/error.h"
#include "testbenches/workloads/service/file_of.h"

namespace cm384::service::requests_test {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

RequestTrace read(const std::string& text, int block_tokens = kMooncakeBlock) {
  const FileOf file(text);
  return read_requests(file.path(), block_tokens);
}

// The message without the name of the file: ":3: field: ...".
std::string refusal(const std::string& text) {
  const FileOf file(text);
  try {
    read_requests(file.path());
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind(file.path(), 0), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message.substr(file.path().size());
  }
  return "nothing is refused";
}

const std::string kAzure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";
const std::string kBurst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type";

TEST(Requests, OfAzureBeginWithTheFirst) {
  const RequestTrace trace = read(kAzure +
                                  "2023-11-30 23:59:59.5000000,374,44\r\n\r\n"
                                  "2023-12-01 00:00:01.0000001+00:00,396,109\r\n"
                                  "2023-12-01 00:00:01.0000001,1,1\n");
  EXPECT_EQ(trace.format, "Azure");
  EXPECT_EQ(trace.block_tokens, 0);
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[0].arrival.ps, 0);
  EXPECT_EQ(trace.requests[1].arrival.ps, 1'500'000'100'000);
  EXPECT_EQ(trace.requests[1].prompt, 396);
  EXPECT_EQ(trace.requests[1].output, 109);
}

// What vLLM's and SGLang's benchmarks save.
TEST(Requests, OfABenchmarkBeginInTheOrderOfTheirTimes) {
  const RequestTrace trace = read(R"({"date": "20260102", "duration": 9.5, "input_lens": [10, 20, 30, 40],
    "output_lens": [1, 0, 3, 0], "ttfts": [0.1, 0.2], "generated_texts": ["\"input_lens\"", "b"],
    "start_times": [1000.5, 1000.25, 1002.0, 1001.0], "errors": ["", "", "", "timeout"]})");
  EXPECT_EQ(trace.format, "benchmark");
  EXPECT_TRUE(trace.timed);
  EXPECT_EQ(trace.failed, 1);
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[0].prompt, 20);
  EXPECT_EQ(trace.requests[1].prompt, 10);
  EXPECT_EQ(trace.requests[1].arrival, Time{250'000'000'000});
  EXPECT_EQ(trace.requests[2].arrival, Time{1'750'000'000'000});
  EXPECT_EQ(trace.requests[2].output, 3);
  const RequestTrace lengths = read(
      "\xef\xbb\xbf"
      R"({"input_lens": [10, 20], "output_lens": [1, 2]})");
  EXPECT_FALSE(lengths.timed);
  EXPECT_EQ(lengths.requests[1].output, 2);
}

TEST(Requests, OfABenchmarkAreRefusedByEntry) {
  EXPECT_EQ(refusal(R"({"input_lens": [10, 20], "output_lens": [1]})"),
            ": output_lens: 1 entries; allowed: as many as input_lens, 2");
  EXPECT_EQ(refusal(R"({"input_lens": [10, 0], "output_lens": [1, 1]})"),
            ": input_lens[1]: allowed: a whole number from 1 to 10000000");
  EXPECT_EQ(refusal(R"({"input_lens": [10], "output_lens": [1], "start_times": ["x"]})"),
            ": start_times[0]: allowed: seconds");
  EXPECT_EQ(refusal("{\"input_lens\": [10], \"output_lens\": [1]}\n{}"),
            ": not a JSON object; allowed: the result of one run of a benchmark");
}

TEST(Requests, OfMooncakeHaveBlocks) {
  const RequestTrace trace = read(
      "\n{\"timestamp\": 3, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [0, 7]}\n"
      "{\"timestamp\": 10.5, \"input_length\": 1025, \"output_length\": 6, \"hash_ids\": [0, 7, 9]}\n");
  EXPECT_EQ(trace.format, "Mooncake");
  EXPECT_EQ(trace.block_tokens, 512);
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[1].arrival, Time{7'500'000'000});
  EXPECT_THAT(trace.blocks_of(trace.requests[0]), ElementsAre(0, 7));
  EXPECT_THAT(trace.blocks_of(trace.requests[1]), ElementsAre(0, 7, 9));
}

// In seconds, with blocks of 16 tokens; turns of a chat are one session.
TEST(Requests, OfBailianAreInSeconds) {
  const std::string
      first = R"({"chat_id": 7, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 20, )"
              R"("output_length": 3, "type": "text", "turn": 1, "hash_ids": [4, 5]})"
              "\n",
      second = R"({"chat_id": 9, "parent_chat_id": 7, "timestamp": 61.114, "input_length": 40, )"
               R"("output_length": 2, "type": "text", "turn": 2, "hash_ids": [4, 5, 6]})"
               "\n",
      empty =
          R"({"chat_id": 10, "parent_chat_id": -1, "timestamp": 62, "input_length": 4, "output_length": 0})"
          "\n";
  const RequestTrace trace = read(first + second + empty);
  EXPECT_EQ(trace.format, "Bailian");
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[2].output, 0);  // nothing was asked for but the prompt
  EXPECT_EQ(trace.requests[1].arrival, Time{60'614'000'000'000});
  EXPECT_EQ(trace.requests[1].session, trace.requests[0].session);
  EXPECT_EQ(trace.block_tokens, 16);
  EXPECT_EQ(trace.blocks_of(trace.requests[1]).size(), 3u);
  EXPECT_EQ(trace.failed, 0);
}

TEST(Requests, OfVidurAndAibrixHaveTheirUnits) {
  const RequestTrace vidur =
      read("arrived_at,num_prefill_tokens,num_decode_tokens\n1.5,374,44\n4.25,396,109\n5,3,0\n");
  EXPECT_EQ(vidur.format, "Vidur");
  ASSERT_EQ(vidur.requests.size(), 3u);
  EXPECT_EQ(vidur.requests[1].arrival, Time{2'750'000'000'000});
  EXPECT_EQ(vidur.requests[2].output, 0);
  const RequestTrace aibrix = read(
      "{\"timestamp\": 10, \"requests\": [{\"Prompt Length\": 5, \"Output Length\": 2, \"prompt\": \"a\"}, "
      "{\"Prompt Length\": 6, \"Output Length\": 3}]}\n{\"timestamp\": 25, \"requests\": "
      "[{\"prompt_length\": 7, "
      "\"output_length\": 1}]}\n");
  EXPECT_EQ(aibrix.format, "AIBrix");
  ASSERT_EQ(aibrix.requests.size(), 3u);
  EXPECT_EQ(aibrix.requests[1].arrival, Time{});
  EXPECT_EQ(aibrix.requests[2].arrival, Time{15'000'000'000});
}

// A field that no known form has may mean another unit: it is not guessed.
TEST(Requests, WithFieldsOfNoFormAreRefused) {
  EXPECT_THAT(refusal("{\"timestamp\": 30, \"input_length\": 1, \"output_length\": 2, \"model\": 4}\n"),
              HasSubstr(":1: model: is not a field of ServeGen; allowed: timestamp, input_length"));
}

// Rows and columns in any order come to the same requests.
TEST(Requests, MayStandInAnyOrder) {
  const auto same = [](const std::string& one, const std::string& other) {
    const RequestTrace a = read(one), b = read(other);
    EXPECT_EQ(requests_text(a), requests_text(b)) << other;
    return a;
  };
  const RequestTrace azure =
      same(kAzure + "2023-11-16 18:17:03.5,1,2\n2023-11-17 18:17:03.5,3,4\n2023-11-17 18:17:04,5,6\n",
           "GeneratedTokens, TIMESTAMP, ContextTokens\n6,2023-11-17T18:17:04Z,5\n4,2023-11-17 "
           "18:17:03.5+00:00,3\n2,2023-11-16 18:17:03.5,1\n");
  EXPECT_EQ(azure.requests[1].arrival, 86'400_s);
  same("arrived_at,num_prefill_tokens,num_decode_tokens\n1.5,374,44\n4.25,396,109\n",
       "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio,arrived_at\n396,109,505,3.6,4.25\n"
       "374,44,418,8.5,1.5e0\n");
  // BurstGPT's second release has its sessions in the middle.
  same(kBurst +
           ",Session ID,Elapsed time\n5,ChatGPT,472,18,490,Conversation log,a,1.5\n9,GPT-4,4,2,6,API "
           "log,b,1\n",
       "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
       "5,a,1.5,ChatGPT,472,18,490,Conversation log\n9,b,1,GPT-4,4,2,6,API log\n");
  const std::string first =
                        R"({"timestamp": 3, "input_length": 1024, "output_length": 5, "hash_ids": [0, 7]})"
                        "\n",
                    second =
                        R"({"hash_ids": [9], "output_length": 6, "input_length": 7, "timestamp": 1.05e1})"
                        "\n";
  const RequestTrace mooncake = read(second + first);
  EXPECT_EQ(mooncake.requests[1].arrival, Time{7'500'000'000});
  EXPECT_THAT(mooncake.blocks_of(mooncake.requests[0]), ElementsAre(0, 7));
  EXPECT_THAT(mooncake.blocks_of(mooncake.requests[1]), ElementsAre(9));
  // What follows another one goes with it.
  const std::string
      a = R"({"session_id":"a","arrival_time_ns":3000,"sub_requests":[{"input_toks":5,"output_toks":2},{"input_toks":9,"output_toks":3}]})"
          "\n",
      b = R"({"session_id":"b","arrival_time_ns":2000,"sub_requests":[{"input_toks":1,"output_toks":1}]})"
          "\n";
  const RequestTrace sessions = read(a + b);
  ASSERT_EQ(sessions.requests.size(), 3u);
  EXPECT_EQ(sessions.requests[0].prompt, 1);
  EXPECT_EQ(sessions.requests[1].arrival, 1_us);
  EXPECT_EQ(sessions.requests[2].follows, 1);
}

TEST(Requests, OfServeGenHaveClients) {
  const RequestTrace trace =
      read("{\"timestamp\": 30, \"input_length\": 151, \"output_length\": 284, \"client\": 46}\n");
  EXPECT_EQ(trace.format, "ServeGen");
  EXPECT_EQ(trace.requests[0].session, 46u);
}

TEST(Requests, OfBurstGptWithoutOutputAreLeftOutAndCounted) {
  const RequestTrace trace =
      read(kBurst + ",Session ID,Elapsed time\n5,ChatGPT,472,18,490,Conversation log,a,1.5\n" +
           "45.5,ChatGPT,10,0,10,API log,b,0\n118,GPT-4,417,276,693,Conversation log,a,2\n");
  EXPECT_EQ(trace.format, "BurstGPT");
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.failed, 1);
  EXPECT_EQ(trace.requests[1].arrival, 113_s);
  EXPECT_EQ(trace.requests[0].session, trace.requests[1].session);
}

TEST(Requests, OfTokensShareBlocksWhereAllTokensBeforeAreEqual) {
  const RequestTrace trace = read(
      "{\"input_toks\":5,\"output_toks\":2,\"arrival_time_ns\":100,\"input_tok_ids\":[1,2,3,4,5]}\n"
      "{\"input_toks\":4,\"output_toks\":2,\"arrival_time_ns\":200,\"input_tok_ids\":[1,2,3,9]}\n"
      "{\"input_toks\":4,\"output_toks\":2,\"arrival_time_ns\":300,\"input_tok_ids\":[9,2,3,4]}\n",
      2);
  EXPECT_EQ(trace.format, "LLMServingSim");
  const auto first = trace.blocks_of(trace.requests[0]), second = trace.blocks_of(trace.requests[1]),
             third = trace.blocks_of(trace.requests[2]);
  ASSERT_EQ(first.size(), 2u);  // the fifth token fills no block
  EXPECT_EQ(first[0], second[0]);
  EXPECT_NE(first[1], second[1]);
  EXPECT_NE(first[1], third[1]);  // equal tokens behind others
  EXPECT_EQ(trace.requests[1].arrival, 100_ns);
}

TEST(Requests, OfASessionFollowOneAnother) {
  const RequestTrace trace = read(
      "{\"session_id\":\"a\",\"arrival_time_ns\":1000,\"sub_requests\":[{\"input_toks\":5,\"output_toks\":2,"
      "\"tool_duration_ns\":70},{\"input_toks\":9,\"output_toks\":3}]}\n"
      "{\"session_id\":\"b\",\"arrival_time_ns\":2000,\"sub_requests\":[{\"input_toks\":1,\"output_toks\":1}]"
      "}\n");
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[1].follows, 0);
  EXPECT_EQ(trace.requests[1].arrival, 70_ns);
  EXPECT_EQ(trace.requests[2].follows, -1);
  EXPECT_EQ(trace.requests[2].arrival, 1_us);
  EXPECT_NE(trace.requests[2].session, trace.requests[1].session);
}

TEST(Requests, AreRefusedByFileLineAndField) {
  const std::string good = "2023-11-16 18:17:03.9799600,4808,10\n";
  EXPECT_EQ(refusal(kAzure + good + good + "2023-11-16 18:17:04,-7,5\n"),
            ":4: ContextTokens: '-7'; allowed: a whole number from 1 to 10000000");
  EXPECT_THAT(refusal(kAzure + "2023-11-16 18:17:04,7,-1\n"), HasSubstr(":2: GeneratedTokens: '-1'"));
  EXPECT_THAT(refusal(kAzure + "2023-11-16 18:17:04,0,1\n"), HasSubstr(":2: ContextTokens: '0'"));
  for (const char* time : {"2023-02-29 18:17:04", "2023-11-16 24:17:04", "2023-11-16_18:17:04",
                           "2023-11-16 18:17:04.", "2023-11-16 18:17:04.x", "2023-11-16 18:-7:04", "", "17"})
    EXPECT_THAT(refusal(kAzure + time + ",7,5\n"), HasSubstr(":2: TIMESTAMP: '")) << time;
  EXPECT_THAT(refusal(kAzure + good + "2024-11-16 18:17:04,7,5\n"),
              HasSubstr(":3: TIMESTAMP: 8812800 s between the first"));
  EXPECT_THAT(refusal(kAzure + "2024-11-16 18:17:03,7,5\n" + good),
              HasSubstr("s between the first request and the last one; allowed: 100 days"));
  EXPECT_THAT(refusal(kAzure + good.substr(0, 20)), HasSubstr(":2: line: 1 fields; allowed: 3"));
  EXPECT_THAT(refusal(kAzure), HasSubstr("the file has no request"));
  EXPECT_THAT(refusal(""), EndsWith(":1: line: the file has no request"));
  EXPECT_THAT(refusal("time,in,out\n1,2,3\n"),
              HasSubstr(":1: line: 'time,in,out'; allowed: the first line of"));

  const std::string line =
      "{\"timestamp\": 10, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 1]}\n";
  std::string broken;
  for (int k = 0; k < 16; ++k) broken += line;
  EXPECT_EQ(refusal(broken + "{\"timestamp\": 10, \"inp\n"),
            ":17: line: is not JSON; allowed: one object per line");
  EXPECT_THAT(refusal("{\"timestamp\": 9, \"input_length\": -600, \"output_length\": 5}\n"),
              HasSubstr(":1: input_length: -600; allowed"));
  EXPECT_THAT(refusal("{\"timestamp\": 9, \"input_length\": 6.5, \"output_length\": 5}\n"),
              HasSubstr(":1: input_length: 6.5; allowed"));
  EXPECT_THAT(refusal("{\"timestamp\": 9, \"input_length\": 18446744073709551615, \"output_length\": 5}\n"),
              HasSubstr(":1: input_length: 18446744073709551615; allowed"));
  EXPECT_EQ(refusal("{\"timestamp\": 9, \"output_length\": 5}\n"), ":1: input_length: is missing");
  EXPECT_THAT(refusal("{\"timestamp\": -9, \"input_length\": 6, \"output_length\": 5}\n"),
              HasSubstr(":1: timestamp: -9; allowed"));
  EXPECT_THAT(
      refusal("{\"timestamp\": 10, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 1, 2]}\n"),
      HasSubstr(":1: hash_ids: 3 ids; allowed: 2"));
  EXPECT_THAT(
      refusal("{\"timestamp\": 10, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, -1]}\n"),
      HasSubstr(":1: hash_ids[1]: -1; allowed"));
  EXPECT_THAT(refusal("{\"input_toks\":2,\"output_toks\":2,\"arrival_time_ns\":1,\"input_tok_ids\":[1]}\n"),
              HasSubstr(":1: input_tok_ids: 1 ids; allowed: input_toks of them, 2"));
  EXPECT_THAT(refusal("{\"session_id\":1,\"arrival_time_ns\":1,\"sub_requests\":[]}\n"),
              HasSubstr(":1: sub_requests"));
  const std::string head = "{\"format\":\"cm384-requests-1\",\"block_tokens\":100}\n",
                    own = "{\"arrival_ps\":0,\"prompt\":200,\"output\":1,\"session\":0";
  EXPECT_EQ(refusal(head + own + ",\"blocks\":[1,2]}\n"), "nothing is refused");
  EXPECT_THAT(refusal(head + own + ",\"blocks\":[1,2,3]}\n"), HasSubstr(":2: blocks: 3 of 100 tokens"));
  EXPECT_THAT(refusal(head + own + ",\"blocks\":[1,-2]}\n"), HasSubstr(":2: blocks: allowed"));
  EXPECT_THAT(refusal(head + own + ",\"follows\":0}\n"), HasSubstr(":2: follows"));
  EXPECT_THAT(refusal(head + own + ",\"priority\":256}\n"), HasSubstr(":2: priority: 256; allowed"));
  EXPECT_THAT(refusal("{\"format\":\"cm384-requests-2\"}\n"), HasSubstr(":1: format"));
  EXPECT_THAT(refusal(kBurst + "\nx,GPT-4,1,1,2,API log\n"),
              HasSubstr(":2: Timestamp: 'x'; allowed: seconds"));
}

TEST(RecordedRequests, AreReadWhole) {
  const auto folder = recorded_requests(CM384_SOURCE_DIR);
  if (folder.empty()) GTEST_SKIP() << "no ../shared/traces beside the project and no CM384_SHARED";
  struct Expected {
    const char *file, *format;
    std::size_t requests;
    std::int64_t prompts, last_ms;
  };
  for (const Expected& expected : std::initializer_list<Expected>{
           {"azure2023_code.csv", "Azure", 8819, 18059974, 3435948},
           {"azure2023_conv.csv", "Azure", 19366, 22361870, 3501721},
           {"burstgpt_format_sample.csv", "BurstGPT", 3, 1976, 113000},
           {"llmservingsim_example.jsonl", "LLMServingSim", 10, -1, -1},
           {"mooncake_fast25_conversation_head.jsonl", "Mooncake", 3894, -1, 1265999},
           {"mooncake_fast25_synthetic_head.jsonl", "Mooncake", 3646, -1, 940192},
           {"servegen_deepseek_r1_600s_20rps.jsonl", "ServeGen", 11954, -1, -1}}) {
    const RequestTrace trace = read_requests((folder / expected.file).string());
    EXPECT_EQ(trace.format, expected.format) << expected.file;
    EXPECT_EQ(trace.requests.size(), expected.requests) << expected.file;
    std::int64_t prompts = 0;
    for (const Request& request : trace.requests) prompts += request.prompt;
    if (expected.prompts >= 0) {
      EXPECT_EQ(prompts, expected.prompts) << expected.file;
    }
    if (expected.last_ms >= 0) {
      EXPECT_EQ(trace.requests.back().arrival.ps / 1'000'000'000, expected.last_ms) << expected.file;
    }
  }
}

}  // namespace
}  // namespace cm384::service::requests_test
