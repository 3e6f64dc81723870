// What a run has done since it was last saved, where a checkpoint counts once it is written: at the end of
// the time that it stops the run, or later, beside the work that follows.
#pragma once

namespace cm384::cluster {

// Seconds: of work at full speed, the same by the clock, and stopped for checkpoints.
struct Done {
  double work = 0, wall = 0, stopped = 0;
  Done& operator+=(const Done& other) {
    work += other.work;
    wall += other.wall;
    stopped += other.stopped;
    return *this;
  }
};

class Progress {
 public:
  void work(double time, double speed) {
    now_.work += time * speed;
    now_.wall += time;
  }
  double since_checkpoint() const { return now_.work; }
  // Work that is not yet saved by a checkpoint.
  double unsettled_work() const { return now_.work + saved_.work; }
  // A checkpoint of all work has stopped the run for `stopped`; it is written at `written`. The one before
  // has been settled.
  void save(double stopped, double written) {
    saved_ = now_;
    saved_.stopped += stopped;
    now_ = {};
    written_ = written;
  }
  // What a checkpoint holds that is written by `time`, once.
  Done settle(double time) {
    if (time < written_) return {};
    const Done settled = saved_;
    saved_ = {};
    return settled;
  }
  // All that is not settled: thrown away by a fault, or done at the end.
  Done finish() {
    Done all = saved_;
    all += now_;
    saved_ = now_ = {};
    return all;
  }

 private:
  Done now_, saved_;  // since the last checkpoint; held by one that is not settled
  double written_ = 0;
};

}  // namespace cm384::cluster
