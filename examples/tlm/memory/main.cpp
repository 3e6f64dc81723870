// A memory of one's own behind the L2 of die 0, in the place of its HBM: one port of 32 GB/s and 200 ns. A
// kernel that streams through it takes as long as the memory does.
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <cstdio>

#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "hw/machine.h"
#include "system/doors/doors.h"
#include "system/host/runtime.h"

using namespace cm384;

struct SlowMemory : sc_core::sc_module {
  tlm_utils::simple_target_socket<SlowMemory> socket;
  std::uint64_t bytes = 0;

  explicit SlowMemory(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    socket.register_b_transport(this, &SlowMemory::b_transport);
  }

 private:
  // The die runs ahead of SystemC's time: `delay` says how far, and the answer's latency is added to it.
  void b_transport(tlm::tlm_generic_payload& t, sc_core::sc_time& delay) {
    const sc_core::sc_time asked = sc_core::sc_time_stamp() + delay;
    const sc_core::sc_time start = std::max(asked, free_);
    free_ = start + sc_core::sc_time(t.get_data_length() / 32.0, sc_core::SC_NS);
    bytes += t.get_data_length();
    delay += free_ - asked + sc_core::sc_time(200, sc_core::SC_NS);
    t.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  sc_core::sc_time free_;
};

int sc_main(int, char**) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  supernode::SupernodeOptions options;
  options.dies = {0};
  supernode::Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  doors::Doors doors(machine);
  SlowMemory memory("memory");
  doors.replace_memory(0).socket.bind(memory.socket);

  constexpr std::uint64_t kBytes = 64 << 10;
  constexpr int kCores = 8;
  cm384_p2p arguments{};
  arguments.mode = CM384_P2P_READ;
  arguments.buffers = 4;
  arguments.chunk_bytes = 8192;
  arguments.bytes = arguments.target_stride = kBytes;
  arguments.target = runtime.allocate(0, kCores * kBytes);
  arguments.results = runtime.allocate(0, kCores * CM384_P2P_RESULT_STRIDE);
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);
  const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p"));
  runtime.launch(0, program, block, runtime.first_cores(kCores), runtime.earliest_start());
  runtime.wait();
  std::uint64_t begin = ~std::uint64_t{0}, end = 0;
  for (std::uint64_t b = 0; b < kCores; ++b) {
    const auto r = runtime.get<cm384_p2p_result>(arguments.results + b * CM384_P2P_RESULT_STRIDE, 1)[0];
    begin = std::min(begin, r.start_cycle);
    end = std::max(end, r.end_cycle);
  }
  const double rate = static_cast<double>(kCores * kBytes) / (static_cast<double>(end - begin) / 1.85);
  std::printf("%d cores read %.1f GB/s, the memory moved %llu KiB\n", kCores, rate,
              static_cast<unsigned long long>(memory.bytes >> 10));
  return rate > 30 && rate < 32.1 ? 0 : 1;
}
