#include "workloads/cluster/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <utility>

#include "base/text/csv_table.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/json.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"
#include "traces/fixed_math.h"

namespace cm384::cluster {
namespace {

using hw::CsvTable;

constexpr double kMostSeconds = 1e9;  // 30 years
constexpr std::int64_t kMostBlocks = 100'000;
constexpr const char* kTime = "a time such as 2023-03-01 00:00:03";

std::int64_t milliseconds(double seconds) {
  return std::llround(seconds * 1000);
}

// Seconds since 1970 of "2023-03-01 00:00:03", with a zone such as "+08:00" behind or not.
std::optional<std::int64_t> point_of_time(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  const char* end = strptime(copy.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (end == nullptr) return {};
  std::tm zone{};
  if (*end != '\0' && (end = strptime(end, "%z", &zone), end == nullptr || *end != '\0')) return {};
  return timegm(&parts) - zone.tm_gmtoff;
}

class Builder {
 public:
  explicit Builder(int largest) : largest_(largest) {}

  // Of a trace that knows no blocks.
  void add(std::string id, std::int64_t submit_ms, std::int64_t duration_ms, std::int64_t npus) {
    const std::int64_t block = largest_ > 0 ? std::min<std::int64_t>(largest_, npus) : npus;
    add(std::move(id), submit_ms, duration_ms, block, block > 0 ? (npus + block - 1) / block : 0);
  }
  void add(std::string id, std::int64_t submit_ms, std::int64_t duration_ms, std::int64_t block,
           std::int64_t blocks) {
    if (block <= 0 || blocks <= 0 || duration_ms <= 0) {
      ++trace_.left_out;
      return;
    }
    trace_.jobs.push_back(
        {std::move(id), submit_ms, duration_ms, static_cast<int>(block), static_cast<int>(blocks)});
  }
  void leave_out() { ++trace_.left_out; }

  JobTrace finish(std::string format, const std::string& path) {
    if (trace_.jobs.empty()) throw InputError(fmt::format("{}: has no job with NPUs and a run", path));
    std::ranges::stable_sort(trace_.jobs, {}, &Job::submit_ms);
    const std::int64_t begin = trace_.jobs.front().submit_ms;
    for (Job& job : trace_.jobs) job.submit_ms -= begin;
    trace_.format = std::move(format);
    return std::move(trace_);
  }

 private:
  int largest_;
  JobTrace trace_;
};

double real(const FieldReader& fields, std::size_t column) {
  double value = -1;
  try {
    value = hw::parse_real(fields.text(column));
  } catch (const InputError&) {
  }
  if (!(value >= 0 && value <= kMostSeconds)) fields.fail(column, "seconds from 0 to 1e9");
  return value;
}

const CsvTable::Names kOwn{"job_id", "submit_s", "npus", "block", "blocks", "duration_s"};

JobTrace read_own(const std::string& path, int largest) {
  if (largest > 0) throw InputError(fmt::format("{}: says the blocks of its jobs", path));
  CsvTable table(path, kOwn, {"kind"});
  Builder builder(0);
  table.each([&](const FieldReader& fields) {
    const std::int64_t npus = fields.integer(2, 1, kMostBlock * kMostBlocks),
                       block = fields.integer(3, 1, kMostBlock), blocks = fields.integer(4, 1, kMostBlocks);
    if (npus > block * blocks || npus <= block * (blocks - 1))
      fields.fail(2, fmt::format("what {} blocks of {} NPUs hold", blocks, block));
    builder.add(std::string(fields.text(0)), milliseconds(real(fields, 1)), milliseconds(real(fields, 5)),
                block, blocks);
  });
  return builder.finish("own", path);
}

// Acme and Helios: columns by name.
JobTrace read_named(const std::string& path, const CsvTable::Names& header, int largest) {
  CsvTable table(path, header);
  const std::size_t id = table.column("job_id"), npus = table.column("gpu_num"),
                    submit = table.column("submit_time"), begin = table.column("start_time"),
                    end = table.column("end_time");
  Builder builder(largest);
  table.each([&](const FieldReader& fields) {
    const auto at = point_of_time(fields.text(submit));
    if (!at) fields.fail(submit, kTime);
    // What never ran has no such times. `duration` is no run: in Kalos it begins with the wait.
    if (fields.text(begin).empty() || fields.text(end).empty() || fields.text(npus).empty())
      return builder.leave_out();
    const auto from = point_of_time(fields.text(begin)), to = point_of_time(fields.text(end));
    if (!from) fields.fail(begin, kTime);
    if (!to) fields.fail(end, kTime);
    const double gpus = real(fields, npus);
    if (gpus != std::floor(gpus) || gpus > kMostBlock) fields.fail(npus, "a whole number of GPUs");
    builder.add(std::string(fields.text(id)), *at * 1000, (*to - *from) * 1000,
                static_cast<std::int64_t>(gpus));
  });
  const bool acme = std::ranges::find(header, "gpu_time") != header.end();
  return builder.finish(acme ? "Acme" : "Helios", path);
}

// A job's run is from the begin of its first attempt to the end of its last; its size that of the last.
JobTrace read_philly(const std::string& path, int largest) {
  const Json json = Json::parse(read_input(path), nullptr, false);
  const Json list = json.is_array() ? json : Json::array({json});
  Builder builder(largest);
  for (std::size_t k = 0; k < list.size(); ++k) {
    const Json& job = list[k];
    const auto refuse = [&](const char* field, const char* allowed) {
      throw InputError(fmt::format("{}: [{}]: {}: allowed: {}", path, k, field, allowed));
    };
    const auto text = [&](const Json& of, const char* field) {
      const Json value = of.is_object() ? of.value(field, Json()) : Json();
      return value.is_string() ? value.get<std::string>() : std::string();
    };
    if (!job.is_object()) refuse("a job", "an object");
    const auto submit = point_of_time(text(job, "submitted_time"));
    if (!submit) refuse("submitted_time", "a time such as 2017-10-03 21:37:43");
    const Json attempts = job.value("attempts", Json::array());
    if (!attempts.is_array()) refuse("attempts", "a list");
    std::optional<std::int64_t> begin, end;
    std::int64_t gpus = 0;
    for (const Json& attempt : attempts) {
      const auto from = point_of_time(text(attempt, "start_time")),
                 to = point_of_time(text(attempt, "end_time"));
      if (!from || !to) continue;
      begin = begin ? std::min(*begin, *from) : *from;
      end = end ? std::max(*end, *to) : *to;
      gpus = 0;
      const Json detail = attempt.value("detail", Json::array());
      for (const Json& machine : detail) {
        const Json held = machine.is_object() ? machine.value("gpus", Json()) : Json();
        if (held.is_array()) gpus += static_cast<std::int64_t>(held.size());
      }
    }
    if (!begin || gpus > kMostBlock) {
      builder.leave_out();
      continue;
    }
    builder.add(text(job, "jobid"), *submit * 1000, (*end - *begin) * 1000, gpus);
  }
  return builder.finish("Philly", path);
}

[[noreturn]] void refuse_form(std::string_view text, std::string_view allowed) {
  throw InputError(fmt::format("'{}'; allowed: {}", text, allowed));
}

}  // namespace

JobTrace read_jobs(const std::string& path, int largest) {
  std::string first;
  {
    LineReader lines(path);
    while (first.empty() && lines.next(first)) {
    }
  }
  if (first.starts_with('[') || first.starts_with('{')) return read_philly(path, largest);
  CsvTable::Names header;
  for (const std::string_view name : split_fields(first)) header.emplace_back(name);
  const auto has = [&](const char* name) { return std::ranges::find(header, name) != header.end(); };
  if (has("submit_s")) return read_own(path, largest);
  if (has("job_id") && has("gpu_num") && has("submit_time") && has("start_time") && has("end_time"))
    return read_named(path, header, largest);
  throw InputError(
      fmt::format("{}:1: columns {}; allowed: {}, or those of Acme or Helios (job_id, gpu_num, "
                  "submit_time, start_time, end_time among them), or the JSON of Philly",
                  path, first.substr(0, 200), fmt::join(kOwn, ",")));
}

BlockSizes::BlockSizes(std::string_view text) {
  const auto parts = split_fields(text, ':');
  const auto wrong = [&] [[noreturn]] {
    refuse_form(text, "fixed:N, uniform:LOW:HIGH, powers:LARGEST:MEAN, NPUs from 1 to 1000000");
  };
  const auto npus = [&](std::string_view word) {
    const std::int64_t value = hw::parse_integer(word);
    if (value < 1 || value > kMostBlock) wrong();
    return static_cast<int>(value);
  };
  if (parts[0] == "fixed" && parts.size() == 2) {
    sizes_.push_back({npus(parts[1]), 1});
  } else if (parts[0] == "uniform" && parts.size() == 3) {
    const int low = npus(parts[1]), high = npus(parts[2]);
    if (low > high) wrong();
    for (int size = low; size <= high; ++size) sizes_.push_back({size, 1.0 / (high - low + 1)});
  } else if (parts[0] == "powers" && parts.size() == 3) {
    const int largest = npus(parts[1]);
    const double wanted = hw::parse_real(parts[2]);
    for (int size = 1; size <= largest; size *= 2) sizes_.push_back({size, 0});
    if (sizes_.back().npus != largest || !(wanted > 1 && wanted < largest)) wrong();
    // The mean rises with the exponent: halved until no number lies between.
    const auto weigh = [&](double exponent) {
      double sum = 0, mean = 0;
      for (std::size_t k = 0; k < sizes_.size(); ++k) {
        sizes_[k].chance = traces::exponential(exponent * static_cast<double>(k));
        sum += sizes_[k].chance;
        mean += sizes_[k].chance * sizes_[k].npus;
      }
      for (Size& size : sizes_) size.chance /= sum;
      return mean / sum;
    };
    double low = -30, high = 30;
    for (int k = 0; k < 200; ++k) {
      const double middle = (low + high) / 2;
      (weigh(middle) < wanted ? low : high) = middle;
    }
    weigh(low);
  } else {
    wrong();
  }
}

int BlockSizes::draw(traces::Random& random) const {
  double share = random.real();
  for (const Size& size : sizes_) {
    share -= size.chance;
    if (share < 0) return size.npus;
  }
  return sizes_.back().npus;
}

double BlockSizes::mean() const {
  double sum = 0;
  for (const Size& size : sizes_) sum += size.chance * size.npus;
  return sum;
}

double BlockSizes::second_moment() const {
  double sum = 0;
  for (const Size& size : sizes_) sum += size.chance * size.npus * size.npus;
  return sum;
}

int BlockSizes::largest() const {
  return sizes_.back().npus;
}

void check_block_sizes(std::string_view text) {
  BlockSizes{text};
}

RunTimes::RunTimes(std::string_view text) {
  const auto parts = split_fields(text, ':');
  const auto wrong = [&] [[noreturn]] {
    refuse_form(text, "fixed:S, exponential:MEAN, lognormal:MEDIAN:MEAN, seconds from 0.001 to 1e9");
  };
  const auto seconds = [&](std::string_view word) {
    const double value = hw::parse_real(word);
    if (!(value >= 0.001 && value <= kMostSeconds)) wrong();
    return value;
  };
  if (parts[0] == "fixed" && parts.size() == 2) {
    mean_ = seconds(parts[1]);
  } else if (parts[0] == "exponential" && parts.size() == 2) {
    kind_ = Kind::kExponential;
    mean_ = seconds(parts[1]);
  } else if (parts[0] == "lognormal" && parts.size() == 3) {
    kind_ = Kind::kLognormal;
    median_ = seconds(parts[1]);
    mean_ = seconds(parts[2]);
    if (mean_ < median_) wrong();
    sigma_ = std::sqrt(2 * traces::natural_log(mean_ / median_));
  } else {
    wrong();
  }
}

std::int64_t RunTimes::draw_ms(traces::Random& random) const {
  double seconds = mean_;
  // By inversion: one number for each. 0 and 1 have no inverse.
  const double share = std::clamp(random.real(), 0x1p-53, 1 - 0x1p-53);
  if (kind_ == Kind::kExponential) seconds = -mean_ * traces::natural_log(share);
  if (kind_ == Kind::kLognormal)
    seconds = median_ * traces::exponential(sigma_ * traces::normal_quantile(share));
  return std::max<std::int64_t>(1, milliseconds(std::min(seconds, kMostSeconds)));
}

void check_run_times(std::string_view text) {
  RunTimes{text};
}

JobTrace draw_jobs(const DrawnJobs& drawn, std::uint64_t seed) {
  enum Stream : std::uint64_t { kArrivals, kBlocks, kDurations };
  traces::Random arrivals(seed, kArrivals), sizes(seed, kBlocks), times(seed, kDurations);
  const BlockSizes block(drawn.block);
  const RunTimes duration(drawn.duration);
  JobTrace trace;
  trace.format = "drawn";
  double at = 0;  // s
  for (std::int64_t k = 0; k < drawn.count; ++k) {
    if (drawn.per_second > 0 && k > 0)
      at -= traces::natural_log(std::max(arrivals.real(), 0x1p-53)) / drawn.per_second;
    trace.jobs.push_back(
        {std::to_string(k), milliseconds(at), duration.draw_ms(times), block.draw(sizes), drawn.blocks});
  }
  return trace;
}

}  // namespace cm384::cluster
