// Traffic traces: what a run moved between which memories, when, and what each transfer waited for.
//
// A trace is a sequence of records, numbered from 0 in the order in which they began. A record depends only
// on earlier ones. Files: a binary format (traffic_file.h) and CSV (traffic_csv.h), told apart by the name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/engine/dependency.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

namespace cm384::traces {

// A dependency names a record at most so far back: what a replay keeps of the past is bounded by it.
inline constexpr std::uint64_t kReach = std::uint64_t{1} << 22;
inline constexpr std::uint32_t kMostDependencies = 1u << 16;
inline constexpr std::uint8_t kTrafficKinds = 11;
inline constexpr std::uint32_t kMostUnits = 2048;  // dies, and CPU sockets, that a trace may name

// A die or a CPU socket.
struct Unit {
  bool cpu = false;
  std::uint16_t number = 0;
  constexpr auto operator<=>(const Unit&) const = default;
};

struct TrafficDependency {
  using Kind = sim::DependencyKind;
  std::uint64_t on = 0;  // number of an earlier record
  Kind kind = Kind::completion;
  Time delay;  // not before so long after it; may be negative
  constexpr auto operator<=>(const TrafficDependency&) const = default;
};

struct TrafficRecord {
  enum class Kind : std::uint8_t {
    transfer,  // one instruction of an MTE or of an SDMA engine
    fill,      // a cache line of a scalar unit, filled or written back
    compute,   // time without traffic
    barrier,   // of a launch's blocks; takes no time itself, as all that follow but `call`
    launch,    // a block of a kernel begins
    end,       // and ends
    // What the machine was given from outside (host_words.h).
    idle,    // nothing was under way; what comes next was given from here on
    stream,  // was made
    kernel,  // was made known to a task scheduler
    given,   // an entry comes to a stream without a call of the host
    call,    // of a host thread
  };
  // What moves it.
  enum class Engine : std::uint8_t {
    mte,   // MTE2 or MTE3 of the core
    fix,   // the fixpipe of a cube core
    sdma,  // the die's SDMA engine: `core` is 0
  };
  static constexpr int kAnyCore = -1;
  // Limits of what a record names: bytes of a die's memory, cores of a die.
  static constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 38;
  static constexpr int kMostCores = 128;

  Kind kind = Kind::transfer;
  sim::Operation operation = sim::Operation::read;
  Time start;    // the first request leaves; of others: begins
  Time end;      // the last one is answered; of others: ends
  Unit source;   // where it was issued
  int core = 0;  // of the die, cube cores behind vector cores; kAnyCore: shared out over its cores
  Engine engine = Engine::mte;
  Unit target;               // the memory that is read or written; the source where nothing moves
  bool by_ub = false;        // by the Unified Bus even to the sibling die
  bool by_rdma = false;      // by the RDMA plane; not with by_ub
  bool allocate = true;      // in the own die's L2
  std::uint8_t lane = 0;     // service level; of compute: of a die's queues 1 to 15, or 0 (replay.h)
  std::uint64_t offset = 0;  // in the target's memory
  std::uint64_t bytes = 0;   // of a burst
  std::uint32_t bursts = 1;
  std::int64_t stride = 0;                      // from burst to burst
  std::vector<TrafficDependency> dependencies;  // none: begins at `start`
  // Which entry of a stream a copy belongs to, which block of a launch begins or ends, and of kinds from
  // `idle` on all they are: host_words.h. Empty in traces of versions before 3, and of others.
  std::vector<std::uint64_t> words;

  // A replay has the machine's own host threads, schedulers and SDMA engines do it.
  bool of_host() const { return kind >= Kind::idle || !words.empty(); }
  // It begins when it did, whatever the machine: what it waited for is not known.
  bool at_recorded_time() const { return dependencies.empty() && !of_host(); }
  bool moves() const { return kind == Kind::transfer || kind == Kind::fill; }
  std::uint64_t total_bytes() const { return bytes * bursts; }
  bool operator==(const TrafficRecord&) const = default;
};

// It moves bytes over links of a fabric, not only within a package (dies 2k and 2k + 1).
inline bool enters_fabric(const TrafficRecord& r) {
  if (!r.moves() || r.target == r.source) return false;
  return r.by_ub || r.by_rdma || r.target.cpu || r.target.number / 2 != r.source.number / 2;
}

struct TrafficHeader {
  std::string machine;  // recorded on; empty: unknown
  std::string study;
  std::vector<std::string> shaped{};  // what was done to it, a line for each job and step; empty: as recorded
};

// Records in turn. Memory does not grow with the length of the trace.
class TrafficSource {
 public:
  virtual ~TrafficSource() = default;
  virtual const TrafficHeader& header() const = 0;
  // False at the end. Throws InputError naming file, line or offset, and field.
  virtual bool next(TrafficRecord& record) = 0;
};

class TrafficSink {
 public:
  virtual ~TrafficSink() = default;
  virtual void add(const TrafficRecord& record) = 0;
  // The trace is whole: puts the file under its name. Without it nothing is left behind.
  virtual void finish() = 0;
};

// By the name's end: .csv, or the binary format. Throws InputError.
std::unique_ptr<TrafficSource> open_traffic(const std::string& path);
std::unique_ptr<TrafficSink> create_traffic(const std::string& path, const TrafficHeader& header);

// What is wrong with record number `number`: "field: what; allowed: ..."; empty when nothing is.
std::string fault_of(const TrafficRecord& record, std::uint64_t number);

// A part of a trace: takes records in turn, and makes dependencies of those kept point at each other again.
// What a record waited for that is not kept is forgotten, and so are the host and the streams: without their
// beginning they cannot be followed.
class Selection {
 public:
  // `record` as it stands in the part; false where it is not kept, as what only the host is.
  bool select(TrafficRecord& record, bool keep);

 private:
  std::vector<std::uint64_t> kept_;  // ring over kReach: 1 + number in the part, 0 for what is not kept
  std::uint64_t number_ = 0, next_ = 0;
};

std::string_view name_of(TrafficRecord::Kind kind);
std::string_view name_of(sim::Operation operation);
std::string_view name_of(TrafficDependency::Kind kind);
std::string text_of(Unit unit);  // "die3", "cpu0"
bool parse_unit(std::string_view text, Unit& unit);

}  // namespace cm384::traces
