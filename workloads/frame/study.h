// A study: one subject of `cm384 run`. It builds a supernode from the machine, runs it, and returns rows.
// Studies stand in one table, registry.cpp.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/machine.h"
#include "workloads/frame/fields.h"
#include "workloads/frame/options.h"
#include "workloads/frame/result.h"

namespace cm384::observe {
class Observers;
class Profile;
class StatisticsFile;
}  // namespace cm384::observe

namespace cm384::studies {

class PublishedFigures;

// Where a study says how far it is. The command draws a bar, prints lines, or stays silent.
class Progress {
 public:
  virtual ~Progress() = default;
  // `fraction` of the work done, 0 to 1 (negative: unknown); simulated time and events so far. Cheap to call:
  // what is drawn is limited to a few times a second.
  virtual void update(double fraction, Time simulated, std::uint64_t events) = 0;
};

// A part of a study's work that has machines of its own: [from, to] of the whole.
class PartOfProgress final : public Progress {
 public:
  PartOfProgress(Progress& whole, double from, double to, const SimulatorCounts& before)
      : whole_(whole), from_(from), to_(to), before_(before) {}
  void update(double fraction, Time simulated, std::uint64_t events) override {
    whole_.update(fraction < 0 ? fraction : from_ + (to_ - from_) * fraction, before_.simulated + simulated,
                  before_.events + events);
  }

 private:
  Progress& whole_;
  double from_, to_;
  const SimulatorCounts& before_;  // what earlier parts counted
};

// What of the machine a run changes by name; only studies with a fabric have these.
struct FabricOptions {
  Texts fault, rtl;
  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("fault", self.fault, Form{"LINKS,rate=X"},
          "damage transmissions on links, both ways, with chance X each: plane=P,node=N,l2=K or die=D or "
          "all; also "
          "ber=X, seed=S, kind=corrupt|lost; or kind=down: parts out of order; or lanes=half|quarter; these "
          "two "
          "also from at=TIME on; may be repeated");
    visit(
        "rtl", self.rtl, Form{"CHIP[=LIBRARY]"},
        "run this switch chip as RTL: l1:NODE.PLANE or l2:PLANE.CHIP, or as plane=P,l1=N; with =LIBRARY, or "
        ",library=LIBRARY, one of your own; may be repeated");
  }
};

struct StudyContext {
  const hw::Machine& machine;
  std::uint64_t seed;
  Progress& progress;
  const volatile std::sig_atomic_t&
      interrupted;           // not 0: stop at the next convenient point, complete = false
  int gdb_port = 0;          // 0: no debugger asked for
  std::string out_folder{};  // empty: no --out
  observe::StatisticsFile* statistics =
      nullptr;                              // takes what the study's machines counted; null: nobody asked
  observe::Profile* profile = nullptr;      // takes what they did over time; null: no --out
  observe::Observers* observers = nullptr;  // watch the study's machines; null: nobody asked
  unsigned threads = 1;                     // of the host, that run a machine's modules side by side
  std::string threads_why = "asked for";    // where that number is from
  unsigned what_if_threads = 0;             // so many are reckoned with; 0: none
  FabricOptions fabric{};
  Given given{};  // options that the command line named
  // Of these options and this machine; null: nothing is shown beside the rows.
  const PublishedFigures* published = nullptr;
  std::function<void(const Row&)> row_done{};  // called with each row when it is final; empty: nobody asked
  Time time_limit = Time::never();             // simulated, of each machine that the study builds
  // Where the debugger waits, with gdb_port: a core of a die that takes part (-1: the first of them), or
  // whichever core faults first.
  int gdb_die = -1, gdb_core = 0;
  bool gdb_at_fault = false;

  // This context with another display of progress.
  StudyContext with(Progress& other) const { return with(machine, other); }
  // This context with another machine.
  StudyContext on(const hw::Machine& other) const { return with(other, progress); }
  // Adds a row that is final.
  void finish_row(StudyResult& result, Row row) const {
    result.rows.push_back(std::move(row));
    if (row_done) row_done(result.rows.back());
  }

 private:
  StudyContext with(const hw::Machine& of, Progress& shown) const {
    return {of,        seed,      shown,      interrupted, gdb_port,        out_folder,  statistics,
            profile,   observers, threads,    threads_why, what_if_threads, fabric,      given,
            published, row_done,  time_limit, gdb_die,     gdb_core,        gdb_at_fault};
  }
};

// A study's options, with their defaults until they are parsed, and its run.
class StudyOptions {
 public:
  virtual ~StudyOptions() = default;
  virtual std::vector<hw::Parameter> list() = 0;
  // To be called once they are parsed: options that follow from another one, and are not given, get their
  // values. Throws InputError.
  virtual void follow(const Given&) {}
  // Gives options that stand for "what the machine has" their values on this machine. run() does it by
  // itself; results and names of a sweep's points have the values too.
  virtual void settle(const hw::Machine& machine) = 0;
  virtual StudyResult run(const StudyContext& context) const = 0;
  // Files that a run reads beside those that options name; for the names of a sweep's points.
  virtual std::vector<std::string> inputs() const { return {}; }
  // Options whose values nobody published, by what the options name; members of an ensemble differ in them.
  virtual std::vector<Alternatives> open() const { return {}; }
};

struct Study {
  std::string_view name;
  std::string_view summary;  // one line
  std::span<const Field> fields;
  std::unique_ptr<StudyOptions> (*options)();
  bool fabric = false;               // has --fault and --rtl
  std::string_view positional = {};  // name of the option that a bare argument fills (`run kernel my.elf`)
  bool coreless = false;             // runs on accelerators without cores as well
  bool supernodes = false;           // runs on several supernodes as well
  bool own_timeline = false;         // --timeline shows what no machine's timeline has
  bool own_wave = false;             // --wave shows signals of RTL that stands alone
  bool dies = true;                  // simulates dies at work; false: what looks at them is refused
  bool first_server = false;         // of an accelerator without cores, runs in the first of them
};

// For Study::options, of a struct with describe(), with or without follow(const Given&) and
// settle(const hw::Machine&), and a function.
template <class Options, StudyResult (*Run)(const StudyContext&, const Options&)>
std::unique_ptr<StudyOptions> options_of() {
  class Held final : public StudyOptions {
   public:
    std::vector<hw::Parameter> list() override { return hw::list_parameters(options_); }
    void follow(const Given& given) override {
      if constexpr (requires { options_.follow(given); }) options_.follow(given);
    }
    void settle(const hw::Machine& machine) override {
      if constexpr (requires { options_.settle(machine); }) options_.settle(machine);
    }
    StudyResult run(const StudyContext& context) const override {
      Held own = *this;
      own.settle(context.machine);
      return Run(context, own.options_);
    }
    std::vector<std::string> inputs() const override {
      if constexpr (requires { options_.inputs(); }) return options_.inputs();
      return {};
    }
    std::vector<Alternatives> open() const override {
      if constexpr (requires { options_.open(); }) return options_.open();
      return {};
    }

   private:
    Options options_;
  };
  return std::make_unique<Held>();
}

// All studies, in the order of `cm384 --help`; there in groups.
std::span<const Study> registry();
struct StudyGroup {
  std::string_view title;
  std::vector<Study> studies;
};
const std::vector<StudyGroup>& study_groups();

}  // namespace cm384::studies
