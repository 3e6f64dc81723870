// Doors for SystemC models of a user's own at a machine's edges, by TLM-2.0 (docs/tlm.md).
//
//     int sc_main(int, char**) {
//       const auto parameters = cm384::hw::load_machine("cloudmatrix384");
//       cm384::supernode::Supernode machine(parameters, {.dies = {0}});
//       cm384::doors::Doors doors(machine);
//       Engine engine("engine");                            // has a tlm_initiator_socket
//       engine.socket.bind(doors.open_initiator(doors.socket(1)).socket);
//       machine.run_for(cm384::Time{10'000'000});           // 10 us
//     }
//
// The machine owns the SystemC simulation: it is made before all modules of the user's and goes after them.
// Doors are opened before the machine runs. Foreign models run on the thread that runs the machine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "system/doors/foreign_endpoint.h"
#include "system/doors/initiator_door.h"
#include "system/doors/memory_door.h"
#include "system/doors/plain_memory.h"
#include "system/doors/target_door.h"
#include "system/machine/supernode.h"

namespace cm384::doors {

class Doors {
 public:
  // `machine` must outlive the doors.
  explicit Doors(supernode::Supernode& machine) : machine_(machine), memory_(machine) {}
  ~Doors();
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  // Endpoints of the Unified Bus, for what follows. Throw InputError for one that does not exist.
  int die(int number) const;
  int socket(int number) const;

  // In the place of a die or CPU socket that does not take part; one of each kind may stand at the same
  // endpoint. Throw InputError where one takes part or such a door is open.
  InitiatorDoor& open_initiator(int endpoint);
  TargetDoor& open_target(int endpoint, const TargetOptions& options = {});
  // In the place of the HBM of a die that takes part. From now on all modules run on one thread. Throws
  // InputError for another die, or one whose memory was replaced.
  MemoryDoor& replace_memory(int die, const MemoryOptions& options = {});

  // A model that leaves a request or response unanswered for so long has stopped, and ends the run.
  void set_patience(Time patience);
  // The address of byte `offset` behind an endpoint.
  std::uint64_t address(int endpoint, std::uint64_t offset) const;

 private:
  ForeignEndpoint& endpoint(int number);
  void set_lookahead();

  supernode::Supernode& machine_;
  PlainMemory memory_;
  Time patience_{5'000'000'000};
  std::map<int, std::unique_ptr<ForeignEndpoint>> endpoints_;
  std::map<int, std::unique_ptr<InitiatorDoor>> initiators_;
  std::map<int, std::unique_ptr<TargetDoor>> targets_;
  std::map<int, std::unique_ptr<MemoryDoor>> memories_;
};

}  // namespace cm384::doors
