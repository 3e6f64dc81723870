// Jobs of a cluster: recorded, in the formats of public traces, or drawn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/random.h"

namespace cm384::cluster {

// Blocks are what a job couples tightly: each lies within one supernode, several may lie apart.
struct Job {
  std::string id;
  std::int64_t submit_ms = 0, duration_ms = 0;  // of the trace's begin; of its run
  int block = 1, blocks = 1;                    // NPUs of a block; how many

  std::int64_t npus() const { return std::int64_t{block} * blocks; }
};

struct JobTrace {
  std::vector<Job> jobs;  // by submission; those of one time in the order of the file
  std::string format;
  std::int64_t left_out = 0;  // records without NPUs or without a run
};

inline constexpr int kMostBlock = 1'000'000;  // NPUs

// CSV with a header, or the JSON of Philly, told by its columns:
//   own            job_id,submit_s,npus,block,blocks,duration_s[,kind]
//   Acme, Helios   job_id,..,gpu_num,..,submit_time,start_time,end_time,.. (Acme has gpu_time)
//   Philly         [{"jobid", "submitted_time", "attempts": [{"start_time", "end_time", "detail":
//   [{"gpus"}]}]}]
// A GPU is taken for an NPU. Traces that know no blocks: a job is one, or with `largest` above 0 as many as
// it takes with at most `largest` NPUs each. Throws InputError: path:line: field: what is allowed.
JobTrace read_jobs(const std::string& path, int largest = 0);

// NPUs of a block: "fixed:N"; "uniform:LOW:HIGH"; "powers:LARGEST:MEAN", powers of two up to the largest, the
// chance of each a power of its size, so that the mean comes out.
class BlockSizes {
 public:
  explicit BlockSizes(std::string_view text);  // Throws InputError.
  int draw(traces::Random& random) const;
  double mean() const;
  double second_moment() const;  // E[b^2]
  int largest() const;

 private:
  struct Size {
    int npus;
    double chance;
  };
  std::vector<Size> sizes_;
};
void check_block_sizes(std::string_view text);

// Seconds that a job runs: "fixed:S", "exponential:MEAN", "lognormal:MEDIAN:MEAN".
class RunTimes {
 public:
  explicit RunTimes(std::string_view text);            // Throws InputError.
  std::int64_t draw_ms(traces::Random& random) const;  // at least 1
  double mean_s() const { return mean_; }

 private:
  enum class Kind { kFixed, kExponential, kLognormal } kind_ = Kind::kFixed;
  double mean_ = 1, median_ = 1, sigma_ = 0;
};
void check_run_times(std::string_view text);

struct DrawnJobs {
  std::int64_t count = 20'000;
  std::string block = "powers:64:10.08", duration = "lognormal:122:1485";
  int blocks = 1;
  double per_second = 0;  // Poisson arrivals; 0: all are there at the begin
};
JobTrace draw_jobs(const DrawnJobs& drawn, std::uint64_t seed);

}  // namespace cm384::cluster
