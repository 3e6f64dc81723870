// The emulator as a host program sees it: requests over a socket that `cm384 run program` has made. A program
// that is started by itself starts again under it.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "firmware/abi/host_program.h"

namespace cm384_host {

[[noreturn]] inline void end(const char* why) {
  std::fflush(nullptr);
  std::fprintf(stderr, "%s\n", why);
  _exit(1);
}

class Connection {
 public:
  Connection() {
    const char* const text = std::getenv(CM384_HOST_SOCKET);
    if (text == nullptr) start_again();
    socket_ = std::atoi(text);
  }

  // What the emulator answers; its bytes go to `into`, as many as are wanted. `line` stands behind the bytes.
  std::int64_t ask(cm384_host_request request, const void* bytes = nullptr, void* into = nullptr,
                   const std::string& line = {}) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    const std::uint64_t before = request.bytes;
    request.bytes += line.size();
    send_all(&request, sizeof request);
    if (before != 0) send_all(bytes, before);
    if (!line.empty()) send_all(line.data(), line.size());
    cm384_host_reply reply;
    receive(&reply, sizeof reply);
    if (reply.status != 0) {
      std::string why(reply.bytes, ' ');
      receive(why.data(), why.size());
      std::fflush(nullptr);
      std::fprintf(stderr, "%s\n", why.c_str());
      failed = true;
      return -1;
    }
    failed = false;
    if (reply.bytes != 0) receive(into, reply.bytes);
    return reply.value;
  }
  // Of the calling thread: whether its last request was refused, and its device.
  static inline thread_local bool failed = false;
  static inline thread_local int device = 0;

 private:
  [[noreturn]] static void start_again() {
    std::ifstream line("/proc/self/cmdline", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(line), {}};
    std::vector<std::string> words{CM384_PROGRAM, "run", "program"};
    bool first = true;
    for (std::size_t at = 0; at < all.size(); at += std::strlen(&all[at]) + 1) {
      if (!first) words.push_back("--argument");
      words.push_back(first ? self() : std::string(&all[at]));
      first = false;
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    end("cm384 is not there: `cm384 run program` runs this program");
  }
  static std::string self() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length < 0 ? std::string() : std::string(path, static_cast<std::size_t>(length));
  }
  void send_all(const void* from, std::size_t bytes) {
    const char* at = static_cast<const char*>(from);
    while (bytes != 0) {
      const ssize_t n = send(socket_, at, bytes, MSG_NOSIGNAL);
      if (n <= 0) end("the run has ended");
      at += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void receive(void* to, std::size_t bytes) {
    char* at = static_cast<char*>(to);
    while (bytes != 0) {
      const ssize_t n = read(socket_, at, bytes);
      if (n <= 0) end("the run has ended");
      at += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }

  int socket_ = -1;
  std::mutex mutex_;
};
// Before main, so that a program that starts again has said nothing yet.
inline Connection& connection() {
  static Connection made;
  return made;
}
inline Connection& connected = connection();

// What comes before the host waits for streams: other threads may still have to put something there.
inline void (*before_waiting)() = nullptr;
inline bool waits(std::uint32_t operation) {
  return operation == CM384_HOST_WAIT_STREAM || operation == CM384_HOST_WAIT_DEVICE ||
         operation == CM384_HOST_WAIT_EVENT || operation == CM384_HOST_ELAPSED;
}

inline std::int64_t ask(std::uint32_t operation, std::uint64_t a = 0, std::uint64_t b = 0,
                        std::uint64_t c = 0, std::int64_t value = 0, std::uint64_t bytes = 0,
                        const void* from = nullptr, void* into = nullptr, const std::string& line = {}) {
  if (before_waiting != nullptr && waits(operation)) before_waiting();
  return connection().ask({operation, connection().device, a, b, c, value, bytes}, from, into, line);
}

// A stream by the pointer that programs hold: null is the default one.
inline std::uint64_t stream_of(const void* stream) {
  return reinterpret_cast<std::uint64_t>(stream);
}

// `name<<<blocks, l2, stream>>>(arguments)`.
class Launch {
 public:
  // `group`: whose resources GetHcclContext() gives; 0: of none.
  Launch(const char* name, std::uint32_t blocks, const void*, const void* stream, std::uint64_t group = 0)
      : name_(name), blocks_(blocks), stream_(stream), group_(group) {}

  template <typename... Arguments>
  int operator()(const Arguments&... arguments) const {
    std::vector<char> bytes(name_, name_ + std::strlen(name_) + 1);
    (add(bytes, arguments), ...);
    ask(CM384_HOST_LAUNCH, stream_of(stream_), blocks_, group_, 0, bytes.size(), bytes.data());
    return connection().failed ? 1 : 0;
  }

 private:
  template <typename T>
  static void add(std::vector<char>& bytes, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "an argument of a launch is plain data");
    if constexpr (std::is_class_v<T>) {
      std::vector<char> padded((sizeof(T) + 7) / 8 * 8);
      std::memcpy(padded.data(), &value, sizeof value);
      append(bytes, {0, padded.size(), 0}, padded.data());
    } else if constexpr (std::is_floating_point_v<T>) {
      const float number = static_cast<float>(value);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      append(bytes, {bits, 0, 1}, nullptr);
    } else if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) {
      append(bytes, {reinterpret_cast<std::uint64_t>(static_cast<const void*>(value)), 0, 0}, nullptr);
    } else {
      // As registers of the cores hold it: 32 bits with their sign.
      const std::uint64_t word =
          sizeof(T) == 4
              ? static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)))
              : static_cast<std::uint64_t>(value);
      append(bytes, {word, 0, 0}, nullptr);
    }
  }
  static void append(std::vector<char>& bytes, cm384_host_argument argument, const char* behind) {
    const char* const head = reinterpret_cast<const char*>(&argument);
    bytes.insert(bytes.end(), head, head + sizeof argument);
    if (argument.bytes != 0) bytes.insert(bytes.end(), behind, behind + argument.bytes);
  }

  const char* name_;
  std::uint32_t blocks_;
  const void* stream_;
  std::uint64_t group_;
};

}  // namespace cm384_host

// `ACLRT_LAUNCH_KERNEL(name)(blocks, stream, arguments)`.
#define ACLRT_LAUNCH_KERNEL(name) aclrtlaunch_##name
