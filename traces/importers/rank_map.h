// Which die each rank of a trace gets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cm384::traces {

// The machine's dies, as far as a placement looks at them.
struct DieRoom {
  int dies = 0, per_node = 1, per_package = 1;
  int first = 0;   // no die before it
  int stride = 1;  // linear and min-cut: from rank to rank
};

// Bytes that ranks send and fetch, both ways together.
class RankTraffic {
 public:
  explicit RankTraffic(int ranks)
      : ranks_(ranks), bytes_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}
  void add(int one, int other, double bytes);
  double between(int one, int other) const {
    return bytes_[static_cast<std::size_t>(one) * static_cast<std::size_t>(ranks_) +
                  static_cast<std::size_t>(other)];
  }
  int ranks() const { return ranks_; }

 private:
  int ranks_;
  std::vector<double> bytes_;
};

// All throw InputError, naming the option, where the machine has too few dies.
// Rank r on die first + r * stride.
std::vector<int> linear_dies(int ranks, const DieRoom& room);
// Drawn from all dies from `first` on.
std::vector<int> random_dies(int ranks, const DieRoom& room, std::uint64_t seed);
// The dies of linear_dies(), given so that few bytes leave nodes, then packages: groups grown by the rank
// with most bytes to the group, then bettered by exchanges of two ranks as long as one helps (Kernighan and
// Lin's gain).
std::vector<int> min_cut_dies(const RankTraffic& traffic, const DieRoom& room);
// Lines "rank,die" after a header of these names; every rank once.
std::vector<int> dies_from_file(const std::string& path, int ranks, const DieRoom& room);

// Bytes between ranks on different nodes.
double cut_between_nodes(const RankTraffic& traffic, const std::vector<int>& dies, const DieRoom& room);

}  // namespace cm384::traces
