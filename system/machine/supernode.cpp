#include "system/machine/supernode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <systemc>

#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "npu_core/scalar/program.h"
#include "system/machine/module_processes.h"
#include "system/machine/supernode_parts.h"

namespace cm384::supernode {

Supernode::~Supernode() {
  parts_->runner.stop();
  parts_.reset();
}

unsigned Supernode::worker_of_die(int die) const {
  return parts_->worker_of_package.at(die / machine_.topology.dies_per_package);
}

unsigned Supernode::workers() const {
  return parts_->runner.workers();
}

const Ownership& Supernode::owners() const {
  return parts_->owners;
}

const ThreadChoice& Supernode::thread_choice() const {
  return parts_->runner.control().choice;
}

std::uint64_t Supernode::shared_windows() const {
  return parts_->runner.control().shared_windows;
}

void Supernode::need_order(std::string_view whoever, OrderOf order) {
  if (order == OrderOf::machine) sim::peers().needs_one(whoever);
  parts_->runner.control().choice.need_order(whoever);
}

void Supernode::settle() {
  exchange_crossings();
  RunControl& control = parts_->runner.control();
  parts_->progress.each([&](Time t) { control.last_progress = std::max(control.last_progress, t); });
  parts_->payloads.balance();
  for (ForeignPort* port : foreign_.ports()) port->look();
  if (probes_.between_windows) probes_.between_windows(control.reached);
  std::vector<Parts::Deferred> calls;
  parts_->deferred.each([&](std::vector<Parts::Deferred>& by_worker) {
    std::move(by_worker.begin(), by_worker.end(), std::back_inserter(calls));
    by_worker.clear();
  });
  if (calls.empty()) return;
  // One thread runs packages in the order of the dies given, each of them for a window.
  const auto place = [this](const Parts::Deferred& t) {
    return std::find_if(options_.dies.begin(), options_.dies.end(),
                        [&](int die) { return machine_.topology.in_one_package(die, t.die); });
  };
  std::ranges::stable_sort(calls, {}, place);
  for (const Parts::Deferred& one : calls) one.call();
}

template <class Call>
void Supernode::call_in_order(int die, Call&& call) {
  if (parts_->runner.control().side_by_side) {
    parts_->deferred.mine().push_back({die, std::forward<Call>(call)});
  } else {
    call();
  }
}

std::vector<int> Supernode::dies() const {
  std::vector<int> numbers;
  for (const auto& accelerator : parts_->accelerators) {
    if (accelerator) numbers.push_back(accelerator->number());
  }
  return numbers;
}

npu::Die& Supernode::die(int number) const {
  accelerator(number);
  npu::Die* die = parts_->dies[static_cast<std::size_t>(number)];
  if (die == nullptr)
    throw InputError(fmt::format("die {} has no cores: accelerator.kind is {}; allowed here: ascend", number,
                                 machine_.accelerator.kind));
  return *die;
}

bool Supernode::has_rdma() const {
  return parts_->rdma != nullptr;
}

rdma::Interface& Supernode::rdma_interface(int number) const {
  accelerator(number);
  if (!has_rdma()) throw InputError("the RDMA plane does not take part in this run");
  return *parts_->rdma->interface(static_cast<std::size_t>(number));
}

npu::Accelerator& Supernode::accelerator(int number) const {
  if (!takes_part(number)) throw InputError(fmt::format("die {} does not take part in this run", number));
  return *parts_->accelerators[static_cast<std::size_t>(number)];
}

npu::BackingStore& Supernode::socket_store(int number) const {
  npu::BackingStore* store = parts_->sockets ? parts_->sockets->store(number) : nullptr;
  if (store == nullptr) throw InputError(fmt::format("CPU socket {} does not take part in this run", number));
  return *store;
}

// Whole steps of twice a link's latency, the first of them whatever the windows are.
Time Supernode::earliest() const {
  const Time step = from_plane_ + from_plane_;
  const Time reached = std::max({parts_->runner.control().reached, now(), Time{1}});
  return Time{(reached.ps + step.ps - 1) / step.ps * step.ps};
}

Time Supernode::lookahead() const {
  return to_plane_ + from_plane_;
}

// The shortest of all fabrics.
void Supernode::set_lookahead() {
  to_plane_ = from_plane_ = Time::never();
  for (const sim::Fabric* fabric : parts_->fabrics) {
    const sim::Fabric::Lookahead ahead = fabric->lookahead();
    to_plane_ = std::min(to_plane_, ahead.to_module);
    from_plane_ = std::min(from_plane_, ahead.from_module);
  }
  Time window = std::min(lookahead(), options_.window);
  // A foreign port acts at SystemC's own time, when sub-planes have run to the end of their window.
  if (!foreign_.ports().empty()) window = std::min(window, to_plane_ + foreign_.lookahead());
  // Shorter windows keep the proportion.
  parts_->runner.set_window(window, Time{window.ps * to_plane_.ps / lookahead().ps});
}

void Supernode::install(int plane_number, unsigned chip, ub::SwitchChip& model) {
  need_order("a switch chip of another model");
  assert(now() == Time{} && unfinished_ == 0);
  plane(plane_number);  // exists
  parts_->bus->install(static_cast<std::size_t>(plane_number), chip, model);
  set_lookahead();
}

ub::UbController& Supernode::controller(int number) const {
  accelerator(number);
  return *parts_->bus->controller(static_cast<std::size_t>(number));
}

ub::SubPlane& Supernode::plane(int number) const {
  const int planes = parts_->bus->planes();
  if (number < 0 || number >= planes)
    throw InputError(fmt::format("sub-plane {} does not exist; allowed: 0 to {}", number, planes - 1));
  return parts_->bus->plane(static_cast<std::size_t>(number));
}

std::uint32_t Supernode::launch(int die_number, npu::LaunchRequest request, Time at) {
  if (!parts_->owners.has_die(die_number)) {
    const std::uint32_t number = die(die_number).new_launch();
    if (request.program) parts_->images[{die_number, number}] = request.program->shared_image();
    return number;
  }
  ++unfinished_;
  return die(die_number).launch(std::move(request), at);
}

const npu::LaunchRecord& Supernode::record(int die, std::uint32_t number) const {
  return records_.at(static_cast<std::size_t>(die)).at(number);
}

void Supernode::launch_finished(int die, const npu::LaunchRecord& record) {
  auto& records = records_[static_cast<std::size_t>(die)];
  if (records.size() <= record.launch) records.resize(record.launch + std::size_t{1});
  records[record.launch] = record;
  --unfinished_;
  if (probes_.launch_ended) call_in_order(die, [this, die, record] { probes_.launch_ended(die, record); });
}

void Supernode::launch_started(int die, const npu::LaunchRecord& record) {
  if (probes_.launch_begun) call_in_order(die, [this, die, record] { probes_.launch_begun(die, record); });
}

void Supernode::task_finished(int die, const npu::TaskRecord& record) {
  for (Driver* driver : parts_->drivers[static_cast<std::size_t>(die)]) driver->task_finished(die, record);
  if (probes_.task_ended) call_in_order(die, [this, die, record] { probes_.task_ended(die, record); });
}

void Supernode::transaction_begun(const npu::TransactionBegun& transaction) {
  if (probes_.transaction_begun) probes_.transaction_begun(transaction);
}

void Supernode::transaction_completed(const npu::TransactionCompleted& transaction) {
  if (probes_.transaction_completed) probes_.transaction_completed(transaction);
}

void Supernode::transaction_arrived(sim::TransactionId id, int target, std::uint32_t bytes, Time at) {
  if (probes_.transaction_arrived) probes_.transaction_arrived(id, target, bytes, at);
}

std::uint32_t Supernode::attach(int number, Driver& driver) {
  accelerator(number);
  std::vector<Driver*>& drivers = parts_->drivers[static_cast<std::size_t>(number)];
  drivers.push_back(&driver);
  return kFirstDriverUnit + static_cast<std::uint32_t>(drivers.size() - 1);
}

void Supernode::follow_transactions(bool side_by_side) {
  if (!side_by_side) need_order("following transactions");
  for (const auto& accelerator : parts_->accelerators) {
    if (accelerator) accelerator->follow();
  }
}

void Supernode::keep_log(npu::TraceLog& log, bool requests) {
  need_order("a log of transactions");
  for (npu::Die* die : parts_->dies) {
    if (die) die->keep_log(log, requests);
  }
  log_idle();
}

void Supernode::kernel_output(int die, int core, std::string_view text) {
  if (parts_->runner.peers()) {
    const auto place = std::ranges::find(options_.dies, die) - options_.dies.begin();
    parts_->printed.mine().push_back(
        {parts_->runner.control().reached, static_cast<std::size_t>(place), die, core, std::string(text)});
    return;
  }
  call_in_order(die, [this, die, core, printed = std::string(text)] {
    if (options_.output) {
      options_.output(die, core, printed);
    } else {
      write_standard_error(printed);
    }
  });
}

void Supernode::advance(Time length) {
  Runner& runner = parts_->runner;
  if (!options_.sample) {
    runner.advance(length);
    return;
  }
  // A slice is as long as without samples, so that what starts after it starts at the same time.
  constexpr Time kInterval{1'000'000};
  const Time begin = now();
  for (Time done{}; done < length; done += kInterval) {
    runner.advance(kInterval);
    // Paused: a failure, a hang, an interruption.
    if (now() < begin + done + kInterval) return;
    options_.sample(now());
  }
}

// Whole slices, all but the last without anything in them: where nothing happens for long, none of them needs
// a call of its own. Samples do.
Time Supernode::next_step(Time slice) const {
  if (options_.sample) return slice;
  const Time ahead{static_cast<std::int64_t>(sc_core::sc_time_to_pending_activity().value())};
  return std::max(slice, Time{ahead.ps / slice.ps * slice.ps});
}

// Whatever else goes on or is yet to come: a core that waits for what nobody under way will ever bring about.
// Looked for once in a while, and before a long stretch in which nothing happens.
void Supernode::check_for_stuck_cores(Time step) {
  const Time patience = parts_->runner.control().patience;
  if (patience == Time::never()) return;
  const bool long_step = step > patience;
  if (!long_step && now() - last_stuck_check_ <= patience) return;
  last_stuck_check_ = now();
  constexpr std::uint64_t kNone = UINT64_MAX, kCores = 1 << 16;
  std::uint64_t first = kNone;  // die and core
  for (npu::Die* die : parts_->dies) {
    if (!die || first != kNone) continue;
    if (const int core = die->cluster().stuck_core(long_step ? now() : now() - patience); core >= 0)
      first = static_cast<std::uint64_t>(die->number()) * kCores + static_cast<std::uint64_t>(core);
  }
  first = sim::peers().least(first);
  if (first != kNone)
    report_hang(fmt::format("nothing under way can end what core {} of die {} waits for", first % kCores,
                            first / kCores));
}

bool Supernode::run() {
  // In slices, so that progress can be reported.
  constexpr Time kSlice{5'000'000};
  // A die's memory counts in 2^-16 ps, in 64 bits.
  constexpr Time kLongestRun{140'000'000'000'000};
  if (!foreign_.ports().empty() && now() == Time{}) advance(Time{});  // processes of others begin
  parts_->runner.begin();
  while (parts_->anything_unfinished(unfinished_)) {
    if (!sc_core::sc_pending_activity()) report_hang("no event is pending");
    const Time step = next_step(kSlice);
    if (now() + step > kLongestRun)
      throw MachineError(fmt::format("simulated time would pass {:.0f} s", kLongestRun.us() / 1e6));
    check_time_limit(kSlice, step);
    check_for_stuck_cores(step);
    if (!this->step(step)) return false;
  }
  log_idle();
  if (parts_->runner.peers()) parts_->share_records(records_);
  return true;
}

}  // namespace cm384::supernode
