// The statistics registry: every counter declared once with name, unit and sentence. A counter is a plain
// std::uint64_t of its owner, incremented where it counts; the registry only knows where it stands and reads
// it when asked, so counting costs what an increment costs.
#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cm384::sim {

struct Statistic {
  std::string name;           // of its owner and itself: "die0.hbm.row_hits"
  std::string_view unit;      // "packets", "B", "cycles"
  std::string_view sentence;  // what is counted
  const std::uint64_t* counter = nullptr;
};

// The counters of a machine, in the order of declaration. Owners outlive the registry's last reading.
class Statistics {
 public:
  // Declares a counter. Names are unique: a second one of the same name throws std::logic_error.
  void declare(std::string name, std::string_view unit, std::string_view sentence,
               const std::uint64_t& counter) {
    if (!names_.insert(name).second) throw std::logic_error("statistic declared twice: " + name);
    list_.push_back({std::move(name), unit, sentence, &counter});
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
      if (whole || tail) sum += *statistic.counter;
    }
    return sum;
  }

 private:
  std::vector<Statistic> list_;
  std::set<std::string> names_;
};

}  // namespace cm384::sim
