#include "ub_fabric/topology/circles.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <cstdint>

#include "base/text/error.h"
#include "ub_fabric/topology/network.h"

namespace cm384::ub {
namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS>;

// Edges between buffers, number link * classes + class.
class Dependencies {
 public:
  explicit Dependencies(const Network& network)
      : network_(network), classes_(network.classes()), after_(std::size_t{network.links()} * classes_) {
    std::vector<std::uint32_t> seen(after_.size(), 0);
    for (unsigned destination = 0; destination < network.chips(); ++destination) {
      if (network.has_endpoints(destination)) follow(destination, seen, destination + 1);
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges() const {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t from = 0; from < after_.size(); ++from) {
      for (const std::uint32_t to : after_[from]) all.emplace_back(from, to);
    }
    return all;
  }

 private:
  // All that packets for a destination may hold, from wherever they enter.
  void follow(unsigned destination, std::vector<std::uint32_t>& seen, std::uint32_t mark) {
    std::vector<std::size_t> open;
    const auto leave = [&](unsigned chip, unsigned from_group, unsigned lane_class, std::size_t holds) {
      for (const std::uint16_t port : network_.ways(chip, destination)) {
        const unsigned link = network_.first_link(chip) + port;
        const Turn turn = network_.layout().turns[from_group][network_.link(link).group];
        const unsigned next_class = (turn.keep ? lane_class : 0) + turn.add;
        if (next_class >= classes_)
          throw InputError(fmt::format("topology: ways to {} take more than {} lane classes",
                                       network_.layout().chips[destination].text(), classes_));
        const std::size_t next = std::size_t{link} * classes_ + next_class;
        if (holds != kNothing && std::ranges::find(after_[holds], next) == after_[holds].end())
          after_[holds].push_back(static_cast<std::uint32_t>(next));
        if (seen[next] == mark) continue;
        seen[next] = mark;
        open.push_back(next);
      }
    };
    for (unsigned chip = 0; chip < network_.chips(); ++chip) {
      if (chip != destination && network_.has_endpoints(chip)) leave(chip, Layout::kMostGroups, 0, kNothing);
    }
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      const Network::Link& link = network_.link(static_cast<unsigned>(at / classes_));
      const unsigned chip = network_.link(link.peer).chip;
      if (chip != destination) leave(chip, link.group, static_cast<unsigned>(at % classes_), at);
    }
  }

  static constexpr std::size_t kNothing = ~std::size_t{0};
  const Network& network_;
  unsigned classes_;
  std::vector<std::vector<std::uint32_t>> after_;
};

struct Found {};

// Keeps the way down from the root, and ends the search with the circle that an edge back closes.
struct Watch : boost::default_dfs_visitor {
  std::vector<std::size_t>* way;
  std::vector<std::size_t>* circle;
  void discover_vertex(std::size_t v, const Graph&) { way->push_back(v); }
  void finish_vertex(std::size_t, const Graph&) { way->pop_back(); }
  template <class Edge>
  void back_edge(Edge e, const Graph& g) {
    circle->assign(std::ranges::find(*way, target(e, g)), way->end());
    throw Found{};
  }
};

}  // namespace

std::vector<LinkClassOfCircle> find_circle(const Network& network) {
  const Dependencies dependencies(network);
  const auto edges = dependencies.edges();
  const std::size_t nodes = std::size_t{network.links()} * network.classes();
  const Graph graph(boost::edges_are_sorted, edges.begin(), edges.end(), nodes);
  std::vector<std::size_t> way, circle;
  try {
    Watch watch;
    watch.way = &way;
    watch.circle = &circle;
    boost::depth_first_search(graph, boost::visitor(watch));
  } catch (const Found&) {
  }
  std::vector<LinkClassOfCircle> links;
  for (const std::size_t at : circle)
    links.push_back(
        {static_cast<unsigned>(at / network.classes()), static_cast<unsigned>(at % network.classes())});
  return links;
}

}  // namespace cm384::ub
