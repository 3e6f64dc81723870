// Which experts tokens choose: read from a recorded router log, or generated.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cm384::traces {

// One row of top_k different expert numbers per token.
struct Routing {
  int top_k = 0;
  int experts = 0;
  std::vector<std::int32_t> ids;  // [rows][top_k], each 0 .. experts - 1

  std::int64_t rows() const { return top_k == 0 ? 0 : static_cast<std::int64_t>(ids.size()) / top_k; }
  std::span<const std::int32_t> row(std::int64_t index) const {
    return std::span(ids).subspan(static_cast<std::size_t>(index * top_k), static_cast<std::size_t>(top_k));
  }
};

// Rows [block * batch, + batch) of the routing, wrapping round at its end: what rank `block` gets. Needs at
// least one row.
std::vector<std::int32_t> rows_of_block(const Routing& routing, std::int64_t block, int batch);

struct RoutingReadOptions {
  bool drop_repeats = false;  // leave out rows equal to the row before
  int experts = 0;            // 0: from the meta line ("num_experts"), else the largest id plus 1
  int layer = -1;             // rows of other layers are skipped; -1: the layer of the first row
};

// Reads a vLLM router log in JSON lines: an optional meta line with "top_k", then one "route" line per token.
// Throws InputError naming file, line, field, what was found and what is allowed.
Routing read_routing(const std::string& path, const RoutingReadOptions& options = {});
Routing read_routing(std::istream& in, const std::string& name, const RoutingReadOptions& options = {});

// Every set of top_k experts equally likely. Throws InputError unless 1 <= top_k <= experts.
Routing uniform_routing(std::int64_t rows, int top_k, int experts, std::uint64_t seed);
// Experts drawn one after another without putting back, expert e with weight 1 / (e + 1)^exponent: expert 0
// is the hottest. `exponent` is 0 (uniform) to 10.
Routing zipf_routing(std::int64_t rows, int top_k, int experts, double exponent, std::uint64_t seed);

// As DeepSeek routes: every expert has a score, the `top_groups` groups of neighbouring experts with the
// largest sums of their two best scores are kept, and the best top_k experts of those are taken. Scores are
// drawn anew for every token. Throws InputError unless groups divide experts and the kept ones hold top_k.
Routing group_limited_routing(std::int64_t rows, int top_k, int experts, int groups, int top_groups,
                              std::uint64_t seed);
// Every token chooses expert 0 with chance `share`, and otherwise any set of top_k others.
Routing hot_routing(std::int64_t rows, int top_k, int experts, double share, std::uint64_t seed);
// Zipf, but after every `period` rows the weights move on by one expert: what is hot changes with time.
Routing drifting_routing(std::int64_t rows, int top_k, int experts, double exponent, std::int64_t period,
                         std::uint64_t seed);

// As the reader takes it: a meta line, then one line per token. `made` says how, for people.
void write_routing(const std::string& path, const Routing& routing, const std::string& made);

// What `--routing` says.
struct RoutingSource {
  enum class Kind { kUniform, kZipf, kGroups, kTrace } kind = Kind::kUniform;
  double exponent = 0;             // zipf
  std::string path;                // trace
  int groups = 0, top_groups = 0;  // groups
};
// "uniform", "zipf:S", "groups:N:M" or "trace:FILE". Throws InputError.
RoutingSource parse_routing_source(std::string_view text);

}  // namespace cm384::traces
