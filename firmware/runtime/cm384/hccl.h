// Collectives that a kernel asks for (Hccl<>). On the part a server beside the cores does them; here block 0
// of each rank does: it posts to the others where its pieces stand, takes theirs by SDMA copies as soon as it
// hears of them, in Commit, Query and Wait of any task, and adds by its vector unit in Wait. So copies of
// tasks that are committed go on while the kernel computes; sums do not (assumed).
#pragma once

#include "cm384/fused.h"
#include "cm384/hccl_server.h"

namespace AscendC {

enum HcclServerType { HCCL_SERVER_TYPE_AICPU = 0, HCCL_SERVER_TYPE_END };
using HcclHandle = int8_t;  // -1: none
// Values as the host's library has them.
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

CM384_INLINE constexpr uint32_t Cm384BytesOf(HcclDataType type) {
  constexpr uint8_t kBytes[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2};
  return type < HCCL_DATA_TYPE_RESERVED ? kBytes[type] : 0;
}

// Elements of memory that come together, from `ranks` places in their order: in FP32 for floats, in half for
// int8_t, else in the type itself; rounded to nearest even at the end. Through the UBuffer behind the
// kernel's buffers.
template <typename T, typename A, typename Place>
inline void Cm384Combine(uint64_t to, uint32_t ranks, Place from, uint64_t count, HcclReduceOp op) {
#ifdef __DAV_C220_CUBE__
  Abort("Hccl<>: reductions are of vector cores: docs/ascend-c.md");
#else
  const LocalTensor<uint8_t> room = Cm384Scratch(LocalTensor<uint8_t>(), 3 * 256);
  const uint32_t most = (room.GetSize() < 96 * 1024 ? room.GetSize() : 96 * 1024) / 768 * 64;
  const LocalTensor<A> sum = room.template ReinterpretCast<A>(),
                       next = room[most * 4].template ReinterpretCast<A>();
  const LocalTensor<T> raw = room[most * 8].template ReinterpretCast<T>();
  for (uint64_t first = 0; first < count; first += most) {
    const auto now = static_cast<uint32_t>(count - first < most ? count - first : most);
    const auto n = static_cast<int32_t>(now);
    const DataCopyExtParams p{1, now * static_cast<uint32_t>(sizeof(T)), 0, 0, 0};
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const LocalTensor<A> a = rank == 0 ? sum : next;
      if constexpr (is_same_v<T, A>) {
        DataCopyPad(a, GlobalAt<T>(from(rank) + first * sizeof(T)), p);
        PipeBarrier<PIPE_ALL>();
      } else {
        DataCopyPad(raw, GlobalAt<T>(from(rank) + first * sizeof(T)), p);
        PipeBarrier<PIPE_ALL>();
        Cast(a, raw, RoundMode::CAST_NONE, now);
        PipeBarrier<PIPE_ALL>();
      }
      if (rank == 0) continue;
      if (op == HCCL_REDUCE_SUM) Add(sum, sum, next, n);
      if (op == HCCL_REDUCE_PROD) Mul(sum, sum, next, n);
      if (op == HCCL_REDUCE_MAX) Max(sum, sum, next, n);
      if (op == HCCL_REDUCE_MIN) Min(sum, sum, next, n);
      PipeBarrier<PIPE_ALL>();
    }
    if constexpr (is_same_v<T, A>) {
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(GlobalAt<T>(to + first * sizeof(T)), sum, p);
    } else {
      Cast(raw, sum, RoundMode::CAST_RINT, now);
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(GlobalAt<T>(to + first * sizeof(T)), raw, p);
    }
    PipeBarrier<PIPE_ALL>();
  }
#endif
}
template <typename Place>
inline void Cm384Combine(HcclDataType type, uint64_t to, uint32_t ranks, Place from, uint64_t count,
                         HcclReduceOp op) {
  if (type == HCCL_DATA_TYPE_FP32) return Cm384Combine<float, float>(to, ranks, from, count, op);
  if (type == HCCL_DATA_TYPE_FP16) return Cm384Combine<half, float>(to, ranks, from, count, op);
  if (type == HCCL_DATA_TYPE_BFP16) return Cm384Combine<bfloat16_t, float>(to, ranks, from, count, op);
  if (type == HCCL_DATA_TYPE_INT32) return Cm384Combine<int32_t, int32_t>(to, ranks, from, count, op);
  if (type == HCCL_DATA_TYPE_INT16) return Cm384Combine<int16_t, int16_t>(to, ranks, from, count, op);
  if (type == HCCL_DATA_TYPE_INT8) return Cm384Combine<int8_t, half>(to, ranks, from, count, op);
  Abort("Hccl<>: reductions of float, half, bfloat16_t, int32_t, int16_t and int8_t: docs/ascend-c.md");
}

template <HcclServerType = HCCL_SERVER_TYPE_AICPU>
class Hccl {
 public:
  // `context`: GetHcclContext(). Tilings choose algorithms, of which there is one.
  CM384_INLINE void Init(GM_ADDR context, __gm__ void* = nullptr) {
    group_ = reinterpret_cast<const uint8_t*>(context);
    tasks_ = 0;
    open_ = false;
  }
  CM384_INLINE void InitV2(GM_ADDR context, const void*) { Init(context); }
  CM384_INLINE int32_t SetCcTiling(__gm__ void*) { return 0; }
  CM384_INLINE int32_t SetCcTilingV2(uint64_t) { return 0; }

  CM384_INLINE uint32_t GetRankId() const { return Head()->rank; }
  CM384_INLINE uint32_t GetRankDim() const { return Head()->ranks; }
  CM384_INLINE GM_ADDR GetWindowsInAddr(uint32_t rank) const {
    return reinterpret_cast<GM_ADDR>(rank == GetRankId() ? Head()->window_in : Other(rank)->window_in);
  }
  CM384_INLINE GM_ADDR GetWindowsOutAddr(uint32_t rank) const {
    return reinterpret_cast<GM_ADDR>(rank == GetRankId() ? Head()->window_out : Other(rank)->window_out);
  }

  // Tasks; counts and strides in elements. Task n of `repeat` begins `sendCount` elements further in both
  // buffers. Ranks call the same tasks in the same order. -1: no such type or count.
  template <bool commit = false>
  inline HcclHandle AllGather(GM_ADDR send, GM_ADDR recv, uint64_t sendCount, HcclDataType type,
                              uint64_t strideCount, uint8_t repeat = 1) {
    return Prepare<commit>({kGather, type, HCCL_REDUCE_SUM, repeat, send, recv, sendCount, strideCount});
  }
  template <bool commit = false>
  inline HcclHandle AllReduce(GM_ADDR send, GM_ADDR recv, uint64_t count, HcclDataType type, HcclReduceOp op,
                              uint8_t repeat = 1) {
    return Prepare<commit>({kReduce, type, op, repeat, send, recv, count, 0});
  }
  template <bool commit = false>
  inline HcclHandle ReduceScatter(GM_ADDR send, GM_ADDR recv, uint64_t recvCount, HcclDataType type,
                                  HcclReduceOp op, uint64_t strideCount, uint8_t repeat = 1) {
    return Prepare<commit>({kScatter, type, op, repeat, send, recv, recvCount, strideCount});
  }
  template <bool commit = false>
  inline HcclHandle AlltoAll(GM_ADDR send, GM_ADDR recv, uint64_t dataCount, HcclDataType type,
                             uint64_t strideCount = 0, uint8_t repeat = 1) {
    return Prepare<commit>({kExchange, type, HCCL_REDUCE_SUM, repeat, send, recv, dataCount, strideCount});
  }
  // Counts and displacements of each rank, in elements; both types are the same. Pieces of a repeat follow
  // those before it.
  template <bool commit = false>
  inline HcclHandle AlltoAllV(GM_ADDR send, void* sendCounts, void* sdispls, HcclDataType sendType,
                              GM_ADDR recv, void* recvCounts, void* rdispls, HcclDataType recvType,
                              uint8_t repeat = 1) {
    if (sendType != recvType) return -1;
    Task task{kExchangeOf, sendType, HCCL_REDUCE_SUM, repeat, send, recv, 1, 0};
    task.send_counts = static_cast<const uint64_t*>(sendCounts);
    task.send_places = static_cast<const uint64_t*>(sdispls);
    task.recv_counts = static_cast<const uint64_t*>(recvCounts);
    task.recv_places = static_cast<const uint64_t*>(rdispls);
    return Prepare<commit>(task);
  }

  // One repeat more of the task may begin.
  inline void Commit(HcclHandle handle) {
    if (!Known(handle)) return;
    Task& task = task_[handle];
    if (task.committed == task.repeat) Refuse("Hccl<>: more Commits than repeats, handle 000", handle);
    const uint8_t repeat = task.committed++;
    if (GetBlockIdx() != 0) return;
    Post(task, repeat);
    TakeAll();
  }
  // One repeat more of it has ended: this rank's results stand in memory, and nobody reads its operands any
  // more. 0; -1 for a handle that is none.
  inline int32_t Wait(HcclHandle handle) {
    if (!Known(handle)) return -1;
    Task& task = task_[handle];
    if (task.waited == task.repeat) return 0;
    if (task.committed == task.waited)
      Refuse("Hccl<>: Wait for a task without its Commit never ends, handle 000", handle);
    const uint64_t number = task.number + task.waited++;
    if (GetBlockIdx() != 0) {
      server_.AwaitPublished(number);
      return 0;
    }
    while (task.taken < task.waited) {
      if (!Take(task)) Reduces(task) && server_.AllTold(number) ? Reduce(task) : server_.AwaitTold(number);
    }
    const uint32_t phase = task.kind == kReduce ? 1 : 0;
    while (!server_.AllDone(number, phase)) {
      TakeAll();
      server_.AwaitDone(number, phase);
    }
    server_.Publish(number);
    return 0;
  }
  // How many repeats have ended.
  inline int32_t Query(HcclHandle handle) {
    if (!Known(handle)) return -1;
    if (GetBlockIdx() == 0) TakeAll();
    return task_[handle].waited;
  }
  // All tasks of this launch end; another launch may begin some.
  template <bool sync = true>
  inline void Finalize() {
    if (!open_ || GetBlockIdx() != 0) return;
    for (int32_t n = 0; n < tasks_; ++n) {
      while (task_[n].waited < task_[n].committed) Wait(static_cast<HcclHandle>(n));
    }
    server_.Close(next_);
    open_ = false;
  }

 private:
  enum Kind : uint8_t { kGather, kReduce, kScatter, kExchange, kExchangeOf };
  struct Task {
    Kind kind;
    HcclDataType type;
    HcclReduceOp op;
    uint8_t repeat;
    GM_ADDR send, recv;
    uint64_t count, stride;
    const uint64_t *send_counts = nullptr, *send_places = nullptr, *recv_counts = nullptr,
                   *recv_places = nullptr;
    uint64_t number = 0;  // of its first repeat
    uint8_t committed = 0, waited = 0;
    uint8_t reduced = 0, taken = 0;  // of block 0: sums that are made, repeats whose copies are under way
  };
  static constexpr int32_t kMost = 32;

  CM384_INLINE const cm384_group_head* Head() const {
    return reinterpret_cast<const cm384_group_head*>(group_);
  }
  CM384_INLINE const cm384_group_rank* Other(uint32_t rank) const {
    const auto* table = reinterpret_cast<const cm384_group_entry*>(group_ + CM384_GROUP_TABLE);
    return reinterpret_cast<const cm384_group_rank*>(table[rank].device);
  }
  [[noreturn]] static void Refuse(const char* text, HcclHandle handle) {
    static char said[128];
    uint32_t n = 0;
    for (; text[n] != 0; ++n) said[n] = text[n];
    said[n - 3] = static_cast<char>('0' + handle / 100);
    said[n - 2] = static_cast<char>('0' + handle / 10 % 10);
    said[n - 1] = static_cast<char>('0' + handle % 10);
    Abort(said);
  }
  CM384_INLINE bool Known(HcclHandle handle) const { return handle >= 0 && handle < tasks_; }

  template <bool commit>
  inline HcclHandle Prepare(const Task& task) {
    // `run program` lays the server out where an image has this.
    asm volatile(".globl cm384_collectives\n\t.set cm384_collectives, 1");
    if (Cm384BytesOf(task.type) == 0 || task.repeat == 0 || tasks_ == kMost) return -1;
    if (!open_) Open();
    Task& made = task_[tasks_];
    made = task;
    if (next_ + made.repeat > server_.ended() + CM384_GROUP_SLOTS)
      Abort("Hccl<>: more than 64 repeats of tasks in a launch: docs/ascend-c.md");
    made.number = next_;
    next_ += made.repeat;
    const auto handle = static_cast<HcclHandle>(tasks_++);
    if constexpr (commit) {
      for (uint8_t n = 0; n < made.repeat; ++n) Commit(handle);
    }
    return handle;
  }
  inline void Open() {
    open_ = true;
    server_.Open(group_);
    next_ = server_.ended();
  }
  CM384_INLINE static uint64_t Stride(const Task& task) {
    return task.stride != 0 ? task.stride : task.count;
  }
  CM384_INLINE static bool Reduces(const Task& task) { return task.kind == kReduce || task.kind == kScatter; }
  CM384_INLINE static uint64_t Result(const Task& task, uint8_t repeat) {
    return reinterpret_cast<uint64_t>(task.recv) + repeat * task.count * Cm384BytesOf(task.type);
  }
  // A rank's share of an AllReduce: whole blocks of 32 B, the last ones less.
  CM384_INLINE uint64_t ShareBegin(const Task& task, uint32_t rank) const {
    const uint64_t each = (task.count + server_.ranks() * 32ull - 1) / (server_.ranks() * 32ull) * 32;
    return each * rank < task.count ? each * rank : task.count;
  }

  // Tells every rank where its piece of a repeat stands.
  inline void Post(const Task& task, uint8_t repeat) {
    PipeBarrier<PIPE_ALL>();
    dcci(0);  // what this core has stored is in memory
    for (uint32_t turn = 0; turn < server_.ranks(); ++turn) {
      const uint32_t to = server_.Peer(turn);
      uint64_t first = repeat * task.count;
      if (task.kind == kScatter || task.kind == kExchange) first += to * Stride(task);
      if (task.kind == kExchangeOf) first = task.send_places[to] + repeat * task.send_counts[to];
      server_.Tell(to, task.number + repeat,
                   reinterpret_cast<uint64_t>(task.send) + first * Cm384BytesOf(task.type),
                   Result(task, repeat));
    }
    server_.Ring();
  }
  // The copies of the next repeat that may be: false while not all ranks are there.
  inline bool Take(Task& task) {
    if (task.taken == task.committed) return false;
    const uint64_t number = task.number + task.taken, size = Cm384BytesOf(task.type);
    if (task.kind == kScatter) return false;  // has no copies: Reduce()
    if (task.kind == kReduce ? task.reduced == task.taken || !server_.AllDone(number, 0)
                             : !server_.AllTold(number))
      return false;
    const uint64_t result = Result(task, task.taken);
    for (uint32_t turn = 0; turn < server_.ranks(); ++turn) {
      const uint32_t peer = server_.Peer(turn);
      const volatile cm384_group_post* post = server_.Told(number, peer);
      uint64_t to = result + peer * Stride(task) * size, from = post->from, bytes = task.count * size;
      if (task.kind == kReduce) {
        const uint64_t begin = ShareBegin(task, peer);
        to = result + begin * size;
        from = post->to + begin * size;
        bytes = (ShareBegin(task, peer + 1) - begin) * size;
      }
      if (task.kind == kExchangeOf) {
        const uint64_t count = task.recv_counts[peer];
        to = reinterpret_cast<uint64_t>(task.recv) + (task.recv_places[peer] + task.taken * count) * size;
        bytes = count * size;
      }
      if (bytes != 0 && to != from) server_.Copy(to, from, bytes);
    }
    server_.Signal(number, task.kind == kReduce ? 1 : 0);
    ++task.taken;
    return true;
  }
  inline void TakeAll() {
    for (int32_t n = 0; n < tasks_; ++n) {
      while (Take(task_[n])) {
      }
    }
  }
  // This rank's share of the next repeat, from all ranks' operands.
  inline void Reduce(Task& task) {
    const uint64_t number = task.number + task.taken, size = Cm384BytesOf(task.type);
    if (task.reduced > task.taken) return server_.AwaitDone(number, 0);
    const uint64_t begin = task.kind == kReduce ? ShareBegin(task, server_.rank()) : 0,
                   end = task.kind == kReduce ? ShareBegin(task, server_.rank() + 1) : task.count;
    Cm384Combine(
        task.type, Result(task, task.taken) + begin * size, server_.ranks(),
        [&](uint32_t rank) { return server_.Told(number, rank)->from + begin * size; }, end - begin, task.op);
    server_.Signal(number, 0);
    ++task.reduced;
    if (task.kind == kScatter) ++task.taken;
  }

  const uint8_t* group_ = nullptr;
  Cm384GroupServer server_;
  Task task_[kMost];
  int32_t tasks_ = 0;
  uint64_t next_ = 0;  // number of the next task
  bool open_ = false;
};

}  // namespace AscendC
