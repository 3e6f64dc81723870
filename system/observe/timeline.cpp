#include "system/observe/timeline.h"

#include <fmt/format.h>

#include <iterator>

#include "base/text/json.h"
#include "firmware/abi/memory_map.h"
#include "firmware/abi/queue.h"
#include "npu_core/pipes/pipe_instruction.h"
#include "npu_core/scalar/debug_info.h"
#include "npu_core/scalar/elf_image.h"
#include "system/observe/kernel_name.h"
#include "system/observe/timeline_core.h"
#include "system/observe/trace_time.h"

namespace cm384::observe {
namespace {

constexpr std::size_t kBuffer = 1u << 20;

const char* task_name(std::uint8_t type) {
  switch (type) {
    case CM384_TASK_KERNEL:
      return "kernel";
    case CM384_TASK_SDMA:
      return "copy";
    case CM384_TASK_EVENT_RECORD:
    case CM384_TASK_NOTIFY_RECORD:
      return "record";
    case CM384_TASK_EVENT_WAIT:
    case CM384_TASK_NOTIFY_WAIT:
      return "wait";
    default:
      return "task";
  }
}

}  // namespace

Timeline::Timeline(supernode::Supernode& machine, const std::string& path, TimelineOptions options)
    : machine_(machine), options_(std::move(options)), file_(path, OutputFile::Compression::by_name) {
  machine.need_order("a timeline");
  if (options_.dies.empty()) options_.dies.insert(machine.dies().front());
  text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (const int number : options_.dies) {
    npu::Die& die = machine.die(number);
    text_ += fmt::format(
        "{}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"die {}\"}}}}",
        first_ ? "" : ",\n", number, number);
    first_ = false;
    name_lane(number, kKernels, "kernels");
    name_lane(number, kTasks, "tasks");
    for (int core = 0; core < die.cluster().size(); ++core) watch_core(number, core);
    die.follow();
    copies_.push_back({this, number});
    die.devices().sdma().ended.attach(&copies_.back(), [](void* self, const npu::SdmaRecord& record) {
      const auto& of = *static_cast<Copies*>(self);
      of.timeline->copy_ended(of.die, record);
    });
    for (int port = 0; port < machine.parameters().topology.sub_planes; ++port) {
      name_lane(number, kFirstPort + 2 * port, fmt::format("UB port {} out", port));
      name_lane(number, kFirstPort + 2 * port + 1, fmt::format("UB port {} in", port));
    }
  }
  supernode::Probes& probes = machine.probes();
  probes.link_packet.attach(
      this, [](void* self, const supernode::LinkPacket& p) { static_cast<Timeline*>(self)->packet(p); });
  probes.transaction_begun.attach(this, [](void* self, const npu::TransactionBegun& t) {
    static_cast<Timeline*>(self)->transaction_begun(t);
  });
  probes.transaction_completed.attach(this, [](void* self, const npu::TransactionCompleted& t) {
    static_cast<Timeline*>(self)->transaction_completed(t);
  });
  probes.launch_begun.attach(this, [](void* self, int die, const npu::LaunchRecord& record) {
    static_cast<Timeline*>(self)->launch_begun(die, record);
  });
  probes.task_ended.attach(this, [](void* self, int die, const npu::TaskRecord& record) {
    static_cast<Timeline*>(self)->task_ended(die, record);
  });
  probes.launch_ended.attach(this, [](void* self, int die, const npu::LaunchRecord& record) {
    static_cast<Timeline*>(self)->launch_ended(die, record);
  });
}

Timeline::~Timeline() = default;

bool Timeline::shows(const supernode::LinkName& link) const {
  const bool port = link.kind == supernode::LinkName::Kind::from_endpoint ||
                    link.kind == supernode::LinkName::Kind::to_endpoint;
  return port && options_.dies.contains(link.endpoint);
}

void Timeline::end_event() {
  text_ += '}';
  if (text_.size() < kBuffer) return;
  file_.write(text_);
  text_.clear();
}

void Timeline::name_lane(int die, int lane, const std::string& name) {
  text_ += fmt::format(
      ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{0},\"tid\":{1},\"args\":{{\"name\":\"{2}\"}}}},\n"
      "{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{0},\"tid\":{1},\"args\":{{\"sort_index\":{1}}}}"
      "}",
      die, lane, name);
}

void Timeline::slice(int die, int lane, std::string_view name, Time begin, Time end,
                     std::string_view arguments) {
  if (end <= options_.from || begin >= options_.to) return;
  text_ += ",\n{\"ph\":\"X\",\"name\":\"";
  text_ += name;
  fmt::format_to(std::back_inserter(text_), "\",\"pid\":{},\"tid\":{},\"ts\":", die, lane);
  append_us(text_, begin);
  text_ += ",\"dur\":";
  append_us(text_, end - begin);
  if (!arguments.empty()) {
    text_ += ",\"args\":{";
    text_ += arguments;
    text_ += '}';
  }
  end_event();
}

void Timeline::arrow(bool begins, std::uint64_t id, int die, int lane, Time at) {
  if (at < options_.from || at >= options_.to) return;
  fmt::format_to(
      std::back_inserter(text_),
      ",\n{{\"ph\":\"{}\",\"name\":\"flag\",\"cat\":\"flag\",\"id\":{},\"pid\":{},\"tid\":{},{}\"ts\":",
      begins ? 's' : 'f', id, die, lane, begins ? "" : "\"bp\":\"e\",");
  append_us(text_, at);
  end_event();
}

void Timeline::transaction_begun(const npu::TransactionBegun& t) {
  if (t.operation == sim::Operation::read || t.core == npu::kSdmaCore || !options_.dies.contains(t.die))
    return;
  if (!options_.cores.empty() && !options_.cores.contains(t.core)) return;
  writes_[t.id] = {t.core, t.at, t.address, t.bytes, t.engine};
}

// Several may be under way: asynchronous events, which may overlap.
void Timeline::transaction_completed(const npu::TransactionCompleted& t) {
  const auto found = writes_.find(t.id);
  if (found == writes_.end()) return;
  const Write write = found->second;
  writes_.erase(found);
  if (t.at <= options_.from || write.begin >= options_.to) return;
  const char* const engine = write.engine == npu::kFixEngine ? "FIXP" : "MTE3";
  for (const bool begins : {true, false}) {
    fmt::format_to(std::back_inserter(text_),
                   ",\n{{\"ph\":\"{}\",\"name\":\"core {} {} under way\",\"cat\":\"write\",\"id\":\"{:#x}\","
                   "\"pid\":{},\"tid\":{},\"ts\":",
                   begins ? 'b' : 'e', write.core, engine, t.id, t.die,
                   kFirstCore + write.core * kLanesOfACore + 5);
    append_us(text_, begins ? write.begin : t.at);
    if (begins)
      fmt::format_to(std::back_inserter(text_), ",\"args\":{{\"target\":\"{}{}\",\"bytes\":{}}}",
                     cm384_gm_is_cpu(write.address) ? "cpu" : "die", cm384_gm_unit(write.address),
                     write.bytes);
    end_event();
  }
}

// Packets less than a few flits apart are one slice.
void Timeline::packet(const supernode::LinkPacket& p) {
  constexpr Time kGap{3000};
  if (!shows(p.link)) return;
  const int lane =
      kFirstPort + 2 * p.link.plane + (p.link.kind == supernode::LinkName::Kind::to_endpoint ? 1 : 0);
  Burst& burst = ports_[{p.link.endpoint, lane}];
  if (burst.packets != 0 && p.start > burst.end + kGap) flush(p.link.endpoint, lane, burst);
  if (burst.packets == 0) burst.begin = p.start;
  burst.end = p.tail;
  ++burst.packets;
  burst.flits += p.hop.flits();
}

void Timeline::flush(int die, int lane, Burst& burst) {
  if (burst.packets != 0)
    slice(die, lane, "packets", burst.begin, burst.end,
          fmt::format("\"packets\":{},\"flits\":{}", burst.packets, burst.flits));
  burst = Burst{};
}

void Timeline::watch_core(int number, int core) {
  if (!options_.cores.empty() && !options_.cores.contains(core)) return;
  npu::Die& die = machine_.die(number);
  const bool cube = die.cluster().is_cube(static_cast<std::uint16_t>(core));
  cores_.push_back(std::make_unique<CoreLanes>(*this, number, die.cluster().core(core), cube, die.clock()));
  die.cluster().core(core).pipes().add_observer(*cores_.back());
}

// Cube cores come with the first launch that uses one; the first instruction is about to run.
void Timeline::launch_begun(int number, const npu::LaunchRecord& record) {
  if (!options_.dies.contains(number)) return;
  kernels_[number] = kernel_name(record);
  images_[{number, record.launch}] = record.image;
  const int cores = machine_.die(number).cluster().size(), vector = machine_.parameters().die.aiv;
  if (cores == vector || !named_.emplace(number, kFirstCore + vector * kLanesOfACore).second) return;
  for (int core = vector; core < cores; ++core) watch_core(number, core);
}

std::string Timeline::place_of(int die, std::uint32_t launch, std::uint64_t pc) {
  const auto image = images_.find({die, launch});
  if (image == images_.end() || image->second == nullptr) return fmt::format("\"pc\":\"{:#x}\"", pc);
  std::string& known = places_[{image->second.get(), pc}];
  if (!known.empty()) return known;
  if (const auto place = image->second->place_of(pc); place && place->line > 0)
    known = fmt::format("\"code\":{},", Json(fmt::format("{}:{}", place->file, place->line))
                                            .dump(-1, ' ', false, Json::error_handler_t::replace));
  return known += fmt::format("\"pc\":\"{:#x}\"", pc);
}

void Timeline::name_phases(std::string_view kernel, std::span<const std::string_view> names) {
  phases_.insert_or_assign(std::string(kernel), std::vector<std::string>(names.begin(), names.end()));
}

std::string Timeline::phase_name(int die, int phase) const {
  const auto kernel = kernels_.find(die);
  const auto known = kernel == kernels_.end() ? phases_.end() : phases_.find(kernel->second);
  const auto number = static_cast<std::size_t>(phase);
  if (known != phases_.end() && number < known->second.size()) return known->second[number];
  return fmt::format("phase {}", phase);
}

void Timeline::name_once(int die, int lane, const std::string& name) {
  if (named_.emplace(die, lane).second) name_lane(die, lane, name);
}

void Timeline::task_ended(int die, const npu::TaskRecord& record) {
  if (!options_.dies.contains(die)) return;
  const int lane = kFirstStream + static_cast<int>(record.stream);
  name_once(die, lane, fmt::format("stream {}", record.stream));
  slice(die, lane, fmt::format("{} {}", task_name(record.type), record.number), record.turn, record.completed,
        fmt::format("\"status\":{},\"decoded_us\":{:.6f},\"done_us\":{:.6f}", record.status,
                    record.decoded.us(), record.done.us()));
}

void Timeline::copy_ended(int die, const npu::SdmaRecord& record) {
  const int lane = kFirstChannel + record.channel;
  name_once(die, lane, fmt::format("SDMA channel {}", record.channel));
  const auto place = [](std::uint64_t address) {
    return fmt::format("{}{}", cm384_gm_is_cpu(address) ? "cpu" : "die", cm384_gm_unit(address));
  };
  const std::string name = fmt::format("copy {} to {}", place(record.source), place(record.destination));
  slice(die, lane, name, record.taken, record.ended,
        fmt::format(
            "\"bytes\":{},\"queue\":{},\"status\":{},\"first_request_us\":{:.6f},\"last_ack_us\":{:.6f}",
            record.bytes, record.queue, record.status, record.translated.us(), record.last_ack.us()));
}

int Timeline::free_lane(int die, int first, const char* name, Time begin, Time end) {
  constexpr int kKinds = 2, kMost = kFirstCore / kKinds;  // lanes of kernels and tasks take turns
  int number = 0;
  while (number + 1 < kMost && ends_[{die, first + kKinds * number}] > begin) ++number;
  const int lane = first + kKinds * number;
  ends_[{die, lane}] = end;
  if (number > 0) name_once(die, lane, fmt::format("{} {}", name, number + 1));
  return lane;
}

void Timeline::launch_ended(int die, const npu::LaunchRecord& record) {
  if (!options_.dies.contains(die)) return;
  for (const auto& core : cores_) {
    if (core->die() == die) core->end();
  }
  const std::string kernel = kernel_name(record);
  const std::string name = fmt::format("{}{}launch {}", kernel, kernel.empty() ? "" : ", ", record.launch);
  slice(die, free_lane(die, kKernels, "kernels", record.first_instruction, record.last_retired), name,
        record.first_instruction, record.last_retired, fmt::format("\"blocks\":{}", record.blocks));
  slice(die, free_lane(die, kTasks, "tasks", record.task_start, record.task_end), name, record.task_start,
        record.task_end);
}

void Timeline::finish() {
  for (const auto& core : cores_) core->end();
  for (auto& [at, burst] : ports_) flush(at.first, at.second, burst);
  text_ += "\n]}\n";
  file_.write(text_);
  file_.finish();
}

}  // namespace cm384::observe
