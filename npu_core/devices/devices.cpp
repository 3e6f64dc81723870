#include "npu_core/devices/devices.h"

#include <array>
#include <cstring>

#include "firmware/abi/memory_map.h"
#include "npu_core/die/die.h"
#include "npu_core/replay/block_player.h"

namespace cm384::npu {

// --- a unit's port

Time DevicePort::now() const {
  return die_.now();
}
void DevicePort::schedule(Time at, std::uint32_t what, std::uint64_t argument) {
  die_.queue().push(at, unit_, what, argument);
}
bool DevicePort::is_local(std::uint64_t address) const {
  return die_.memory_system().is_local(address);
}
bool DevicePort::contains(std::uint64_t offset, std::uint64_t bytes) const {
  return die_.store().contains(offset, bytes);
}
std::uint16_t DevicePort::requester() const {
  return die_.memory().external_requester(die_.parameters().memory.on_die_network.external_ports - 1);
}

Time DevicePort::read(std::uint64_t offset, std::byte* into, std::uint32_t bytes, sim::TagMask& tags,
                      bool allocate) {
  tags = die_.store().read(offset, into, bytes);
  return die_.memory().access({offset, bytes, false, allocate, requester(), now()});
}

Time DevicePort::write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes, sim::TagMask tags,
                       sim::TransactionId transaction) {
  die_.store().write(offset, from, bytes, tags);
  die_.memory_system().written_by_device(offset, bytes, transaction);
  return die_.memory().access({offset, bytes, true, true, requester(), now()});
}

Time DevicePort::add(std::uint64_t offset, std::uint32_t value) {
  std::array<std::byte, sizeof value> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  die_.store().atomic_add(offset, bytes.data(), sizeof value, 0, sim::Operation::atomic_add_s32, nullptr);
  die_.memory_system().written_by_device(offset, sizeof value, 0);
  return die_.memory().atomic_add({offset, sizeof value, true, true, requester(), now()});
}

void DevicePort::submit(sim::Request request) {
  request.core = core_;
  die_.submit(request);
}
sim::PayloadPool& DevicePort::payloads() {
  return die_.payloads();
}
sim::TransactionId DevicePort::new_transaction(std::uint64_t address, std::uint64_t bytes,
                                               sim::Operation operation, const CopyStart& copy) {
  CopyStart of_stream = copy;
  if (copy.queue < die_.parameters().die.aiv) of_stream.number = CopyStart::kNoStream;
  return die_.transactions().begin_copy({address, bytes, operation}, of_stream);
}
void DevicePort::transaction_completed(sim::TransactionId transaction) {
  die_.transactions().completed(core_, transaction, now());
}
void DevicePort::progressed() {
  die_.progressed();
}
std::uint64_t DevicePort::sys_count() const {
  return die_.sys_count(now());
}

// --- the units

namespace {

constexpr std::uint64_t kDoorbellBytes = 128 * CM384_DOORBELL_STRIDE;
constexpr std::uint64_t kRingBytes = TaskScheduler::kSdmaDepth * CM384_QUEUE_ENTRY_BYTES;
// An SDMA queue each AIV may have, and one each channel for the scheduler.
std::size_t sdma_queues(const DieParameters& p) {
  return static_cast<std::size_t>(p.die.aiv) + static_cast<std::size_t>(p.sdma.channels);
}

}  // namespace

Devices::Devices(Die& die)
    : die_(die),
      doorbells_(die.store().capacity() - kMemoryBytes),
      sdma_port_(die, kSdmaUnit, kSdmaCore),
      scheduler_port_(die, kSchedulerUnit, kSchedulerCore),
      sdma_(die.parameters().sdma, sdma_queues(die.parameters()), sdma_port_),
      scheduler_(die.parameters().scheduler, scheduler_port_, *this, sdma_,
                 static_cast<std::size_t>(die.parameters().die.aiv)),
      player_(std::make_unique<BlockPlayer>(die, kPlayerUnit)) {
  std::uint64_t at = doorbells_ + kDoorbellBytes;
  for (auto q = static_cast<std::size_t>(die.parameters().die.aiv); q < sdma_.queues(); ++q) {
    sdma_.set_up(q, QueueRing(at, at + kRingBytes, TaskScheduler::kSdmaDepth));
    at += 2 * kRingBytes;
  }
  const auto depth = static_cast<std::uint32_t>(die.parameters().scheduler.queue_depth);
  scheduler_.create_stream(QueueRing(at, at + std::uint64_t{depth} * CM384_QUEUE_ENTRY_BYTES, depth));
}

Devices::~Devices() = default;

void Devices::launch(LaunchRequest request, std::uint32_t number, Time at) {
  cm384_task task{};
  task.type = CM384_TASK_KERNEL;
  task.number = number;
  if (request.graph) task.flags |= CM384_TASK_GRAPH;
  task.u.kernel.arguments = request.arguments;
  task.u.kernel.blocks = request.entry_blocks();
  task.u.kernel.kernel = scheduler_.register_kernel(std::move(request.program), std::move(request.cores),
                                                    request.type, std::move(request.played));
  // An entry can only stand behind those that are there before it.
  last_launch_ = std::max(last_launch_, at);
  scheduler_.submit_at(0, task, last_launch_);
  if (DieTracer* tracer = die_.transactions().tracer()) {
    std::array<std::uint64_t, 1 + CM384_QUEUE_ENTRY_BYTES / 8> words{};
    std::memcpy(&words[1], &task, sizeof task);
    tracer->host(HostPoint::Kind::given, last_launch_, last_launch_, words);
  }
}

std::uint64_t Devices::doorbell(std::size_t queue) const {
  return cm384_gm_die(static_cast<std::uint64_t>(die_.number()), doorbells_ + queue * CM384_DOORBELL_STRIDE);
}

void Devices::handle(const sim::Event& event) {
  switch (event.unit) {
    case kSdmaUnit:
      return sdma_.handle(event.what, event.argument);
    case kSchedulerUnit:
      return scheduler_.handle(event.what, event.argument);
    case kPlayerUnit:
      return player_->handle(event);
    default:
      return rung(event.argument);
  }
}

void Devices::completed(const sim::Completion& completion) {
  completion.core == kSdmaCore ? sdma_.completed(completion) : scheduler_.completed(completion);
}

// A write to doorbells arrives after its way through the on-die network.
void Devices::ring(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = std::min(offset + bytes, doorbells_ + sdma_.queues() * CM384_DOORBELL_STRIDE);
  for (std::uint64_t q = (std::max(offset, doorbells_) - doorbells_) / CM384_DOORBELL_STRIDE;
       doorbells_ + q * CM384_DOORBELL_STRIDE < end; ++q) {
    if (offset >= doorbells_ + q * CM384_DOORBELL_STRIDE + 8) continue;
    if (DieTracer* tracer = die_.transactions().tracer())
      tracer->doorbell_rung(static_cast<std::uint16_t>(q));
    die_.queue().push(die_.now() + die_.parameters().memory.on_die_network.request_latency, kDoorbellUnit, 0,
                      q);
  }
}

void Devices::rung(std::size_t queue) {
  std::array<std::uint32_t, 2> words{};  // tail, completions read
  die_.store().read_bytes(doorbells_ + queue * CM384_DOORBELL_STRIDE,
                          reinterpret_cast<std::byte*>(words.data()), sizeof words);
  if (words[1] != 0) sdma_.completions_taken(queue, words[1]);
  sdma_.doorbell(queue, words[0]);
}

void Devices::trace() {
  sdma_.ended.attach(this, [](void* self, const SdmaRecord& record) {
    Die& die = static_cast<Devices*>(self)->die_;
    die.transactions().tracer()->copy_ended(record.queue, record.channel, record.ended,
                                            record.ended + die.parameters().sdma.descriptor_gap);
  });
  scheduler_.notify_all();
}

// --- the cores, for the scheduler

std::size_t Devices::count() const {
  return static_cast<std::size_t>(die_.parameters().die.aiv);
}
std::size_t Devices::all() const {
  return count() + static_cast<std::size_t>(die_.parameters().die.aic);
}
void Devices::start_block(const BlockStart& block) {
  block.played ? player_->start_block(block) : die_.cluster().start_block(block);
}
void Devices::kernel_started(const LaunchRecord& record) {
  die_.progressed();
  die_.listener().launch_started(die_.number(), record);
}
void Devices::kernel_finished(const LaunchRecord& record) {
  die_.listener().launch_finished(die_.number(), record);
}
void Devices::task_decoded(const TaskRecord& record) {
  if (DieTracer* tracer = die_.transactions().tracer())
    tracer->task_begun(record.stream, record.type, record.number, record.turn);
}
void Devices::task_finished(const TaskRecord& record) {
  if (DieTracer* tracer = die_.transactions().tracer()) tracer->task_ended(record.stream, record.completed);
  die_.listener().task_finished(die_.number(), record);
}

void Devices::stream_made(std::uint32_t number, const QueueRing& ring) {
  DieTracer* const tracer = die_.transactions().tracer();
  if (tracer == nullptr || number == 0) return;  // the default stream is there on every die
  tracer->host(
      HostPoint::Kind::stream, die_.now(), die_.now(),
      std::array<std::uint64_t, 4>{number, ring.entry_offset(0), ring.completions_offset(), ring.depth()});
}

void Devices::kernel_registered(std::uint32_t number, const LaunchRequest& kernel) {
  DieTracer* const tracer = die_.transactions().tracer();
  if (tracer == nullptr) return;
  std::vector<std::uint64_t> words{number, static_cast<std::uint64_t>(kernel.type)};
  words.insert(words.end(), kernel.cores.begin(), kernel.cores.end());
  tracer->host(HostPoint::Kind::kernel, die_.now(), die_.now(), words);
}

void Devices::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  scheduler_.declare_statistics(to, at.part("scheduler"));
  sdma_.declare_statistics(to, at.part("sdma"));
}

std::string Devices::report() const {
  std::string text;
  for (std::string lines = scheduler_.report() + sdma_.report(); !lines.empty();) {
    const std::size_t end = lines.find('\n') + 1;
    text += "die " + std::to_string(die_.number()) + " " + lines.substr(0, end);
    lines.erase(0, end);
  }
  return text;
}

}  // namespace cm384::npu
