#include "workloads/contexts/transfer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/engine/peers.h"
#include "system/host/device_memory.h"
#include "workloads/frame/session.h"
#include "workloads/operators/mla/mla.h"

namespace cm384::studies {
namespace {

constexpr Time kSettled = 100_us;  // from the end of the batch: the first copies are under way

SessionOptions session_options(const TransferSetting& setting, const std::vector<PlannedContext>& plan) {
  std::set<int> dies;
  for (const PlannedContext& context : plan) dies.insert({context.sender, context.receiver});
  SessionOptions options;
  options.dies.assign(dies.begin(), dies.end());
  options.rdma = true;
  options.what = fmt::format("transfer, {} contexts from {} instances", plan.size(), setting.prefill);
  return options;
}

// The copies of all contexts, put into streams of the side that moves the bytes.
class Copies {
 public:
  Copies(host::Runtime& runtime, const TransferSetting& setting, const std::vector<PlannedContext>& plan)
      : runtime_(runtime), setting_(setting), plan_(plan) {
    for (const PlannedContext& context : plan) {
      const auto bytes = static_cast<std::uint64_t>(context.bytes);
      Memory memory{runtime.allocate(context.sender, bytes), runtime.allocate(context.receiver, bytes)};
      runtime.mark_payload(memory.from, bytes);
      memory_.push_back(memory);
      const int mover = mover_of(context);
      if (!streams_.contains(mover)) streams_.emplace(mover, runtime.create_stream(mover));
    }
  }

  // A context at a time in each stream. Where the other side's link takes one at a time as well, a context
  // waits until the one before it there has notified its mover.
  void enqueue() {
    const std::vector<std::optional<host::Notify>> grants = this->grants();
    for (std::size_t n = 0; n < plan_.size(); ++n) {
      const host::Stream stream = streams_.at(mover_of(plan_[n]));
      if (grants[n]) runtime_.wait_notify(stream, *grants[n]);
      copy(stream, n);
      if (next_[n]) runtime_.record_notify(stream, *grants[*next_[n]]);
    }
  }

  SentContext sent(std::size_t n, Time batch_end) const {
    const npu::SdmaRecord& first = runtime_.task(tasks_[n].front()).record.copy;
    const npu::SdmaRecord& last = runtime_.task(tasks_[n].back()).record.copy;
    return {first.translated - batch_end, last.last_ack - batch_end};
  }
  // The first and the last of its bytes, which only a copy makes payload there.
  bool arrived(std::size_t n) const {
    const std::uint64_t to = memory_[n].to, bytes = static_cast<std::uint64_t>(plan_[n].bytes);
    return runtime_.holds_payload(to, 1) && runtime_.holds_payload(to + bytes - 1, 1);
  }

 private:
  struct Memory {
    std::uint64_t from = 0, to = 0;
  };

  int mover_of(const PlannedContext& context) const {
    return setting_.decode_moves ? context.receiver : context.sender;
  }

  // Who of two movers goes first at a link is the plan's order.
  std::vector<std::optional<host::Notify>> grants() {
    std::vector<std::optional<host::Notify>> made(plan_.size());
    next_.assign(plan_.size(), {});
    std::map<int, std::size_t> last;  // context of a link, by die
    for (std::size_t n = 0; n < plan_.size() && setting_.one_at_a_time; ++n) {
      const int other = setting_.decode_moves ? plan_[n].sender : plan_[n].receiver;
      const auto before = last.find(other);
      if (before != last.end() && mover_of(plan_[before->second]) != mover_of(plan_[n])) {
        made[n] = runtime_.create_notify(mover_of(plan_[n]));
        next_[before->second] = n;
      }
      last[other] = n;
    }
    return made;
  }

  void copy(host::Stream stream, std::size_t n) {
    std::vector<host::TaskHandle> tasks;
    const auto bytes = static_cast<std::uint64_t>(plan_[n].bytes),
               most = static_cast<std::uint64_t>(setting_.copy.count);
    for (std::uint64_t at = 0; at < bytes; at += most)
      tasks.push_back(runtime_.memcpy_async(stream, memory_[n].to + at, memory_[n].from + at,
                                            std::min(most, bytes - at), host::Plane::rdma));
    tasks_.push_back(std::move(tasks));
  }

  host::Runtime& runtime_;
  const TransferSetting& setting_;
  const std::vector<PlannedContext>& plan_;
  std::vector<Memory> memory_;
  std::map<int, host::Stream> streams_;  // by die that moves
  std::vector<std::vector<host::TaskHandle>> tasks_;
  std::vector<std::optional<std::size_t>> next_;  // that waits for a context, where another die moves it
};

// Launches of attention on dies whose first context is the first of its sender's, so that it comes at once.
class Attention {
 public:
  Attention(Session& session, const TransferSetting& setting, const std::vector<PlannedContext>& plan,
            std::uint64_t seed)
      : runtime_(session.runtime()), setting_(setting), program_(session.built_in("mla")) {
    operators::MlaSetting shape;
    shape.kv_lens.assign(static_cast<std::size_t>(setting.sequences),
                         static_cast<std::uint32_t>(setting.kv_len));
    shape.queries = 2;
    std::set<int> senders, taken;
    for (const PlannedContext& context : plan) {
      const bool first = senders.insert(context.sender).second;
      if (static_cast<int>(on_.size()) == setting.beside_dies) break;
      if (!first || !taken.insert(context.receiver).second) continue;
      on_.push_back(std::make_unique<OnDie>(runtime_, context.receiver, shape, seed));
      OnDie& made = *on_.back();
      made.attention.place({made.memory, [this](std::string_view) { return program_; },
                            operators::cores_from(0, beside_groups(runtime_.machine().parameters().die)),
                            false});
      made.attention.launch_in_graph(true);
    }
  }

  // The first launch warms up.
  bool run_alone() {
    launch(setting_.beside_runs + 1);
    if (!runtime_.wait()) return false;
    for (const auto& die : on_) {
      for (std::size_t n = 1; n < die->records.size(); ++n) alone_.push_back(task_us(*die, n));
      die->records.clear();
    }
    return true;
  }
  void start_beside() {
    for (const auto& die : on_) runtime_.host_compute(die->number, kSettled);
    launch(setting_.beside_runs);
  }
  // Of launches that lie within a transfer to their die.
  BesideReading reading(const std::vector<PlannedContext>& plan, const std::vector<SentContext>& sent,
                        Time batch_end) const {
    BesideReading made;
    made.dies = static_cast<int>(on_.size());
    for (const double us : alone_) made.alone_us += us / static_cast<double>(alone_.size());
    for (const auto& die : on_) {
      for (std::size_t n = 0; n < die->records.size(); ++n) {
        const npu::LaunchRecord& record = runtime_.record(die->records[n]);
        bool within = false;
        for (std::size_t c = 0; c < plan.size(); ++c)
          within =
              within || (plan[c].receiver == die->number && record.task_start - batch_end >= sent[c].begun &&
                         record.task_end - batch_end <= sent[c].there);
        if (!within) continue;
        made.beside_us += task_us(*die, n);
        ++made.launches;
      }
    }
    if (made.launches > 0) made.beside_us /= made.launches;
    return made;
  }

 private:
  struct OnDie {
    OnDie(host::Runtime& runtime, int die, const operators::MlaSetting& shape, std::uint64_t seed)
        : number(die), memory(runtime, die), stream(runtime.create_stream(die)), attention(shape, seed) {}
    int number;
    host::DeviceMemory memory;
    host::Stream stream;
    operators::MlaAttention attention;
    std::vector<host::LaunchHandle> records;
  };

  void launch(int times) {
    for (const auto& die : on_) {
      for (int n = 0; n < times; ++n) {
        npu::LaunchRequest request = die->attention.request();
        request.program = program_;
        die->records.push_back(runtime_.launch(die->stream, std::move(request)));
      }
    }
  }
  double task_us(const OnDie& die, std::size_t n) const {
    const npu::LaunchRecord& record = runtime_.record(die.records[n]);
    return (record.task_end - record.task_start).us();
  }

  host::Runtime& runtime_;
  const TransferSetting& setting_;
  std::shared_ptr<npu::Program> program_;
  std::vector<std::unique_ptr<OnDie>> on_;
  std::vector<double> alone_;
};

}  // namespace

std::optional<TransferReading> measure_transfer_of(const StudyContext& context,
                                                   const TransferSetting& setting,
                                                   const std::vector<PlannedContext>& plan,
                                                   SimulatorCounts& counts) {
  Session session(context, session_options(setting, plan));
  host::Runtime& runtime = session.runtime();
  Copies copies(runtime, setting, plan);
  std::optional<Attention> attention;
  if (setting.beside_dies > 0) {
    attention.emplace(session, setting, plan, context.seed);
    if (!attention->run_alone()) return {};
  }
  session.begin_counted();
  const Time batch_end = runtime.earliest_start();
  Time last;
  for (const PlannedContext& planned : plan) last = std::max(last, planned.closed);
  session.expect(1, last);
  copies.enqueue();
  if (attention) attention->start_beside();
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return {};
  TransferReading reading;
  for (std::size_t n = 0; n < plan.size(); ++n) {
    reading.contexts.push_back(copies.sent(n, batch_end));
    if (copies.arrived(n)) ++reading.arrived;
  }
  if (attention) reading.beside = attention->reading(plan, reading.contexts, batch_end);
  return reading;
}

int most_at_a_time(const std::vector<PlannedContext>& plan, const std::vector<SentContext>& sent,
                   int PlannedContext::*die) {
  // One that ends makes room before another begins.
  std::vector<std::tuple<Time, int, int>> changes;
  for (std::size_t n = 0; n < plan.size(); ++n) {
    changes.emplace_back(sent[n].begun, 1, plan[n].*die);
    changes.emplace_back(sent[n].there, -1, plan[n].*die);
  }
  std::ranges::sort(changes);
  std::map<int, int> now;
  int most = 0;
  for (const auto& [at, change, of] : changes) most = std::max(most, now[of] += change);
  return most;
}

}  // namespace cm384::studies
