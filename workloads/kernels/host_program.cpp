#include "workloads/kernels/host_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <system_error>
#include <utility>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "firmware/abi/host_program.h"
#include "firmware/abi/program.h"
#include "npu_core/scalar/elf_image.h"
#include "system/host/kernel_kind.h"
#include "workloads/kernels/communication_group.h"

namespace cm384::studies {
namespace {

namespace fs = std::filesystem;

// The first bytes of an ELF file, up to its machine.
std::array<char, 20> elf_head(const std::string& path) {
  std::array<char, 20> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return head;
}

bool read_all(int socket, void* to, std::size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t n = ::read(socket, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}
bool send_all(int socket, const void* from, std::size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes != 0) {
    const ssize_t n = send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

// More is no request of a program's.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 36;

}  // namespace

struct HostProgram::Asked {
  cm384_host_request head{};
  std::vector<std::byte> bytes;
};

bool is_host_program(const std::string& path) {
  if (!fs::is_regular_file(path)) return false;  // a pipe is read once
  const auto head = elf_head(path), own = elf_head("/proc/self/exe");
  return std::memcmp(head.data(), "\177ELF", 4) == 0 && head[18] == own[18] && head[19] == own[19];
}
std::vector<std::string> kernel_images(const std::string& program) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(kernel_folder(program), none)) {
    if (entry.path().extension() == ".elf") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

HostProgram::HostProgram(const std::string& path, std::vector<std::string> arguments, Session& session,
                         std::vector<int> dies, const RuleOptions& rules, bool list_hazards)
    : path_(fs::absolute(path).string()),
      arguments_(std::move(arguments)),
      session_(session),
      runtime_(session.runtime()),
      dies_(std::move(dies)),
      rules_(rules),
      list_hazards_(list_hazards),
      defaults_(dies_.size()),
      has_default_(dies_.size()) {}

HostProgram::~HostProgram() {
  if (socket_ >= 0) close(socket_);
  if (child_ < 0) return;
  kill(child_, SIGTERM);
  wait_for_child();
}

void HostProgram::start() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  socket_ = ends[0];
  constexpr int kOfChild = 3;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Rows alone are on the standard output.
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  // A descriptor that stays itself keeps its mark to be closed.
  int other = ends[1];
  if (other == kOfChild) other = dup(ends[1]);
  posix_spawn_file_actions_adddup2(&actions, other, kOfChild);
  std::vector<std::string> words{path_};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<char*> argv, environment;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string own = fmt::format("{}={}", CM384_HOST_SOCKET, kOfChild);
  environment.push_back(own.data());
  for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
  environment.push_back(nullptr);
  const int error = posix_spawn(&child_, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (other != ends[1]) close(other);
  close(ends[1]);
  if (error != 0) {
    child_ = -1;
    throw InputError(fmt::format("{}: cannot be started: {}", path_, std::strerror(error)));
  }
}

int HostProgram::wait_for_child() {
  int status = 0;
  while (waitpid(child_, &status, 0) < 0) {
    if (errno != EINTR) break;
  }
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int HostProgram::run(bool& complete) {
  start();
  Asked asked;
  while (read_all(socket_, &asked.head, sizeof asked.head)) {
    if (asked.head.bytes > kMostBytes) break;
    asked.bytes.resize(asked.head.bytes);
    if (!read_all(socket_, asked.bytes.data(), asked.bytes.size())) break;
    cm384_host_reply reply{};
    Answer given;
    try {
      given = answer(asked);
    } catch (const InputError& error) {
      const std::string why = error.what();
      reply.status = 1;
      given.bytes.resize(why.size());
      std::memcpy(given.bytes.data(), why.data(), why.size());
    }
    if (interrupted_) {
      complete = false;
      return 0;
    }
    reply.value = given.value;
    reply.bytes = given.bytes.size();
    if (!send_all(socket_, &reply, sizeof reply) ||
        !send_all(socket_, given.bytes.data(), given.bytes.size()))
      break;
  }
  // What the program has not waited for.
  wait();
  complete = !interrupted_;
  return wait_for_child();
}

void HostProgram::wait() {
  interrupted_ = !runtime_.wait();
}

int HostProgram::die(std::int32_t device) const {
  if (device < 0 || static_cast<std::size_t>(device) >= dies_.size())
    throw InputError(fmt::format("device {}: there are {}; --devices says how many", device, dies_.size()));
  return dies_[static_cast<std::size_t>(device)];
}
host::Stream HostProgram::stream(std::uint64_t number, std::int32_t device) {
  if (number != 0) {
    if (number > streams_.size()) throw InputError("a stream that was not created");
    return streams_[number - 1];
  }
  const auto at = static_cast<std::size_t>(device);
  const int on = die(device);
  if (!has_default_[at]) {
    defaults_[at] = runtime_.create_stream(on);
    has_default_[at] = true;
  }
  return defaults_[at];
}
HostProgram::Event& HostProgram::event(std::uint64_t number) {
  if (number == 0 || number > events_.size()) throw InputError("an event that was not created");
  return events_[number - 1];
}
void HostProgram::check(std::uint64_t address, std::uint64_t bytes) const {
  if (!runtime_.is_allocated(address, bytes))
    throw InputError(fmt::format("{} B at {:#x} are not memory of a device", bytes, address));
}

const std::shared_ptr<npu::Program>& HostProgram::kernel(const std::string& name) {
  const auto known =
      std::ranges::find(programs_, name, &std::pair<std::string, std::shared_ptr<npu::Program>>::first);
  if (known != programs_.end()) return known->second;
  const std::string path = (fs::path(kernel_folder(path_)) / (name + ".elf")).string();
  if (!fs::is_regular_file(path)) throw InputError(fmt::format("launch of {}: there is no {}", name, path));
  auto image = npu::ElfImage::read(path);
  if (!image->takes_arguments()) throw InputError(fmt::format("{}: has no function marked __global__", path));
  auto program = runtime_.load(std::move(image));
  apply_rules(rules_, list_hazards_, *program);
  return programs_.emplace_back(name, std::move(program)).second;
}

namespace {

std::string_view text_of(std::span<const std::byte> bytes, std::size_t from) {
  return {reinterpret_cast<const char*>(bytes.data()) + from, bytes.size() - from};
}

// A number of the call for a parameter of the other kind, as C++ converts it.
std::uint64_t as_the_other(const cm384_host_argument& argument) {
  if (argument.bytes != 0) return argument.word;
  if (argument.is_float == 0)
    return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int64_t>(argument.word)));
  return static_cast<std::uint64_t>(
      static_cast<std::int64_t>(std::bit_cast<float>(static_cast<std::uint32_t>(argument.word))));
}

}  // namespace

HostProgram::Answer HostProgram::launch(const Asked& asked) {
  const auto* const text = reinterpret_cast<const char*>(asked.bytes.data());
  const std::string name(text, strnlen(text, asked.bytes.size()));
  const host::Stream on = stream(asked.head.a, asked.head.device);
  const auto& program = kernel(name);
  npu::LaunchRequest request;
  request.program = program;
  const npu::KernelType type = request.type = host::kernel_type(program->image(), 0);
  const std::uint64_t blocks = asked.head.b;
  try {
    host::set_blocks(request, blocks, session_.machine().parameters().die);
  } catch (const InputError& error) {
    throw InputError(fmt::format("launch of {}: {}", name, error.what()));
  }
  const auto by_types = program->image().symbol("cm384_float_arguments");
  const std::uint64_t floats = by_types.value_or(0);
  cm384_program block{};
  std::size_t count = 0, at = name.size() + 1;
  while (at + sizeof(cm384_host_argument) <= asked.bytes.size()) {
    cm384_host_argument argument{};
    std::memcpy(&argument, asked.bytes.data() + at, sizeof argument);
    at += sizeof argument;
    if (count == CM384_PROGRAM_ARGUMENTS || argument.bytes > asked.bytes.size() - at)
      throw InputError(fmt::format("launch of {}: more than {} arguments", name, CM384_PROGRAM_ARGUMENTS));
    if (argument.bytes != 0 && argument.bytes <= 16 && !by_types)
      throw InputError(
          fmt::format("launch of {}: argument {} is a structure of 16 B or less, which kernels "
                      "that macros make do not get: docs/ascend-c.md",
                      name, count));
    if (argument.is_float != 0 && !by_types)
      throw InputError(
          fmt::format("launch of {}: argument {} is a float, and the kernel has no parameter that is one: "
                      "docs/ascend-c.md",
                      name, count));
    const bool wants_float = (floats >> count & 1) != 0;
    if (wants_float != (argument.is_float != 0)) argument.word = as_the_other(argument);
    if (argument.bytes != 0) {
      argument.word = runtime_.allocate(on.die, argument.bytes);
      runtime_.copy_in(argument.word, std::span(asked.bytes).subspan(at, argument.bytes));
      at += argument.bytes;
    }
    block.argument[count++] = argument.word;
  }
  if (const auto parameters_of = program->image().kernel_parameters();
      parameters_of && parameters_of->size() != count)
    throw InputError(
        fmt::format("launch of {}: takes {} arguments, {} are given", name, parameters_of->size(), count));
  if (asked.head.c != 0) {
    if (asked.head.c > groups_.size()) throw InputError("a communication group that was not made");
    const Group& group = groups_[asked.head.c - 1];
    const auto rank = std::ranges::find(group.devices, asked.head.device);
    if (rank == group.devices.end())
      throw InputError(fmt::format("device {} is not a rank of its communication group", asked.head.device));
    block.context[0] = group.places[static_cast<std::size_t>(rank - group.devices.begin())];
  }
  block.vector_cores = host::vector_cores(type);
  if (type == npu::KernelType::mix)
    block.group_space = runtime_.allocate(on.die, blocks * CM384_PROGRAM_GROUP_SPACE);
  request.arguments = runtime_.allocate(on.die, sizeof block);
  runtime_.put(request.arguments, block);
  const std::vector<std::uint64_t> words(block.argument, block.argument + count);
  unwaited_.started(stream_key(asked.head.a, asked.head.device), {"launch of " + name, words, words});
  launches_.push_back({name, blocks, program->image().code_bytes(), runtime_.launch(on, std::move(request))});
  return {};
}

HostProgram::Answer HostProgram::make_group(const Asked& asked) {
  Group group;
  group.devices.resize(asked.bytes.size() / sizeof(std::int32_t));
  std::memcpy(group.devices.data(), asked.bytes.data(), group.devices.size() * sizeof(std::int32_t));
  std::vector<GroupMember> members;
  for (const std::int32_t device : group.devices)
    members.push_back({.die = die(device), .world_rank = static_cast<std::uint32_t>(members.size())});
  group.places = lay_out_group(runtime_, members);
  lay_out_group_server(runtime_, members, group.places, static_cast<std::uint16_t>(groups_.size()));
  groups_.push_back(std::move(group));
  return {static_cast<std::int64_t>(groups_.size())};
}

// The default streams of devices have keys of their own.
std::uint64_t HostProgram::stream_key(std::uint64_t number, std::int32_t device) {
  return number != 0 ? number : std::uint64_t{1} << 32 | static_cast<std::uint32_t>(device);
}

void HostProgram::copies_now(std::uint64_t address, bool write, std::string_view line) {
  const auto work = unwaited_.meets(address, write);
  if (!work) return;
  std::string found = fmt::format(
      "{}: a copy {} memory of {}, which nothing has waited for: call aclrtSynchronizeStream before it; the "
      "copy itself does not wait",
      line.empty() ? "aclrtMemcpy" : line, write ? "writes" : "reads", *work);
  if (std::ranges::find(findings_, found) == findings_.end()) findings_.push_back(std::move(found));
}

void HostProgram::copy(const Asked& asked) {
  const cm384_host_request& head = asked.head;
  check(head.a, head.c);
  check(head.b, head.c);
  if (head.value >= 0) {
    const auto number = static_cast<std::uint64_t>(head.value);
    runtime_.memcpy_async(stream(number, head.device), head.a, head.b, head.c);
    unwaited_.started(stream_key(number, head.device), {"a copy", {head.b}, {head.a}});
    return;
  }
  const std::string_view line = text_of(asked.bytes, 0);
  copies_now(head.b, false, line);
  copies_now(head.a, true, line);
  std::vector<std::byte> bytes(head.c);
  runtime_.copy_out(head.b, bytes);
  runtime_.copy_in(head.a, bytes);
}

HostProgram::Answer HostProgram::answer(const Asked& asked) {
  const cm384_host_request& head = asked.head;
  switch (head.operation) {
    case CM384_HOST_DEVICES:
      return {static_cast<std::int64_t>(dies_.size())};
    case CM384_HOST_CORES: {
      const hw::Die& parameters = session_.machine().parameters().die;
      return {head.a == 0 ? parameters.aiv : parameters.aic};
    }
    case CM384_HOST_ALLOCATE: {
      const std::uint64_t address = runtime_.allocate(die(head.device), head.a);
      unwaited_.allocated(address, head.a);
      return {static_cast<std::int64_t>(address)};
    }
    case CM384_HOST_FREE:
      runtime_.free(head.a);
      unwaited_.freed(head.a);
      return {};
    case CM384_HOST_WRITE:
      if (head.b > asked.bytes.size()) throw InputError("a copy of more bytes than were sent with it");
      check(head.a, head.b);
      copies_now(head.a, true, text_of(asked.bytes, head.b));
      runtime_.copy_in(head.a, std::span(asked.bytes).first(head.b));
      return {};
    case CM384_HOST_READ: {
      check(head.a, head.b);
      copies_now(head.a, false, text_of(asked.bytes, 0));
      Answer made;
      made.bytes.resize(head.b);
      runtime_.copy_out(head.a, made.bytes);
      return made;
    }
    case CM384_HOST_COPY:
      copy(asked);
      return {};
    case CM384_HOST_STREAM:
      streams_.push_back(runtime_.create_stream(die(head.device)));
      return {static_cast<std::int64_t>(streams_.size())};
    case CM384_HOST_WAIT_STREAM:
      runtime_.synchronize_stream(stream(head.a, head.device));
      unwaited_.waited_for_stream(stream_key(head.a, head.device));
      wait();
      return {};
    case CM384_HOST_WAIT_DEVICE:
      runtime_.synchronize_device(die(head.device));
      unwaited_.waited_for_stream(stream_key(0, head.device));
      for (std::size_t n = 0; n < streams_.size(); ++n) {
        if (streams_[n].die == die(head.device)) unwaited_.waited_for_stream(n + 1);
      }
      wait();
      return {};
    case CM384_HOST_LAUNCH:
      return launch(asked);
    case CM384_HOST_GROUP:
      return make_group(asked);
    case CM384_HOST_EVENT:
      events_.push_back({false, {}, runtime_.create_event(die(head.device))});
      return {static_cast<std::int64_t>(events_.size())};
    case CM384_HOST_RECORD_EVENT: {
      Event& of = event(head.a);
      of.task = runtime_.record_event(stream(head.b, head.device), of.event);
      unwaited_.recorded(head.a, stream_key(head.b, head.device));
      of.recorded = true;
      return {};
    }
    case CM384_HOST_STREAM_AWAITS:
      runtime_.stream_wait_event(stream(head.a, head.device), event(head.b).event);
      unwaited_.awaits(stream_key(head.a, head.device), head.b);
      return {};
    case CM384_HOST_WAIT_EVENT:
      event(head.a);
      unwaited_.waited_for_event(head.a);
      wait();
      return {};
    case CM384_HOST_ELAPSED: {
      const Event &from = event(head.a), &to = event(head.b);
      if (!from.recorded || !to.recorded) throw InputError("an event that was not recorded");
      wait();
      return {std::llround((runtime_.task(to.task).record.done - runtime_.task(from.task).record.done).us() *
                           1000)};
    }
    default:
      throw InputError(
          fmt::format("the program asks for operation {}, which does not exist", head.operation));
  }
}

void HostProgram::report(const Clock& clock, StudyResult& into) const {
  into.notes.insert(into.notes.end(), findings_.begin(), findings_.end());
  for (const auto& [name, program] : programs_) report_rules(*program, clock, into);
}

}  // namespace cm384::studies
