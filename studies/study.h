// A study: one subject of `cm384 run`. It builds a supernode from the machine, runs it, and gives back rows.
// Studies stand in one table, registry.cpp.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <csignal>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hw/machine.h"
#include "studies/result.h"

namespace cm384::observe {
class Observers;
class Profile;
class StatisticsFile;
}  // namespace cm384::observe

namespace cm384::studies {

// Where a study says how far it is. The command draws a bar, prints lines, or stays silent.
class Progress {
 public:
  virtual ~Progress() = default;
  // `fraction` of the work done, 0 to 1 (negative: unknown); simulated time and events so far. Cheap to call:
  // what is drawn is limited to a few times a second.
  virtual void update(double fraction, Time simulated, std::uint64_t events) = 0;
};

struct StudyContext {
  const hw::Machine& machine;
  std::uint64_t seed;
  const boost::program_options::variables_map&
      options;  // the study's own options, parsed, defaults filled in
  Progress& progress;
  const volatile std::sig_atomic_t&
      interrupted;         // not 0: stop at the next convenient point, complete = false
  int gdb_port = 0;        // 0: no debugger asked for
  std::string out_folder;  // empty: no --out
  observe::StatisticsFile* statistics =
      nullptr;                              // takes what the study's machines counted; null: nobody asked
  observe::Profile* profile = nullptr;      // takes what they did over time; null: no --out
  observe::Observers* observers = nullptr;  // watch the study's machines; null: nobody asked
  unsigned threads = 1;                     // of the host, that run a machine's modules side by side

  template <class T>
  const T& option(const char* name) const {
    return options[name].as<T>();
  }
};

struct Study {
  std::string_view name;
  std::string_view summary;  // one line
  void (*add_options)(boost::program_options::options_description& options);
  StudyResult (*run)(const StudyContext& context);
  const char* positional = nullptr;  // name of the option that a bare argument fills (`run kernel my.elf`)
};

// All studies, in the order of `cm384 --help`.
std::span<const Study> registry();

}  // namespace cm384::studies
