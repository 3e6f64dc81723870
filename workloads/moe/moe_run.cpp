#include "workloads/moe/moe_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/engine/peers.h"
#include "base/text/error.h"
#include "firmware/abi/dispatch_full_mesh.h"
#include "firmware/abi/relay.h"
#include "system/host/placement.h"

namespace cm384::studies {
namespace {

// Finished launches summed up.
class TaskTally {
 public:
  void add(const npu::LaunchRecord& record) {
    tasks_.push_back((record.task_end - record.task_start).us());
    kernels_.push_back((record.last_retired - record.first_instruction).us());
    records_.push_back(record);
    blocks_ += record.blocks;
    stall_ += record.fetch_stall;
    for (std::size_t p = 0; p < phases_.size(); ++p) phases_[p] += record.phase_total[p];
  }
  bool empty() const { return tasks_.empty(); }
  // Times and records to the reading; phases 0 .. last_phase.
  void to(DispatchReading& reading, int last_phase) {
    reading.task_us = summarise(std::move(tasks_));
    reading.kernel_us = summarise(std::move(kernels_));
    if (!records_.empty()) reading.code_bytes = records_.front().image->code_bytes();
    if (blocks_ != 0) reading.fetch_stall_us = stall_.us() / static_cast<double>(blocks_);
    reading.tasks = std::move(records_);
    for (int p = 0; p <= last_phase; ++p)
      reading.phase_us.push_back(
          blocks_ == 0 ? 0 : phases_[static_cast<std::size_t>(p)].us() / static_cast<double>(blocks_));
  }

 private:
  std::vector<double> tasks_, kernels_;
  std::vector<npu::LaunchRecord> records_;
  std::vector<Time> phases_ = std::vector<Time>(npu::kPhases);
  Time stall_;
  std::int64_t blocks_ = 0;
};

std::vector<int> sockets_of(bool wanted, const std::vector<int>& dies, const hw::Topology& topology) {
  std::set<int> sockets;
  for (const int die : dies) {
    if (wanted) sockets.insert(socket_of(die, topology));
  }
  return {sockets.begin(), sockets.end()};
}

// Throws InputError where there can be none, or where check_relays() does.
reference::DispatchCase with_relays(reference::DispatchCase made, const DispatchCase& setting,
                                    const CombineCase* combine, const std::vector<int>& dies,
                                    const hw::Topology& topology) {
  if (!setting.relay) return made;
  const int supernodes = topology.supernodes, each = setting.ranks / supernodes;
  const auto refuse = [](const char* why) { throw InputError(fmt::format("--across relay: {}", why)); };
  check_relays(supernodes, setting.full_mesh);
  for (int rank = 0; rank < setting.ranks; ++rank) {
    if (setting.ranks % supernodes != 0 ||
        topology.supernode_of(dies[static_cast<std::size_t>(rank)]) != rank / each)
      refuse("as many consecutive ranks in each supernode; allowed: --placement linear");
  }
  if (made.placement.shared != 0) refuse("shared experts have no ranks; allowed: --shared-copies 0");
  if (combine != nullptr && combine->completion != "flag")
    refuse("sums tell by a flag; allowed: --completion flag");
  made.relays = supernodes;
  return made;
}

SessionOptions session_options(const DispatchCase& setting, const std::vector<int>& dies,
                               const hw::Topology& topology, bool sockets, std::string what,
                               double progress_from, double progress_to) {
  SessionOptions options;
  options.dies = dies;
  if (setting.beside.dies > 0) {
    const std::vector<int> others = dies_beside(dies, setting.beside.dies, topology);
    options.dies.insert(options.dies.end(), others.begin(), others.end());
  }
  options.sockets = sockets_of(sockets, dies, topology);
  const auto elsewhere = [&](int die) {
    return topology.supernode_of(die) != topology.supernode_of(dies.front());
  };
  options.rdma = std::ranges::any_of(dies, elsewhere);
  if (setting.reverse_modules) std::reverse(options.dies.begin(), options.dies.end());
  options.die.aiv.elide_polls = !setting.real_polling;
  options.die.aiv.check_hazards = checks_hazards(setting);
  // Until the last rank has begun, others may have nothing to do but to poll.
  if (setting.real_polling) options.patience += setting.start_skew;
  options.progress_from = progress_from;
  options.progress_to = progress_to;
  options.what = std::move(what);
  return options;
}

}  // namespace

int socket_of(int die, const hw::Topology& topology) {
  const int node = die / topology.dies_per_node, place = die % topology.dies_per_node;
  return node * topology.sockets_per_node + place * topology.sockets_per_node / topology.dies_per_node;
}

MoeRun::MoeRun(const StudyContext& context, const DispatchCase& setting, const CombineCase* combine,
               std::string what, double progress_from, double progress_to, bool sockets)
    : setting_(setting),
      seed_(context.seed),
      dies_(host::place_ranks(setting.placement, setting.ranks, context.machine.topology, context.seed)),
      case_(with_relays(make_moe_case(context.seed, setting), setting, combine, dies_,
                        context.machine.topology)),
      session_(context, session_options(setting, dies_, context.machine.topology, sockets, std::move(what),
                                        progress_from, progress_to)),
      cores_(session_.runtime().first_cores(setting_.cores)),
      memory_(operators::memory_of(session_.runtime(), dies_)),
      dispatched_(case_, setting_.cores, setting.full) {
  dispatched_.place(memory_);
  if (combine != nullptr) combined_.emplace(dispatched_, combine_setting(*combine)).place(memory_);
  if (setting.beside.dies > 0)
    beside_.emplace(session_.runtime(), dies_beside(dies_, setting.beside.dies, context.machine.topology),
                    setting.beside.volume);
  if (setting.prepare) setting.prepare(session_.machine());
}

DispatchReading MoeRun::dispatch(double from, double to) {
  const int last_phase = setting_.full_mesh ? int{CM384_FULL_MESH_COPY}
                         : setting_.relay   ? int{CM384_DISPATCH_RELAY_COPY}
                                            : int{CM384_DISPATCH_COPY};
  DispatchReading reading = measure(dispatched_, last_phase, from, to);
  if (reading.correct.has_value()) reading.digest = dispatched_.digest();
  return reading;
}

DispatchReading MoeRun::combine(double from, double to) {
  return measure(*combined_, setting_.relay ? int{CM384_COMBINE_RELAY_SUM} : int{CM384_COMBINE_SUM}, from,
                 to);
}

DispatchReading MoeRun::measure(const operators::Collective& what, int last_phase, double from, double to) {
  host::Runtime& runtime = session_.runtime();
  const auto program = session_.built_in(what.kernel());
  auto reading = begin_reading<DispatchReading>();
  TaskTally tally;
  traces::Random skew(seed_, 1);
  const int rounds = setting_.warmup + setting_.iterations;
  session_.expect((to - from) / rounds, about_an_operator());
  for (int round = 0; round < rounds; ++round) {
    if (full()) what.spoil();
    if (round == setting_.warmup) session_.begin_counted();
    const std::uint64_t by_rdma = bytes_by_rdma();
    if (beside_) beside_->enqueue();
    const auto launches = launch(what.tasks(), program, cores_, skew);
    if (!runtime.wait()) break;
    session_.done(from + (to - from) * (round + 1) / rounds);
    if (round < setting_.warmup) continue;
    Time begin = Time::never(), end;
    for (const auto& launch : launches) {
      const npu::LaunchRecord& record = runtime.record(launch);
      tally.add(record);
      begin = std::min(begin, record.task_start);
      end = std::max(end, record.task_end);
    }
    if (session_.machine().has_rdma())
      reading.rdma_MB = static_cast<double>(bytes_by_rdma() - by_rdma) / 1e6 / setting_.ranks;
    if (beside_) beside_->count(begin, end);
    if (full() && reading.first_difference.empty()) reading.first_difference = what.check();
  }
  if (full()) reading.correct = reading.first_difference.empty() && !tally.empty();
  tally.to(reading, last_phase);
  if (beside_) {
    reading.beside_GBps = beside_->bandwidth_GBps();
    reading.beside_covered = beside_->covered();
  }
  reading.skipped_polls = skipped_polls();
  return reading;
}

std::vector<host::LaunchHandle> MoeRun::launch(const std::vector<RankTask>& tasks,
                                               const std::shared_ptr<npu::Program>& program,
                                               const std::vector<std::uint16_t>& cores,
                                               traces::Random& skew) {
  const Time start = session_.runtime().earliest_start() + (beside_ ? CopiesBeside::kLead : Time{});
  const auto most = static_cast<std::uint64_t>(setting_.start_skew.ps);
  std::vector<host::LaunchHandle> launches;
  for (const RankTask& task : tasks) {
    const Time late{most == 0 ? 0 : static_cast<std::int64_t>(skew.below(most + 1))};
    launches.push_back(session_.runtime().launch(task.die, program, task.arguments, cores, start + late));
  }
  return launches;
}

Time MoeRun::about_an_operator() const {
  const double rows = static_cast<double>(case_.batch) * setting_.top_k / setting_.cores;
  return {static_cast<std::int64_t>((30 + 5.5 * rows * setting_.hidden / 7168) * 1e6)};
}

std::string MoeRun::difference() const {
  std::string difference = dispatched_.check();
  if (difference.empty()) difference = combined_->check();
  return difference;
}

std::string MoeRun::difference_of_rows() const {
  std::string difference = dispatched_.check_rows();
  if (difference.empty()) difference = combined_->check();
  return difference;
}

std::uint64_t MoeRun::bytes_by_rdma() {
  if (!session_.machine().has_rdma()) return 0;
  std::uint64_t sum = 0;
  for (const int die : dies_) sum += session_.machine().rdma_interface(die).counters().bytes_written;
  return sim::peers().sum(sum);
}

std::uint64_t MoeRun::skipped_polls() {
  std::uint64_t sum = 0;
  for (const int number : dies_) {
    npu::Die& die = session_.machine().die(number);
    for (int core = 0; core < die.cluster().size(); ++core)
      sum += die.cluster().core(core).aiv().statistics().skipped_polls;
  }
  return sim::peers().sum(sum);
}

}  // namespace cm384::studies
