// A machine with doors, and foreign models of a few lines each.
#pragma once

#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstring>
#include <functional>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/text/error.h"
#include "hw/machine.h"
#include "system/doors/doors.h"
#include "system/doors/time.h"
#include "system/doors/transaction_pool.h"
#include "system/machine/supernode.h"

namespace cm384::doors {

using namespace cm384::literals;

inline supernode::SupernodeOptions taking_part(std::vector<int> dies, std::vector<int> sockets = {},
                                               unsigned threads = 1) {
  supernode::SupernodeOptions options;
  options.dies = std::move(dies);
  options.sockets = std::move(sockets);
  options.threads = threads;
  options.worth_sharing = 0;
  return options;
}

struct Stand {
  explicit Stand(supernode::SupernodeOptions options, const std::vector<std::string>& changes = {})
      : parameters(hw::load_machine("cloudmatrix384", changes)),
        machine(parameters, std::move(options)),
        doors(machine) {}

  // What a run of so long says when it fails; empty: it does not.
  std::string failure(Time length) {
    try {
      machine.run_for(length);
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }

  hw::Machine parameters;
  supernode::Supernode machine;
  Doors doors;
};

// What an initiator does and what came of it.
struct Access {
  Time at;  // of the call
  bool write = false;
  std::uint64_t address = 0;
  std::uint32_t bytes = 512;
  Time annotated{};
  Time done{};  // its response
  tlm::tlm_response_status status = tlm::TLM_INCOMPLETE_RESPONSE;
  std::vector<unsigned char> data{};
};

// Calls at its times, blocking or in four phases; several may be under way.
class Caller final : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Caller> socket;
  std::vector<Access> script;
  std::size_t finished = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> withdrawn;
  // Of BEGIN_RESP to its END_RESP; zero: answered within the call.
  Time response_time{};

  Caller(const sc_core::sc_module_name& name, std::vector<Access> accesses, bool four_phases)
      : sc_module(name), socket("socket"), script(std::move(accesses)) {
    socket.register_nb_transport_bw(this, &Caller::response);
    transactions.resize(script.size());
    for (std::size_t n = 0; n < script.size(); ++n) {
      if (script[n].data.empty()) script[n].data.resize(script[n].bytes);
      sc_core::sc_spawn([this, n, four_phases] { four_phases ? begin(n) : call(n); });
    }
  }

  void fill(tlm::tlm_generic_payload& t, tlm::tlm_command command, std::uint64_t address,
            std::vector<unsigned char>& bytes) {
    t.set_command(command);
    t.set_address(address);
    t.set_data_ptr(bytes.data());
    t.set_data_length(static_cast<unsigned>(bytes.size()));
    t.set_streaming_width(static_cast<unsigned>(bytes.size()));
  }
  unsigned debug(tlm::tlm_command command, std::uint64_t address, std::vector<unsigned char>& bytes) {
    tlm::tlm_generic_payload t;
    fill(t, command, address, bytes);
    return socket->transport_dbg(t);
  }
  bool direct(std::uint64_t address, tlm::tlm_dmi& dmi) {
    tlm::tlm_generic_payload t;
    t.set_address(address);
    return socket->get_direct_mem_ptr(t, dmi);
  }
  void invalidate(sc_dt::uint64 start, sc_dt::uint64 end) { withdrawn.emplace_back(start, end); }

 private:
  struct Keeper final : tlm::tlm_mm_interface {
    void free(tlm::tlm_generic_payload*) override {}
  };
  void set(tlm::tlm_generic_payload& t, Access& a) {
    t.set_command(a.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    t.set_address(a.address);
    t.set_data_ptr(a.data.data());
    t.set_data_length(a.bytes);
    t.set_streaming_width(a.bytes);
    t.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  }
  void end(std::size_t n, tlm::tlm_response_status status) {
    script[n].done = now();
    script[n].status = status;
    ++finished;
  }
  void call(std::size_t n) {
    wait(to_sc(script[n].at));
    tlm::tlm_generic_payload t;
    set(t, script[n]);
    sc_core::sc_time delay = to_sc(script[n].annotated);
    socket->b_transport(t, delay);
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    end(n, t.get_response_status());
  }
  void begin(std::size_t n) {
    wait(to_sc(script[n].at));
    transactions[n] = std::make_unique<tlm::tlm_generic_payload>(&keeper);
    tlm::tlm_generic_payload& t = *transactions[n];
    t.acquire();
    set(t, script[n]);
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = to_sc(script[n].annotated);
    const auto status = socket->nb_transport_fw(t, phase, delay);
    if (status == tlm::TLM_COMPLETED) end(n, t.get_response_status());
  }
  tlm::tlm_sync_enum response(tlm::tlm_generic_payload& t, tlm::tlm_phase& phase, sc_core::sc_time&) {
    EXPECT_EQ(phase, tlm::BEGIN_RESP);
    for (std::size_t n = 0; n < script.size(); ++n) {
      if (transactions[n].get() == &t) end(n, t.get_response_status());
    }
    if (response_time == Time{}) {
      phase = tlm::END_RESP;
      return tlm::TLM_UPDATED;
    }
    sc_core::sc_spawn([this, &t] {
      wait(to_sc(response_time));
      tlm::tlm_phase last = tlm::END_RESP;
      sc_core::sc_time none = sc_core::SC_ZERO_TIME;
      socket->nb_transport_fw(t, last, none);
    });
    return tlm::TLM_ACCEPTED;
  }

  Keeper keeper;
  std::vector<std::unique_ptr<tlm::tlm_generic_payload>> transactions;
};

// 1 MiB that answers after `latency`, in one of the ways that TLM has for it.
enum class Way { annotates, waits, annotates_part, four_phases, four_phases_in_call, four_phases_annotated };

class Device final : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<Device> socket;
  std::vector<unsigned char> bytes = std::vector<unsigned char>(1 << 20);
  std::vector<Time> asked;

  Device(const sc_core::sc_module_name& name, Way way, Time latency)
      : sc_module(name), socket("socket"), way_(way), latency_(latency) {
    socket.register_b_transport(this, &Device::b_transport);
    socket.register_nb_transport_fw(this, &Device::nb_transport_fw);
    socket.register_transport_dbg(this, &Device::debug);
  }

 private:
  void perform(tlm::tlm_generic_payload& t) {
    const bool inside = t.get_address() + t.get_data_length() <= bytes.size();
    t.set_response_status(inside ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    if (!inside) return;
    unsigned char* const here = &bytes[t.get_address()];
    if (t.is_read()) {
      std::memcpy(t.get_data_ptr(), here, t.get_data_length());
    } else {
      std::memcpy(here, t.get_data_ptr(), t.get_data_length());
    }
  }
  void b_transport(tlm::tlm_generic_payload& t, sc_core::sc_time& delay) {
    asked.push_back(now() + of(delay));
    const Time part = way_ == Way::waits ? latency_ : way_ == Way::annotates ? Time{} : Time{latency_.ps / 2};
    if (part > Time{}) wait(to_sc(part));
    perform(t);
    delay += to_sc(latency_ - part);
  }
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& t, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
    EXPECT_EQ(phase, tlm::BEGIN_REQ);
    asked.push_back(now());
    if (way_ == Way::four_phases_in_call) {
      perform(t);
      phase = tlm::BEGIN_RESP;
      delay += to_sc(latency_);
      return tlm::TLM_UPDATED;
    }
    t.acquire();
    sc_core::sc_spawn([this, &t] {
      const Time ahead = way_ == Way::four_phases_annotated ? Time{latency_.ps / 2} : Time{};
      sc_core::sc_time later = sc_core::SC_ZERO_TIME;
      tlm::tlm_phase step = tlm::END_REQ;
      socket->nb_transport_bw(t, step, later);
      wait(to_sc(latency_ - ahead));
      perform(t);
      step = tlm::BEGIN_RESP;
      later = to_sc(ahead);
      socket->nb_transport_bw(t, step, later);
      t.release();
    });
    return tlm::TLM_ACCEPTED;
  }
  unsigned debug(tlm::tlm_generic_payload& t) {
    if (t.get_address() >= bytes.size()) return 0;
    perform(t);
    return t.get_response_status() == tlm::TLM_OK_RESPONSE ? t.get_data_length() : 0;
  }

  Way way_;
  Time latency_;
};

}  // namespace cm384::doors
