// Where a study's requests come from: a recorded file, or drawn.
#pragma once

#include <string>

#include "workloads/frame/study.h"
#include "workloads/service/drawn_requests.h"

namespace cm384::studies {

struct RequestOptions {
  std::string requests;
  Time duration{};
  std::string prompt = "fixed:4096", output = "fixed:256";
  double reuse = 0;
  int block = 512;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("requests", self.requests, Form{"FILE"},
          "requests that were recorded: Azure, BurstGPT, Mooncake, ServeGen, LLMServingSim, results of "
          "benchmarks, or what --export wrote; otherwise they are drawn, arrivals as a Poisson process");
    visit("duration", self.duration, Range{Time{}, 604'800_s},
          "of the requests, from the first on, which comes at time 0, drawn or recorded; recorded ones are "
          "repeated or cut; 0s: once as recorded, or 60s");
    constexpr Form kLengths{"fixed:N|uniform:LOW:HIGH|lognormal:MEDIAN:SIGMA",
                            service::check_length_distribution};
    visit("prompt", self.prompt, kLengths, "tokens of drawn prompts");
    visit("output", self.output, Form{kLengths.text, service::check_answer_distribution},
          "tokens of drawn answers, 0 too");
    visit("reuse", self.reuse, Range{0.0, 1.0},
          "share of each drawn prompt that all have in common, in whole blocks");
    visit("block", self.block, Range{128, 512},
          "tokens of a cached block, where the requests do not say: drawn ones, and ids of tokens");
  }

  static constexpr Range kRates{0.0, 1e6};
  static constexpr std::string_view kRateText =
      "requests per second; recorded arrivals are scaled to it. 0: as recorded, or 10";

  // At `rate` per second; 0: as recorded, or 10. Throws InputError for a file that cannot be read, and for
  // options of drawn requests beside it.
  service::RequestTrace load(const StudyContext& context, std::string_view study, std::uint64_t seed,
                             double rate) const;
  // What is drawn without a file.
  service::DrawnRequests drawn(std::uint64_t seed, double rate) const;
  // For StudyResult::notes: how many requests of which format, how long they are, what was left out.
  static std::string note_of(const service::RequestTrace& trace);
};

}  // namespace cm384::studies
