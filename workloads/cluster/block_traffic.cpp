#include "workloads/cluster/block_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/text/csv_table.h"
#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"

namespace cm384::cluster {
namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr int kMostRanks = 4096;  // of a file: its matrix has as many squared

Matrix empty(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  return Matrix(count, std::vector<double>(count));
}

// One way; matrix() has both.
Matrix read_traffic(const std::string& path) {
  hw::CsvTable table(path, {"source", "destination", "bytes"});
  struct Sent {
    std::size_t source, destination;
    double bytes;
  };
  std::vector<Sent> all;
  std::int64_t most = -1;
  table.each([&](const FieldReader& fields) {
    const std::int64_t source = fields.integer(0, 0, kMostRanks - 1),
                       destination = fields.integer(1, 0, kMostRanks - 1),
                       bytes = fields.integer(2, 0, std::int64_t{1} << 50);
    most = std::max({most, source, destination});
    all.push_back({static_cast<std::size_t>(source), static_cast<std::size_t>(destination),
                   static_cast<double>(bytes)});
  });
  if (most < 1) throw InputError(fmt::format("{}: has fewer than two ranks", path));
  Matrix matrix = empty(static_cast<int>(most) + 1);
  for (const Sent& one : all) matrix[one.source][one.destination] += one.bytes;
  return matrix;
}

// The cut while ranks change their nodes.
class Spread {
 public:
  Spread(const Matrix& matrix, const std::vector<int>& free, std::vector<int> node_of)
      : matrix_(matrix), free_(free), node_of_(std::move(node_of)) {
    for (const int node : node_of_) --free_[static_cast<std::size_t>(node)];
    to_.assign(matrix_.size(), std::vector<double>(free_.size()));
    for (std::size_t rank = 0; rank < matrix_.size(); ++rank)
      for (std::size_t other = 0; other < matrix_.size(); ++other)
        to_[rank][at(other)] += matrix_[rank][other];
  }

  const std::vector<int>& node_of() const { return node_of_; }

  void descend() {
    // Each change lessens the cut; what is less by rounding alone does not count.
    for (bool better = true; better;) {
      better = false;
      for (std::size_t rank = 0; rank < matrix_.size(); ++rank) better = improve(rank) || better;
    }
  }

 private:
  std::size_t at(std::size_t rank) const { return static_cast<std::size_t>(node_of_[rank]); }

  // The best change of a rank: to a free NPU of another node, or for another rank.
  bool improve(std::size_t rank) {
    const std::size_t from = at(rank);
    double best = 1e-9;
    std::size_t node = free_.size(), partner = matrix_.size();
    for (std::size_t other = 0; other < free_.size(); ++other) {
      if (other == from || free_[other] == 0 || to_[rank][other] - to_[rank][from] <= best) continue;
      best = to_[rank][other] - to_[rank][from];
      node = other;
    }
    for (std::size_t other = 0; other < matrix_.size(); ++other) {
      if (at(other) == from) continue;
      const double gain = to_[rank][at(other)] - to_[rank][from] + to_[other][from] - to_[other][at(other)] -
                          2 * matrix_[rank][other];
      if (gain <= best) continue;
      best = gain;
      partner = other;
    }
    if (partner < matrix_.size()) {
      const std::size_t to = at(partner);
      move(partner, from);
      move(rank, to);
      return true;
    }
    if (node == free_.size()) return false;
    move(rank, node);
    return true;
  }

  void move(std::size_t rank, std::size_t node) {
    ++free_[at(rank)];
    --free_[node];
    for (std::size_t other = 0; other < matrix_.size(); ++other) {
      to_[other][at(rank)] -= matrix_[rank][other];
      to_[other][node] += matrix_[rank][other];
    }
    node_of_[rank] = static_cast<int>(node);
  }

  const Matrix& matrix_;
  std::vector<int> free_;
  std::vector<int> node_of_;
  Matrix to_;  // traffic of each rank with each node
};

// Node by node in `order`, filled with the ranks that have most to do with those that are there.
std::vector<int> gathered(const Matrix& matrix, const std::vector<int>& free, const std::vector<int>& order) {
  std::vector<int> node_of(matrix.size(), -1);
  std::size_t left = matrix.size();
  for (const int node : order) {
    std::vector<double> with(matrix.size());
    for (int k = 0; k < free[static_cast<std::size_t>(node)] && left > 0; ++k, --left) {
      std::size_t next = matrix.size();
      for (std::size_t rank = 0; rank < matrix.size(); ++rank)
        if (node_of[rank] < 0 && (next == matrix.size() || with[rank] > with[next])) next = rank;
      node_of[next] = node;
      for (std::size_t rank = 0; rank < matrix.size(); ++rank) with[rank] += matrix[next][rank];
    }
  }
  return node_of;
}

}  // namespace

bool is_traffic_name(std::string_view text) {
  return text == "all" || text == "ring" || text.starts_with("groups:");
}

void check_traffic(std::string_view text) {
  if (is_traffic_name(text)) BlockTraffic{text};
}

BlockTraffic::BlockTraffic(std::string_view text) {
  if (text == "all") return;
  if (text == "ring") {
    kind_ = Kind::kRing;
    return;
  }
  if (!is_traffic_name(text)) {
    kind_ = Kind::kRecorded;
    recorded_ = read_traffic(std::string(text));
    return;
  }
  kind_ = Kind::kGroups;
  const auto parts = split_fields(text, ':');
  const auto wrong = [&] {
    throw InputError(
        fmt::format("'{}'; allowed: groups:N:SHARE, NPUs from 2 to 1000000, a share from 0 to 1", text));
  };
  if (parts.size() != 3) wrong();
  const std::int64_t group = hw::parse_integer(parts[1]);
  share_ = hw::parse_real(parts[2]);
  if (group < 2 || group > 1'000'000 || !(share_ >= 0 && share_ <= 1)) wrong();
  group_ = static_cast<int>(group);
}

std::vector<std::vector<double>> BlockTraffic::matrix(int npus) const {
  Matrix made = empty(npus);
  const auto count = static_cast<std::size_t>(npus), group = static_cast<std::size_t>(group_);
  const auto add = [&](std::size_t from, std::size_t to, double bytes) {
    made[from][to] += bytes;
    made[to][from] += bytes;
  };
  for (std::size_t from = 0; from < count && npus > 1; ++from) {
    switch (kind_) {
      case Kind::kAll:
        for (std::size_t to = 0; to < count; ++to)
          if (to != from) add(from, to, 1.0 / (npus - 1));
        break;
      case Kind::kRing:
        add(from, (from + 1) % count, 1);
        break;
      case Kind::kGroups: {
        const std::size_t begin = from / group * group, end = std::min(begin + group, count);
        for (std::size_t to = begin; to < end; ++to)
          if (to != from) add(from, to, share_ / static_cast<double>(end - begin - 1));
        std::size_t others = 0;
        for (std::size_t to = from % group; to < count; to += group) others += to != from ? 1 : 0;
        for (std::size_t to = from % group; to < count; to += group)
          if (to != from) add(from, to, (1 - share_) / static_cast<double>(others));
        break;
      }
      case Kind::kRecorded:
        for (std::size_t to = 0; to < count; ++to)
          if (to != from) add(from, to, recorded_[from][to]);
        break;
    }
  }
  return made;
}

double BlockTraffic::cut(const std::vector<int>& node_of_rank) const {
  const std::size_t count = node_of_rank.size();
  double all = 0, cut = 0;
  // Each rank of `ranks` sends `weight` to the others of them alike.
  const auto add = [&](const std::vector<std::size_t>& ranks, double weight) {
    const auto size = static_cast<double>(ranks.size());
    if (size < 2) return;
    std::map<int, double> of_node;
    for (const std::size_t rank : ranks) of_node[node_of_rank[rank]] += 1;
    double same = 0;
    for (const auto& [node, held] : of_node) same += held * (held - 1);
    all += size * weight;
    cut += size * weight * (1 - same / (size * (size - 1)));
  };
  // Ranks from `begin` in steps, before `end`.
  const auto ranks_of = [](std::size_t begin, std::size_t end, std::size_t step) {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = begin; rank < end; rank += step) ranks.push_back(rank);
    return ranks;
  };
  const auto group = static_cast<std::size_t>(group_);
  switch (kind_) {
    case Kind::kAll:
      add(ranks_of(0, count, 1), 1);
      break;
    case Kind::kRing:
      for (std::size_t rank = 0; rank < count && count > 1; ++rank) {
        all += 1;
        if (node_of_rank[rank] != node_of_rank[(rank + 1) % count]) cut += 1;
      }
      break;
    case Kind::kGroups:
      for (std::size_t begin = 0; begin < count; begin += group)
        add(ranks_of(begin, std::min(begin + group, count), 1), share_);
      for (std::size_t place = 0; place < std::min(group, count); ++place)
        add(ranks_of(place, count, group), 1 - share_);
      break;
    case Kind::kRecorded:
      for (std::size_t from = 0; from < count; ++from) {
        for (std::size_t to = 0; to < count; ++to) {
          if (from == to) continue;
          all += recorded_[from][to];
          if (node_of_rank[from] != node_of_rank[to]) cut += recorded_[from][to];
        }
      }
      break;
  }
  return all > 0 ? cut / all : 0;
}

double cut_share(const std::vector<std::vector<double>>& matrix, const std::vector<int>& node_of_rank) {
  double all = 0, cut = 0;
  for (std::size_t from = 0; from < matrix.size(); ++from) {
    for (std::size_t to = 0; to < from; ++to) {
      all += matrix[from][to];
      if (node_of_rank[from] != node_of_rank[to]) cut += matrix[from][to];
    }
  }
  return all > 0 ? cut / all : 0;
}

std::vector<int> spread_by_traffic(const std::vector<std::vector<double>>& matrix,
                                   const std::vector<int>& free, const std::vector<int>& start) {
  std::vector<int> emptiest(free.size());
  std::iota(emptiest.begin(), emptiest.end(), 0);
  std::ranges::stable_sort(emptiest, {}, [&](int node) { return -free[static_cast<std::size_t>(node)]; });
  const std::vector<int> fullest(emptiest.rbegin(), emptiest.rend());
  Spread best(matrix, free, start);
  best.descend();
  std::vector<int> found = best.node_of();
  double least = cut_share(matrix, found);
  for (const std::vector<int>& order : {emptiest, fullest}) {
    Spread other(matrix, free, gathered(matrix, free, order));
    other.descend();
    const double cut = cut_share(matrix, other.node_of());
    if (cut >= least - 1e-12) continue;
    least = cut;
    found = other.node_of();
  }
  return found;
}

}  // namespace cm384::cluster
