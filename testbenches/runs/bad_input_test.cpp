// Whatever is wrong: one clear line (or the hang report) and the exit code of the contract.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "testbenches/hw/outcome.h"

namespace cm384::bad_input_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// A folder of this process's own, gone at its end.
const fs::path& folder() {
  struct Folder {
    fs::path path = fs::path(::testing::TempDir()) / ("cm384_bad_input_" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
  };
  static const Folder made;
  return made.path;
}

Outcome cm384(const std::string& arguments) {
  return run_command(CM384_COMMAND " " + arguments, (folder() / "errors").string());
}

void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) {
  const Outcome outcome = cm384(arguments);
  EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.errors;
  EXPECT_EQ(outcome.output, "") << arguments;
  for (const std::string& part : parts) EXPECT_THAT(outcome.errors, HasSubstr(part)) << arguments;
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

std::string write(const std::string& name, const std::string& text) {
  const fs::path path = folder() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string kernel(const std::string& name) {
  return CM384_KERNELS + name + ".elf";
}

TEST(BadInput, MachineFiles) {
  expect_refused("run dispatch --set ub.lnik.bandwidth=28GB/s",
                 {"ub.lnik.bandwidth", "did you mean ub.link.bandwidth"});
  expect_refused("run dispatch --set ub.link.bandwidth=28", {"ub.link.bandwidth", "'28' has no unit"});
  expect_refused("run dispatch --machine nowhere/mine.toml", {"nowhere/mine.toml: no such machine file"});
  expect_refused("run dispatch --set die.aiv", {"die.aiv", "has no '='"});
  const std::string typo = write("typo.toml", "base = \"node8\"\n\n[ub.link]\nbandwith = \"28GB/s\"\n");
  expect_refused("run dispatch --machine " + typo, {"typo.toml:4", "bandwith", "did you mean", "bandwidth"});
  const std::string bare = write("bare.toml", "base = \"node8\"\n[ub.link]\nbandwidth = 28\n");
  expect_refused("run dispatch --machine " + bare, {"bare.toml:3", "bandwidth"});
  const std::string range = write("range.toml", "base = \"node8\"\n[die]\naiv = 100\n");
  expect_refused("run dispatch --machine " + range, {"range.toml:3", "aiv", "100", "1 to 64"});
}

TEST(BadInput, Options) {
  expect_refused("run dispatch --rnaks 8", {"--rnaks: no such option; did you mean --ranks?"});
  expect_refused("run dispatch --ranks 769", {"--ranks", "769", "768"});
  expect_refused("run dispatch --ranks 17 --machine node8", {"17", "16"});
  expect_refused("run dispatch --hidden 100", {"--hidden: 100 does not fit", "multiples of 32"});
  expect_refused("run dispatch --payload ful", {"--payload", "ful", "full"});
  expect_refused("run dispatch --routing zipf", {"--routing"});
  expect_refused("run dispatch --routing trace:nowhere.jsonl", {"nowhere.jsonl"});
  expect_refused("run dispatch --start-skew 5", {"--start-skew", "'5' has no unit"});
  expect_refused("run dispatch --top-k 8 --experts 4", {"8", "4"});
  expect_refused("run p2p --bytes 512", {"--bytes: '512' has no unit"});
  expect_refused("run p2p --machine node8 --distance inter-node", {"inter-node", "two nodes"});
  expect_refused("run p2p --target npu --cores 64", {"64", "48"});
  expect_refused("run stream --shape 2x128", {"--shape", "2x128"});
}

TEST(BadInput, CubeStudies) {
  expect_refused("run gemm --b-layout zn", {"--b-layout", "'zn'", "allowed: one of nz, nd"});
  expect_refused("run gemm --dtype fp8", {"--dtype fp8", "no FP8", "int8, bf16"});
  expect_refused("run gemm --tile 128", {"--tile: 128", "128x152"});
  expect_refused("run gemm --tile 256x256", {"tile 256x256", "L0C would hold 262144 B", "131072 B"});
  expect_refused("run gemm --tile 128x20", {"tile 128x20", "columns in multiples of 8"});
  expect_refused("run gemm --n 4097", {"--n: 4097 does not fit", "multiples of 8"});
  expect_refused("run gemm --cores 30", {"--cores 30", "24 AICs"});
  expect_refused("run mla --heads 20", {"--heads: 20 does not fit", "multiples of 16"});
  expect_refused("run mla --stage all --hidden 100", {"--hidden: 100 does not fit", "multiples of 64"});
  expect_refused("run mla --stage all --q-lora 100", {"--q-lora: 100 does not fit", "multiples of 64"});
  expect_refused("run mla --stage decode", {"--stage", "'decode'", "attention, prolog, output, all"});
  expect_refused("run mla --batch 4096 --kv-len 1000000", {"memory of die 0 is full"});
  expect_refused("run ffn --width 100", {"--width: 100 does not fit", "multiples of 64"});
  expect_refused("run moe --flow basic --experts-compute firmware", {"--experts-compute", "--flow fused"});
  expect_refused("run moe --experts-compute firmware --expert-cores 30", {"--expert-cores 30", "24 AICs"});
}

TEST(BadInput, Placements) {
  expect_refused("run dispatch --placement lineal", {"lineal", "linear"});
  expect_refused("run dispatch --ranks 3 --placement 1,2", {"3", "2"});
  expect_refused("run dispatch --ranks 2 --placement 5,5", {"5"});
  expect_refused("run dispatch --ranks 2 --placement 5,768", {"768", "767"});
}

TEST(BadInput, RoutingTraces) {
  std::vector<std::string> lines;
  std::ifstream sample(CM384_SOURCE_DIR "/traces/samples/qwen1.5-moe-a2.7b-layer0-part.jsonl");
  for (std::string line; lines.size() < 40 && std::getline(sample, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 40u);
  const auto with_line_17 = [&](const std::string& name, const std::string& line) {
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 16 ? line : lines[i]) + "\n";
    return "run dispatch --routing trace:" + write(name, text);
  };
  expect_refused(with_line_17("cut.jsonl", lines[16].substr(0, 30)), {"cut.jsonl:17"});
  std::string far = lines[16];
  const std::size_t ids = far.find('[');
  ASSERT_NE(ids, std::string::npos);
  far.replace(ids + 1, far.find_first_of(",]", ids) - ids - 1, "60");
  expect_refused(with_line_17("far.jsonl", far), {"far.jsonl:17", "60", "59"});
  expect_refused("run dispatch --routing trace:" + write("empty.jsonl", ""), {"empty.jsonl"});
}

TEST(BadInput, Images) {
  const std::string whole = read(kernel("gives_up"));
  ASSERT_GT(whole.size(), 1000u);
  expect_refused("run kernel " + write("short.elf", whole.substr(0, 40)), {"short.elf", "cut off"});
  expect_refused("run kernel " + write("cut.elf", whole.substr(0, 4200)), {"cut.elf", "truncated"});
  expect_refused("run kernel nowhere.elf", {"nowhere.elf", "cannot be read"});
  expect_refused("run kernel " CM384_COMMAND, {"RISC-V"});
  expect_refused("run kernel", {"--elf"});
  expect_refused("run kernel " + kernel("gives_up") + " --die 768", {"768", "767"});
}

// "gives_up.cpp:5": where the source of a kernel has a text.
std::string line_of(const std::string& name, const std::string& text) {
  std::ifstream source(CM384_SOURCE_DIR "/testbenches/runs/kernels/" + name + ".cpp");
  int number = 1;
  for (std::string line; std::getline(source, line); ++number) {
    if (line.find(text) != std::string::npos) return name + ".cpp:" + std::to_string(number);
  }
  return "no line has " + text;
}

// Exit code 3, and a report that says who waits on what: core, function with file and line, flag.
void expect_hang(const std::string& arguments, const std::vector<std::string>& parts) {
  const Outcome outcome = cm384("run kernel " + arguments);
  EXPECT_EQ(outcome.code, 3) << arguments << "\n" << outcome.errors;
  EXPECT_EQ(outcome.output, "") << arguments;
  for (const std::string& part : parts) EXPECT_THAT(outcome.errors, HasSubstr(part)) << arguments;
}

TEST(BadKernel, WaitsForAFlagNobodySets) {
  expect_hang(
      kernel("waits_for_a_flag") + " --cores 4",
      {"die 0 core 2", "WaitForNobody at " + line_of("waits_for_a_flag", "MTE2_S") + ", pc 0x8000", "5"});
}

TEST(BadKernel, MissesTheBarrier) {
  const std::string run = kernel("misses_the_barrier") + " --cores 3";
  expect_hang(run, {"core 0", "core 2", "kernel_main at " + line_of("misses_the_barrier", "SyncAll"), "14"});
  EXPECT_THAT(cm384("run kernel " + run).errors, Not(HasSubstr("core 1")));
}

TEST(BadKernel, PollsOrSpinsForEver) {
  expect_hang(kernel("polls_for_ever"), {"core 0", "PollForNobody", "patience"});
  expect_hang(kernel("spins_for_ever"),
              {"core 0", "Spin at " + line_of("spins_for_ever", "for (;;)"), "patience"});
}

// The wrong result would look right: found by default, and reported with both places.
TEST(BadKernel, MissesAFlagBetweenPipes) {
  const Outcome outcome = cm384("run kernel " + kernel("misses_a_flag"));
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_THAT(outcome.output,
              HasSubstr("hazard in the UBuffer: V reads block 0x0 (kernel_main at " +
                        line_of("misses_a_flag", "Adds(") + "), which MTE2 writes (kernel_main at " +
                        line_of("misses_a_flag", "DataCopy(") + "); no flag or barrier orders them\n"));
  EXPECT_EQ(cm384("run kernel " + kernel("misses_a_flag") + " --check-hazards on").output, outcome.output);
  const Outcome unchecked = cm384("run kernel " + kernel("misses_a_flag") + " --check-hazards off");
  EXPECT_EQ(unchecked.code, 0) << unchecked.errors;
}

TEST(BadKernel, TouchesWhatIsNotThere) {
  for (const auto& [name, symbol, line, address] :
       {std::array{"stores_outside", "StoreBelowMemory", "volatile", "0x1238"},
        std::array{"copies_outside", "CopyFromNowhere", "DataCopy(", "outside the memory of its target"}}) {
    const Outcome outcome = cm384("run kernel " + kernel(name));
    EXPECT_EQ(outcome.code, 3) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(std::string(symbol) + " at " + line_of(name, line)));
    EXPECT_THAT(outcome.errors, HasSubstr(address));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }
}

TEST(BadKernel, GivesUp) {
  const Outcome outcome = cm384("run kernel " + kernel("gives_up"));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("the tiles do not add up"));
  EXPECT_THAT(outcome.errors, HasSubstr("kernel_main at " + line_of("gives_up", "Abort")));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

// Same rows byte for byte in two processes; only `simulator` may differ.
TEST(Determinism, TwoProcessesGiveTheSameRows) {
  const std::string run =
      "run dispatch --ranks 8,20 --batch 8 --hidden 512 --cores 16 --routing zipf:1.2 --start-skew 3us "
      "--placement random --payload full --format csv";
  const Outcome first = cm384(run), again = cm384(run), other = cm384(run + " --seed 2");
  EXPECT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("20,aiv-direct"));
  EXPECT_EQ(first.output, again.output);
  EXPECT_NE(first.output, other.output);
}

}  // namespace
}  // namespace cm384::bad_input_test
