// What options of a decode layer and of a batch of prompts have in common: the shape of a model's layers.
#pragma once

#include <string_view>

#include "workloads/frame/options.h"

namespace cm384::studies {

struct LayerShape {
  int hidden = 7168, q_lora = 1536, heads = 128;
  int kv_heads = 0, head_width = 128, window = 0;
  bool head_norms = false, sinks = false;
  int chosen = 0, index_heads = 64, key_width = 192, value_width = 128;
  int experts = 256, experts_per_token = 8, shared_experts = 1;
  bool softmax_gate = false;
  int expert_group = 32, token_groups = 4;
  int width = 2048, dense_width = 18432;

  // In parts: a study has options of its own between them.
  template <class Self, class Visitor>
  static void describe_choice_of_experts(Self& self, Visitor&& visit) {
    visit("experts-per-token", self.experts_per_token, Range{1, 16}, "routed experts of a token");
    visit("gate", self.softmax_gate, Either{"sigmoid", "softmax"},
          "what the gate makes scores of the experts by, and weights of scores");
    visit("expert-group", self.expert_group, Range{0, 64, 8},
          "experts of a group, of which the gate's kernel chooses --token-groups for a token; 0: no groups. "
          "--routing groups:N:M draws with a limit, too");
    visit("token-groups", self.token_groups, Range{1, 64},
          "groups that the experts of a token are in at most");
  }
  template <class Self, class Visitor>
  static void describe_shared_experts(Self& self, Visitor&& visit) {
    visit("shared-experts", self.shared_experts, Range{0, 1}, "experts that every token passes");
  }
  template <class Self, class Visitor>
  static void describe_heads(Self& self, Visitor&& visit) {
    visit("hidden", self.hidden, Range{64, 8192, 64}, "elements of a token");
    visit("q-lora", self.q_lora, Range{64, 8192, 64}, "elements of the queries' latent");
    visit("heads", self.heads, Range{1, 128}, "query heads");
    visit("kv-heads", self.kv_heads, Range{0, 128},
          "heads of keys and values that query heads share; 0: a latent of 512 and 64 is cached (MLA)");
    visit("head-width", self.head_width, Range{64, 128, 64}, "elements of a head, with --kv-heads");
  }
  template <class Self, class Visitor>
  static void describe_scores_of_heads(Self& self, Visitor&& visit) {
    visit("qk-norm", self.head_norms, Either{"none", "heads"},
          "norms of each head's query and key before their rotation, with --kv-heads");
    visit("sinks", self.sinks, Either{"none", "heads"},
          "a learnt score of each head that its softmax counts beside those of tokens, with --kv-heads");
  }
  template <class Self, class Visitor>
  static void describe_indexer(Self& self, Visitor&& visit) {
    visit("index-heads", self.index_heads, Range{0, 64, 16},
          "heads of the indexer that chooses them; 0: a layer before has chosen");
    visit("key-width", self.key_width, Range{192, 256, 64},
          "elements of a head's query and key, the rope's 64 inside, with --sparse");
    visit("value-width", self.value_width, Range{128, 256, 128}, "elements of a head's value, with --sparse");
  }
  template <class Self, class Visitor>
  static void describe_width_of_experts(Self& self, Visitor&& visit) {
    visit("width", self.width, Range{64, 4096, 64}, "elements between the products of an expert");
  }

  // Throws InputError for an option that is given and has no effect beside these; `before` stands before it.
  void check_effect(const Given& given, std::string_view before) const;
  // Experts and groups of a gate fit each other. Throws InputError by the options.
  void check_groups() const;
};

}  // namespace cm384::studies
