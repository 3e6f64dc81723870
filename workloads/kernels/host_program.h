// A program of the host that launches kernels by its own calls (`cm384 kernel build --host`): it runs as a
// child, and what it asks for by its socket happens on the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/units.h"
#include "workloads/frame/session.h"
#include "workloads/kernels/kernel_rules.h"
#include "workloads/kernels/unwaited_work.h"

namespace cm384::studies {

// Whether a file is a program for this host.
bool is_host_program(const std::string& path);
// Where `kernel build --host` puts the images of its kernels; those that are there.
inline std::string kernel_folder(const std::string& program) {
  return program + ".kernels";
}
std::vector<std::string> kernel_images(const std::string& program);

class HostProgram {
 public:
  struct Launch {
    std::string name;
    std::uint64_t blocks = 0;
    std::uint64_t code_bytes = 0;
    host::LaunchHandle handle;
  };

  // `dies`: of device 0, 1, ...
  HostProgram(const std::string& path, std::vector<std::string> arguments, Session& session,
              std::vector<int> dies, const RuleOptions& rules, bool list_hazards);
  // Ends the child where it still runs.
  ~HostProgram();
  HostProgram(const HostProgram&) = delete;
  HostProgram& operator=(const HostProgram&) = delete;

  // Until the program has ended; its exit code. False in `complete`: interrupted. Throws MachineError where
  // a launch goes wrong.
  int run(bool& complete);
  const std::vector<Launch>& launches() const { return launches_; }
  void report(const Clock& clock, StudyResult& into) const;

 private:
  struct Event {
    bool recorded = false;
    host::TaskHandle task;
    host::Event event;
  };
  struct Asked;
  struct Answer {
    std::int64_t value = 0;
    std::vector<std::byte> bytes = {};
  };

  void start();
  int wait_for_child();
  Answer answer(const Asked& asked);
  Answer launch(const Asked& asked);
  Answer make_group(const Asked& asked);
  void copy(const Asked& asked);
  // A copy of the host's that waits for no stream; `line`: of the call.
  void copies_now(std::uint64_t address, bool write, std::string_view line);
  static std::uint64_t stream_key(std::uint64_t number, std::int32_t device);
  void wait();
  int die(std::int32_t device) const;
  // By the number that the program has for it; 0 is the default stream of `device`.
  host::Stream stream(std::uint64_t number, std::int32_t device);
  Event& event(std::uint64_t number);
  void check(std::uint64_t address, std::uint64_t bytes) const;
  const std::shared_ptr<npu::Program>& kernel(const std::string& name);

  std::string path_;
  std::vector<std::string> arguments_;
  Session& session_;
  host::Runtime& runtime_;
  std::vector<int> dies_;
  const RuleOptions& rules_;
  bool list_hazards_;
  bool interrupted_ = false;
  int socket_ = -1, child_ = -1;
  std::vector<host::Stream> streams_;
  std::vector<host::Stream> defaults_;  // by device
  std::vector<bool> has_default_;
  std::vector<Event> events_;
  // Of a communication group the devices of its ranks, and where their resources stand.
  struct Group {
    std::vector<std::int32_t> devices;
    std::vector<std::uint64_t> places;
  };
  std::vector<Group> groups_;
  std::vector<Launch> launches_;
  UnwaitedWork unwaited_;
  std::vector<std::string> findings_;
  std::vector<std::pair<std::string, std::shared_ptr<npu::Program>>> programs_;
};

}  // namespace cm384::studies
