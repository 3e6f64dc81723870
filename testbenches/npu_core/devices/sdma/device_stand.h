// A die for a unit under test: memory with one latency for reads and one for writes, another die behind a way
// out of fixed latency, a queue of events.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "base/engine/event_queue.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/devices/device_socket.h"

namespace cm384::testing {

class DeviceStand final : public npu::DeviceSocket {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;
  static constexpr Time kRead{200'000}, kWrite{100'000}, kRemote{1'000'000};

  Time now() const override { return queue.now(); }
  void schedule(Time at, std::uint32_t what, std::uint64_t argument) override {
    queue.push(at, 0, what, argument);
  }
  bool is_local(std::uint64_t address) const override { return cm384_gm_unit(address) == 0; }
  bool contains(std::uint64_t offset, std::uint64_t bytes) const override {
    return bytes <= kBytes && offset <= kBytes - bytes;
  }
  Time read(std::uint64_t offset, std::byte* into, std::uint32_t bytes, sim::TagMask& tags, bool) override {
    EXPECT_TRUE(contains(offset, bytes));
    EXPECT_EQ(offset / 512, (offset + bytes - 1) / 512);
    std::memcpy(into, memory.data() + offset, bytes);
    tags = 0;
    reads.push_back(now());
    return now() + kRead;
  }
  Time write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes, sim::TagMask,
             sim::TransactionId) override {
    EXPECT_TRUE(contains(offset, bytes));
    EXPECT_EQ(offset / 512, (offset + bytes - 1) / 512);
    std::memcpy(memory.data() + offset, from, bytes);
    if (written) written(offset, bytes);
    return now() + kWrite;
  }
  Time add(std::uint64_t offset, std::uint32_t value) override {
    std::uint32_t word = 0;
    std::memcpy(&word, memory.data() + offset, sizeof word);
    word += value;
    std::memcpy(memory.data() + offset, &word, sizeof word);
    if (written) written(offset, sizeof word);
    return now() + kWrite;
  }
  void submit(sim::Request request) override {
    requests.push_back(request);
    queue.push(now() + kRemote, 1, 0, requests.size() - 1);
    ++outstanding;
    most_outstanding = std::max(most_outstanding, outstanding);
  }
  sim::PayloadPool& payloads() override { return pool; }
  sim::TransactionId new_transaction(std::uint64_t, std::uint64_t, sim::Operation,
                                     const npu::CopyStart&) override {
    return 1;
  }
  void transaction_completed(sim::TransactionId) override {}
  void progressed() override {}
  std::uint64_t sys_count() const override { return 7; }

  // Runs all events: those of unit 0 by `handle`, answers of the other die by `completed`.
  template <class Handle, class Completed>
  void run(Handle&& handle, Completed&& completed) {
    while (queue.next_time() != Time::never()) {
      queue.run_until(queue.next_time() + Time{1}, [&](const sim::Event& e) {
        e.unit == 0 ? handle(e.what, e.argument) : completed(answer(e.argument));
      });
    }
  }
  template <class T>
  T get(std::uint64_t offset) const {
    T value{};
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  void put(std::uint64_t offset, const T& value) {
    std::memcpy(memory.data() + offset, &value, sizeof value);
  }

  sim::EventQueue queue;
  sim::PayloadPool pool;
  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  std::vector<std::byte> other = std::vector<std::byte>(kBytes);  // of die 1
  std::vector<sim::Request> requests;
  std::vector<Time> reads;
  std::uint64_t other_bytes = kBytes;  // beyond it die 1 has no memory
  int outstanding = 0, most_outstanding = 0;
  std::function<void(std::uint64_t, std::uint64_t)> written;

  // Of the other die to request `number`, given when its event comes.
  sim::Completion answer(std::uint64_t number) {
    --outstanding;
    const sim::Request request = requests[number];
    sim::Completion completion;
    completion.tag = request.tag;
    completion.bytes = request.bytes;
    sim::Payload payload = request.payload;
    const std::uint64_t offset = cm384_gm_offset(request.address);
    if (cm384_gm_unit(request.address) != 1 || offset + request.bytes > other_bytes) {
      pool.release(payload);
      completion.outcome = sim::Outcome::address_fault;
    } else if (request.operation == sim::Operation::read) {
      completion.payload.chunk = pool.allocate();
      std::memcpy(pool.bytes(completion.payload.chunk), other.data() + offset, request.bytes);
    } else {
      // An atomic add is to a word that was 0.
      std::memcpy(other.data() + offset, pool.bytes(payload.chunk), request.bytes);
      pool.release(payload);
    }
    return completion;
  }
};

}  // namespace cm384::testing
