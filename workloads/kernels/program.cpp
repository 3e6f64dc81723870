// `cm384 run program FILE`: kernels of one's own on as many dies as one likes, with buffers, launches in
// order and checks from a file (docs/programs.md).
#include "firmware/abi/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "system/host/kernel_kind.h"
#include "workloads/frame/session.h"
#include "workloads/kernels/communication_group.h"
#include "workloads/kernels/host_program.h"
#include "workloads/kernels/instruction_trace.h"
#include "workloads/kernels/kernel_rules.h"
#include "workloads/kernels/program_data.h"
#include "workloads/kernels/program_file.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

struct ProgramOptions {
  std::string file;
  std::string payload = "full";
  std::string trace;
  bool check_hazards = false;
  bool check_memory = false;
  RuleOptions rules;
  bool real_polling = false;
  Time patience = 5_ms;
  int devices = 1;
  Texts argument;

  std::vector<std::string> inputs() const {
    if (file.empty()) return {};
    return is_host_program(file) ? kernel_images(file) : read_program(file).inputs();
  }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"},
          "the program: TOML with buffers, launches and checks, or what `kernel build --host` has made");
    visit("payload", self.payload, OneOf{{"control", "full"}},
          "keep all bytes, or leave out those of buffers that the file marks as payload");
    visit("trace", self.trace, Form{"FILE"},
          "write an instruction trace of the first vector core of rank 0, one line per instruction");
    visit("check-hazards", self.check_hazards, kCheckHazards);
    visit("check-memory", self.check_memory, kCheckMemory);
    RuleOptions::describe(self.rules, visit);
    visit("real-polling", self.real_polling, "run every turn of loops that poll");
    visit(
        "patience", self.patience, Range{1_us, 1000_s},
        "simulated time of work without a copy from elsewhere, a write or a launch after which the run ends "
        "as hung");
    visit("devices", self.devices, Range{1, 768}, "of a host program: how many it has, dies 0, 1, ..");
    visit("argument", self.argument, Form{"TEXT"}, "of a host program: one for its main; may be repeated");
  }
};

constexpr std::array kProgramFields{
    Field{"launch", FieldType::text, "of the file", true, {}, 20}.as_condition(),
    Field{"ranks", FieldType::integer, "that take part", true}.as_condition(),
    Field{"blocks", FieldType::integer, "a rank", true}.as_condition(),
    Field{"kernel_us", FieldType::number,
          "from the first instruction of the first block to the last of the last, mean of the ranks", true},
    Field{"longest_kernel_us", FieldType::number, "the longest", true},
    Field{"task_us", FieldType::number, "task duration, launch and teardown of the blocks inside", true},
    Field{"longest_task_us", FieldType::number, "the longest"},
    Field{"code_bytes", FieldType::bytes, "instructions of the kernel's image"},
    Field{"end_us", FieldType::number, "when the last rank's task ends, from the beginning of the run", true},
};

// Behind each buffer: nobody has business there.
constexpr std::uint64_t kGuard = 4 << 10;
constexpr std::byte kUntouched{0xa5};

class ProgramRun {
 public:
  ProgramRun(const ProgramFile& program, Session& session, const RuleOptions& rules, bool list_hazards,
             bool control)
      : program_(program),
        session_(session),
        runtime_(session.runtime()),
        rules_(rules),
        list_hazards_(list_hazards),
        control_(control) {}

  void prepare() {
    for (const ProgramLaunch& launch : program_.launches) load(launch);
    for (const ProgramBuffer& buffer : program_.buffers) place(buffer);
    for (const ProgramContext& context : program_.contexts) lay_out(context);
    for (const ProgramStruct& each : program_.structs) place(each);
  }

  void launch() {
    for (const ProgramLaunch& launch : program_.launches) {
      auto& handles = launched_.emplace_back();
      for (int rank = 0; rank < program_.ranks(); ++rank) {
        if (!launch.takes_part[static_cast<std::size_t>(rank)]) continue;
        const auto& program = programs_.at(launch.kernel);
        npu::LaunchRequest request;
        request.program = program;
        request.type = host::kernel_type(program->image(), launch.tiling_key);
        request.arguments = arguments(launch, rank, request.type);
        host::set_blocks(request, static_cast<std::uint64_t>(launch.blocks),
                         session_.machine().parameters().die);
        handles.push_back(runtime_.launch(host::Runtime::default_stream(die(rank)), std::move(request)));
      }
    }
  }

  Row row(std::size_t number) const {
    const ProgramLaunch& launch = program_.launches[number];
    double kernel = 0, longest_kernel = 0, task = 0, longest_task = 0;
    Time end{};
    for (const host::LaunchHandle handle : launched_[number]) {
      const npu::LaunchRecord& record = runtime_.record(handle);
      const double of_kernel = (record.last_retired - record.first_instruction).us();
      const double of_task = (record.task_end - record.task_start).us();
      kernel += of_kernel;
      task += of_task;
      longest_kernel = std::max(longest_kernel, of_kernel);
      longest_task = std::max(longest_task, of_task);
      end = std::max(end, record.task_end);
    }
    const auto ranks = static_cast<double>(launched_[number].size());
    return {{"launch", launch.name},
            {"ranks", launched_[number].size()},
            {"blocks", launch.blocks},
            {"kernel_us", kernel / ranks},
            {"longest_kernel_us", longest_kernel},
            {"task_us", task / ranks},
            {"longest_task_us", longest_task},
            {"code_bytes", programs_.at(launch.kernel)->image().code_bytes()},
            {"end_us", end.us()}};
  }

  // A line on who wrote behind the end of a buffer, up to kGuard; nothing: nobody did. A block of 32 B that
  // the buffer shares does not count.
  std::optional<std::string> written_outside() const {
    for (std::size_t n = 0; n < program_.buffers.size(); ++n) {
      const std::uint64_t end = (program_.buffers[n].bytes() + 31) / 32 * 32;
      std::vector<std::byte> behind(program_.buffers[n].bytes() + kGuard - end);
      for (int rank = 0; rank < program_.ranks(); ++rank) {
        runtime_.copy_out(address(n, rank) + end, behind);
        const auto first = std::ranges::find_if(behind, [](std::byte b) { return b != kUntouched; });
        if (first == behind.end()) continue;
        return fmt::format(
            "written outside: rank {}, {} B past the end of {}", rank,
            first - behind.begin() + static_cast<std::ptrdiff_t>(end - program_.buffers[n].bytes()),
            program_.buffers[n].name);
      }
    }
    return {};
  }

  // Whether what is checked is payload without bytes, at any rank.
  bool holds_payload(const ProgramCheck& check) const {
    return std::ranges::any_of(addresses_[check.buffer], [&](std::uint64_t at) {
      return runtime_.holds_payload(at, check.count * bytes_of(program_.buffers[check.buffer].type));
    });
  }

  // A line on what does not hold; nothing: all of it does.
  std::optional<std::string> failure_of(const ProgramCheck& check) const {
    const ProgramBuffer& buffer = program_.buffers[check.buffer];
    std::uint64_t wrong = 0;
    std::string first;
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      const std::vector<std::byte> found = bytes_of_rank(check.buffer, rank, check.count);
      std::optional<Array> file;
      if (const auto* from = std::get_if<ProgramBuffer::File>(&check.expected))
        file = expected_array(program_, from->path, rank, check);
      for (std::uint64_t n = 0; n < check.count; ++n) {
        const Number got = number_at(found, buffer.type, n);
        const Number wanted = file ? number_at(file->bytes, file->type, n)
                                   : std::get<RankValue>(check.expected).number(rank, program_.ranks());
        const bool same =
            check.relative
                ? distance(got, wanted) <= *check.absolute + *check.relative * std::abs(to_double(wanted))
            : file ? std::memcmp(found.data() + n * bytes_of(buffer.type),
                                 file->bytes.data() + n * bytes_of(buffer.type), bytes_of(buffer.type)) == 0
                   : is_equal(got, wanted);
        if (same) continue;
        if (wrong++ == 0)
          first =
              fmt::format("rank {}, element {} is {}, expected {}", rank, n, text_of(got), text_of(wanted));
      }
    }
    if (wrong == 0) return {};
    return fmt::format("check of {}: {} of {} elements differ; {}", buffer.name, wrong,
                       check.count * static_cast<std::uint64_t>(program_.ranks()), first);
  }

  void report(const Clock& clock, StudyResult& into) const {
    for (const auto& [path, program] : programs_) report_rules(*program, clock, into);
  }

  void save(const ProgramResult& result) const {
    const ProgramBuffer& buffer = program_.buffers[result.buffer];
    for (int rank = 0; rank < program_.ranks(); ++rank)
      write_file(path_of_rank(result.path, rank),
                 npy_text(buffer.type, buffer.shape, bytes_of_rank(result.buffer, rank, buffer.count())));
  }

 private:
  int die(int rank) const { return program_.dies[static_cast<std::size_t>(rank)]; }
  std::uint64_t address(std::size_t buffer, int rank) const {
    return addresses_[buffer][static_cast<std::size_t>(rank)];
  }

  std::vector<std::byte> bytes_of_rank(std::size_t buffer, int rank, std::uint64_t count) const {
    std::vector<std::byte> bytes(count * bytes_of(program_.buffers[buffer].type));
    runtime_.copy_out(address(buffer, rank), bytes);
    return bytes;
  }

  void load(const ProgramLaunch& launch) {
    const auto image = read_kernel(program_.input(launch.kernel, 0), launch);
    auto& program = programs_[launch.kernel];
    if (program != nullptr) return;
    program = runtime_.load(image);
    has_collectives_ |= program->image().symbol("cm384_collectives").has_value();
    apply_rules(rules_, list_hazards_, *program);
  }

  void place(const ProgramBuffer& buffer) {
    auto& places = addresses_.emplace_back();
    const bool payload = control_ && buffer.payload;
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      places.push_back(runtime_.allocate(die(rank), buffer.bytes() + kGuard));
      runtime_.copy_in(places.back() + buffer.bytes(), std::vector(kGuard, kUntouched));
      if (buffer.filled && !payload) runtime_.copy_in(places.back(), content_of(program_, buffer, rank));
      if (payload) runtime_.mark_payload(places.back(), buffer.bytes());
    }
  }

  std::uint64_t target(const ProgramPointer& to, int rank) const {
    const int at = to.rank ? static_cast<int>(to.rank->whole(rank, program_.ranks())) : rank;
    return address(to.buffer, at) + to.offset;
  }

  void place(const ProgramStruct& made) {
    auto& places = structs_.emplace_back();
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      std::vector<std::byte> bytes(std::max(made.bytes, 1u));
      for (const ProgramStruct::Field& field : made.fields) {
        const std::span<std::byte> at(bytes.data() + field.at, bytes_of(field.type));
        if (const auto* to = std::get_if<ProgramPointer>(&field.value)) {
          const std::uint64_t pointer = target(*to, rank);
          std::memcpy(at.data(), &pointer, sizeof pointer);
        } else if (const auto& value = std::get<RankValue>(field.value); value.is_whole()) {
          const std::int64_t whole = value.whole(rank, program_.ranks());
          write_number(at, field.type, 0, whole);
        } else {
          write_number(at, field.type, 0, value.number(rank, program_.ranks()));
        }
      }
      places.push_back(runtime_.allocate(die(rank), bytes.size()));
      runtime_.copy_in(places.back(), bytes);
    }
  }

  // The resources of its group at each rank. A rank of no group has none. Groups of different contexts have
  // queues of their own.
  void lay_out(const ProgramContext& context) {
    auto& places = contexts_[context.index];
    places.resize(static_cast<std::size_t>(program_.ranks()));
    const auto bytes = [&](const std::optional<std::size_t>& buffer) {
      return buffer ? program_.buffers[*buffer].bytes() : 0;
    };
    const auto window = [&](const std::optional<std::size_t>& buffer, int of) {
      return buffer ? address(*buffer, of) : 0;
    };
    for (const std::vector<int>& group : context.members) {
      std::vector<GroupMember> members;
      for (const int rank : group)
        members.push_back({.die = die(rank),
                           .world_rank = static_cast<std::uint32_t>(rank),
                           .window_in = window(context.window_in, rank),
                           .window_out = window(context.window_out, rank),
                           .window_exp = window(context.window_exp, rank),
                           .window_bytes = bytes(context.window_in),
                           .window_exp_bytes = bytes(context.window_exp)});
      const std::vector<std::uint64_t> made = lay_out_group(runtime_, members);
      for (std::size_t n = 0; n < group.size(); ++n) places[static_cast<std::size_t>(group[n])] = made[n];
      if (has_collectives_)
        lay_out_group_server(runtime_, members, made, static_cast<std::uint16_t>(context.index));
    }
  }

  std::uint64_t arguments(const ProgramLaunch& launch, int rank, npu::KernelType type) {
    cm384_program block{};
    std::size_t n = 0;
    for (const auto& argument : launch.arguments) {
      std::uint64_t& word = block.argument[n++];
      if (const auto* to = std::get_if<ProgramPointer>(&argument)) {
        word = target(*to, rank);
      } else if (const auto* which = std::get_if<ProgramLaunch::Struct>(&argument)) {
        word = structs_[which->number][static_cast<std::size_t>(rank)];
      } else if (const auto* table = std::get_if<ProgramLaunch::Table>(&argument)) {
        const auto& of = addresses_[table->buffer];
        word = runtime_.allocate(die(rank), of.size() * sizeof(std::uint64_t));
        runtime_.put(word, std::span<const std::uint64_t>(of));
      } else {
        const auto& value = std::get<RankValue>(argument);
        word = value.is_whole() ? static_cast<std::uint64_t>(value.whole(rank, program_.ranks()))
                                : std::bit_cast<std::uint32_t>(
                                      static_cast<float>(to_double(value.number(rank, program_.ranks()))));
      }
    }
    for (const auto& [index, places] : contexts_)
      block.context[index] = places[static_cast<std::size_t>(rank)];
    block.tiling_key = launch.tiling_key;
    block.vector_cores = host::vector_cores(type);
    if (type == npu::KernelType::mix)
      block.group_space =
          runtime_.allocate(die(rank), static_cast<std::uint64_t>(launch.blocks) * CM384_PROGRAM_GROUP_SPACE);
    const std::uint64_t at = runtime_.allocate(die(rank), sizeof block);
    runtime_.put(at, block);
    return at;
  }

  const ProgramFile& program_;
  Session& session_;
  host::Runtime& runtime_;
  const RuleOptions& rules_;
  bool list_hazards_;
  bool control_;
  bool has_collectives_ = false;
  std::vector<std::vector<std::uint64_t>> addresses_, structs_;  // by buffer, struct; rank
  std::map<unsigned, std::vector<std::uint64_t>> contexts_;      // by group; rank
  std::map<std::string, std::shared_ptr<npu::Program>> programs_;
  std::vector<std::vector<host::LaunchHandle>> launched_;  // by launch
};

SessionOptions session_options_of(const ProgramOptions& options, std::vector<int> dies) {
  SessionOptions made;
  made.dies = std::move(dies);
  made.die.aiv.check_hazards = options.check_hazards;
  made.die.aiv.elide_polls = !options.real_polling;
  made.check_memory = options.check_memory;
  made.patience = options.patience;
  made.what = fmt::format("program {}", options.file);
  return made;
}

// A program of the host: a row a launch.
StudyResult run_host_program(const StudyContext& context, const ProgramOptions& options) {
  StudyResult result;
  result.input_files.push_back(options.file);
  for (std::string& path : kernel_images(options.file)) result.input_files.push_back(std::move(path));
  if (options.payload == "control")
    throw InputError("--payload control: has no effect on a host program, which marks nothing as payload");
  std::vector<int> dies(static_cast<std::size_t>(options.devices));
  std::iota(dies.begin(), dies.end(), 0);
  Session session(context, session_options_of(options, dies));
  InstructionTrace trace(options.trace);
  if (trace.file() != nullptr) session.machine().die(0).cluster().core(0).scalar().set_trace(trace.file());
  HostProgram program(options.file, options.argument, session, dies, options.rules, !context.gdb_at_fault);
  const int code = program.run(result.complete);
  session.count(result.simulator);
  session.add_findings(result);
  program.report(Clock(context.machine.die.clock), result);
  trace.close();
  if (!result.complete) return result;
  for (const HostProgram::Launch& launch : program.launches()) {
    const npu::LaunchRecord& record = session.runtime().record(launch.handle);
    const double kernel = (record.last_retired - record.first_instruction).us();
    const double task = (record.task_end - record.task_start).us();
    context.finish_row(result, {{"launch", launch.name},
                                {"ranks", 1},
                                {"blocks", launch.blocks},
                                {"kernel_us", kernel},
                                {"longest_kernel_us", kernel},
                                {"task_us", task},
                                {"longest_task_us", task},
                                {"code_bytes", launch.code_bytes},
                                {"end_us", record.task_end.us()}});
  }
  if (code != 0) {
    result.passed = false;
    result.notes.push_back(fmt::format("{} ended with {}", options.file, code));
  }
  return result;
}

StudyResult run(const StudyContext& context, const ProgramOptions& options) {
  if (options.file.empty())
    throw InputError("run program: no FILE: a program in TOML, or of the host by `kernel build --host`");
  if (is_host_program(options.file)) return run_host_program(context, options);
  if (options.devices != 1 || !options.argument.empty())
    throw InputError(fmt::format("{}: has no effect, as {} is not a host program",
                                 options.devices != 1 ? "--devices" : "--argument", options.file));
  const ProgramFile program = read_program(options.file);
  StudyResult result;
  result.input_files.push_back(options.file);
  for (std::string& path : program.inputs()) result.input_files.push_back(std::move(path));
  const bool control = options.payload == "control";
  if (control && std::ranges::none_of(program.buffers, &ProgramBuffer::payload))
    throw InputError(fmt::format("--payload control: has no effect, as no buffer of {} is marked as payload",
                                 options.file));
  Session session(context, session_options_of(options, program.dies));
  ProgramRun run(program, session, options.rules, !context.gdb_at_fault, control);
  // What is wrong with inputs and outputs is known before the work.
  for (const ProgramCheck& check : program.checks) {
    if (const auto* file = std::get_if<ProgramBuffer::File>(&check.expected)) {
      for (int rank = 0; rank < program.ranks(); ++rank) expected_array(program, file->path, rank, check);
    }
  }
  for (const ProgramResult& saved : program.results) {
    for (int rank = 0; rank < program.ranks(); ++rank) OutputFile::try_open(path_of_rank(saved.path, rank));
  }
  for (const ProgramLaunch& launch : program.launches) {
    const std::vector<std::string_view> phases(launch.phases.begin(), launch.phases.end());
    if (!phases.empty()) session.name_phases(std::filesystem::path(launch.kernel).stem().string(), phases);
  }
  InstructionTrace trace(options.trace);
  if (trace.file() != nullptr)
    session.machine().die(program.dies.front()).cluster().core(0).scalar().set_trace(trace.file());
  run.prepare();
  run.launch();
  result.complete = session.runtime().wait();
  session.count(result.simulator);
  session.add_findings(result);
  run.report(Clock(context.machine.die.clock), result);
  trace.close();
  if (!result.complete) return result;

  for (std::size_t n = 0; n < program.launches.size(); ++n) context.finish_row(result, run.row(n));
  for (const ProgramResult& saved : program.results) run.save(saved);
  std::size_t held = 0;
  for (const ProgramCheck& check : program.checks) {
    if (control && run.holds_payload(check)) {
      result.notes.push_back(
          fmt::format("check of {}: left out, its bytes are payload", program.buffers[check.buffer].name));
      continue;
    }
    if (auto failure = run.failure_of(check)) {
      result.passed = false;
      result.notes.push_back(std::move(*failure));
    } else {
      ++held;
    }
  }
  if (auto outside = run.written_outside()) {
    result.passed = false;
    result.notes.push_back(std::move(*outside));
  }
  if (!program.checks.empty())
    result.notes.push_back(fmt::format("{} of {} checks hold", held, program.checks.size()));
  return result;
}

}  // namespace

const Study kProgramStudy{
    "program",      "kernels of your own on many dies, with buffers, launches and checks from a file",
    kProgramFields, options_of<ProgramOptions, run>,
    true,           "file"};

}  // namespace cm384::studies
