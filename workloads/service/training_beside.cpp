#include "workloads/service/training_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"

namespace cm384::service {

std::vector<TrainingSize> training_sizes(std::string_view text) {
  std::vector<TrainingSize> sizes;
  const auto wrong = [&] {
    return InputError(fmt::format(
        "'{}'; allowed: NPUS:TOKENS_S of each size by rising NPUs, such as 64:20000,128:39000", text));
  };
  for (const std::string_view part : split_fields(text)) {
    const auto fields = split_fields(part, ':');
    if (fields.size() != 2) throw wrong();
    const std::int64_t npus = hw::parse_integer(fields[0]);
    const double tokens_s = hw::parse_real(fields[1]);
    if (npus < 1 || npus > 100'000 || !(tokens_s > 0 && tokens_s <= 1e12)) throw wrong();
    if (!sizes.empty() && npus <= sizes.back().npus) throw wrong();
    sizes.push_back({static_cast<int>(npus), tokens_s});
  }
  return sizes;
}

void check_training_sizes(std::string_view text) {
  training_sizes(text);
}

TrainingBeside::TrainingBeside(std::vector<TrainingSize> sizes, TrainingTimes times, int free)
    : sizes_(std::move(sizes)), times_(times), free_(free), size_(largest(free)) {}

int TrainingBeside::largest(int npus) const {
  const auto above = std::ranges::upper_bound(sizes_, npus, {}, &TrainingSize::npus);
  return static_cast<int>(above - sizes_.begin()) - 1;
}

void TrainingBeside::yield(int wanted, Time now) {
  advance(now);
  if (free_ - held() >= wanted) return;
  const int size = largest(free_ - wanted);
  if (releasing_) {
    next_ = std::min(next_, size);
    return;
  }
  releasing_ = true;
  next_ = size;
  released_ = now + times_.release;
  ++changes_;
  advance(now);
}

void TrainingBeside::set_free(int npus, Time now) {
  advance(now);
  if (largest(npus) != largest(free_)) fits_ = now;
  free_ = npus;
}

// A release ends, or a larger size has fitted for long enough, in the order of time.
void TrainingBeside::advance(Time now) {
  for (;;) {
    if (releasing_) {
      if (released_ > now) break;
      pass(released_);
      releasing_ = false;
      size_ = std::min(next_, largest(free_));
      trains_ = released_ + times_.resume;
      fits_ = released_;
      continue;
    }
    const int size = largest(free_);
    if (size <= size_ || std::max(fits_ + times_.hold, trains_) > now) break;
    const Time at = std::max({fits_ + times_.hold, trains_, now_});
    pass(at);
    ++changes_;
    if (size_ == kNone) {
      size_ = size;
      trains_ = at + times_.resume;
      continue;
    }
    releasing_ = true;
    next_ = size;
    released_ = at + times_.release;
  }
  pass(now);
}

void TrainingBeside::pass(Time until) {
  const auto seconds = [](Time time) { return time.us() * 1e-6; };
  npu_s_ += npus(size_) * seconds(until - now_);
  const Time from = std::max(now_, trains_);
  if (!releasing_ && until > from) tokens_ += tokens_s(size_) * seconds(until - from);
  now_ = until;
}

}  // namespace cm384::service
