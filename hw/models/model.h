// A language model as data: its layers, what they are made of, and where each fact comes from. What follows
// in parameters, bytes and FLOPs is in model_sizes.h. No name of a model is known to code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/models/model_facts.h"

namespace cm384::models {

enum class AttentionKind : std::uint8_t {
  full,     // every query sees every cached token: MHA, or GQA where heads share keys and values
  latent,   // the same, keys and values made from a cached latent (MLA)
  sliding,  // keeps the last `window` tokens
  linear,   // a state of fixed size in place of a cache (gated delta rule)
};
std::string_view to_string(AttentionKind kind);

// Chooses the cached tokens that the attention sees.
struct Indexer {
  Whole heads = 0, width = 0;  // 0 heads: it has none of its own
  Whole chosen = 0;            // tokens, at most; also of a layer that takes another one's choice; 0: all
  friend bool operator==(const Indexer&, const Indexer&) = default;
};

// Widths in elements. Of a linear attention `heads` have values and states, `kv_heads` keys and queries.
struct Attention {
  AttentionKind kind = AttentionKind::full;
  Whole heads = 0, kv_heads = 0, key_width = 0, value_width = 0, position_width = 0;
  Whole query_latent = 0, kv_latent = 0;
  Whole window = 0;       // tokens
  Whole sinks = 0;        // learnt tokens that every query sees as well
  Whole convolution = 0;  // tokens, of a linear attention
  Whole state_bytes = 0;  // of an element of its state
  bool output_gate = false;
  bool head_norms = false;   // of each head's query and key
  bool sink_scores = false;  // a learnt score of each head in its softmax
  Indexer indexer{};
  friend bool operator==(const Attention&, const Attention&) = default;
};

struct Experts {
  Whole routed = 0, chosen = 0, width = 0, shared = 0, shared_width = 0, zero = 0;
  Whole groups = 1, groups_chosen = 1;
  std::string gate{};
  bool shared_gate = false;  // one more output, the weight of the shared ones
  bool normalised = false;
  double scaling = 1;
  // Routed experts of a token on average, the zero experts being chosen as often as others: a ratio.
  Whole real_numerator() const { return chosen * routed; }
  Whole real_denominator() const { return routed + zero; }
  friend bool operator==(const Experts&, const Experts&) = default;
};

struct Layer {
  Attention attention{};
  Whole attentions = 1;   // one after another
  Whole dense_width = 0;  // 0: no dense network
  Whole dense_networks = 0;
  Experts experts{};  // 0 routed: none
  bool has_experts() const { return experts.routed > 0; }
  friend bool operator==(const Layer&, const Layer&) = default;
};

struct Quantisation {
  std::string format = "bf16";  // of the published weights
  bool experts_only = false;    // the rest is BF16
  Wholes block{};               // elements with one scale: rows and columns; none: not stated
  friend bool operator==(const Quantisation&, const Quantisation&) = default;
};

struct Model {
  std::string name, description;
  Whole hidden = 0, vocabulary = 0, context = 0;
  bool tied_heads = false;
  std::vector<Layer> layers;
  Whole draft_layers = 0;
  Layer draft{};  // each of them, with a projection of 2 hidden x hidden before it
  Quantisation weights{};
  StatedModel stated;  // what this is made from
  std::string file{};  // that it was read from; empty: it comes with cm384

  bool has_experts() const;
  // The experts of its layers, which are alike. Without any: 0 routed.
  Experts experts() const;
};

// Makes the layers. `file` stands before messages. Throws InputError where facts do not fit together.
Model build_model(StatedModel stated, const std::string& file);

// One that comes with cm384, or a file (anything with a '/' or ending in .json or .toml): a config.json as
// model hubs publish it, or a TOML of ours. Throws InputError: one line.
Model load_model(const std::string& name_or_path);

// Names of the models that come with cm384, sorted.
std::vector<std::string> model_names();

// A bit more than the largest configuration that is published.
inline constexpr std::size_t kLargestModelFile = std::size_t{1} << 20;

}  // namespace cm384::models
