// A foreign TLM initiator writes and reads a die's memory over the fabric.
#include "ub_fabric/tlm_endpoint.h"

#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <cstring>
#include <memory>
#include <systemc>
#include <vector>

#include "firmware/abi/memory_map.h"
#include "testbenches/fabric/fabric_bench.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::ub {
namespace {

using namespace cm384::literals;

// 1 MiB with real bytes at a die.
class Memory final : public sim::RemoteTarget, public sim::RemoteClient {
 public:
  explicit Memory(sim::PayloadPool& payloads) : payloads_(payloads), bytes_(1 << 20) {}
  Time access(sim::Request& r, sim::Outcome& outcome) override {
    if (r.address + r.bytes > bytes_.size()) {
      outcome = sim::Outcome::address_fault;
    } else if (r.operation == sim::Operation::read) {
      r.payload.chunk = payloads_.allocate();
      std::memcpy(payloads_.bytes(r.payload.chunk), &bytes_[r.address], r.bytes);
    } else {
      std::memcpy(&bytes_[r.address], payloads_.bytes(r.payload.chunk), r.bytes);
      payloads_.release(r.payload);
    }
    return r.at + 100_ns;
  }
  void completed(const sim::Completion&, Time) override {}
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  sim::PayloadPool& payloads_;
  std::vector<std::byte> bytes_;
};

// Runs one queue at the times of its events.
struct Process : sc_core::sc_module, sim::WakeListener {
  SC_HAS_PROCESS(Process);
  Process(const sc_core::sc_module_name& n, sim::EventQueue& q, std::function<void(Time)> body)
      : sc_module(n), queue(q), run(std::move(body)) {
    SC_METHOD(step);
    dont_initialize();
    sensitive << wake;
    queue.set_listener(this);
  }
  void step() { run(Time{static_cast<std::int64_t>(sc_core::sc_time_stamp().value()) + 1}); }
  void wake_at(Time t) override {
    const auto now = static_cast<std::int64_t>(sc_core::sc_time_stamp().value());
    wake.notify(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps - now)));
  }
  sim::EventQueue& queue;
  std::function<void(Time)> run;
  sc_core::sc_event wake;
};

struct Initiator : sc_core::sc_module {
  SC_HAS_PROCESS(Initiator);
  explicit Initiator(const sc_core::sc_module_name& n) : sc_module(n), socket("socket") { SC_THREAD(run); }

  tlm::tlm_response_status transport(tlm::tlm_command command, std::uint64_t address,
                                     std::vector<unsigned char>& data, sc_core::sc_time delay) {
    tlm::tlm_generic_payload t;
    t.set_command(command);
    t.set_address(address);
    t.set_data_ptr(data.data());
    t.set_data_length(static_cast<unsigned>(data.size()));
    t.set_streaming_width(static_cast<unsigned>(data.size()));
    t.set_byte_enable_ptr(nullptr);
    t.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    socket->b_transport(t, delay);
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    return t.get_response_status();
  }

  void run() {
    std::vector<unsigned char> out(3'000);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<unsigned char>(i * 7);
    wait(sc_core::sc_time(123, sc_core::SC_NS));
    status.push_back(transport(tlm::TLM_WRITE_COMMAND, cm384_gm_die(17, 1'000), out,
                               sc_core::sc_time(10, sc_core::SC_NS)));
    write_ns = sc_core::sc_time_stamp().to_seconds() * 1e9 - 123;
    std::vector<unsigned char> in(3'000);
    const double before = sc_core::sc_time_stamp().to_seconds() * 1e9;
    status.push_back(transport(tlm::TLM_READ_COMMAND, cm384_gm_die(17, 1'000), in, sc_core::SC_ZERO_TIME));
    read_ns = sc_core::sc_time_stamp().to_seconds() * 1e9 - before;
    same = in == out;
    status.push_back(transport(tlm::TLM_READ_COMMAND, cm384_gm_die(17, 2 << 20), in, sc_core::SC_ZERO_TIME));
    status.push_back(transport(tlm::TLM_WRITE_COMMAND, cm384_gm_die(700'000, 0), in, sc_core::SC_ZERO_TIME));
    finished = true;
  }

  tlm_utils::simple_initiator_socket<Initiator> socket;
  std::vector<tlm::tlm_response_status> status;
  double write_ns = 0;
  double read_ns = 0;
  bool same = false;
  bool finished = false;
};

TEST(TlmEndpoint, ReadsAndWritesGlobalMemory) {
  const Parameters p = machine();
  PacketPool packets;
  sim::PayloadPool payloads;
  sim::EventQueue die_queue(50);
  UbController die(p, 17, die_queue, 0, packets, payloads);
  Memory memory(payloads);
  die.set_target(memory);
  die.set_client(memory);
  TlmEndpoint endpoint("endpoint", p, static_cast<Endpoint>(p.topology.socket_endpoint(0)), 51, packets,
                       payloads);
  std::vector<std::unique_ptr<SubPlane>> planes;
  std::vector<std::unique_ptr<Process>> processes;
  for (unsigned i = 0; i < 7; ++i) {
    planes.push_back(std::make_unique<SubPlane>(i, p, packets, i + 1, 1));
    SubPlane* plane = planes.back().get();
    die.attach(*plane);
    endpoint.controller().attach(*plane);
    processes.push_back(std::make_unique<Process>(sc_core::sc_gen_unique_name("plane"), plane->queue(),
                                                  [plane](Time end) { plane->run_until(end); }));
  }
  processes.push_back(std::make_unique<Process>("die", die_queue, [&](Time end) {
    die_queue.run_until(end, [&](const sim::Event& e) { die.handle(e); });
  }));
  Initiator initiator("initiator");
  initiator.socket.bind(endpoint.socket);
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS));

  ASSERT_TRUE(initiator.finished);
  EXPECT_EQ(initiator.status, (std::vector<tlm::tlm_response_status>{
                                  tlm::TLM_OK_RESPONSE, tlm::TLM_OK_RESPONSE, tlm::TLM_ADDRESS_ERROR_RESPONSE,
                                  tlm::TLM_ADDRESS_ERROR_RESPONSE}));
  EXPECT_TRUE(initiator.same);
  EXPECT_EQ(static_cast<unsigned>(memory.bytes()[1'001]), 7u);
  // 3,000 B from offset 1,000 are seven requests, from offset 0 six; those to no die of this machine stay.
  EXPECT_EQ(endpoint.controller().counters().writes, 7u + 6u);
  EXPECT_EQ(die.counters().served, 7u + 7u + 6u);
  // The fabric's own latency between nodes, and for the first a walk.
  EXPECT_GT(initiator.read_ns, 1'500);
  EXPECT_LT(initiator.read_ns, 1'700);
  EXPECT_GT(initiator.write_ns, 1'500 + 500);
  EXPECT_EQ(packets.in_use(), 0u);
  EXPECT_EQ(payloads.in_use(), 0u);
}

}  // namespace
}  // namespace cm384::ub

int sc_main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
