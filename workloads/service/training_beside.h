// A training on the NPUs that the services of a supernode leave free: it shrinks where a service wants them,
// and grows where they stay free, each time from a checkpoint.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text/units.h"

namespace cm384::service {

struct TrainingSize {
  int npus = 0;         // of all its replicas
  double tokens_s = 0;  // that it trains on so many
};

// "64:20000,128:39000": NPUs and tokens per second of each size that the training can have, by rising
// NPUs. Throws InputError.
std::vector<TrainingSize> training_sizes(std::string_view text);
void check_training_sizes(std::string_view text);

struct TrainingTimes {
  Time release{};  // from being asked until its NPUs are free: the end of its step and a checkpoint
  Time resume{};   // from having its NPUs until it trains from the checkpoint
  Time hold{};     // that more NPUs have to be free before it grows
};

class TrainingBeside {
 public:
  // It begins with the largest size that `free` NPUs have room for, at once.
  TrainingBeside(std::vector<TrainingSize> sizes, TrainingTimes times, int free);

  // Services want so many NPUs of those that are free of them: where the training holds some of these it
  // begins to leave them, if it does not yet. `now` never falls from call to call.
  void yield(int wanted, Time now);
  // Services leave so many from now on.
  void set_free(int npus, Time now);
  void finish(Time end) { advance(end); }

  int held() const { return npus(size_); }
  double tokens() const { return tokens_; }
  double npu_s() const { return npu_s_; }  // that it held
  std::int64_t changes() const { return changes_; }
  // What it would train per second on so many NPUs for good.
  double tokens_s_on(int npus) const { return tokens_s(largest(npus)); }

 private:
  static constexpr int kNone = -1;
  int npus(int size) const { return size == kNone ? 0 : sizes_[static_cast<std::size_t>(size)].npus; }
  double tokens_s(int size) const {
    return size == kNone ? 0 : sizes_[static_cast<std::size_t>(size)].tokens_s;
  }
  int largest(int npus) const;
  void advance(Time now);
  void pass(Time until);

  std::vector<TrainingSize> sizes_;
  TrainingTimes times_;
  int free_, size_;
  int next_ = kNone;          // size after the release that is under way
  bool releasing_ = false;    // or saves to grow
  Time now_{}, trains_{};     // it trains from `trains_` on
  Time released_{}, fits_{};  // end of the release; since when a larger size fits
  double tokens_ = 0, npu_s_ = 0;
  std::int64_t changes_ = 0;
};

}  // namespace cm384::service
