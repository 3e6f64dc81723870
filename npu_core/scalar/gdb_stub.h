// A GDB remote stub for one scalar core: TCP on the loopback interface, `target remote :PORT`.
//
// While the core is stopped the whole simulation stands still: run() talks to the debugger and returns only
// when the core may go on, and then as ScalarCore::run() does.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {

class GdbStub {
 public:
  // Listens on 127.0.0.1:port; port 0 takes any free one. Throws InputError when the port cannot be had.
  explicit GdbStub(std::uint16_t port);
  ~GdbStub();
  GdbStub(const GdbStub&) = delete;
  GdbStub& operator=(const GdbStub&) = delete;

  std::uint16_t port() const { return port_; }

  // Called in place of core.run(limit). The first call waits for a debugger and stops before the first
  // instruction. Never returns Stop::breakpoint. Throws MachineError when the debugger kills the program.
  // After a detach (or a lost connection) it is core.run().
  Stop run(ScalarCore& core, std::int64_t limit_cycle);
  // Tells a waiting debugger how the program ended.
  void ended(int status);
  // From now on lets cores run until one faults; only then waits for a debugger.
  void wait_for_fault() { at_fault_ = true; }
  // A core that runs under it has faulted, and the run is about to end: the debugger may look at it.
  void faulted(ScalarCore& core, std::string_view report);

 private:
  // Bytes whose change stops the core, no matter who writes them.
  struct Watch {
    std::uint64_t address;
    std::vector<std::byte> bytes;
  };
  enum class Resume : std::uint8_t { go, step, detached };

  void accept_debugger();
  void release(ScalarCore& core);
  Resume converse(ScalarCore& core);
  bool interrupted();
  // Steps until a breakpoint, or until watched bytes are others: sets `watched`.
  Stop run_watching(ScalarCore& core, std::int64_t limit_cycle, const Watch*& watched);
  const Watch* changed(ScalarCore& core);
  void change_watchpoint(ScalarCore& core, std::string_view packet, bool insert);
  // Answers one packet; true when the core is to move (resume_ says how).
  bool handle(ScalarCore& core, std::string_view packet);
  void query(std::string_view packet);
  void change_breakpoint(ScalarCore& core, std::string_view packet, bool insert);
  bool receive(std::string& packet);
  void send(std::string_view payload);
  void send_raw(std::string_view bytes);
  int read_byte();

  int listener_ = -1;
  int connection_ = -1;
  std::uint16_t port_ = 0;
  bool attached_ = false;
  bool done_ = false;  // detached: no debugger any more
  bool acknowledge_ = true;
  Resume resume_ = Resume::go;
  bool at_fault_ = false;
  bool told_fault_ = false;
  std::string_view stopped_by_ = "S05";  // what it answers to '?'
  std::set<std::uint64_t> breakpoints_;
  std::vector<Watch> watches_;
  std::string input_;
  std::size_t input_at_ = 0;
};

}  // namespace cm384::npu
