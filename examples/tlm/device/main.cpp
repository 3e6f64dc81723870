// A device as target: 1 MiB with a latency of its own stands in the place of die 18, and a kernel on die 0
// writes to it and reads it.
#include <tlm_utils/simple_target_socket.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "hw/machine.h"
#include "system/doors/doors.h"
#include "system/host/runtime.h"

using namespace cm384;

struct Device : sc_core::sc_module {
  tlm_utils::simple_target_socket<Device> socket;
  std::vector<unsigned char> memory = std::vector<unsigned char>(1 << 20);
  const sc_core::sc_time latency{400, sc_core::SC_NS};

  explicit Device(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    socket.register_b_transport(this, &Device::b_transport);
  }

 private:
  void b_transport(tlm::tlm_generic_payload& t, sc_core::sc_time& delay) {
    unsigned char* const here = &memory[t.get_address()];
    if (t.is_write()) {
      std::memcpy(here, t.get_data_ptr(), t.get_data_length());
    } else {
      std::memcpy(t.get_data_ptr(), here, t.get_data_length());
    }
    delay += latency;  // annotated: the machine may run ahead
    t.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

int sc_main(int, char**) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  supernode::SupernodeOptions options;
  options.dies = {0};
  supernode::Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  doors::Doors doors(machine);
  Device device("device");
  const int place = doors.die(18);
  doors.open_target(place, {.latency = Time{400'000}, .bytes = 1 << 20}).socket.bind(device.socket);

  const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p"));
  const auto run = [&](std::uint32_t mode) {
    cm384_p2p arguments{};
    arguments.mode = mode;
    arguments.buffers = 1;
    arguments.chunk_bytes = 512;
    arguments.warmup = 2;
    arguments.pattern = 384;
    arguments.bytes = 16 << 10;
    arguments.target = doors.address(place, 0);
    arguments.results = runtime.allocate(0, CM384_P2P_RESULT_STRIDE);
    const std::uint64_t block = runtime.allocate(0, sizeof arguments);
    runtime.put(block, arguments);
    runtime.launch(0, program, block, runtime.first_cores(1), runtime.earliest_start());
    runtime.wait();
    const auto result = runtime.get<cm384_p2p_result>(arguments.results, 1)[0];
    return static_cast<double>(result.sum_cycles) / static_cast<double>(result.samples) / 1.85;
  };
  const double write = run(CM384_P2P_WRITE), read = run(CM384_P2P_READ);
  std::uint32_t word = 0;
  std::memcpy(&word, &device.memory[8192], 4);
  std::printf("512 B to the device %.0f ns, from it %.0f ns, word %u\n", write, read, word);
  return word == 384 ? 0 : 1;
}
