// The paths of a whole machine, read from a trace log with requests: cores, their requests through L2, HBM
// and the Unified Bus, barriers, launches and streams.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "npu_core/causality/trace_log.h"
#include "npu_core/memory/address_mapping.h"
#include "system/observe/explain/core_path.h"
#include "system/observe/explain/link_path.h"
#include "system/observe/explain/path.h"
#include "system/observe/explain/server.h"
#include "system/observe/explain/station.h"
#include "system/observe/explain/walks.h"

namespace cm384::observe {

// One of a kind of part of the machine, at the most: a share of the time that was explained.
struct Busy {
  Resource resource = Resource::none;
  double share = 0;  // of the busiest one
};

class MachinePath {
 public:
  explicit MachinePath(const hw::Machine& machine);
  MachinePath(const MachinePath&) = delete;

  // Whole entries, in the order in which they were written.
  void play(std::span<const std::uint64_t> words);

  // Where all that was counted has ended. `begun`: of its begin, ps.
  const Path& end() const { return end_; }
  double begun() const { return begun_; }
  std::vector<Busy> busiest() const;

 private:
  struct Port {  // of a core: in its order
    Path free;
    bool used = false;
    double busy = 0;
  };
  struct Stream {
    Path last, now;
    bool any = false;
    int type = 0;  // CM384_TASK_* of the task under way
  };
  struct Token {  // a request under way, or its answer
    Path path;
    std::uint16_t die = 0, core = 0;
    std::uint8_t engine = 0;
    bool write = false, merge_reads = false, merge_writes = false, package = false, served = false;
    std::uint64_t copy = 0;
    // Its packet has left by this link, from `start` on, and holds cells of the buffer behind it.
    LinkPath* link = nullptr;
    std::uint16_t lane = 0, cells = 0;
    double start = 0, service = 0;
  };
  struct EarlyFlag {  // for a block that has not begun
    std::uint32_t launch;
    std::uint16_t core;
    std::uint32_t flag;
    Path set;
  };
  struct Die {
    explicit Die(const hw::Machine& machine) : walks(machine.ub.translation) {}

    std::vector<std::unique_ptr<CorePath>> cores;
    std::vector<bool> is_cube;
    std::array<Server, 2> controller, target;  // by direction: reads, writes
    Walks walks;
    std::array<std::vector<Port>, 2> ports;  // of cores, by direction
    std::vector<Station> channels;
    double least_miss = 1e18;  // ps that a miss took on top of a hit
    Path last_write;
    Token* served = nullptr;
    std::unordered_map<std::uint64_t, Path> flags;  // by 32 B block: small writes
    std::array<std::array<std::vector<Path>, 16>, 2> at_barrier;
    std::map<std::pair<std::uint16_t, std::uint32_t>, Path> for_cube;
    std::map<std::uint32_t, std::uint32_t> stream_of;  // by launch
    std::map<std::uint16_t, std::uint32_t> launch_of;  // by core
    std::set<std::uint16_t> under_way;                 // cores with a block
    std::vector<EarlyFlag> early_flags;
    std::map<std::uint32_t, Stream> streams;
  };
  struct Pending {  // a request to the own memory, perhaps of a scalar unit
    bool any = false;
    npu::TraceEntry entry;
    std::array<std::uint64_t, 4> words{};
  };

  using Words = const std::uint64_t*;
  void of_die(const npu::TraceEntry& e, Words w, Die& die);
  void of_requests(const npu::TraceEntry& e, Words w, Die& die);
  void barrier(const npu::TraceEntry& e, Words w, Die& die);
  void block_begun(const npu::TraceEntry& e, Words w, Die& die);
  void block_ended(const npu::TraceEntry& e, Words w, Die& die);
  static void flag_set(Die& die, std::uint32_t launch, std::uint16_t core, int flag, const Path& set);
  void task_begun(const npu::TraceEntry& e, Words w, Die& die);
  void task_ended(Words w, Die& die);
  void settle(const npu::TraceEntry& next, Words w);
  void local(const npu::TraceEntry& e, Words w, Die& die);
  void submitted(const npu::TraceEntry& e, Words w, Die& die);
  bool by_package(int die, std::uint64_t address) const;  // whether it goes by the package link
  void answered(const npu::TraceEntry& e, Words w, Die& die);
  void arrived(const npu::TraceEntry& e, Words w, Die& die);
  void served(Words w, Die& die);
  void hop(const npu::TraceEntry& e, Words w);
  void cross_link(Token& token, const LinkPath& next, double service) const;
  void return_credits(Token& token, const Path& freed) const;
  void counted();
  void first_poll(const npu::TraceEntry& e, Words w, Die& die);
  // Through L2 and, where it missed, HBM, to an answer at `done`.
  Path through_memory(Die& die, const Path& from, const npu::TraceEntry& e, std::uint64_t offset,
                      std::uint64_t bytes, double done);
  static std::uint64_t key(std::uint64_t die, std::uint64_t core, std::uint64_t tag) {
    return die << 48 | core << 32 | tag;
  }
  Token* find(std::uint64_t key) {
    const auto at = tokens_.find(key);
    return at == tokens_.end() ? nullptr : &at->second;
  }

  const hw::Machine& machine_;
  Clock clock_;
  CoreKind vector_, cube_;
  npu::AddressMapping mapping_;
  double cycle_ = 0;  // of the on-die network, ps
  bool stores_ = false;
  std::vector<std::unique_ptr<Die>> dies_;
  std::unordered_map<std::uint64_t, Token> tokens_;
  std::unordered_map<std::uint64_t, LinkPath> links_;  // by the log's number
  Pending pending_;
  Path idle_, end_;
  bool begins_ = true;  // nothing has been counted yet
  double begun_ = 0;
};

}  // namespace cm384::observe
