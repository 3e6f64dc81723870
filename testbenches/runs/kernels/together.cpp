// A program of the host that calls every collective on four devices, from one thread, or with an argument an
// all-reduce from a thread a device.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "hccl/hccl_types.h"
constexpr int kRanks = 4, kCount = 24;
struct Rank {
  HcclComm comm;
  aclrtStream stream;
  void *send, *receive;
};
static std::vector<float> Values(int rank, int count) {
  std::vector<float> made(count);
  for (int i = 0; i < count; ++i) made[i] = 100.0f * rank + i;
  return made;
}
static int wrong = 0;
static void Open(Rank& r, int rank) {
  aclrtSetDevice(rank);
  aclrtCreateStream(&r.stream);
  aclrtMalloc(&r.send, kRanks * kCount * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&r.receive, kRanks * kCount * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  const std::vector<float> values = Values(rank, kRanks * kCount);
  aclrtMemcpy(r.send, kRanks * kCount * 4, values.data(), kRanks * kCount * 4, ACL_MEMCPY_HOST_TO_DEVICE);
}
static void Check(Rank& r, int rank, const char* name, std::vector<float> wanted, void* at = nullptr) {
  aclrtSetDevice(rank);
  aclrtSynchronizeStream(r.stream);
  std::vector<float> seen(wanted.size());
  aclrtMemcpy(seen.data(), seen.size() * 4, at == nullptr ? r.receive : at, seen.size() * 4,
              ACL_MEMCPY_DEVICE_TO_HOST);
  if (seen != wanted) {
    std::printf("%s of rank %d is wrong: %g for %g\n", name, rank, seen[0], wanted[0]);
    ++wrong;
  }
}
template <class Call, class Wanted>
static void All(std::vector<Rank>& ranks, const char* name, Call call, Wanted wanted, bool of_send = false) {
  for (int rank = 0; rank < kRanks; ++rank) {
    aclrtSetDevice(rank);
    if (call(ranks[rank], rank) != HCCL_SUCCESS) std::printf("%s is refused\n", name);
  }
  for (int rank = 0; rank < kRanks; ++rank)
    Check(ranks[rank], rank, name, wanted(rank), of_send ? ranks[rank].send : nullptr);
}
int main(int argc, char**) {
  std::vector<Rank> ranks(kRanks);
  if (argc > 1) {  // as programs with a thread a device do
    HcclRootInfo root;
    HcclGetRootInfo(&root);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        Rank& r = ranks[rank];
        Open(r, rank);
        HcclCommInitRootInfo(kRanks, &root, rank, &r.comm);
        HcclAllReduce(r.send, r.receive, kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, r.comm, r.stream);
        aclrtSynchronizeStream(r.stream);
      });
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < kRanks; ++rank)
      Check(ranks[rank], rank, "AllReduce", Values(kRanks - 1, kCount));
    std::printf("%d wrong\n", wrong);
    return wrong;
  }
  int32_t devices[kRanks] = {0, 1, 2, 3};
  HcclComm comms[kRanks];
  HcclCommInitAll(kRanks, devices, comms);
  for (int rank = 0; rank < kRanks; ++rank) {
    Open(ranks[rank], rank);
    ranks[rank].comm = comms[rank];
    uint32_t number = 9, count = 9;
    HcclGetRankId(comms[rank], &number);
    HcclGetRankSize(comms[rank], &count);
    if (number != static_cast<uint32_t>(rank) || count != kRanks) ++wrong;
  }
  const HcclDataType type = HCCL_DATA_TYPE_FP32;
  All(
      ranks, "AllReduce",
      [&](Rank& r, int) {
        return HcclAllReduce(r.send, r.receive, kCount, type, HCCL_REDUCE_SUM, r.comm, r.stream);
      },
      [](int) {
        std::vector<float> w(kCount);
        for (int i = 0; i < kCount; ++i) w[i] = 600.0f + 4 * i;
        return w;
      });
  All(
      ranks, "AllGather",
      [&](Rank& r, int) { return HcclAllGather(r.send, r.receive, kCount, type, r.comm, r.stream); },
      [](int) {
        std::vector<float> w;
        for (int p = 0; p < kRanks; ++p)
          for (float v : Values(p, kCount)) w.push_back(v);
        return w;
      });
  All(
      ranks, "ReduceScatter",
      [&](Rank& r, int) {
        return HcclReduceScatter(r.send, r.receive, kCount, type, HCCL_REDUCE_SUM, r.comm, r.stream);
      },
      [](int rank) {
        std::vector<float> w(kCount);
        for (int i = 0; i < kCount; ++i) w[i] = 600.0f + 4 * (rank * kCount + i);
        return w;
      });
  All(
      ranks, "AlltoAll",
      [&](Rank& r, int) {
        return HcclAlltoAll(r.send, kCount, type, r.receive, kCount, type, r.comm, r.stream);
      },
      [](int rank) {
        std::vector<float> w;
        for (int p = 0; p < kRanks; ++p)
          for (int i = 0; i < kCount; ++i) w.push_back(Values(p, kRanks * kCount)[rank * kCount + i]);
        return w;
      });
  // Rank r sends p + 1 elements to p, from 3 p on.
  All(
      ranks, "AlltoAllV",
      [&](Rank& r, int rank) {
        uint64_t counts[kRanks], places[kRanks], in[kRanks], to[kRanks];
        for (int p = 0; p < kRanks; ++p)
          counts[p] = p + 1, places[p] = 3 * p, in[p] = rank + 1, to[p] = p * (rank + 1);
        return HcclAlltoAllV(r.send, counts, places, type, r.receive, in, to, type, r.comm, r.stream);
      },
      [](int rank) {
        std::vector<float> w;
        for (int p = 0; p < kRanks; ++p)
          for (int i = 0; i <= rank; ++i) w.push_back(100.0f * p + 3 * rank + i);
        return w;
      });
  All(
      ranks, "Scatter",
      [&](Rank& r, int) { return HcclScatter(r.send, r.receive, kCount, type, 1, r.comm, r.stream); },
      [](int rank) {
        std::vector<float> w;
        for (int i = 0; i < kCount; ++i) w.push_back(100.0f + rank * kCount + i);
        return w;
      });
  All(
      ranks, "Broadcast",
      [&](Rank& r, int) { return HcclBroadcast(r.send, kCount, type, 2, r.comm, r.stream); },
      [](int) { return Values(2, kCount); }, true);
  All(
      ranks, "Barrier", [&](Rank& r, int) { return HcclBarrier(r.comm, r.stream); },
      [](int) { return Values(2, kCount); }, true);
  for (Rank& r : ranks) HcclCommDestroy(r.comm);
  std::printf("%d wrong\n", wrong);
  return wrong;
}
