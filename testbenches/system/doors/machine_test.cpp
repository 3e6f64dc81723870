// Foreign models beside dies: rows do not depend on threads, windows or direct access; a memory of another
// model behind a die.
#include <algorithm>
#include <optional>

#include "firmware/abi/kernel.h"
#include "firmware/abi/memory_map.h"
#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "system/host/runtime.h"
#include "testbenches/system/doors/stand.h"

namespace cm384::doors::machine_test {
namespace {

constexpr int kCores = 4;

// Dies 0, 1 and 16 write to a device in the place of die 18, the device's neighbours and each other, while an
// initiator in the place of die 20 reads and writes the same die's memory. Every time of it.
std::vector<std::int64_t> together(unsigned threads, Time window, Way way, bool reversed = false,
                                   bool targets_alone = false) {
  supernode::SupernodeOptions options = taking_part({0, 1, 16}, {}, threads);
  if (reversed) std::reverse(options.dies.begin(), options.dies.end());
  options.window = window;
  Stand stand(options);
  host::Runtime runtime(stand.machine);
  Device device("device", way, 150_ns);
  stand.doors.open_target(stand.doors.die(18), {.latency = targets_alone ? 150_ns : Time{}, .bytes = 1 << 20})
      .socket.bind(device.socket);
  const std::uint64_t shared = runtime.allocate(16, 1 << 16);
  std::vector<Access> script;
  for (std::uint64_t n = 0; n < 200; ++n)
    script.push_back(
        {Time{500'000 + static_cast<std::int64_t>(n * 23'113)}, n % 2 == 0, shared + 1536 * (n % 40), 1500});
  std::optional<Caller> caller;
  if (!targets_alone)
    caller.emplace("caller", script, false)
        .socket.bind(stand.doors.open_initiator(stand.doors.die(20)).socket);
  const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p"));
  std::vector<std::pair<int, std::uint64_t>> results;
  for (const int die : {0, 1, 16}) {
    cm384_p2p run{};
    run.mode = die == 1 ? CM384_P2P_READ : CM384_P2P_WRITE;
    run.buffers = 2;
    run.chunk_bytes = 4096;
    run.pattern = 77;
    run.bytes = run.target_stride = 32 << 10;
    run.target = stand.doors.address(stand.doors.die(18), die == 16 ? 512 << 10 : 0);
    run.results = runtime.allocate(die, kCores * CM384_P2P_RESULT_STRIDE);
    results.emplace_back(die, run.results);
    const std::uint64_t block = runtime.allocate(die, sizeof run);
    runtime.put(block, run);
    runtime.launch(die, program, block, runtime.first_cores(kCores), runtime.earliest_start());
  }
  EXPECT_TRUE(runtime.wait());
  EXPECT_EQ(stand.machine.thread_choice().threads(), threads);
  EXPECT_EQ(stand.machine.shared_windows() > 50, threads > 1);
  std::vector<std::int64_t> times;
  for (const auto& [die, at] : results) {
    for (std::uint64_t b = 0; b < kCores; ++b) {
      const auto r = runtime.get<cm384_p2p_result>(at + b * CM384_P2P_RESULT_STRIDE, 1)[0];
      times.push_back(static_cast<std::int64_t>(r.start_cycle));
      times.push_back(static_cast<std::int64_t>(r.end_cycle));
    }
  }
  if (caller) {
    EXPECT_EQ(caller->finished, script.size());
    for (const Access& a : caller->script) times.push_back(a.done.ps);
  }
  for (const Time asked : device.asked) times.push_back(asked.ps);
  // Words that block 1 of die 0 has written.
  std::uint32_t word = 0;
  std::memcpy(&word, &device.bytes[(32 << 10) + 4096], 4);
  EXPECT_EQ(word, 78u);
  return times;
}

TEST(Machine, RowsDependNeitherOnThreadsNorOnWindows) {
  const auto one = together(1, Time::never(), Way::annotates);
  EXPECT_GT(one.size(), 200u + 2 * kCores * 32 * 2);
  EXPECT_EQ(together(2, Time::never(), Way::annotates), one);
  EXPECT_EQ(together(1, 37_ns, Way::annotates), one);
  EXPECT_EQ(together(1, Time::never(), Way::annotates, true), one);
  EXPECT_EQ(together(2, Time::never(), Way::waits), one);
}

// They have declared a latency: the machine runs ahead by it.
TEST(Machine, RowsDependNeitherOnThreadsNorOnWindowsWithTargetsAlone) {
  const auto one = together(1, Time::never(), Way::annotates, false, true);
  EXPECT_EQ(together(2, Time::never(), Way::annotates, false, true), one);
  EXPECT_EQ(together(1, 37_ns, Way::annotates, false, true), one);
}

// The host's copies, the debug transport of initiators and direct pointers see the same bytes.
TEST(Machine, DebugTransportAndDirectPointersSeePlainMemory) {
  Stand stand(taking_part({0}, {3}));
  host::Runtime runtime(stand.machine);
  Device device("device", Way::annotates, 10_ns);
  auto& target = stand.doors.open_target(stand.doors.die(2), {.bytes = 1 << 20});
  target.socket.bind(device.socket);
  Caller caller("caller", {}, false);
  caller.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
  caller.socket.register_invalidate_direct_mem_ptr(&caller, &Caller::invalidate);
  const std::uint64_t on_die = runtime.allocate(0, 4096), on_socket = runtime.allocate_on_socket(3, 4096);
  for (const std::uint64_t base : {on_die, on_socket, stand.doors.address(2, 0x800)}) {
    std::vector<unsigned char> out(1000, 9), in(1000);
    EXPECT_EQ(caller.debug(tlm::TLM_WRITE_COMMAND, base + 100, out), 1000u);
    EXPECT_EQ(caller.debug(tlm::TLM_READ_COMMAND, base + 100, in), 1000u);
    EXPECT_EQ(in, out);
  }
  EXPECT_EQ(runtime.get<unsigned char>(on_die + 1099, 2), (std::vector<unsigned char>{9, 0}));
  EXPECT_EQ(device.bytes[0x800 + 100], 9);
  std::vector<unsigned char> two(1024);
  EXPECT_EQ(caller.debug(tlm::TLM_READ_COMMAND, stand.doors.address(0, (std::uint64_t{64} << 30) - 24), two),
            24u);
  EXPECT_EQ(caller.debug(tlm::TLM_READ_COMMAND, stand.doors.address(5, 0), two), 0u);

  tlm::tlm_dmi dmi;
  ASSERT_TRUE(caller.direct(on_die + 700, dmi));
  EXPECT_EQ(dmi.get_start_address(), on_die + 512);
  EXPECT_EQ(dmi.get_end_address(), on_die + 1023);
  EXPECT_TRUE(dmi.is_read_write_allowed());
  EXPECT_EQ(dmi.get_dmi_ptr()[700 - 512], 9);
  dmi.get_dmi_ptr()[0] = 42;
  EXPECT_EQ(runtime.get<unsigned char>(on_die + 512, 1)[0], 42);
  // Beyond the memory, of nobody, and of a device, which has its own.
  EXPECT_FALSE(caller.direct(stand.doors.address(0, std::uint64_t{64} << 30) - 1 + 1, dmi));
  EXPECT_FALSE(caller.direct(stand.doors.address(5, 0), dmi));
  EXPECT_FALSE(caller.direct(stand.doors.address(2, 0), dmi));
  EXPECT_FALSE(caller.direct(0x1000, dmi));

  // Tensor payload has no bytes to point at: refused, and withdrawn where it was granted.
  ASSERT_TRUE(caller.direct(on_socket + 512, dmi));
  runtime.mark_payload(on_socket + 600, 32);
  runtime.mark_payload(on_socket + 2048, 32);
  EXPECT_FALSE(caller.direct(on_socket + 2048, dmi));
  EXPECT_FALSE(caller.direct(on_socket + 512, dmi));
  sc_core::sc_spawn([&] {
    std::vector<unsigned char> bytes(8);
    tlm::tlm_generic_payload t;
    caller.fill(t, tlm::TLM_READ_COMMAND, on_die, bytes);
    sc_core::sc_time delay;
    caller.socket->b_transport(t, delay);
  });
  stand.machine.run_for(10_us);
  EXPECT_EQ(caller.withdrawn,
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{on_socket + 512, on_socket + 1023}}));
}

// --- behind a die

struct Behind final : sc_core::sc_module {
  tlm_utils::simple_target_socket<Behind> socket;
  Time read_latency, write_latency;
  std::function<void(tlm::tlm_generic_payload&, sc_core::sc_time&)> otherwise;
  std::vector<Time> asked;
  std::uint64_t written = 0;

  Behind(const sc_core::sc_module_name& name, Time read, Time write)
      : sc_module(name), socket("socket"), read_latency(read), write_latency(write) {
    socket.register_b_transport(this, &Behind::b_transport);
  }
  void b_transport(tlm::tlm_generic_payload& t, sc_core::sc_time& delay) {
    asked.push_back(now() + of(delay));
    if (otherwise) return otherwise(t, delay);
    delay += to_sc(t.is_read() ? read_latency : write_latency);
    if (t.is_write()) written += t.get_data_length();
    t.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

// A request of an idle die's external port, as if a foreign initiator's had come.
Time latency_of(Stand& stand, Time at) {
  npu::DieMemory& memory = stand.machine.die(0).memory();
  return memory.access({4096, 128, false, true, memory.external_requester(0), at}) - at;
}

TEST(Memory, TimesAreTheSumOfTheirStages) {
  Stand stand(taking_part({0}));
  Behind behind("behind", 321_ns, 55_ns);
  auto& door = stand.doors.replace_memory(0);
  door.socket.bind(behind.socket);
  const hw::Memory& m = stand.parameters.memory;
  // To the slice, L2's tags, the model, back; the port moves 128 B at its rate.
  const double rate =
      static_cast<double>(m.on_die_network.clock.hertz) * m.on_die_network.external_bytes_per_cycle;
  const Time there = m.on_die_network.request_latency + m.l2.hit_latency;
  const Time back = m.on_die_network.response_latency + Time{static_cast<std::int64_t>(128e12 / rate) + 1};
  EXPECT_EQ(latency_of(stand, 1_us).ps, (there + 321_ns + back).ps);
  EXPECT_EQ(behind.asked.at(0).ps, (1_us + there).ps);
  // Now it is in L2.
  EXPECT_EQ(latency_of(stand, 2_us).ps, (there + back).ps);
  EXPECT_EQ(behind.asked.size(), 1u);
  EXPECT_EQ(door.requests(), 1u);
  EXPECT_EQ(stand.machine.die(0).memory().hbm_traffic(), m.l2.fetch.count);
}

// A kernel that copies waits for the model's times; what L2 evicts is written to it.
TEST(Memory, AKernelWaitsForIt) {
  const auto run = [](Time latency, bool foreign) {
    Stand stand(taking_part({0}, {}, 2));
    host::Runtime runtime(stand.machine);
    std::optional<Behind> behind;
    if (foreign) stand.doors.replace_memory(0).socket.bind(behind.emplace("behind", latency, latency).socket);
    const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p"));
    cm384_p2p read{};
    read.mode = CM384_P2P_READ;
    read.buffers = 1;
    read.chunk_bytes = 512;
    read.bytes = read.target_stride = 64 << 10;
    read.target = runtime.allocate(0, kCores * read.bytes);
    read.results = runtime.allocate(0, kCores * CM384_P2P_RESULT_STRIDE);
    const std::uint64_t block = runtime.allocate(0, sizeof read);
    runtime.put(block, read);
    runtime.launch(0, program, block, runtime.first_cores(1), runtime.earliest_start());
    runtime.wait();
    if (foreign) {
      EXPECT_EQ(stand.machine.thread_choice().threads(), 1u);
      EXPECT_EQ(stand.machine.thread_choice().why(), "one order, for a foreign memory");
      EXPECT_GE(behind->asked.size(), 128u);
    }
    return runtime.get<cm384_p2p_result>(read.results, 1)[0].min_cycles;
  };
  const std::uint64_t fast = run(100_ns, true), slow = run(1_us, true);
  // 900 ns at 1.85 GHz, and a cycle of rounding.
  EXPECT_NEAR(static_cast<double>(slow - fast), 900 * 1.85, 1.0);
  EXPECT_GT(run(Time{}, false), run(Time{}, true));
}

TEST(Memory, AModelThatBreaksTheRulesIsNamed) {
  const auto direct = [](MemoryOptions options, auto&& does) {
    Stand stand(taking_part({0}));
    Behind behind("behind", 1_ns, 1_ns);
    behind.otherwise = does;
    stand.doors.replace_memory(0, options).socket.bind(behind.socket);
    struct Sender final : supernode::Driver {
      void handle(int, const sim::Event&) override { submit(); }
      std::function<void()> submit;
    } sender;
    sender.submit = [&] { latency_of(stand, 1_us); };
    stand.machine.die(0).queue().push(1_us, stand.machine.attach(0, sender), 0);
    return stand.failure(2_us);
  };
  const std::string who = "memory of die 0: read of 512 B at 0x1000, asked for at 1.100000 us";
  const auto named = [&](const std::string& text, const std::string& what) {
    EXPECT_TRUE(text.starts_with(who) && text.find(what) != std::string::npos &&
                text.find('\n') == std::string::npos)
        << text;
  };
  using T = tlm::tlm_generic_payload;
  using D = sc_core::sc_time;
  EXPECT_EQ(direct({}, [](T& t, D&) { t.set_response_status(tlm::TLM_OK_RESPONSE); }), "");
  named(direct({}, [](T&, D&) { sc_core::wait(to_sc(1_ns)); }),
        ": the model waits in b_transport; a memory behind a die adds its latency to the delay instead");
  named(direct({}, [](T&, D&) {}), ": the model has left TLM_INCOMPLETE_RESPONSE");
  named(direct({}, [](T& t, D&) { t.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE); }),
        ": the model answers TLM_COMMAND_ERROR_RESPONSE");
  named(direct({},
               [](T& t, D& delay) {
                 t.set_response_status(tlm::TLM_OK_RESPONSE);
                 delay = sc_core::SC_ZERO_TIME;
               }),
        " ps before it was asked for");
  named(direct({.latest = 5_ns},
               [](T& t, D& delay) {
                 t.set_response_status(tlm::TLM_OK_RESPONSE);
                 delay += to_sc(5_ns + Time{1});
               }),
        ": answered after 5001 ps, later than its declared 5000 ps");
  named(direct({}, [](T&, D&) { SC_REPORT_ERROR("behind", "no such row"); }), ": behind: no such row");
}

}  // namespace
}  // namespace cm384::doors::machine_test
