#include "system/observe/line_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text/output_file.h"

namespace cm384::observe {
namespace {

constexpr std::size_t kLongestSource = 5000;  // lines that a result keeps of a file
constexpr std::size_t kShownLines = 10;

constexpr std::array<WorkLane, 6> kPipeLanes{WorkLane::vector, WorkLane::cube, WorkLane::mte1,
                                             WorkLane::mte2,   WorkLane::mte3, WorkLane::fixpipe};

const PipeWork& pipe_of(const LineWork& line, WorkLane lane) {
  return line.pipes[static_cast<std::size_t>(lane)];
}

PipeWork pipes_of(const LineWork& line) {
  PipeWork sum;
  for (const PipeWork& pipe : line.pipes) sum += pipe;
  return sum;
}

// A field of a CSV line that may hold commas or quotes.
std::string field_of(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string place_of(const std::string& path, const std::string& function, int line) {
  if (line == 0) return function.empty() ? "?" : function;
  return fmt::format("{}:{}", path, line);
}

std::string code_exe(const std::vector<KernelWork>& kernels, double cycle_ps) {
  std::string text = "code,call_count,cycles,running_time(us)\n";
  for (const KernelWork& kernel : kernels) {
    for (const LineWork& line : lines_of(kernel)) {
      const double cycles = held_cycles(line, cycle_ps);
      text += fmt::format("{},{},{:.0f},{:.6f}\n", field_of(place_of(line.path, line.function, line.line)),
                          line.count, cycles, cycles * cycle_ps * 1e-6);
    }
  }
  return text;
}

std::string instr_exe(const std::vector<KernelWork>& kernels, double cycle_ps) {
  std::string text = "instr,addr,pipe,call_count,cycles,running_time(us),detail\n";
  for (const KernelWork& kernel : kernels) {
    for (const InstructionWork& work : kernel.instructions) {
      const double cycles = held_cycles(work, cycle_ps);
      text +=
          fmt::format("{},{:#x},{},{},{:.0f},{:.6f},{}\n", field_of(work.name), work.pc, name_of(work.lane),
                      work.count(), cycles, cycles * cycle_ps * 1e-6, field_of(work.detail));
    }
  }
  return text;
}

// Names of columns that count stalls, of the scalar unit and of pipes.
std::string stall_heads() {
  std::string heads;
  for (std::size_t n = 0; n < npu::kScalarStalls; ++n)
    heads += fmt::format(",stall_{}_cycles", npu::name_of(static_cast<npu::ScalarStall>(n)));
  return heads + ",pipe_flag_cycles,pipe_barrier_cycles,pipe_order_cycles";
}

std::string stalls_of(const npu::ScalarCycles& scalar, const PipeWork& pipe) {
  std::string fields;
  for (const std::uint64_t stall : scalar.stalls) fields += fmt::format(",{}", stall);
  return fields + fmt::format(",{},{},{}", pipe.flag_cycles, pipe.barrier_cycles, pipe.order_cycles);
}

// A number with nothing where it says nothing.
std::string utilisation_of(const PipeWork& vector) {
  if (vector.lanes == 0) return "";
  return fmt::format("{:.4f}", static_cast<double>(vector.operations) / static_cast<double>(vector.lanes));
}

std::string lines_csv(const LineReport& report) {
  std::string text = "kernel,file,line,function,count,cycles,us,scalar_us";
  for (const WorkLane lane : kPipeLanes) text += fmt::format(",{}_us", name_of(lane));
  text += ",bytes,operations,vector_utilisation,conflict_cycles" + stall_heads() + "\n";
  const double us = report.cycle_ps * 1e-6;
  for (const KernelWork& kernel : report.kernels) {
    for (const LineWork& line : lines_of(kernel)) {
      const PipeWork all = pipes_of(line);
      const double cycles = held_cycles(line, report.cycle_ps);
      text += fmt::format("{},{},{},{},{},{:.0f},{:.6f},{:.6f}", field_of(kernel.kernel), field_of(line.path),
                          line.line, field_of(line.function), line.count, cycles, cycles * us,
                          static_cast<double>(line.scalar.cycles()) * us);
      for (const WorkLane lane : kPipeLanes)
        text += fmt::format(",{:.6f}", busy_cycles(pipe_of(line, lane), report.cycle_ps) * us);
      text += fmt::format(",{},{},{},{}{}\n", all.bytes, all.operations,
                          utilisation_of(pipe_of(line, WorkLane::vector)), all.conflict_cycles,
                          stalls_of(line.scalar, all));
    }
  }
  return text;
}

std::string instructions_csv(const LineReport& report) {
  std::string text =
      "kernel,addr,instr,detail,pipe,file,line,function,count,cycles,us,busy_cycles,bytes,operations,"
      "vector_utilisation,conflict_cycles" +
      stall_heads() + "\n";
  for (const KernelWork& kernel : report.kernels) {
    for (const InstructionWork& work : kernel.instructions) {
      const double cycles = held_cycles(work, report.cycle_ps);
      const double busy = is_scalar(work.lane) ? static_cast<double>(work.scalar.instructions)
                                               : busy_cycles(work.pipe, report.cycle_ps);
      text += fmt::format("{},{:#x},{},{},{},{},{},{},{},{:.0f},{:.6f},{:.0f},{},{},{},{}{}\n",
                          field_of(kernel.kernel), work.pc, field_of(work.name), field_of(work.detail),
                          name_of(work.lane), field_of(work.path), work.line, field_of(work.function),
                          work.count(), cycles, cycles * report.cycle_ps * 1e-6, busy, work.pipe.bytes,
                          work.pipe.operations, utilisation_of(work.pipe), work.pipe.conflict_cycles,
                          stalls_of(work.scalar, work.pipe));
    }
  }
  return text;
}

std::string cores_csv(const LineReport& report) {
  std::string text = "die,core,name,instructions,scalar_us";
  for (const WorkLane lane : kPipeLanes) text += fmt::format(",{}_us", name_of(lane));
  text += ",bytes,operations,conflict_cycles" + stall_heads() + "\n";
  const double us = report.cycle_ps * 1e-6;
  for (const CoreWork& core : report.cores) {
    PipeWork all;
    text += fmt::format("{},{},{},{},{:.6f}", core.die, core.core, core.name, core.scalar.instructions,
                        static_cast<double>(core.scalar.cycles()) * us);
    for (const WorkLane lane : kPipeLanes) {
      const PipeWork& pipe = core.pipes[static_cast<std::size_t>(lane)];
      text += fmt::format(",{:.6f}", busy_cycles(pipe, report.cycle_ps) * us);
      all += pipe;
    }
    text += fmt::format(",{},{},{}{}\n", all.bytes, all.operations, all.conflict_cycles,
                        stalls_of(core.scalar, all));
  }
  return text;
}

Json stalls_json(const npu::ScalarCycles& scalar, const PipeWork& pipes) {
  Json stalls = Json::object();
  const auto add = [&](std::string name, std::uint64_t cycles) {
    if (cycles > 0) stalls[std::move(name)] = cycles;
  };
  for (std::size_t n = 0; n < npu::kScalarStalls; ++n)
    add(npu::name_of(static_cast<npu::ScalarStall>(n)), scalar.stalls[n]);
  add("pipe_flag", pipes.flag_cycles);
  add("pipe_barrier", pipes.barrier_cycles);
  add("pipe_order", pipes.order_cycles);
  return stalls;
}

Json lanes_json(const npu::ScalarCycles& scalar, const std::array<PipeWork, kWorkLanes>& pipes,
                double cycle_ps) {
  Json lanes = Json::object();
  if (scalar.cycles() > 0) lanes["SCALAR"] = static_cast<double>(scalar.cycles());
  for (const WorkLane lane : kPipeLanes) {
    const double busy = busy_cycles(pipes[static_cast<std::size_t>(lane)], cycle_ps);
    if (busy > 0) lanes[name_of(lane)] = busy;
  }
  return lanes;
}

// The file's lines, where it can be read.
Json source_of(const std::string& path) {
  std::ifstream file(path);
  Json lines = Json::array();
  std::string line;
  while (lines.size() < kLongestSource && std::getline(file, line)) lines.push_back(line);
  return lines;
}

struct Hot {
  LineWork work;
  double cycles = 0;
};

std::vector<Hot> hottest(const KernelWork& kernel, double cycle_ps) {
  std::vector<Hot> hot;
  for (LineWork& line : lines_of(kernel)) {
    const double cycles = held_cycles(line, cycle_ps);
    hot.push_back({std::move(line), cycles});
  }
  std::ranges::stable_sort(hot, [](const Hot& a, const Hot& b) { return a.cycles > b.cycles; });
  return hot;
}

// What most of a line's cycles are: "MTE2 60 %, flag 20 %".
std::string parts_of(const Hot& hot, double cycle_ps) {
  std::vector<std::pair<double, std::string>> parts;
  for (const WorkLane lane : kPipeLanes)
    parts.emplace_back(busy_cycles(pipe_of(hot.work, lane), cycle_ps), name_of(lane));
  parts.emplace_back(static_cast<double>(hot.work.scalar.instructions), "scalar instructions");
  static constexpr std::array<const char*, npu::kScalarStalls> kWaits{"results and branches",
                                                                      "instruction fetch",
                                                                      "scalar loads and stores",
                                                                      "scalar UBuffer access",
                                                                      "the order of local memory",
                                                                      "a place in a queue",
                                                                      "a flag",
                                                                      "all pipes",
                                                                      "other cores",
                                                                      "what it polls"};
  for (std::size_t n = 0; n < npu::kScalarStalls; ++n)
    parts.emplace_back(static_cast<double>(hot.work.scalar.stalls[n]),
                       fmt::format("S waits for {}", kWaits[n]));
  const PipeWork all = pipes_of(hot.work);
  parts.emplace_back(static_cast<double>(all.flag_cycles), "pipes wait for a flag");
  parts.emplace_back(static_cast<double>(all.barrier_cycles), "pipes wait at a barrier");
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t n = 0; n < 2 && parts[n].first > 0; ++n)
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", parts[n].second,
                        100 * parts[n].first / hot.cycles);
  return text;
}

}  // namespace

double busy_cycles(const PipeWork& work, double cycle_ps) {
  return static_cast<double>(work.busy_cycles) + static_cast<double>(work.busy_ps) / cycle_ps;
}

double held_cycles(const PipeWork& work, double cycle_ps) {
  return busy_cycles(work, cycle_ps) + static_cast<double>(work.waits());
}

double held_cycles(const InstructionWork& work, double cycle_ps) {
  return is_scalar(work.lane) ? static_cast<double>(work.scalar.cycles()) : held_cycles(work.pipe, cycle_ps);
}

double held_cycles(const LineWork& work, double cycle_ps) {
  double sum = static_cast<double>(work.scalar.cycles());
  for (const PipeWork& pipe : work.pipes) sum += held_cycles(pipe, cycle_ps);
  return sum;
}

std::vector<LineWork> lines_of(const KernelWork& kernel) {
  std::map<std::tuple<std::string, int, std::string>, LineWork> lines;
  for (const InstructionWork& work : kernel.instructions) {
    // Where no line is known, functions are told apart.
    LineWork& line = lines[{work.path, work.line, work.line == 0 ? work.function : ""}];
    if (line.function.empty()) line.function = work.function;
    line.file = work.file;
    line.path = work.path;
    line.line = work.line;
    line.count = std::max(line.count, work.count());
    line.scalar += work.scalar;
    line.pipes[static_cast<std::size_t>(work.lane)] += work.pipe;
  }
  std::vector<LineWork> made;
  for (auto& [at, line] : lines) made.push_back(std::move(line));
  return made;
}

Json to_json(const LineReport& report) {
  Json kernels = Json::array();
  for (const KernelWork& kernel : report.kernels) {
    Json lines = Json::array(), sources = Json::object();
    npu::ScalarCycles scalar;
    std::array<PipeWork, kWorkLanes> pipes;
    PipeWork all;
    for (const Hot& hot : hottest(kernel, report.cycle_ps)) {
      const LineWork& line = hot.work;
      const PipeWork of_line = pipes_of(line);
      scalar += line.scalar;
      for (std::size_t lane = 0; lane < kWorkLanes; ++lane) pipes[lane] += line.pipes[lane];
      all += of_line;
      if (line.line > 0 && !sources.contains(line.path)) sources[line.path] = source_of(line.path);
      Json entry = {{"path", line.path},
                    {"file", line.file},
                    {"line", line.line},
                    {"function", line.function},
                    {"count", line.count},
                    {"cycles", hot.cycles},
                    {"lanes", lanes_json(line.scalar, line.pipes, report.cycle_ps)},
                    {"stalls", stalls_json(line.scalar, of_line)}};
      if (of_line.bytes > 0) entry["bytes"] = of_line.bytes;
      if (of_line.operations > 0) entry["operations"] = of_line.operations;
      if (of_line.conflict_cycles > 0) entry["conflict_cycles"] = of_line.conflict_cycles;
      if (const PipeWork& vector = pipe_of(line, WorkLane::vector); vector.lanes > 0)
        entry["utilisation"] = static_cast<double>(vector.operations) / static_cast<double>(vector.lanes);
      lines.push_back(std::move(entry));
    }
    const PipeWork& vector = pipes[static_cast<std::size_t>(WorkLane::vector)];
    const PipeWork& cube = pipes[static_cast<std::size_t>(WorkLane::cube)];
    kernels.push_back({{"kernel", kernel.kernel},
                       {"blocks", kernel.blocks},
                       {"cycles", scalar.cycles()},
                       {"cube_cycles", kernel.cube_cycles},
                       {"cube_bytes", kernel.cube_bytes},
                       {"instructions", scalar.instructions},
                       {"lanes", lanes_json(scalar, pipes, report.cycle_ps)},
                       {"stalls", stalls_json(scalar, all)},
                       {"bytes", all.bytes},
                       {"vector_operations", vector.operations},
                       {"vector_lanes", vector.lanes},
                       {"vector_repeats", vector.repeats},
                       {"cube_operations", cube.operations},
                       {"lines", std::move(lines)},
                       {"sources", std::move(sources)}});
  }
  std::set<int> dies;
  for (const CoreWork& core : report.cores) dies.insert(core.die);
  return {{"cycle_ps", report.cycle_ps},
          {"hbm_bytes_per_s", report.hbm_bytes_per_s},
          {"vector_cores", report.vector_cores},
          {"cube_cores", report.cube_cores},
          {"cube_operations_per_cycle", report.cube_operations_per_cycle},
          {"cores", report.cores.size()},
          {"dies", dies.size()},
          {"kernels", std::move(kernels)}};
}

std::string text_of(const LineReport& report) {
  std::string text;
  for (const KernelWork& kernel : report.kernels) {
    const std::vector<Hot> hot = hottest(kernel, report.cycle_ps);
    double all = 0;
    for (const Hot& line : hot) all += line.cycles;
    if (all <= 0) continue;
    text += fmt::format("lines of {}, by the cycles that they hold scalar units and pipes, of {} blocks:\n",
                        kernel.kernel, kernel.blocks);
    for (std::size_t n = 0; n < std::min(kShownLines, hot.size()); ++n) {
      const LineWork& line = hot[n].work;
      text += fmt::format("  {:>5.1f} % {:>12.0f}  {:<32}  {}\n", 100 * hot[n].cycles / all, hot[n].cycles,
                          place_of(line.file, line.function, line.line), parts_of(hot[n], report.cycle_ps));
    }
  }
  return text;
}

void write_lines(const LineReport& report, const std::string& folder) {
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file(folder + "/" + name, text);
  };
  write("code_exe.csv", code_exe(report.kernels, report.cycle_ps));
  write("instr_exe.csv", instr_exe(report.kernels, report.cycle_ps));
  write("lines.csv", lines_csv(report));
  write("instructions.csv", instructions_csv(report));
  write("cores.csv", cores_csv(report));
  for (const LineReport::OfCore& core : report.by_core) {
    write(fmt::format("{0}/{0}_code_exe.csv", core.name), code_exe(core.kernels, report.cycle_ps));
    write(fmt::format("{0}/{0}_instr_exe.csv", core.name), instr_exe(core.kernels, report.cycle_ps));
  }
  write("lines.json", to_json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace cm384::observe
