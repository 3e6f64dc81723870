#include "workloads/operators/reference/layer_accuracy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/expert_networks.h"
#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

using Reals = std::vector<double>;

constexpr std::uint64_t kLayerSeed = 0x1a7e4acc;
constexpr std::size_t kWidth = MlaLayout::kWidth, kLatent = MlaLayout::kLatent, kRope = MlaLayout::kRope,
                      kNope = MlaLayout::kNope, kHead = MlaLayout::kHead, kValue = MlaLayout::kValue;

std::uint32_t narrow(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

// Normal rows of `k` weights, of variance 1 / `inputs`.
std::vector<float> draw_matrix(const LayerCase& layer, std::uint64_t stream, std::size_t rows, std::size_t k,
                               std::size_t inputs) {
  std::vector<float> made = draw_rows({}, layer.seed ^ kLayerSeed, stream, rows, narrow(k));
  const float gain = 1 / std::sqrt(static_cast<float>(inputs));
  for (float& weight : made) weight *= gain;
  return made;
}
std::vector<float> draw_down(const LayerCase& layer) {
  const std::size_t hidden = layer.attention.hidden;
  return draw_matrix(layer, 0, layer.attention.q_lora + kWidth, hidden, hidden);
}
std::vector<float> draw_up(const LayerCase& layer) {
  const std::size_t latent = layer.attention.q_lora;
  return draw_matrix(layer, 1, layer.attention.heads * kHead, latent, latent);
}
std::vector<float> draw_absorb(const LayerCase& layer) {
  return draw_matrix(layer, 2, layer.attention.heads * kLatent, kNope, kLatent);
}
std::vector<float> draw_value(const LayerCase& layer) {
  return draw_matrix(layer, 3, layer.attention.heads * kValue, kLatent, kLatent);
}
std::vector<float> draw_out(const LayerCase& layer) {
  const std::size_t values = layer.attention.heads * kValue;
  return draw_matrix(layer, 4, layer.attention.hidden, values, values);
}
std::vector<float> draw_gate(const LayerCase& layer) {
  const std::size_t hidden = layer.attention.hidden;
  return draw_matrix(layer, 5, layer.gate.experts, hidden, hidden);
}
std::vector<float> draw_tokens(const LayerCase& layer, std::size_t rank) {
  return draw_rows(layer.draw, layer.seed ^ kLayerSeed, 16 + 2 * rank, layer.attention.tokens,
                   layer.attention.hidden);
}
// Of each sequence of a rank, all tokens that its last query sees.
std::vector<float> draw_cache(const LayerCase& layer, std::size_t rank) {
  std::uint64_t tokens = 0;
  for (const std::uint32_t length : layer.kv_lens[rank]) tokens += length + layer.queries - 1;
  return draw_rows({}, layer.seed ^ kLayerSeed, 17 + 2 * rank, tokens, narrow(kWidth));
}

std::vector<std::uint16_t> to_bits(std::span<const float> values) {
  std::vector<std::uint16_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), to_bf16);
  return bits;
}
Reals of_bits(std::span<const std::uint16_t> bits) {
  Reals values(bits.size());
  std::ranges::transform(bits, values.begin(), of_bf16);
  return values;
}

ProjectionWeights round_weights(const std::vector<float>& rows, std::size_t k, bool int8) {
  if (!int8) return {to_bits(rows), {}, {}};
  ProjectionWeights made;
  made.int8.resize(rows.size());
  for (std::size_t at = 0; at < rows.size(); at += k)
    made.scales.push_back(
        quantise_values(std::span(rows).subspan(at, k), std::span(made.int8).subspan(at, k)));
  return made;
}

std::vector<std::uint32_t> positions_of(const LayerCase& layer, std::size_t rank) {
  std::vector<std::uint32_t> positions;
  for (std::uint32_t token = 0; token < layer.attention.tokens; ++token)
    positions.push_back(layer.position(rank, token));
  return positions;
}

enum class Arithmetic : std::uint8_t { exact, bf16 };
constexpr std::array kBoth{Arithmetic::exact, Arithmetic::bf16};

double rounded(double value, Arithmetic how) {
  return how == Arithmetic::exact ? value : of_bf16(to_bf16(static_cast<float>(value)));
}
Reals rounded(Reals values, Arithmetic how) {
  for (double& value : values) value = rounded(value, how);
  return values;
}

double dot(const double* x, const float* y, std::size_t k) {
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * double{y[i + lane]};
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  for (; i < k; ++i) sum += x[i] * double{y[i]};
  return sum;
}

// Rows of `k` weights, as drawn and rounded to BF16.
class Matrix {
 public:
  Matrix(std::vector<float> drawn, std::size_t k) : k_(k), drawn_(std::move(drawn)), bf16_(drawn_) {
    for (float& weight : bf16_) weight = from_bf16(to_bf16(weight));
  }

  Reals multiply(std::span<const double> x, Arithmetic how) const {
    return multiply(x, how, 0, drawn_.size() / k_);
  }
  Reals multiply(std::span<const double> x, Arithmetic how, std::size_t first, std::size_t rows) const {
    const std::vector<float>& weights = how == Arithmetic::exact ? drawn_ : bf16_;
    Reals made(rows);
    for (std::size_t row = 0; row < rows; ++row)
      made[row] = rounded(dot(x.data(), &weights[(first + row) * k_], k_), how);
    return made;
  }

 private:
  std::size_t k_;
  std::vector<float> drawn_, bf16_;
};

Reals norm(std::span<const double> x, Arithmetic how) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + double{kNormEpsilon});
  Reals made(x.begin(), x.end());
  for (double& value : made) value *= factor;
  return rounded(std::move(made), how);
}

// Halves of a pair stand 32 elements apart.
void append_rotated(Reals& to, std::span<const double> x, std::span<const float> angles, Arithmetic how) {
  for (std::size_t i = 0; i < kRope; ++i) {
    const double other = x[i < kRope / 2 ? i + kRope / 2 : i - kRope / 2];
    to.push_back(rounded(x[i] * double{angles[i]} + other * double{angles[kRope + i]}, how));
  }
}

Reals silu_product(const Reals& both, Arithmetic how) {
  const std::size_t width = both.size() / 2;
  Reals made(width);
  for (std::size_t i = 0; i < width; ++i)
    made[i] = rounded(rounded(both[i] / (1 + std::exp(-both[i])), how) * both[width + i], how);
  return made;
}

// Of one head over so many tokens of the cache.
void attend_head(std::span<const double> query, std::span<const double> cache, std::size_t tokens,
                 double scale, Arithmetic how, Reals& out) {
  Reals weights(tokens);
  for (std::size_t t = 0; t < tokens; ++t)
    weights[t] = scale * std::inner_product(query.begin(), query.end(), &cache[t * kWidth], 0.0);
  const double largest = std::ranges::max(weights);
  for (double& weight : weights) weight = std::exp(weight - largest);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  Reals sum(kLatent);
  for (std::size_t t = 0; t < tokens; ++t) {
    const double weight = rounded(weights[t], how);
    for (std::size_t c = 0; c < kLatent; ++c) sum[c] += weight * cache[t * kWidth + c];
  }
  for (const double value : sum) out.push_back(rounded(value / total, how));
}

// A token on its way through the layer.
struct Token {
  Reals x, normed_x, queries, cached, latents, values, output, sums, normed, logits;
};

// The operators of a layer in front of its experts, in either arithmetic.
class Operators {
 public:
  explicit Operators(const LayerCase& layer)
      : layer_(layer),
        down_(draw_down(layer), layer.attention.hidden),
        up_(draw_up(layer), layer.attention.q_lora),
        absorb_(draw_absorb(layer), kNope),
        value_(draw_value(layer), kLatent),
        out_(draw_out(layer), layer.attention.heads * kValue),
        gate_(draw_gate(layer), layer.attention.hidden) {}

  void prolog(Token& token, std::uint32_t position, Arithmetic how) const {
    const std::size_t q_lora = layer_.attention.q_lora;
    const std::vector<float> angles = make_rope(std::array{position});
    token.normed_x = norm(token.x, how);
    const Reals latents = down_.multiply(token.normed_x, how);
    const auto all = std::span(latents);
    token.cached = norm(all.subspan(q_lora, kLatent), how);
    append_rotated(token.cached, all.subspan(q_lora + kLatent), angles, how);
    const Reals heads = up_.multiply(norm(all.first(q_lora), how), how);
    token.queries.clear();
    for (std::size_t head = 0; head < layer_.attention.heads; ++head) {
      const auto own = std::span(heads).subspan(head * kHead, kHead);
      const Reals absorbed = absorb_.multiply(own.first(kNope), how, head * kLatent, kLatent);
      token.queries.insert(token.queries.end(), absorbed.begin(), absorbed.end());
      append_rotated(token.queries, own.subspan(kNope), angles, how);
    }
  }
  Reals attend(const Reals& queries, std::span<const double> cache, std::size_t tokens,
               Arithmetic how) const {
    Reals latents;
    for (std::size_t head = 0; head < layer_.attention.heads; ++head)
      attend_head(std::span(queries).subspan(head * kWidth, kWidth), cache, tokens,
                  double{layer_.score_scale()}, how, latents);
    return latents;
  }
  // From `latents` on, to what the gate chooses by.
  void project(Token& token, Arithmetic how) const {
    token.values.clear();
    for (std::size_t head = 0; head < layer_.attention.heads; ++head) {
      const Reals own = value_.multiply(std::span(token.latents).subspan(head * kLatent, kLatent), how,
                                        head * kValue, kValue);
      token.values.insert(token.values.end(), own.begin(), own.end());
    }
    token.output = out_.multiply(token.values, how);
  }
  static void add(Token& token, Arithmetic how) {
    token.sums = token.output;
    for (std::size_t i = 0; i < token.sums.size(); ++i) token.sums[i] += token.x[i];
    token.normed = norm(token.sums, how);
    token.sums = rounded(std::move(token.sums), how);
  }
  Reals logits(const Reals& normed, Arithmetic how) const { return gate_.multiply(normed, how); }

 private:
  const LayerCase& layer_;
  Matrix down_, up_, absorb_, value_, out_, gate_;
};

// Of one rank: its tokens in each arithmetic, one behind the other.
std::array<std::vector<Token>, 2> chains_of(const LayerCase& layer, const Operators& operators,
                                            std::size_t rank) {
  const std::vector<float> x = draw_tokens(layer, rank), cached = draw_cache(layer, rank);
  const std::size_t hidden = layer.attention.hidden;
  std::array<std::vector<Token>, 2> chains;
  for (const Arithmetic how : kBoth) {
    std::vector<Token>& chain = chains[static_cast<std::size_t>(how)];
    chain.resize(layer.attention.tokens);
    for (std::uint32_t t = 0; t < chain.size(); ++t) {
      chain[t].x = rounded(Reals(x.begin() + static_cast<std::ptrdiff_t>(t * hidden),
                                 x.begin() + static_cast<std::ptrdiff_t>((t + 1) * hidden)),
                           how);
      operators.prolog(chain[t], layer.position(rank, t), how);
    }
    Reals cache(cached.size());
    std::ranges::transform(cached, cache.begin(), [how](float value) { return rounded(double{value}, how); });
    std::size_t first = 0;
    for (std::uint32_t sequence = 0; sequence < layer.kv_lens[rank].size(); ++sequence) {
      const std::uint32_t length = layer.kv_lens[rank][sequence];
      const auto own = std::span(cache).subspan(first, (length + layer.queries - 1) * kWidth);
      first += own.size();
      for (std::uint32_t query = 0; query < layer.queries; ++query)
        std::ranges::copy(chain[sequence * layer.queries + query].cached,
                          own.subspan((length - 1 + query) * kWidth).begin());
      for (std::uint32_t query = 0; query < layer.queries; ++query) {
        Token& token = chain[sequence * layer.queries + query];
        token.latents = operators.attend(token.queries, own, length + query, how);
        operators.project(token, how);
        Operators::add(token, how);
        token.logits = operators.logits(token.normed, how);
      }
    }
  }
  return chains;
}

// Weights of these experts.
Reals weights_of(const GateCase& gate, const Reals& logits, std::span<const std::int32_t> ids) {
  Reals scores;
  const double largest = std::ranges::max(logits);
  for (const std::int32_t id : ids) {
    const double logit = logits[static_cast<std::size_t>(id)];
    // Of a softmax the sum over all experts is the same for each.
    scores.push_back(gate.softmax ? std::exp(logit - largest) : 1 / (1 + std::exp(-logit)));
  }
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  for (double& score : scores) score *= gate.scale / sum;
  return scores;
}

// Stages in their order, by name.
class Stages {
 public:
  StageAccuracy& operator[](const std::string& name) {
    for (StageAccuracy& stage : stages_) {
      if (stage.name == name) return stage;
    }
    return stages_.emplace_back(StageAccuracy{name});
  }
  void compare(const std::string& name, const Reals& exact, const Reals& bf16, const Reals& got) {
    StageAccuracy& stage = (*this)[name];
    for (std::size_t i = 0; i < exact.size(); ++i) {
      stage.exact.add(got[i], exact[i]);
      stage.bf16.add(got[i], bf16[i]);
      stage.of_bf16.add(bf16[i], exact[i]);
    }
  }
  // And with what double precision makes of what the operator read.
  void compare(const std::string& name, const Reals& exact, const Reals& bf16, const Reals& got,
               const Reals& own) {
    compare(name, exact, bf16, got);
    std::optional<Deviation>& alone = (*this)[name].own;
    if (!alone) alone.emplace();
    for (std::size_t i = 0; i < own.size(); ++i) alone->add(got[i], own[i]);
  }
  std::vector<StageAccuracy> pop() { return std::move(stages_); }

 private:
  std::vector<StageAccuracy> stages_;
};

void add_crest(Crest& crest, const Reals& row) {
  const std::vector<float> values(row.begin(), row.end());
  crest.add(values);
}
double crest_of(const std::vector<float>& rows, std::size_t k) {
  Crest crest;
  for (std::size_t at = 0; at < rows.size(); at += k) crest.add(std::span(rows).subspan(at, k));
  return crest.value();
}

// All ranks' tokens, and what the firmware left of them.
class Comparison {
 public:
  Comparison(const LayerCase& layer, const std::vector<LayerValues>& got)
      : layer_(layer), got_(got), operators_(layer), hidden_(layer.attention.hidden) {}

  LayerAccuracy compare() {
    for (std::size_t rank = 0; rank < got_.size(); ++rank) {
      chains_.push_back(chains_of(layer_, operators_, rank));
      compare_attention(rank);
      compare_gate(rank);
      for (std::vector<Token>& chain : chains_.back()) {
        for (Token& token : chain) token.queries = token.latents = token.values = {};
      }
    }
    find_rows();
    for (int expert = 0; expert < experts() + (layer_.shared ? 1 : 0); ++expert) compare_expert(expert);
    for (std::size_t rank = 0; rank < got_.size(); ++rank) {
      for (std::uint32_t t = 0; t < layer_.attention.tokens; ++t) compare_sums({rank, t});
    }
    note_crests();
    const auto tokens = static_cast<double>(got_.size() * layer_.attention.tokens);
    return {stages_.pop(), rerouted_ / tokens, bf16_rerouted_ / tokens};
  }

 private:
  using Spot = std::pair<std::size_t, std::uint32_t>;  // rank, token
  struct Row {
    std::size_t rank = 0, number = 0;
  };

  int experts() const { return static_cast<int>(layer_.gate.experts); }
  const Token& token(const Spot& at, Arithmetic how) const {
    return chains_[at.first][static_cast<std::size_t>(how)][at.second];
  }
  Reals row_of(const std::vector<std::uint16_t>& values, std::size_t row, std::size_t width) const {
    return of_bits(std::span(values).subspan(row * width, width));
  }
  std::span<const std::int32_t> ids_of(const Spot& at) const {
    return std::span(got_[at.first].ids)
        .subspan(std::size_t{at.second} * layer_.gate.chosen, layer_.gate.chosen);
  }

  void compare_attention(std::size_t rank) {
    const LayerValues& got = got_[rank];
    const Reals cache = of_bits(got.cache);
    const std::size_t heads = layer_.attention.heads;
    std::size_t first = 0;
    for (std::uint32_t t = 0; t < layer_.attention.tokens; ++t) {
      const std::uint32_t position = layer_.position(rank, t);
      if (t > 0 && t % layer_.queries == 0) first += (layer_.position(rank, t - 1) + 1) * kWidth;
      const Token &exact = token({rank, t}, Arithmetic::exact), &bf16 = token({rank, t}, Arithmetic::bf16);
      Token own;
      own.x = row_of(got.x, t, hidden_);
      operators_.prolog(own, position, Arithmetic::exact);
      const auto sequence = std::span(cache).subspan(first);
      const auto cached = sequence.subspan(position * kWidth, kWidth);
      const Reals queries = row_of(got.queries, t, heads * kWidth);
      stages_.compare("prolog", exact.queries, bf16.queries, queries, own.queries);
      stages_.compare("cache", exact.cached, bf16.cached, Reals(cached.begin(), cached.end()), own.cached);
      const Reals latents = row_of(got.latents, t, heads * kLatent);
      stages_.compare("attention", exact.latents, bf16.latents, latents,
                      operators_.attend(queries, sequence, position + 1, Arithmetic::exact));
      own.latents = latents;
      operators_.project(own, Arithmetic::exact);
      const Reals output = row_of(got.output, t, hidden_);
      stages_.compare("output", exact.output, bf16.output, output, own.output);
      own.output = output;
      Operators::add(own, Arithmetic::exact);
      stages_.compare("norm", exact.normed, bf16.normed, row_of(got.normed, t, hidden_), own.normed);
      add_crest(tokens_, exact.normed_x);
      add_crest(values_, exact.values);
    }
  }

  void compare_gate(std::size_t rank) {
    const LayerValues& got = got_[rank];
    for (std::uint32_t t = 0; t < layer_.attention.tokens; ++t) {
      const Spot at{rank, t};
      const Token &exact = token(at, Arithmetic::exact), &bf16 = token(at, Arithmetic::bf16);
      const auto from =
          got.logits.begin() + static_cast<std::ptrdiff_t>(std::size_t{t} * layer_.gate.experts);
      const Reals logits(from, from + static_cast<std::ptrdiff_t>(layer_.gate.experts));
      stages_.compare("logits", exact.logits, bf16.logits, logits,
                      operators_.logits(row_of(got.normed, t, hidden_), Arithmetic::exact));
      const auto ids = ids_of(at);
      const auto weights =
          got.weights.begin() + static_cast<std::ptrdiff_t>(std::size_t{t} * layer_.gate.chosen);
      stages_.compare("gate", weights_of(layer_.gate, exact.logits, ids),
                      weights_of(layer_.gate, bf16.logits, ids),
                      Reals(weights, weights + static_cast<std::ptrdiff_t>(ids.size())),
                      weights_of(layer_.gate, logits, ids));
      for (const Arithmetic how : kBoth) {
        const std::vector<std::int32_t> chosen = choose_experts(layer_.gate, token(at, how).logits);
        std::set<std::int32_t>& needed = needed_[static_cast<std::size_t>(how)][at];
        needed.insert(chosen.begin(), chosen.end());
        needed.insert(ids.begin(), ids.end());
        if (layer_.shared) needed.insert(experts());
        chosen_[static_cast<std::size_t>(how)][at] = chosen;
      }
      const auto set_of = [](std::span<const std::int32_t> of) {
        return std::set<std::int32_t>(of.begin(), of.end());
      };
      const auto wanted = set_of(chosen_[0][at]);
      rerouted_ += set_of(ids) != wanted ? 1 : 0;
      bf16_rerouted_ += set_of(chosen_[1][at]) != wanted ? 1 : 0;
    }
  }

  // Where the rows of each token arrived.
  void find_rows() {
    for (std::size_t rank = 0; rank < got_.size(); ++rank) {
      const std::vector<std::int32_t>& triples = got_[rank].triples;
      for (std::size_t n = 0; n < triples.size() / 3; ++n) {
        const Spot source{static_cast<std::size_t>(triples[3 * n]),
                          static_cast<std::uint32_t>(triples[3 * n + 1])};
        const auto number = static_cast<std::uint32_t>(triples[3 * n + 2]);
        rows_[source][number] = {rank, n};
        const int expert = number < layer_.gate.chosen ? ids_of(source)[number] : experts();
        arrived_[expert].push_back({source, {rank, n}});
      }
    }
  }

  void compare_expert(int expert) {
    const DrawnNetwork drawn = draw_network(layer_.seed, expert, narrow(hidden_), layer_.width);
    const Matrix gate_up(drawn.gate_up, hidden_), down(drawn.down, layer_.width);
    const auto network = [&](const Reals& x, Arithmetic how) {
      return silu_product(gate_up.multiply(x, how), how);
    };
    for (const Arithmetic how : kBoth) {
      for (const auto& [at, needed] : needed_[static_cast<std::size_t>(how)]) {
        if (!needed.contains(expert)) continue;
        const Reals active = network(token(at, how).normed, how);
        if (how == Arithmetic::exact) add_crest(activations_, active);
        outputs_[static_cast<std::size_t>(how)][{at, expert}] = down.multiply(active, how);
      }
    }
    for (const auto& [source, row] : arrived_[expert]) {
      const LayerValues& got = got_[row.rank];
      Reals sent(hidden_);
      for (std::size_t i = 0; i < hidden_; ++i)
        sent[i] = got.rows[row.number * hidden_ + i] * double{got.scales[row.number]};
      stages_.compare("dispatch", token(source, Arithmetic::exact).normed,
                      token(source, Arithmetic::bf16).normed, sent,
                      row_of(got_[source.first].normed, source.second, hidden_));
      stages_.compare("experts", outputs_[0].at({source, expert}), outputs_[1].at({source, expert}),
                      row_of(got.expert_rows, row.number, hidden_),
                      down.multiply(network(sent, Arithmetic::exact), Arithmetic::exact));
    }
    gate_up_crest_ = std::max(gate_up_crest_, crest_of(drawn.gate_up, hidden_));
  }

  // Of a token with these experts.
  Reals sum_of(const Spot& at, std::span<const std::int32_t> ids, Arithmetic how) const {
    const Token& own = token(at, how);
    const Reals weights = weights_of(layer_.gate, own.logits, ids);
    Reals sum = own.sums;
    const auto add = [&](int expert, double weight) {
      const Reals& row = outputs_[static_cast<std::size_t>(how)].at({at, expert});
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * row[i];
    };
    for (std::size_t n = 0; n < ids.size(); ++n) add(ids[n], weights[n]);
    if (layer_.shared) add(experts(), 1);
    return rounded(std::move(sum), how);
  }
  // Of what the firmware's experts left.
  Reals own_sum(const Spot& at) const {
    Reals sum = row_of(got_[at.first].sums, at.second, hidden_);
    for (const auto& [number, row] : rows_.at(at)) {
      const double weight = number < layer_.gate.chosen
                                ? double{got_[at.first].weights[at.second * layer_.gate.chosen + number]}
                                : 1;
      const Reals values = row_of(got_[row.rank].expert_rows, row.number, hidden_);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * values[i];
    }
    return sum;
  }

  void compare_sums(const Spot& at) {
    const Reals got = row_of(got_[at.first].out, at.second, hidden_);
    stages_.compare("combine", sum_of(at, ids_of(at), Arithmetic::exact),
                    sum_of(at, ids_of(at), Arithmetic::bf16), got, own_sum(at));
    Reals exact = sum_of(at, chosen_[0].at(at), Arithmetic::exact),
          bf16 = sum_of(at, chosen_[1].at(at), Arithmetic::bf16);
    stages_.compare("layer", exact, bf16, got);
    const auto update = [&](Reals sum, const Reals& x) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] -= x[i];
      return sum;
    };
    stages_.compare("update", update(std::move(exact), token(at, Arithmetic::exact).x),
                    update(std::move(bf16), token(at, Arithmetic::bf16).x),
                    update(got, row_of(got_[at.first].x, at.second, hidden_)));
  }

  void note_crests() {
    if (layer_.attention.int8) {
      stages_["prolog"].crest = tokens_.value();
      stages_["prolog"].weights_crest = crest_of(draw_down(layer_), hidden_);
      stages_["output"].crest = values_.value();
      stages_["output"].weights_crest = crest_of(draw_out(layer_), layer_.attention.heads * kValue);
    }
    Crest normed;
    for (const auto& [expert, rows] : arrived_) {
      for (const auto& row : rows) add_crest(normed, token(row.first, Arithmetic::exact).normed);
    }
    stages_["dispatch"].crest = normed.value();
    stages_["experts"].crest = activations_.value();
    stages_["experts"].weights_crest = gate_up_crest_;
  }

  const LayerCase& layer_;
  const std::vector<LayerValues>& got_;
  Operators operators_;
  std::size_t hidden_;
  Stages stages_;
  std::vector<std::array<std::vector<Token>, 2>> chains_;  // by rank
  std::array<std::map<Spot, std::set<std::int32_t>>, 2> needed_;
  std::array<std::map<Spot, std::vector<std::int32_t>>, 2> chosen_;
  std::array<std::map<std::pair<Spot, int>, Reals>, 2> outputs_;
  std::map<Spot, std::map<std::uint32_t, Row>> rows_;
  std::map<int, std::vector<std::pair<Spot, Row>>> arrived_;  // by expert
  Crest tokens_, values_, activations_;
  double gate_up_crest_ = 1, rerouted_ = 0, bf16_rerouted_ = 0;
};

}  // namespace

float LayerCase::score_scale() const {
  return 1 / std::sqrt(static_cast<float>(kHead));
}

PrologInputs rounded_prolog(const LayerCase& layer, std::size_t rank) {
  const ProjectionCase& a = layer.attention;
  const auto ones = [](std::size_t count) { return std::vector<std::uint16_t>(count, to_bf16(1)); };
  return {to_bits(draw_tokens(layer, rank)),
          ones(a.hidden),
          ones(a.q_lora),
          ones(kLatent),
          round_weights(draw_down(layer), a.hidden, a.int8),
          round_weights(draw_up(layer), a.q_lora, a.int8),
          round_weights(draw_absorb(layer), kNope, false),
          make_rope(positions_of(layer, rank))};
}

OutputWeights rounded_output(const LayerCase& layer) {
  const ProjectionCase& a = layer.attention;
  return {round_weights(draw_value(layer), kLatent, false),
          round_weights(draw_out(layer), a.heads * kValue, a.int8)};
}

std::vector<std::uint16_t> rounded_gate(const LayerCase& layer) {
  return to_bits(draw_gate(layer));
}

std::vector<std::uint16_t> rounded_cache(const LayerCase& layer, std::size_t rank,
                                         const std::vector<std::uint32_t>& page_table) {
  const std::vector<float> drawn = draw_cache(layer, rank);
  const std::size_t sequences = layer.kv_lens[rank].size(), table_width = page_table.size() / sequences;
  std::vector<std::uint16_t> pages(pages_of(page_table) * MlaLayout::kPageElements);
  std::size_t from = 0;
  for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
    for (std::size_t t = 0; t < layer.kv_lens[rank][sequence] + layer.queries - 1; ++t) {
      const std::size_t page = page_table[sequence * table_width + t / MlaLayout::kPageTokens] *
                               std::size_t{MlaLayout::kPageElements};
      for (std::size_t c = 0; c < kWidth; ++c)
        pages[page + MlaLayout::in_page(t % MlaLayout::kPageTokens, c)] = to_bf16(drawn[from++]);
    }
  }
  return pages;
}

std::vector<std::int32_t> choose_experts(const GateCase& gate, const std::vector<double>& logits) {
  // Scores rise with logits, but a group's are added up.
  const auto score = [&](std::size_t expert) {
    return gate.softmax ? std::exp(logits[expert]) : 1 / (1 + std::exp(-logits[expert]));
  };
  const std::size_t experts = logits.size(), group = gate.group == 0 ? experts : gate.group,
                    groups = experts / group;
  std::vector<std::pair<double, std::size_t>> best;  // of each group the sum of its two best, negated
  for (std::size_t g = 0; g < groups; ++g) {
    Reals own;
    for (std::size_t n = 0; n < group; ++n) own.push_back(score(g * group + n));
    std::ranges::sort(own, std::greater());
    best.emplace_back(-(own[0] + (group > 1 ? own[1] : 0)), g);
  }
  std::ranges::sort(best);
  if (gate.group != 0) best.resize(std::min<std::size_t>(gate.top_groups, groups));
  std::vector<std::pair<double, std::int32_t>> ranked;
  for (const auto& [sum, g] : best) {
    for (std::size_t n = g * group; n < (g + 1) * group; ++n)
      ranked.emplace_back(-logits[n], static_cast<std::int32_t>(n));
  }
  std::ranges::sort(ranked);
  std::vector<std::int32_t> chosen;
  for (std::size_t n = 0; n < gate.chosen; ++n) chosen.push_back(ranked[n].second);
  return chosen;
}

LayerAccuracy layer_accuracy(const LayerCase& layer, const std::vector<LayerValues>& got) {
  return Comparison(layer, got).compare();
}

}  // namespace cm384::reference
