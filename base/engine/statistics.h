// The statistics registry: every counter declared once with name, unit and sentence. A counter is a plain
// std::uint64_t of its owner, incremented where it counts; the registry only knows where it stands and reads
// it when asked, so counting costs what an increment costs.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cm384::sim {

// Where counters stand: "die3.aiv7.mte3", and the pattern that equal parts share: "die*.aiv*.mte3".
struct StatisticPath {
  std::string name, pattern;

  StatisticPath part(std::string_view what) const {
    return {join(name) + std::string(what), join(pattern) + std::string(what)};
  }
  // One of several equal parts.
  StatisticPath part(std::string_view what, std::uint64_t number) const {
    return {join(name) + std::string(what) + std::to_string(number), join(pattern) + std::string(what) + "*"};
  }

 private:
  static std::string join(const std::string& path) { return path.empty() ? path : path + "."; }
};

struct Statistic {
  std::string name;           // of its owner and itself: "die0.hbm.row_hits"
  std::string_view unit;      // "packets", "B", "cycles"
  std::string_view sentence;  // what is counted
  const std::uint64_t* counter = nullptr;
  std::string pattern;                  // "die*.hbm.row_hits"
  std::function<std::uint64_t()> read;  // in place of the counter, for what is stored in another form

  std::uint64_t value() const { return counter != nullptr ? *counter : read(); }
};

// The counters of a machine, in the order of declaration. Owners outlive the registry's last reading.
class Statistics {
 public:
  // Declares a counter. Names are unique: a second one of the same name throws std::logic_error.
  void declare(std::string name, std::string_view unit, std::string_view sentence,
               const std::uint64_t& counter) {
    std::string pattern = name;
    add({std::move(name), unit, sentence, &counter, std::move(pattern), {}});
  }
  void declare(const StatisticPath& at, std::string_view what, std::string_view unit,
               std::string_view sentence, const std::uint64_t& counter) {
    StatisticPath path = at.part(what);
    add({std::move(path.name), unit, sentence, &counter, std::move(path.pattern), {}});
  }
  // One that is computed when it is read.
  void declare(const StatisticPath& at, std::string_view what, std::string_view unit,
               std::string_view sentence, std::function<std::uint64_t()> read) {
    StatisticPath path = at.part(what);
    add({std::move(path.name), unit, sentence, nullptr, std::move(path.pattern), std::move(read)});
  }

  const std::vector<Statistic>& list() const { return list_; }

  // Sum of the counters whose name ends in `suffix`: total("hbm.row_hits") adds those of all dies.
  std::uint64_t total(std::string_view suffix) const {
    std::uint64_t sum = 0;
    for (const Statistic& statistic : list_) {
      const std::string_view name = statistic.name;
      const bool whole = name == suffix;
      const bool tail = name.size() > suffix.size() && name.ends_with(suffix) &&
                        name[name.size() - suffix.size() - 1] == '.';
      if (whole || tail) sum += statistic.value();
    }
    return sum;
  }
  // Sum of the counters of one pattern: sum("die*.aiv*.mte3.instructions").
  std::uint64_t sum(std::string_view pattern) const {
    std::uint64_t sum = 0;
    for (const Statistic& statistic : list_) sum += statistic.pattern == pattern ? statistic.value() : 0;
    return sum;
  }

 private:
  void add(Statistic statistic) {
    if (!names_.insert(statistic.name).second)
      throw std::logic_error("statistic declared twice: " + statistic.name);
    list_.push_back(std::move(statistic));
  }

  std::vector<Statistic> list_;
  std::set<std::string> names_;
};

}  // namespace cm384::sim
