// Collectives as host programs call them, of one process with several devices: each call is a launch of
// collectives.cpp in the stream, whose vector core asks for the task as kernels do (Hccl<>). Written from
// public documentation and call sites of open programs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "acl/acl.h"
#include "hccl/collective_task.h"

enum HcclResult {
  HCCL_SUCCESS = 0,
  HCCL_E_PARA = 1,
  HCCL_E_PTR = 2,
  HCCL_E_INTERNAL = 4,
  HCCL_E_NOT_SUPPORT = 5,
  HCCL_E_RUNTIME = 15
};
enum HcclDataType {
  HCCL_DATA_TYPE_INT8,
  HCCL_DATA_TYPE_INT16,
  HCCL_DATA_TYPE_INT32,
  HCCL_DATA_TYPE_FP16,
  HCCL_DATA_TYPE_FP32,
  HCCL_DATA_TYPE_INT64,
  HCCL_DATA_TYPE_UINT64,
  HCCL_DATA_TYPE_UINT8,
  HCCL_DATA_TYPE_UINT16,
  HCCL_DATA_TYPE_UINT32,
  HCCL_DATA_TYPE_FP64,
  HCCL_DATA_TYPE_BFP16,
  HCCL_DATA_TYPE_RESERVED
};
enum HcclReduceOp {
  HCCL_REDUCE_SUM,
  HCCL_REDUCE_PROD,
  HCCL_REDUCE_MAX,
  HCCL_REDUCE_MIN,
  HCCL_REDUCE_RESERVED
};
inline constexpr uint32_t HCCL_ROOT_INFO_BYTES = 4108;  // assumed
struct HcclRootInfo {
  char internal[HCCL_ROOT_INFO_BYTES];
};
using HcclComm = void*;

namespace cm384_host {

// A group and the devices of its ranks, -1 for those that have not joined.
struct Communicators {
  struct Group {
    std::vector<int> devices;
    std::vector<uint64_t> posted;  // calls of each rank
    uint64_t number = 0;           // the emulator's; 0 before the first call
  };
  struct Member {
    Group* group;
    uint32_t rank;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, std::unique_ptr<Group>> groups;  // by what HcclGetRootInfo gave
  uint64_t next = 1;

  Group& group(uint64_t key, uint32_t ranks) {
    std::unique_ptr<Group>& made = groups[key];
    if (!made) made.reset(new Group{std::vector<int>(ranks, -1), std::vector<uint64_t>(ranks), 0});
    return *made;
  }
  // Other threads may still bring what is missing.
  template <class Holds>
  void await(std::unique_lock<std::mutex>& lock, Holds holds, const char* otherwise) {
    if (!changed.wait_for(lock, std::chrono::seconds(10), holds)) end(otherwise);
  }
  void settle() {
    std::unique_lock<std::mutex> lock(mutex);
    await(
        lock,
        [&] {
          for (const auto& [key, group] : groups)
            for (const uint64_t count : group->posted)
              if (count != group->posted[0]) return false;
          return true;
        },
        "a wait for a collective that not all ranks of its group have called");
  }
};
inline Communicators& communicators() {
  static Communicators all;
  return all;
}
// Before the host waits for anything, all ranks have called what some have.
// `kernel build --host` looks for this text in a program.
inline const char* volatile has_collectives = "cm384 collectives";
inline const bool settles = [] {
  before_waiting = [] { communicators().settle(); };
  return true;
}();

inline HcclResult collective(HcclComm comm, aclrtStream stream, cm384_collective_task task) {
  if (comm == nullptr) return HCCL_E_PTR;
  auto* const member = static_cast<Communicators::Member*>(comm);
  Communicators::Group& group = *member->group;
  Communicators& all = communicators();
  {
    std::unique_lock<std::mutex> lock(all.mutex);
    all.await(
        lock,
        [&] {
          for (const int device : group.devices)
            if (device < 0) return false;
          return true;
        },
        "a collective of a group that not all ranks have joined");
    if (group.number == 0)
      group.number = static_cast<uint64_t>(
          ask(CM384_HOST_GROUP, 0, 0, 0, 0, group.devices.size() * sizeof(int), group.devices.data()));
    Launch("collectives", 1, nullptr, stream, group.number)(task);
    if (connection().failed) return HCCL_E_RUNTIME;
    ++group.posted[member->rank];
  }
  all.changed.notify_all();
  return HCCL_SUCCESS;
}
inline uint32_t ranks_of(HcclComm comm) {
  return static_cast<uint32_t>(static_cast<Communicators::Member*>(comm)->group->devices.size());
}
inline cm384_collective_task task_of(uint64_t kind, const void* send, void* receive, uint64_t count, int type,
                                     int op = 0) {
  cm384_collective_task task{};
  task.kind = kind;
  task.send = reinterpret_cast<uint64_t>(send);
  task.receive = reinterpret_cast<uint64_t>(receive);
  task.count = count;
  task.type = static_cast<uint32_t>(type);
  task.op = static_cast<uint32_t>(op);
  return task;
}

}  // namespace cm384_host

inline HcclResult HcclGetRootInfo(HcclRootInfo* info) {
  auto& all = cm384_host::communicators();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::memset(info, 0, sizeof *info);
  const uint64_t key = all.next++;
  std::memcpy(info->internal, &key, sizeof key);
  return HCCL_SUCCESS;
}
// The calling thread's device becomes a rank.
inline HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* info, uint32_t rank,
                                       HcclComm* comm) {
  if (rank >= ranks || ranks > CM384_COLLECTIVE_TASK_RANKS) return HCCL_E_PARA;
  auto& all = cm384_host::communicators();
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    uint64_t key = 0;
    std::memcpy(&key, info->internal, sizeof key);
    auto& group = all.group(key, ranks);
    if (group.devices.size() != ranks || group.devices[rank] >= 0) return HCCL_E_PARA;
    group.devices[rank] = cm384_host::connection().device;
    *comm = new cm384_host::Communicators::Member{&group, rank};
  }
  all.changed.notify_all();
  return HCCL_SUCCESS;
}
inline HcclResult HcclCommInitAll(uint32_t count, int32_t* devices, HcclComm* comms) {
  if (count == 0 || count > CM384_COLLECTIVE_TASK_RANKS) return HCCL_E_PARA;
  auto& all = cm384_host::communicators();
  const std::lock_guard<std::mutex> lock(all.mutex);
  auto& group = all.group(all.next++, count);
  for (uint32_t rank = 0; rank < count; ++rank) {
    group.devices[rank] = devices[rank];
    comms[rank] = new cm384_host::Communicators::Member{&group, rank};
  }
  return HCCL_SUCCESS;
}
inline HcclResult HcclCommDestroy(HcclComm comm) {
  delete static_cast<cm384_host::Communicators::Member*>(comm);
  return HCCL_SUCCESS;
}
inline HcclResult HcclGetRankSize(HcclComm comm, uint32_t* ranks) {
  *ranks = cm384_host::ranks_of(comm);
  return HCCL_SUCCESS;
}
inline HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  *rank = static_cast<cm384_host::Communicators::Member*>(comm)->rank;
  return HCCL_SUCCESS;
}

inline HcclResult HcclAllReduce(void* send, void* receive, uint64_t count, HcclDataType type, HcclReduceOp op,
                                HcclComm comm, aclrtStream stream) {
  return cm384_host::collective(comm, stream,
                                cm384_host::task_of(CM384_TASK_ALL_REDUCE, send, receive, count, type, op));
}
inline HcclResult HcclAllGather(void* send, void* receive, uint64_t count, HcclDataType type, HcclComm comm,
                                aclrtStream stream) {
  return cm384_host::collective(comm, stream,
                                cm384_host::task_of(CM384_TASK_ALL_GATHER, send, receive, count, type));
}
inline HcclResult HcclReduceScatter(void* send, void* receive, uint64_t count, HcclDataType type,
                                    HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  return cm384_host::collective(
      comm, stream, cm384_host::task_of(CM384_TASK_REDUCE_SCATTER, send, receive, count, type, op));
}
inline HcclResult HcclAlltoAll(const void* send, uint64_t sendCount, HcclDataType sendType,
                               const void* receive, uint64_t receiveCount, HcclDataType receiveType,
                               HcclComm comm, aclrtStream stream) {
  if (sendCount != receiveCount || sendType != receiveType) return HCCL_E_PARA;
  return cm384_host::collective(
      comm, stream,
      cm384_host::task_of(CM384_TASK_ALL_TO_ALL, send, const_cast<void*>(receive), sendCount, sendType));
}
// Counts and places by rank, in elements.
inline HcclResult HcclAlltoAllV(const void* send, const void* sendCounts, const void* sendPlaces,
                                HcclDataType sendType, const void* receive, const void* receiveCounts,
                                const void* receivePlaces, HcclDataType receiveType, HcclComm comm,
                                aclrtStream stream) {
  if (sendType != receiveType) return HCCL_E_PARA;
  auto task = cm384_host::task_of(CM384_TASK_ALL_TO_ALL_V, send, const_cast<void*>(receive), 1, sendType);
  const void* const from[] = {sendCounts, sendPlaces, receiveCounts, receivePlaces};
  for (int n = 0; n < 4; ++n)
    std::memcpy(task.numbers[n], from[n], cm384_host::ranks_of(comm) * sizeof(uint64_t));
  return cm384_host::collective(comm, stream, task);
}
// The root's bytes to all; parts of the root's to each. By exchanges in which the root alone sends.
inline HcclResult HcclBroadcast(void* buffer, uint64_t count, HcclDataType type, uint32_t root, HcclComm comm,
                                aclrtStream stream) {
  auto task = cm384_host::task_of(CM384_TASK_ALL_TO_ALL_V, buffer, buffer, 1, type);
  const bool sends = static_cast<cm384_host::Communicators::Member*>(comm)->rank == root;
  for (uint32_t rank = 0; rank < cm384_host::ranks_of(comm); ++rank) {
    task.numbers[0][rank] = sends ? count : 0;
    task.numbers[2][rank] = rank == root ? count : 0;
  }
  return cm384_host::collective(comm, stream, task);
}
inline HcclResult HcclScatter(void* send, void* receive, uint64_t count, HcclDataType type, uint32_t root,
                              HcclComm comm, aclrtStream stream) {
  auto task = cm384_host::task_of(CM384_TASK_ALL_TO_ALL_V, send, receive, 1, type);
  const bool sends = static_cast<cm384_host::Communicators::Member*>(comm)->rank == root;
  for (uint32_t rank = 0; rank < cm384_host::ranks_of(comm); ++rank) {
    task.numbers[0][rank] = sends ? count : 0;
    task.numbers[1][rank] = rank * count;
    task.numbers[2][rank] = rank == root ? count : 0;
  }
  return cm384_host::collective(comm, stream, task);
}
inline HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  return cm384_host::collective(comm, stream,
                                cm384_host::task_of(CM384_TASK_ALL_TO_ALL, nullptr, nullptr, 0, 0));
}
// Of two ranks, or to one: the tasks that there are have all ranks of a group.
#define CM384_NO_COLLECTIVE(Name)                                                                      \
  template <typename... Arguments>                                                                     \
  HcclResult Name(const Arguments&...) {                                                               \
    static_assert(sizeof...(Arguments) > 100, #Name ": not there in host programs: docs/ascend-c.md"); \
    return HCCL_E_NOT_SUPPORT;                                                                         \
  }
CM384_NO_COLLECTIVE(HcclSend)
CM384_NO_COLLECTIVE(HcclRecv)
CM384_NO_COLLECTIVE(HcclBatchSendRecv)
CM384_NO_COLLECTIVE(HcclReduce)
#undef CM384_NO_COLLECTIVE
