// A language model as its publication states it: one flat list of facts. Both readers, of the config.json
// that model hubs publish and of our own TOML, fill this list; build_model() makes the layers from it
// (model.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text/json.h"

namespace cm384::models {

using Whole = std::int64_t;
using Wholes = std::vector<Whole>;
using Words = std::vector<std::string>;

// Legal values of a fact, both ends included.
struct Between {
  Whole low, high;
};

// A fact is declared once: name, unit, range or words, and a sentence. Values that nobody states keep the
// defaults below, which stand for "there is none"; facts without a default are required.
struct ModelFacts {
  Whole hidden = 0, layers = 0, vocabulary = 0, context = 0;
  bool tied_heads = false;

  struct OfAttention {
    Whole heads = 0, kv_heads = 0, key_width = 0, value_width = 0, position_width = 0;
    Whole query_latent = 0, kv_latent = 0, per_layer = 1, window = 0, sinks = 0;
    bool output_gate = false, head_norms = false, sink_scores = false;
    Words pattern;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("heads", self.heads, "heads", Between{1, 4096}, "of queries");
      visit("kv_heads", self.kv_heads, "heads", Between{0, 4096}, "of keys and values; none with a latent");
      visit("key_width", self.key_width, "elements", Between{1, 16'384}, "of a head's query and key");
      visit("value_width", self.value_width, "elements", Between{1, 16'384}, "of a head's value");
      visit("position_width", self.position_width, "elements", Between{0, 16'384},
            "of key_width: the part with the position, which is cached beside the latent");
      visit("query_latent", self.query_latent, "elements", Between{0, 65'536},
            "that queries are made from; 0: from the hidden state");
      visit("kv_latent", self.kv_latent, "elements", Between{0, 65'536},
            "that keys and values are made from and that is cached; 0: keys and values are cached");
      visit("per_layer", self.per_layer, "attentions", Between{1, 8}, "one after another in a layer");
      visit("pattern", self.pattern, Words{"full", "sliding", "linear"},
            "kind of each layer's attention, repeated over the layers; none: all full");
      visit("window", self.window, "tokens", Between{0, 1 << 24}, "that a sliding layer keeps");
      visit("sinks", self.sinks, "tokens", Between{0, 65'536},
            "learnt, that every query sees beside the cached");
      visit("sink_scores", self.sink_scores,
            "each head has a learnt score that its softmax counts beside those of tokens");
      visit("head_norms", self.head_norms, "each head's query and key is normed before its rotation");
      visit("output_gate", self.output_gate, "queries are twice as wide, for a gate of the output");
    }
  } attention;

  struct OfIndex {
    Whole heads = 0, width = 0, chosen = 0;
    Words pattern;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("heads", self.heads, "heads", Between{0, 4096}, "of the indexer; 0: there is none");
      visit("width", self.width, "elements", Between{0, 16'384}, "of its key, one for each cached token");
      visit("chosen", self.chosen, "tokens", Between{0, 1 << 24}, "that the attention sees at most");
      visit("pattern", self.pattern, Words{"full", "shared"},
            "whether a layer chooses itself or takes the choice of the one before, repeated; none: all full");
    }
  } index;

  struct OfLinear {
    Whole key_heads = 0, value_heads = 0, key_width = 0, value_width = 0, convolution = 0, state_bytes = 4;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("key_heads", self.key_heads, "heads", Between{0, 4096}, "of keys and queries");
      visit("value_heads", self.value_heads, "heads", Between{0, 4096}, "of values, each with a state");
      visit("key_width", self.key_width, "elements", Between{0, 16'384}, "of a key");
      visit("value_width", self.value_width, "elements", Between{0, 16'384}, "of a value");
      visit("convolution", self.convolution, "tokens", Between{0, 64}, "of the short convolution");
      visit("state_bytes", self.state_bytes, "bytes", Between{2, 4}, "of an element of the state");
    }
  } linear;

  struct OfDense {
    Whole width = 0, first = 0, beside = 0;
    Wholes layers;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("width", self.width, "elements", Between{0, 1 << 18}, "between the multiplications");
      visit("first", self.first, "layers", Between{0, 1024}, "at the beginning that have no experts");
      visit("layers", self.layers, "layer", Between{0, 1023}, "further layers that have no experts");
      visit("beside", self.beside, "networks", Between{0, 8}, "dense ones beside the experts of a layer");
    }
  } dense;

  struct OfExperts {
    Whole routed = 0, chosen = 0, width = 0, shared = 0, shared_width = 0, zero = 0, groups = 1,
          groups_chosen = 1;
    std::string gate = "unstated";
    bool shared_gate = false, normalised = false;
    double scaling = 1;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("routed", self.routed, "experts", Between{0, 16'384}, "that the gate chooses among; 0: none");
      visit("chosen", self.chosen, "experts", Between{0, 1024}, "of a token");
      visit("width", self.width, "elements", Between{0, 1 << 18}, "between their multiplications");
      visit("shared", self.shared, "experts", Between{0, 1024}, "that every token passes");
      visit("shared_width", self.shared_width, "elements", Between{0, 1 << 18}, "of a shared one");
      visit("shared_gate", self.shared_gate,
            "the shared ones have a weight of their own, from one more output");
      visit("zero", self.zero, "experts", Between{0, 16'384},
            "further candidates of the gate that return their input");
      visit("groups", self.groups, "groups", Between{1, 16'384}, "that the routed experts form");
      visit("groups_chosen", self.groups_chosen, "groups", Between{1, 16'384},
            "that the experts of a token are in at most");
      visit("gate", self.gate, Words{"unstated", "softmax", "sigmoid"}, "what scores become weights by");
      visit("normalised", self.normalised, "the weights of a token's experts add up to one");
      visit("scaling", self.scaling, "factor of the weights");
    }
  } experts;

  struct OfDraft {
    Whole layers = 0;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("layers", self.layers, "layers", Between{0, 64}, "that draft further tokens (MTP)");
    }
  } draft;

  struct OfWeights {
    std::string format = "bf16", covers = "all";
    Wholes block;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("format", self.format, Words{"bf16", "fp16", "fp8", "int8", "mxfp4", "int4"},
            "of the published weights");
      visit("covers", self.covers, Words{"all", "experts"}, "linear layers that are in it; the rest is BF16");
      visit("block", self.block, "elements", Between{1, 1 << 18},
            "with one scale: rows and columns; none: not stated");
    }
  } weights;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("hidden", self.hidden, "elements", Between{1, 1 << 17}, "of a token between layers");
    visit("layers", self.layers, "layers", Between{1, 1024}, "without those that draft");
    visit("vocabulary", self.vocabulary, "tokens", Between{1, 1 << 24}, "that there are");
    visit("tied_heads", self.tied_heads, "the output head is the embedding");
    visit("context", self.context, "tokens", Between{0, 1LL << 40}, "at most; 0: not stated");
    visit("attention", self.attention);
    visit("index", self.index);
    visit("linear", self.linear);
    visit("dense", self.dense);
    visit("experts", self.experts);
    visit("draft", self.draft);
    visit("weights", self.weights);
  }
};

// One fact of a list, which points into its ModelFacts.
struct Fact {
  std::string key;        // "experts.routed"
  std::string_view unit;  // empty: words, yes or no, a factor
  std::string_view sentence;
  std::variant<Whole*, double*, bool*, std::string*, Wholes*, Words*> value;
  Between range{0, 0};  // of whole numbers
  Words words;          // that are legal

  // Whole numbers as such, lists as arrays.
  Json json() const;
  std::string allowed() const;
  // Throws InputError without the key: what was found, what is allowed.
  void assign(const Json& given) const;
};

// In order of declaration.
std::vector<Fact> list_facts(ModelFacts& facts);

// Where a fact comes from.
struct Source {
  std::string from;        // published, derived or assumed
  std::string source;      // a sentence, or file and key
  std::string confidence;  // high, medium or low; empty: not stated
};

// What a file says.
struct StatedModel {
  std::string name, description;
  ModelFacts facts;
  std::map<std::string, Source> sources;  // by key of a fact; one for each that is stated
  Words unused;                           // keys of a config.json that do not change the work
};

// Of the text of a config.json; `file` stands for it in messages. The first of its keys that changes the work
// and is not understood is refused by its name. Throws InputError.
StatedModel read_config(std::string_view text, const std::string& file);
// Of our own TOML. Of a shipped one every fact needs unit, from, source and confidence. Throws InputError.
StatedModel read_toml(std::string_view text, const std::string& file, bool shipped);

}  // namespace cm384::models
