// A DMA engine as initiator: it stands in the place of CPU socket 0 and moves 64 KiB from die 0 to die 16 of
// another node, four reads and writes at a time.
#include <tlm_utils/simple_initiator_socket.h>

#include <cstdio>
#include <vector>

#include "hw/machine.h"
#include "system/doors/doors.h"
#include "system/host/runtime.h"

using namespace cm384;

struct DmaEngine : sc_core::sc_module {
  static constexpr unsigned kChannels = 4, kBurst = 4096;
  tlm_utils::simple_initiator_socket<DmaEngine> socket;

  DmaEngine(const sc_core::sc_module_name& name, doors::InitiatorDoor& door)
      : sc_module(name), socket("socket"), door_(door) {
    socket.bind(door.socket);
  }
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    for (unsigned n = 0; n < kChannels; ++n) {
      door_.hold();  // the machine runs until every channel is done
      sc_core::sc_spawn([=, this] {
        std::vector<unsigned char> buffer(kBurst);
        for (std::uint64_t at = n * kBurst; at < bytes; at += kChannels * kBurst) {
          transport(tlm::TLM_READ_COMMAND, from + at, buffer);
          transport(tlm::TLM_WRITE_COMMAND, to + at, buffer);
        }
        finished = sc_core::sc_time_stamp();
        door_.release();
      });
    }
  }
  sc_core::sc_time finished;

 private:
  void transport(tlm::tlm_command command, std::uint64_t address, std::vector<unsigned char>& data) {
    tlm::tlm_generic_payload t;
    t.set_command(command);
    t.set_address(address);
    t.set_data_ptr(data.data());
    t.set_data_length(kBurst);
    t.set_streaming_width(kBurst);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(t, delay);
    if (t.is_response_error()) SC_REPORT_ERROR("dma_engine", t.get_response_string().c_str());
  }
  doors::InitiatorDoor& door_;
};

int sc_main(int, char**) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  supernode::SupernodeOptions options;
  options.dies = {0, 16};
  supernode::Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  doors::Doors doors(machine);
  DmaEngine engine("engine", doors.open_initiator(doors.socket(0)));

  std::vector<std::uint32_t> words(16384);
  for (std::uint32_t n = 0; n < words.size(); ++n) words[n] = n * n;
  const std::uint64_t from = runtime.allocate(0, 64 << 10), to = runtime.allocate(16, 64 << 10);
  runtime.put(from, std::span<const std::uint32_t>(words));
  engine.copy(to, from, 64 << 10);
  machine.run();
  const bool same = runtime.get<std::uint32_t>(to, words.size()) == words;
  std::printf("64 KiB from die 0 to die 16 in %.3f us, %s\n", engine.finished.to_seconds() * 1e6,
              same ? "same bytes" : "OTHER BYTES");
  return same ? 0 : 1;
}
