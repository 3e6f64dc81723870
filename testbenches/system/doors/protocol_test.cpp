// A foreign model that breaks the protocol, blocks or answers at another time than it has declared is named
// in one line.
#include <gmock/gmock.h>

#include "testbenches/system/doors/stand.h"

namespace cm384::doors::protocol_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// --- initiators

// Runs a text of the user's on an initiator socket, in a process.
struct Rude final : sc_core::sc_module {
  struct Keeper final : tlm::tlm_mm_interface {
    void free(tlm::tlm_generic_payload*) override {}
  };
  tlm_utils::simple_initiator_socket<Rude> socket;
  std::function<tlm::tlm_sync_enum(tlm::tlm_generic_payload&, tlm::tlm_phase&)> answer;

  explicit Rude(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    socket.register_nb_transport_bw(this, &Rude::response);
    transaction.set_command(tlm::TLM_READ_COMMAND);
    transaction.set_data_ptr(bytes.data());
    transaction.set_data_length(64);
    transaction.set_streaming_width(64);
    transaction.set_mm(&keeper);
    transaction.acquire();
  }
  tlm::tlm_sync_enum forward(tlm::tlm_phase phase) {
    sc_core::sc_time none = sc_core::SC_ZERO_TIME;
    return socket->nb_transport_fw(transaction, phase, none);
  }
  tlm::tlm_sync_enum response(tlm::tlm_generic_payload& t, tlm::tlm_phase& phase, sc_core::sc_time&) {
    return answer ? answer(t, phase) : tlm::TLM_ACCEPTED;
  }

  std::vector<unsigned char> bytes = std::vector<unsigned char>(64);
  Keeper keeper;
  tlm::tlm_generic_payload transaction;
};

std::string rude(const std::function<void(Rude&)>& does, Time patience = 1_ms) {
  Stand stand(taking_part({}, {1}));
  Rude model("model");
  stand.doors.set_patience(patience);
  model.transaction.set_address(stand.doors.address(stand.doors.socket(1), 0));
  model.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
  sc_core::sc_spawn([&] {
    sc_core::wait(to_sc(1_us));
    does(model);
  });
  return stand.failure(30_us);
}

TEST(Initiators, AreNamedWithWhatTheyDoWrong) {
  EXPECT_EQ(rude([](Rude& m) { m.forward(tlm::BEGIN_REQ); }), "");
  EXPECT_EQ(rude([](Rude& m) { m.forward(tlm::END_RESP); }),
            "initiator at CPU socket 0: END_RESP without a BEGIN_RESP that it answers, at 1.000000 us");
  EXPECT_EQ(
      rude([](Rude& m) { m.forward(tlm::BEGIN_RESP); }),
      "initiator at CPU socket 0: nb_transport_fw with phase BEGIN_RESP; allowed: BEGIN_REQ, END_RESP, at "
      "1.000000 us");
  EXPECT_THAT(rude([](Rude& m) {
                m.forward(tlm::BEGIN_REQ);
                m.forward(tlm::BEGIN_REQ);
              }),
              HasSubstr("BEGIN_REQ for a transaction that is under way"));
  EXPECT_THAT(rude([](Rude& m) {
                m.forward(tlm::BEGIN_REQ);
                sc_core::wait(to_sc(10_us));
                m.forward(tlm::END_RESP);
                m.forward(tlm::END_RESP);
              }),
              HasSubstr("END_RESP without a BEGIN_RESP that it answers, at 11.000000 us"));
  EXPECT_THAT(rude([](Rude& m) {
                m.answer = [&](auto&, auto&) {
                  m.forward(tlm::END_RESP);
                  return tlm::TLM_COMPLETED;
                };
                m.forward(tlm::BEGIN_REQ);
              }),
              HasSubstr("END_RESP twice for one BEGIN_RESP"));
  EXPECT_THAT(rude([](Rude& m) {
                m.answer = [](auto&, tlm::tlm_phase& phase) {
                  phase = tlm::END_REQ;
                  return tlm::TLM_UPDATED;
                };
                m.forward(tlm::BEGIN_REQ);
              }),
              HasSubstr("BEGIN_RESP answered with phase END_REQ; allowed: END_RESP"));
  EXPECT_THAT(rude([](Rude& m) { m.forward(tlm::BEGIN_REQ); }, 8_us),
              AllOf(StartsWith("initiator at CPU socket 0: no END_RESP for its BEGIN_RESP of 2."),
                    Not(HasSubstr("\n"))));
}

// What is no fault of the protocol is answered with TLM's own errors.
TEST(Initiators, GetErrorsForWhatIsNotThere) {
  Stand stand(taking_part({}, {1}));
  Caller caller("caller",
                {{1_us, true, stand.doors.address(stand.doors.socket(2), 0)},
                 {1_us, false, stand.doors.address(stand.doors.socket(1), (std::uint64_t{1} << 38) - 256)},
                 {1_us, false, 0x1000},
                 {1_us, false, stand.doors.address(stand.doors.socket(1), 0)}},
                false);
  caller.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
  stand.machine.run_for(20_us);
  ASSERT_EQ(caller.finished, 4u);
  for (int n = 0; n < 3; ++n) EXPECT_EQ(caller.script[n].status, tlm::TLM_ADDRESS_ERROR_RESPONSE) << n;
  EXPECT_EQ(caller.script[3].status, tlm::TLM_OK_RESPONSE);
}

// --- targets

// A target that does what it is told.
struct Told final : sc_core::sc_module {
  tlm_utils::simple_target_socket<Told> socket;
  std::function<void(tlm::tlm_generic_payload&, sc_core::sc_time&)> blocking;
  std::function<tlm::tlm_sync_enum(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&)> forward;
  std::function<bool(tlm::tlm_dmi&)> direct;

  explicit Told(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    socket.register_b_transport(this, &Told::b_transport);
    socket.register_nb_transport_fw(this, &Told::nb_transport_fw);
    socket.register_get_direct_mem_ptr(this, &Told::dmi);
    socket.register_transport_dbg(this, &Told::debug);
  }
  void b_transport(tlm::tlm_generic_payload& t, sc_core::sc_time& delay) { blocking(t, delay); }
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& t, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
    return forward(t, phase, delay);
  }
  void back(tlm::tlm_generic_payload& t, tlm::tlm_phase phase) {
    sc_core::sc_time none = sc_core::SC_ZERO_TIME;
    socket->nb_transport_bw(t, phase, none);
  }
  bool dmi(tlm::tlm_generic_payload&, tlm::tlm_dmi& d) { return direct && direct(d); }
  unsigned debug(tlm::tlm_generic_payload&) { return 3; }
};

std::string told(const TargetOptions& options, const std::function<void(Told&)>& set, bool run = false) {
  Stand stand(taking_part({}));
  Told model("model");
  set(model);
  auto& door = stand.doors.open_initiator(stand.doors.socket(0));
  stand.doors.open_target(stand.doors.socket(2), options).socket.bind(model.socket);
  Caller caller("caller", {{1_us, false, stand.doors.address(stand.doors.socket(2), 0x40), 64}}, false);
  caller.socket.bind(door.socket);
  if (run) {
    door.hold();
    try {
      stand.machine.run();
    } catch (const MachineError& error) {
      return error.what();
    }
  }
  return stand.failure(30_us);
}

void ok(tlm::tlm_generic_payload& t) {
  t.set_response_status(tlm::TLM_OK_RESPONSE);
}

constexpr const char* kWho = "target at CPU socket 2: read of 64 B at 0x40, asked for at ";

TEST(Targets, AreNamedWhereTheyBlock) {
  const auto blocks = [](Told& m) { m.blocking = [](auto&, auto&) { sc_core::wait(sc_core::sc_event()); }; };
  // A clock of the user's keeps SystemC going; else no event is pending.
  EXPECT_THAT(told({.latest = 4_us}, blocks),
              AllOf(HasSubstr("target at CPU socket 2: read of 64 B at 0x40 has not been answered since 1."),
                    HasSubstr(" us: the model blocks"), Not(HasSubstr("\n"))));
  EXPECT_THAT(told({}, blocks, true),
              AllOf(HasSubstr("no event is pending"),
                    HasSubstr("target at CPU socket 2: read of 64 B at 0x40, not answered since 1."),
                    HasSubstr("initiator at CPU socket 0: read of 64 B at 0x6")));
}

TEST(Targets, AreNamedWhereTheyAnswerAtAnotherTimeThanDeclared) {
  const auto takes = [](Time waits, Time annotates) {
    return [=](Told& m) {
      m.blocking = [=](tlm::tlm_generic_payload& t, sc_core::sc_time& delay) {
        if (waits > Time{}) sc_core::wait(to_sc(waits));
        ok(t);
        delay += to_sc(annotates);
      };
    };
  };
  EXPECT_EQ(told({.latency = 300_ns, .latest = 300_ns}, takes(0_ns, 300_ns)), "");
  EXPECT_THAT(told({.latency = 300_ns}, takes(0_ns, 299_ns)),
              AllOf(StartsWith(kWho),
                    HasSubstr(": answered after 299000 ps, sooner than its declared latency of 300000 ps")));
  EXPECT_THAT(
      told({.latest = 300_ns}, takes(300_ns, 1_ns)),
      AllOf(StartsWith(kWho), HasSubstr(": answered after 301000 ps, later than its declared 300000 ps")));
  // An initiator keeps the lookahead at 0: it may wait.
  EXPECT_EQ(told({.latency = 300_ns}, takes(300_ns, 0_ns)), "");
}

// Only targets: the declared latency is the lookahead, and waiting for it comes too late.
TEST(Targets, AreNamedWhereTheyWaitForWhatTheyHaveDeclared) {
  const auto failure = [](Time waits) {
    Stand stand(taking_part({0}));
    Told model("model");
    model.blocking = [&](tlm::tlm_generic_payload& t, sc_core::sc_time& delay) {
      if (waits > Time{}) sc_core::wait(to_sc(waits));
      ok(t);
      delay += to_sc(300_ns - waits);
    };
    const int place = stand.doors.die(16);
    stand.doors.open_target(place, {.latency = 300_ns}).socket.bind(model.socket);
    sim::Request request;
    request.address = stand.doors.address(place, 0);
    request.bytes = 64;
    request.core = 1;
    request.at = 1_us;
    struct Sender final : supernode::Driver {
      void handle(int, const sim::Event&) override { submit(); }
      std::function<void()> submit;
    } sender;
    npu::Die& die = stand.machine.die(0);
    sender.submit = [&] { die.submit(request); };
    die.queue().push(1_us, stand.machine.attach(0, sender), 0);
    return stand.failure(2'500_ns);
  };
  EXPECT_EQ(failure(200_ns), "");
  EXPECT_THAT(
      failure(201_ns),
      AllOf(StartsWith("target at die 16: read of 64 B at 0x0"),
            HasSubstr("handed over 99000 ps before the answer is complete; with a declared latency of "
                      "300000 ps a model annotates at least 99999 ps instead of waiting")));
}

TEST(Targets, AreNamedWithWhatTheyDoWrong) {
  EXPECT_THAT(told({}, [](Told& m) { m.blocking = [](auto&, auto&) {}; }),
              AllOf(StartsWith(kWho), HasSubstr(": the model has left TLM_INCOMPLETE_RESPONSE"),
                    Not(HasSubstr("\n"))));
  const auto phases = [](std::vector<tlm::tlm_phase> steps) {
    return [=](Told& m) {
      m.forward = [&m, steps](tlm::tlm_generic_payload& t, auto&, auto&) {
        sc_core::sc_spawn([&m, &t, steps] {
          ok(t);
          for (const tlm::tlm_phase& step : steps) {
            sc_core::wait(to_sc(10_ns));
            m.back(t, step);
          }
        });
        return tlm::TLM_ACCEPTED;
      };
    };
  };
  const TargetOptions four{.four_phases = true};
  EXPECT_EQ(told(four, phases({tlm::END_REQ, tlm::BEGIN_RESP})), "");
  EXPECT_EQ(told(four, phases({tlm::BEGIN_RESP})), "");
  EXPECT_THAT(told(four, phases({tlm::END_REQ, tlm::END_REQ})),
              AllOf(StartsWith(kWho), HasSubstr(": phase END_REQ after END_REQ")));
  EXPECT_THAT(told(four, phases({tlm::BEGIN_REQ})), HasSubstr(": phase BEGIN_REQ after BEGIN_REQ"));
  EXPECT_THAT(told(four, phases({tlm::END_RESP})), HasSubstr(": phase END_RESP after BEGIN_REQ"));
  EXPECT_THAT(told(four, phases({tlm::BEGIN_RESP, tlm::BEGIN_RESP})),
              HasSubstr("target at CPU socket 2: phase BEGIN_RESP at 1."));
}

// An error of the model's own ends the run with its text.
TEST(Targets, ErrorsOfSystemCAreToldInOneLine) {
  EXPECT_EQ(
      told({}, [](Told& m) { m.blocking = [](auto&, auto&) { SC_REPORT_ERROR("device", "out of order"); }; }),
      "SystemC: device: out of order");
}

TEST(Targets, DirectAccessBeyondTheirMemoryIsRefused) {
  const auto grants = [](std::uint64_t start, std::uint64_t end) {
    Stand stand(taking_part({}));
    Told model("model");
    std::vector<unsigned char> memory(4096, 7);
    model.direct = [&](tlm::tlm_dmi& dmi) {
      dmi.set_dmi_ptr(memory.data());
      dmi.set_start_address(start);
      dmi.set_end_address(end);
      dmi.allow_read_write();
      return end != 0;
    };
    auto& door = stand.doors.open_target(stand.doors.socket(2), {.bytes = 4096});
    door.socket.bind(model.socket);
    std::vector<std::byte> bytes(16);
    try {
      door.read(1024, bytes);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return bytes[15] == std::byte{7} ? std::string() : std::string("wrong bytes");
  };
  EXPECT_EQ(grants(0, 4095), "");
  EXPECT_EQ(grants(1000, 1039), "");
  EXPECT_EQ(
      grants(0, 4096),
      "target at CPU socket 2: grants direct access to 0x0 to 0x1000 when asked for 0x400; allowed: what "
      "holds that address, within its 4096 B");
  EXPECT_THAT(grants(1025, 4095), HasSubstr("grants direct access to 0x401 to 0xfff when asked for 0x400"));
  EXPECT_EQ(grants(0, 0), "target at CPU socket 2: its debug transport gave 3 B of 16 B at 0x400");
}

// --- doors

TEST(Doors, RefuseWhatCannotBe) {
  Stand stand(taking_part({0}, {1}));
  const auto text = [](const std::function<void()>& does) {
    try {
      does();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Doors& doors = stand.doors;
  EXPECT_EQ(text([&] { doors.open_initiator(0); }),
            "die 0 takes part in this run; a foreign model takes the place of one that does not");
  EXPECT_THAT(text([&] { doors.open_target(doors.socket(1)); }), StartsWith("CPU socket 1 takes part"));
  EXPECT_THAT(text([&] { doors.open_target(-1); }), StartsWith("endpoint -1 does not exist; allowed: 0 to "));
  EXPECT_THAT(text([&] { doors.die(768); }), "die 768 does not exist; allowed: 0 to 767");
  EXPECT_THAT(text([&] { doors.socket(192); }), "CPU socket 192 does not exist; allowed: 0 to 191");
  EXPECT_THAT(text([&] { doors.open_target(5, {.latency = 2_ns, .latest = 1_ns}); }),
              HasSubstr("allowed: 0 <= latency <= latest"));
  EXPECT_THAT(text([&] { doors.replace_memory(3); }), "die 3 does not take part in this run");
  doors.replace_memory(0);
  EXPECT_THAT(text([&] { doors.replace_memory(0); }), "the memory of die 0 was replaced");
}

}  // namespace
}  // namespace cm384::doors::protocol_test
