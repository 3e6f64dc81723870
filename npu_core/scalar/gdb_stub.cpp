#include "npu_core/scalar/gdb_stub.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <vector>

#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/scalar/gdb_target.h"

namespace cm384::npu {
namespace {

constexpr std::size_t kPacketBytes = 4096;
constexpr std::size_t kWatchBytes = 64, kMostWatches = 16;
constexpr int kPc = 32, kFirstF = 33, kFflags = 65, kFrm = 66, kFcsr = 67, kRegisters = 68;

std::string hex(std::uint64_t value, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) out += fmt::format("{:02x}", (value >> (8 * i)) & 0xff);
  return out;
}

// Hexadecimal digits, big end first, up to the first other character; `text` goes on behind it.
std::uint64_t number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  (void)error;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

std::vector<std::byte> bytes_of(std::string_view digits) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    out.push_back(static_cast<std::byte>(value));
  }
  return out;
}

std::uint64_t little_endian(std::string_view digits) {
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const std::byte b : bytes_of(digits)) {
    if (shift < 64) value |= std::to_integer<std::uint64_t>(b) << shift;
    shift += 8;
  }
  return value;
}

std::string read_register(const ScalarCore& core, int index) {
  if (index < kPc) return hex(core.x(static_cast<unsigned>(index)), 8);
  if (index == kPc) return hex(core.pc(), 8);
  if (index < kFflags) return hex(core.f(static_cast<unsigned>(index - kFirstF)), 4);
  if (index == kFflags) return hex(core.fcsr() & 31, 4);
  if (index == kFrm) return hex(core.fcsr() >> 5, 4);
  return hex(core.fcsr(), 4);
}

void write_register(ScalarCore& core, int index, std::uint64_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  if (index < kPc) {
    core.set_x(static_cast<unsigned>(index), value);
  } else if (index == kPc) {
    core.set_pc(value);
  } else if (index < kFflags) {
    core.set_f(static_cast<unsigned>(index - kFirstF), word);
  } else if (index == kFflags) {
    core.set_fcsr((core.fcsr() & ~31u) | (word & 31));
  } else if (index == kFrm) {
    core.set_fcsr((core.fcsr() & 31) | (word & 7) << 5);
  } else {
    core.set_fcsr(word);
  }
}

}  // namespace

GdbStub::GdbStub(std::uint16_t port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, generic, length) != 0 || listen(listener_, 1) != 0 ||
      getsockname(listener_, generic, &length) != 0) {
    const int error = errno;
    if (listener_ >= 0) close(listener_);
    throw InputError(fmt::format("--gdb {}: cannot listen on 127.0.0.1: {}", port, std::strerror(error)));
  }
  port_ = ntohs(address.sin_port);
}

GdbStub::~GdbStub() {
  if (connection_ >= 0) close(connection_);
  if (listener_ >= 0) close(listener_);
}

void GdbStub::accept_debugger() {
  print_error("waiting for a debugger: target remote 127.0.0.1:{}\n", port_);
  // A signal ends the wait, and the program runs on without a debugger to where it looks at the interruption.
  pollfd waiting{listener_, POLLIN, 0};
  if (poll(&waiting, 1, -1) > 0) connection_ = accept(listener_, nullptr, nullptr);
  const int on = 1;
  setsockopt(connection_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  attached_ = connection_ >= 0;
  done_ = !attached_;
}

void GdbStub::release(ScalarCore& core) {
  core.set_debugged(false);
  breakpoints_.clear();
  watches_.clear();
  core.set_breakpoints({});
  if (connection_ >= 0) close(connection_);
  connection_ = -1;
  done_ = true;
}

Stop GdbStub::run(ScalarCore& core, std::int64_t limit_cycle) {
  if (done_) return core.run(limit_cycle);
  if (at_fault_) {
    try {
      return core.run(limit_cycle);
    } catch (const PipeFault&) {
      throw;  // the core names its places, and tells then
    } catch (const MachineError& error) {
      faulted(core, error.what());
      throw;
    }
  }
  if (!attached_) {
    accept_debugger();
    if (done_) return core.run(limit_cycle);
    core.set_debugged(true);
    resume_ = converse(core);
  }
  for (;;) {
    if (resume_ == Resume::detached) return core.run(limit_cycle);
    const bool step = resume_ == Resume::step;
    const Watch* watched = nullptr;
    Stop stop;
    try {
      stop = step               ? core.step()
             : watches_.empty() ? core.run(limit_cycle)
                                : run_watching(core, limit_cycle, watched);
    } catch (const PipeFault&) {
      throw;
    } catch (const MachineError& error) {
      faulted(core, error.what());
      throw;
    }
    if (stop == Stop::parked || stop == Stop::ended || stop == Stop::stored) return stop;
    if (stop == Stop::limit && !step) {
      if (!interrupted()) return stop;
      send("S02");
    } else if (watched != nullptr) {
      send(fmt::format("T05watch:{:x};", watched->address));
    } else {
      send("S05");
    }
    resume_ = converse(core);
    if (core.cycle() >= limit_cycle) return Stop::limit;
  }
}

Stop GdbStub::run_watching(ScalarCore& core, std::int64_t limit_cycle, const Watch*& watched) {
  // A pipe may have written while the scalar unit waited.
  watched = changed(core);
  if (watched != nullptr) return Stop::breakpoint;
  while (core.cycle() < limit_cycle) {
    if (const Stop stop = core.step(); stop != Stop::limit) return stop;
    watched = changed(core);
    if (watched != nullptr || breakpoints_.contains(core.pc())) return Stop::breakpoint;
  }
  return Stop::limit;
}

const GdbStub::Watch* GdbStub::changed(ScalarCore& core) {
  const Watch* first = nullptr;
  std::array<std::byte, kWatchBytes> now;
  for (Watch& watch : watches_) {
    const std::span<std::byte> bytes(now.data(), watch.bytes.size());
    if (!core.read_memory(watch.address, bytes) || std::ranges::equal(bytes, watch.bytes)) continue;
    watch.bytes.assign(bytes.begin(), bytes.end());
    if (first == nullptr) first = &watch;
  }
  return first;
}

// Any way on ends in the same error.
void GdbStub::faulted(ScalarCore& core, std::string_view report) {
  if (done_ || told_fault_) return;
  told_fault_ = true;
  stopped_by_ = "S0b";
  if (attached_) {
    send(stopped_by_);
  } else if (at_fault_) {
    print_error("{}\n", report);
    accept_debugger();
    if (done_) return;
    core.set_debugged(true);
  } else {
    return;
  }
  converse(core);
}

void GdbStub::ended(int status) {
  if (!done_ && connection_ >= 0) send(fmt::format("W{:02x}", status & 0xff));
}

GdbStub::Resume GdbStub::converse(ScalarCore& core) {
  std::string packet;
  while (receive(packet)) {
    if (handle(core, packet)) return resume_;
  }
  release(core);
  return Resume::detached;
}

bool GdbStub::interrupted() {
  pollfd p{connection_, POLLIN, 0};
  if (input_at_ == input_.size() && poll(&p, 1, 0) <= 0) return false;
  return read_byte() == 3;
}

bool GdbStub::handle(ScalarCore& core, std::string_view packet) {
  const char command = packet.empty() ? '\0' : packet.front();
  std::string_view rest = packet.empty() ? packet : packet.substr(1);
  switch (command) {
    case '?':
      send(stopped_by_);
      return false;
    case 'g': {
      std::string all;
      for (int i = 0; i < kFflags; ++i) all += read_register(core, i);
      send(all);
      return false;
    }
    case 'G':
      for (int i = 0; i < kFflags; ++i) {
        const std::size_t digits = i <= kPc ? 16 : 8;
        if (rest.size() < digits) break;
        write_register(core, i, little_endian(rest.substr(0, digits)));
        rest.remove_prefix(digits);
      }
      send("OK");
      return false;
    case 'p': {
      const std::uint64_t index = number(rest);
      send(index < kRegisters ? read_register(core, static_cast<int>(index)) : "E01");
      return false;
    }
    case 'P': {
      const std::uint64_t index = number(rest);
      if (index < kRegisters) write_register(core, static_cast<int>(index), little_endian(rest));
      send(index < kRegisters ? "OK" : "E01");
      return false;
    }
    case 'm': {
      const std::uint64_t address = number(rest), bytes = number(rest);
      std::vector<std::byte> data(std::min<std::uint64_t>(bytes, kPacketBytes / 2));
      if (!core.read_memory(address, data)) {
        send("E0e");
        return false;
      }
      std::string out;
      for (const std::byte b : data) out += hex(std::to_integer<std::uint64_t>(b), 1);
      send(out);
      return false;
    }
    case 'M': {
      const std::uint64_t address = number(rest);
      number(rest);
      send(core.write_memory(address, bytes_of(rest)) ? "OK" : "E0e");
      return false;
    }
    case 'Z':
    case 'z':
      change_breakpoint(core, rest, command == 'Z');
      return false;
    case 'c':
    case 's':
      if (!rest.empty()) core.set_pc(number(rest));
      resume_ = command == 'c' ? Resume::go : Resume::step;
      return true;
    case 'C':  // with a signal, which nothing here takes
      resume_ = Resume::go;
      return true;
    case 'D':
      send("OK");
      release(core);
      resume_ = Resume::detached;
      return true;
    case 'k':
      release(core);
      throw MachineError("killed by the debugger");
    case 'H':
      send("OK");
      return false;
    case 'q':
    case 'Q':
      query(packet);
      return false;
    default:
      send("");
      return false;
  }
}

void GdbStub::query(std::string_view packet) {
  constexpr std::string_view kFeatures = "qXfer:features:read:target.xml:";
  if (packet.starts_with("qSupported")) {
    send(fmt::format("PacketSize={:x};qXfer:features:read+;QStartNoAckMode+;swbreak-", kPacketBytes));
  } else if (packet.starts_with(kFeatures)) {
    std::string_view rest = packet.substr(kFeatures.size());
    const std::uint64_t offset = number(rest), bytes = number(rest);
    const std::string_view all = gdb_target_description();
    const std::string_view part = offset < all.size() ? all.substr(offset, bytes) : std::string_view();
    send(fmt::format("{}{}", offset + part.size() < all.size() ? 'm' : 'l', part));
  } else if (packet == "QStartNoAckMode") {
    send("OK");
    acknowledge_ = false;
  } else if (packet == "qAttached") {
    send("1");
  } else if (packet == "qC") {
    send("QC1");
  } else if (packet == "qfThreadInfo") {
    send("m1");
  } else if (packet == "qsThreadInfo") {
    send("l");
  } else {
    send("");
  }
}

void GdbStub::change_watchpoint(ScalarCore& core, std::string_view packet, bool insert) {
  packet.remove_prefix(std::min<std::size_t>(2, packet.size()));
  const std::uint64_t address = number(packet), bytes = number(packet);
  if (bytes == 0 || bytes > kWatchBytes || (insert && watches_.size() >= kMostWatches)) return send("E16");
  if (insert) {
    Watch watch{address, std::vector<std::byte>(bytes)};
    if (!core.read_memory(address, watch.bytes)) return send("E0e");
    watches_.push_back(std::move(watch));
  } else {
    const auto found = std::ranges::find_if(watches_, [&](const Watch& watch) {
      return watch.address == address && watch.bytes.size() == bytes;
    });
    if (found != watches_.end()) watches_.erase(found);
  }
  send("OK");
}

void GdbStub::change_breakpoint(ScalarCore& core, std::string_view packet, bool insert) {
  const char type = packet.empty() ? '?' : packet.front();
  if (type == '2') return change_watchpoint(core, packet, insert);
  if (type != '0' && type != '1') {  // of reads: not served
    send("");
    return;
  }
  packet.remove_prefix(std::min<std::size_t>(2, packet.size()));
  const std::uint64_t address = number(packet);
  const bool changed = insert ? breakpoints_.insert(address).second : breakpoints_.erase(address) != 0;
  if (changed) core.set_breakpoints({breakpoints_.begin(), breakpoints_.end()});
  send("OK");
}

}  // namespace cm384::npu
