// The GDB remote stub, driven by gdb-multiarch in batch mode and by plain packets.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "base/text/error.h"
#include "npu_core/scalar/bare_metal.h"
#include "npu_core/scalar/gdb_stub.h"
#include "testbenches/npu_core/scalar/surroundings.h"

namespace cm384::npu::testing::gdb_test {
namespace {

std::string path_of(const std::string& name) {
  return std::string(CM384_SCALAR_PROGRAMS) + "/" + name + ".elf";
}

// A debugger that speaks packets and expects an answer to each.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { close(socket_); }

  void write(const std::string& bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void request(const std::string& payload) {
    unsigned sum = 0;
    for (const char c : payload) sum += static_cast<unsigned char>(c);
    write(fmt::format("${}#{:02x}", payload, sum & 0xff));
  }
  std::string answer() {
    char c = 0;
    std::string out;
    while (recv(socket_, &c, 1, 0) == 1 && c != '$') {
    }
    while (recv(socket_, &c, 1, 0) == 1 && c != '#') out += c;
    std::array<char, 2> sum;
    recv(socket_, sum.data(), 2, MSG_WAITALL);
    write("+");
    return out;
  }
  std::string ask(const std::string& payload) {
    request(payload);
    return answer();
  }

 private:
  int socket_;
};

// A program on a thread of its own, which waits for a debugger before its first instruction.
class Debugged {
 public:
  explicit Debugged(const std::string& program, std::uint64_t most_instructions = 0, bool at_fault = false) {
    if (at_fault) stub_.wait_for_fault();
    thread_ = std::thread([this, program, most_instructions] {
      BareMetalOptions options;
      options.debugger = &stub_;
      if (most_instructions != 0) options.most_instructions = most_instructions;
      try {
        result_ = run_bare_metal(path_of(program), small_core(), options);
      } catch (const MachineError& error) {
        error_ = error.what();
      }
    });
  }
  ~Debugged() { end(); }
  Debugged(const Debugged&) = delete;
  Debugged& operator=(const Debugged&) = delete;

  std::uint16_t port() const { return stub_.port(); }
  std::thread& thread() { return thread_; }
  // Waits for the end of the program; all calls below do.
  void end() {
    if (thread_.joinable()) thread_.join();
  }
  const std::string& error() {
    end();
    return error_;
  }
  std::uint64_t cycles() {
    end();
    return result_.cycles;
  }
  ::testing::AssertionResult passed() {
    end();
    if (result_.passed) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << error_ << " " << result_.failed_test;
  }

 private:
  GdbStub stub_{0};
  BareMetalResult result_;
  std::string error_;
  std::thread thread_;
};

TEST(Gdb, AnswersPackets) {
  Debugged machine("ui");
  const auto image = ElfImage::read(path_of("ui"));
  const std::uint64_t reset = image->symbol("reset_vector").value();
  {
    Client gdb(machine.port());
    EXPECT_NE(gdb.ask("qSupported:multiprocess+").find("qXfer:features:read+"), std::string::npos);
    EXPECT_EQ(gdb.ask("?"), "S05");
    EXPECT_NE(gdb.ask("qXfer:features:read:target.xml:0,fff").find("org.gnu.gdb.riscv.cpu"),
              std::string::npos);
    EXPECT_EQ(gdb.ask("g").size(), 33u * 16 + 32 * 8);
    EXPECT_EQ(gdb.ask("p20"), "0000008000000000");  // pc = 0x80000000, little end first
    EXPECT_EQ(gdb.ask("s"), "S05");
    EXPECT_EQ(gdb.ask(fmt::format("Z0,{:x},4", reset + 2)), "OK");
    EXPECT_EQ(gdb.ask("c"), "S05");
    EXPECT_EQ(gdb.ask("P3=2a00000000000000"), "OK");
    EXPECT_EQ(gdb.ask("p3"), "2a00000000000000");
    EXPECT_EQ(gdb.ask("P3=0000000000000000"), "OK");
    const std::string memory = gdb.ask("m80000000,8");
    EXPECT_EQ(memory.size(), 16u);
    EXPECT_EQ(gdb.ask("M80800000,2:abcd"), "OK");
    EXPECT_EQ(gdb.ask("m80800000,2"), "abcd");
    EXPECT_EQ(gdb.ask("m1000,4"), "E0e");
    EXPECT_EQ(gdb.ask("vMustReplyEmpty"), "");
    EXPECT_EQ(gdb.ask(fmt::format("z0,{:x},4", reset + 2)), "OK");
    EXPECT_EQ(gdb.ask("c"), "W00");
  }
  EXPECT_TRUE(machine.passed());
}

// Each stop is at a change of the word; simulated time is that of a run without a debugger.
TEST(Gdb, AWatchpointStopsWhereTheWordChanges) {
  const BareMetalResult alone = run_bare_metal(path_of("ui"), small_core(), {});
  Debugged machine("ui");
  const std::uint64_t word = ElfImage::read(path_of("ui"))->symbol("data").value();
  const std::string place = fmt::format("{:x},8", word);
  int stops = 0;
  {
    Client gdb(machine.port());
    EXPECT_EQ(gdb.ask("Z2," + place), "OK");
    EXPECT_EQ(gdb.ask("Z2,1000,8"), "E0e") << "where there is no memory";
    EXPECT_EQ(gdb.ask(fmt::format("Z2,{:x},41", word)), "E16") << "more bytes than are watched";
    EXPECT_EQ(gdb.ask("Z3," + place), "") << "reads are not watched";
    std::string before = gdb.ask("m" + place), answer = gdb.ask("c");
    for (; answer.starts_with("T05"); answer = gdb.ask("c")) {
      EXPECT_EQ(answer, fmt::format("T05watch:{:x};", word));
      const std::string now = gdb.ask("m" + place);
      EXPECT_NE(now, before);
      before = now;
      if (++stops == 3) {
        EXPECT_EQ(gdb.ask("z2," + place), "OK");
      }
    }
    EXPECT_EQ(answer, "W00");
  }
  EXPECT_TRUE(machine.passed());
  EXPECT_EQ(stops, 3);
  EXPECT_EQ(machine.cycles(), alone.cycles);
}

// It lets the program run until it faults, and shows where.
TEST(Gdb, ItMayWaitForTheFirstFault) {
  Debugged machine("stray", 1'000'000, true);
  {
    Client gdb(machine.port());
    EXPECT_EQ(gdb.ask("?"), "S0b");
    const std::uint64_t store = ElfImage::read(path_of("stray"))->symbol("store").value();
    EXPECT_EQ(gdb.ask("p20"), fmt::format("{:02x}{:02x}0080{:08x}", store & 0xff, store >> 8 & 0xff, 0));
    gdb.request("c");
    machine.end();
  }
  EXPECT_NE(machine.error().find("access to global memory"), std::string::npos) << machine.error();
}

TEST(Gdb, ControlCStopsDetachGoesOnAndKillEnds) {
  for (const bool kill : {false, true}) {
    Debugged machine("hang", 30'000'000);
    {
      Client gdb(machine.port());
      EXPECT_EQ(gdb.ask("?"), "S05");
      gdb.request("c");
      gdb.write("\x03");
      EXPECT_EQ(gdb.answer(), "S02");
      if (kill) {
        gdb.request("k");
      } else {
        EXPECT_EQ(gdb.ask("D"), "OK");
      }
      machine.end();
    }
    EXPECT_NE(machine.error().find(kill ? "killed by the debugger" : "no end after"), std::string::npos)
        << machine.error();
  }
}

// Whoever waits for a debugger can be interrupted: the program goes on without one.
TEST(Gdb, ASignalEndsTheWait) {
  std::signal(SIGUSR1, [](int) {});
  Debugged machine("ui");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it waits by then
  pthread_kill(machine.thread().native_handle(), SIGUSR1);
  EXPECT_TRUE(machine.passed());
}

// A packet without end is nobody's: the connection ends, and the memory of the host is not filled.
TEST(Gdb, APacketWithoutEndEndsTheConnection) {
  Debugged machine("ui");
  {
    Client gdb(machine.port());
    gdb.write("$" + std::string(70'000, 'm'));
    machine.end();  // while the connection is still open at this end
  }
  EXPECT_TRUE(machine.passed());
}

TEST(Gdb, PortInUseIsAnInputError) {
  const GdbStub first(0);
  EXPECT_THROW(GdbStub second(first.port()), InputError);
}

TEST(Gdb, TheDebuggerItselfWorks) {
  const std::string gdb = CM384_GDB;
  if (gdb.empty()) GTEST_SKIP() << "gdb-multiarch is not installed";
  Debugged machine("uf");
  const std::string command = fmt::format(
      "{} -nx -batch -ex 'set architecture riscv:rv64' -ex 'target remote 127.0.0.1:{}' -ex 'break "
      "reset_vector' "
      "-ex 'continue' -ex 'stepi' -ex 'print/x $pc' -ex 'print $fa0' -ex 'x/i $pc' -ex 'delete' -ex 'break "
      "pass' "
      "-ex 'continue' -ex 'info registers gp' -ex 'delete' -ex 'continue' {} 2>&1",
      gdb, machine.port(), path_of("uf"));
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 256> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  pclose(pipe);
  EXPECT_TRUE(machine.passed());
  const std::uint64_t reset = ElfImage::read(path_of("uf"))->symbol("reset_vector").value();
  EXPECT_NE(text.find("Breakpoint 1"), std::string::npos) << text;
  EXPECT_NE(text.find("Breakpoint 2"), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("$1 = {:#x}", reset + 2)), std::string::npos) << text;
  EXPECT_NE(text.find("$2 = 0"), std::string::npos) << text;
  EXPECT_NE(text.find("exited normally"), std::string::npos) << text;
}

}  // namespace
}  // namespace cm384::npu::testing::gdb_test
