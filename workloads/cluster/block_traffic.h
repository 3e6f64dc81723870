// Traffic between the NPUs of a block, and a placement of the block on nodes that keeps little of it between
// nodes.
#pragma once

#include <string_view>
#include <vector>

namespace cm384::cluster {

// By rank in the block:
//   all             each to each other one alike
//   ring            each to the next one
//   groups:N:SHARE  SHARE of what each sends to the others of its N consecutive ranks, the rest to those of
//                   the same place in other groups; of a block without whole groups the last is smaller
//   FILE            CSV with source,destination,bytes; of a smaller block its first ranks
class BlockTraffic {
 public:
  explicit BlockTraffic(std::string_view text = "all");  // Throws InputError; of a file, path:line: field.

  // Ranks at most; 0: any.
  int most() const { return static_cast<int>(recorded_.size()); }
  // Traffic between each two of so many ranks, both ways, [rank][rank]; each rank of the first three kinds
  // sends 1 in all.
  std::vector<std::vector<double>> matrix(int npus) const;
  // Of the traffic of a block the share between ranks of different nodes; 0 where there is none at all. As
  // cut_share() of its matrix, which large blocks need not have.
  double cut(const std::vector<int>& node_of_rank) const;

 private:
  enum class Kind { kAll, kRing, kGroups, kRecorded } kind_ = Kind::kAll;
  int group_ = 1;
  double share_ = 1;
  std::vector<std::vector<double>> recorded_;
};
// Throws InputError; files are not looked at.
void check_traffic(std::string_view text);
// True for what is no file.
bool is_traffic_name(std::string_view text);

// Of all traffic the share between ranks of different nodes; 0 where there is none at all.
double cut_share(const std::vector<std::vector<double>>& matrix, const std::vector<int>& node_of_rank);

// A node for each rank, with at most `free` of them on each and all of them together, so that little traffic
// leaves nodes: descends from `start`, a node of each rank, and from ranks that are gathered node by node, by
// moves and exchanges of ranks until none of these lessens the cut. Not worse than `start`.
std::vector<int> spread_by_traffic(const std::vector<std::vector<double>>& matrix,
                                   const std::vector<int>& free, const std::vector<int>& start);

}  // namespace cm384::cluster
