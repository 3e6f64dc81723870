#include "traces/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/error.h"

namespace cm384::traces {

using Kind = TrafficRecord::Kind;

namespace {

constexpr std::size_t kMostLastOnes = 1u << 13;

Time times(Time time, double factor) {
  return factor == 1 ? time : Time{std::llround(static_cast<double>(time.ps) * factor)};
}

}  // namespace

ShapedTrace::ShapedTrace(Open open, std::map<int, int> rank_of, ShapeOptions options)
    : open_(std::move(open)), rank_of_(std::move(rank_of)), options_(std::move(options)), source_(open_()) {
  kept_ranks_.assign(rank_of_.size(), options_.ranks.empty());
  for (const int rank : options_.ranks) kept_ranks_.at(static_cast<std::size_t>(rank)) = true;
  shift_ = options_.offset;
}

Time ShapedTrace::scaled(Time time) const {
  return times(time, 1 / options_.rate) + shift_;
}

std::uint16_t ShapedTrace::die_of(std::uint16_t old) const {
  if (options_.dies.empty()) return old;
  return static_cast<std::uint16_t>(options_.dies[static_cast<std::size_t>(rank_of_.at(old))]);
}

bool ShapedTrace::keeps(const TrafficRecord& r) const {
  const auto kept = [this](Unit unit) {
    return unit.cpu || kept_ranks_[static_cast<std::size_t>(rank_of_.at(unit.number))];
  };
  return r.kind < Kind::idle && kept(r.source) && (!r.moves() || kept(r.target));
}

std::uint64_t ShapedTrace::bytes_of(const TrafficRecord& r) const {
  if (options_.bytes == 1 || r.kind != Kind::transfer) return r.bytes;
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, std::llround(static_cast<double>(r.bytes) * options_.bytes)));
}

void ShapedTrace::emit(TrafficRecord r, bool from_source) {
  for (const TrafficDependency& d : r.dependencies) {
    if (d.kind == TrafficDependency::Kind::completion) last_ones_.erase(d.on);
  }
  last_ones_.emplace(written_, r.end);
  last_end_ = std::max(last_end_, r.end);
  if (const std::string fault = fault_of(r, written_); !fault.empty())
    throw InputError(fmt::format("{}: record {}: {}", options_.name, read_ - 1, fault));
  ++written_;
  ready_.push_back({std::move(r), from_source});
  if (last_ones_.size() < kMostLastOnes) return;
  // Few points stand for many.
  std::vector<std::uint64_t> all;
  for (const auto& [number, end] : last_ones_) all.push_back(number);
  std::ranges::sort(all);
  join(all, Time{}, last_end_, ready_.back().record.source);
}

ShapedTrace::Joint ShapedTrace::join(const std::vector<std::uint64_t>& on, Time delay, Time at, Unit unit) {
  TrafficRecord r;
  r.kind = Kind::barrier;
  r.source = r.target = unit;
  r.start = r.end = at;
  for (const std::uint64_t number : on)
    r.dependencies.push_back({number, TrafficDependency::Kind::completion, delay});
  const std::uint64_t number = written_;
  emit(std::move(r), false);
  return {number, at, true};
}

// All that is under way ends; what begins by itself after that waits for this point. `rests`: the machine
// does nothing from then until `at`.
void ShapedTrace::pause(Time at, bool rests) {
  kernels_.clear();
  if (last_ones_.empty()) return;
  std::vector<std::uint64_t> all;
  Time end;
  for (const auto& [number, its] : last_ones_) {
    all.push_back(number);
    end = std::max(end, its);
  }
  std::ranges::sort(all);
  at = std::max(at, end);
  Unit unit;
  unit.number = die_of(static_cast<std::uint16_t>(rank_of_.begin()->first));
  pause_ = join(all, rests ? times(at - end, options_.compute) : Time{}, at, unit);
}

void ShapedTrace::begin_by_itself(TrafficRecord& r) {
  Joint after = pause_;
  if (r.kind == Kind::launch) {
    if (const auto at = kernels_.find(r.source.number); at != kernels_.end() && at->second.before.there)
      after = at->second.before;
  }
  if (!after.there || written_ - after.number > kReach / 2) return;
  r.dependencies.push_back(
      {after.number, TrafficDependency::Kind::completion, times(r.start - after.at, options_.compute)});
}

void ShapedTrace::shape(TrafficRecord& r) {
  const std::uint64_t old = read_++;
  if (number_.size() <= old % kReach) number_.resize(old % kReach + 1);
  number_[old % kReach] = 0;
  if (r.kind == Kind::idle) return pause(scaled(r.start), true);
  if (!keeps(r)) return;
  const Time length = times(r.end - r.start, r.moves() ? 1 : options_.compute);
  r.start = scaled(r.start);
  r.end = r.start + length;
  r.bytes = bytes_of(r);
  if (options_.level >= 0 && r.kind == Kind::transfer) r.lane = static_cast<std::uint8_t>(options_.level);
  r.source.number = die_of(r.source.number);
  if (!r.target.cpu) r.target.number = die_of(r.target.number);
  if (r.kind == Kind::launch && !r.words.empty()) {
    Kernels& of_die = kernels_[r.source.number];
    if (of_die.launch != r.words[0] && !of_die.ended.empty()) {
      of_die.before = join(of_die.ended, Time{}, of_die.at, r.source);
      of_die.ended.clear();
    }
    of_die.launch = r.words[0];
  }
  const bool waited = !r.dependencies.empty() || !r.words.empty();
  std::erase_if(r.dependencies, [this](TrafficDependency& d) {
    const std::uint64_t kept = number_[d.on % kReach];
    d.on = kept - 1;
    d.delay = times(d.delay, d.delay.ps > 0 ? options_.compute : 1);
    return kept == 0;
  });
  for (const TrafficDependency& d : r.dependencies) {
    if (written_ - d.on > kReach)
      throw InputError(
          fmt::format("{}: record {}: waits for a record too far back for a shaped trace; allowed: {}",
                      options_.name, old, kReach));
  }
  forgotten_ += waited && r.dependencies.empty() ? 1 : 0;
  if (r.dependencies.empty()) begin_by_itself(r);
  r.words.clear();
  number_[old % kReach] = written_ + 1;
  if (r.kind == Kind::end) {
    Kernels& of_die = kernels_[r.source.number];
    of_die.ended.push_back(written_);
    of_die.at = std::max(of_die.at, r.end);
  }
  emit(std::move(r), true);
}

bool ShapedTrace::next(TrafficRecord& record) {
  TrafficRecord r;
  while (ready_.empty()) {
    if (source_->next(r)) {
      shape(r);
      continue;
    }
    if (++pass_ >= options_.repeat) return false;
    shift_ = last_end_;
    pause(last_end_, false);
    source_ = open_();
    read_ = 0;
    number_.clear();
  }
  record = std::move(ready_.front().record);
  from_source_ = ready_.front().from_source;
  ready_.pop_front();
  return true;
}

MergedTraces::MergedTraces(std::vector<std::unique_ptr<TrafficSource>> jobs) {
  for (std::unique_ptr<TrafficSource>& source : jobs) {
    Job& job = jobs_.emplace_back();
    job.source = std::move(source);
    job.there = job.source->next(job.record);
  }
}

bool MergedTraces::next(TrafficRecord& record) {
  Job* first = nullptr;
  for (Job& job : jobs_) {
    if (job.there && (first == nullptr || job.record.start < first->record.start)) first = &job;
  }
  if (first == nullptr) return false;
  const std::size_t slot = first->read++ % kReach;
  if (first->number.size() <= slot) first->number.resize(slot + 1);
  record = std::move(first->record);
  for (TrafficDependency& d : record.dependencies) {
    d.on = first->number[d.on % kReach];
    if (written_ - d.on > kReach)
      throw InputError(
          fmt::format("record {}: waits for a record too far back once the traces are merged; allowed: {}",
                      first->read - 1, kReach));
  }
  first->number[slot] = written_++;
  first->there = first->source->next(first->record);
  return true;
}

}  // namespace cm384::traces
