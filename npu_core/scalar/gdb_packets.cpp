// The packet layer of the GDB remote protocol: $payload#checksum, acknowledged by '+'.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <charconv>

#include "npu_core/scalar/gdb_stub.h"

namespace cm384::npu {
namespace {

// A debugger keeps to the 4 KiB that it is offered; a peer that sends more is none.
constexpr std::size_t kLongestPacket = 64u << 10;

}  // namespace

int GdbStub::read_byte() {
  if (input_at_ == input_.size()) {
    std::array<char, 4096> buffer;
    // A signal ends the wait, as a lost connection does.
    pollfd waiting{connection_, POLLIN, 0};
    if (poll(&waiting, 1, -1) <= 0) return -1;
    const ssize_t got = recv(connection_, buffer.data(), buffer.size(), 0);
    if (got <= 0) return -1;
    input_.assign(buffer.data(), static_cast<std::size_t>(got));
    input_at_ = 0;
  }
  return static_cast<unsigned char>(input_[input_at_++]);
}

bool GdbStub::receive(std::string& packet) {
  for (;;) {
    int c = read_byte();
    while (c >= 0 && c != '$') c = read_byte();
    if (c < 0) return false;
    packet.clear();
    unsigned sum = 0;
    for (c = read_byte(); c >= 0 && c != '#'; c = read_byte()) {
      if (packet.size() == kLongestPacket) return false;
      packet += static_cast<char>(c);
      sum += static_cast<unsigned>(c);
    }
    const int high = read_byte(), low = read_byte();
    if (c < 0 || high < 0 || low < 0) return false;
    const std::array<char, 2> digits = {static_cast<char>(high), static_cast<char>(low)};
    unsigned expected = 256;
    std::from_chars(digits.data(), digits.data() + 2, expected, 16);
    const bool good = expected == (sum & 0xff);
    if (acknowledge_) send_raw(good ? "+" : "-");
    if (good) return true;
  }
}

void GdbStub::send(std::string_view payload) {
  unsigned sum = 0;
  for (const char c : payload) sum += static_cast<unsigned char>(c);
  send_raw(fmt::format("${}#{:02x}", payload, sum & 0xff));
}

void GdbStub::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace cm384::npu
