// Parameters, bytes and FLOPs that follow from a model's layers. Weights of matrices only: norms, biases,
// rotary tables, convolutions and scales are at most 0.1 % of them. A multiply-add is two FLOPs.
#pragma once

#include <string>
#include <vector>

#include "hw/models/model.h"

namespace cm384::models {

struct Matrix {
  std::string name;
  Whole elements = 0;
};

// Matrices of one attention without its indexer, and of an indexer, in the order in which they are used.
std::vector<Matrix> attention_matrices(const Model& model, const Attention& attention);
std::vector<Matrix> indexer_matrices(const Model& model, const Attention& attention);

// Elements of the parts of a layer: of one attention with no indexer, its indexer, one dense network, one
// routed expert, all shared experts, the gate.
struct LayerSizes {
  Whole attention = 0, indexer = 0, dense = 0, expert = 0, shared = 0, gate = 0;
  Whole parameters = 0;                     // of the layer
  Whole active = 0;                         // that a token passes, on average
  Whole least_active = 0, most_active = 0;  // as zero experts are chosen; otherwise both as `active`
};
LayerSizes sizes_of(const Model& model, const Layer& layer);

// Of one query against its context, all layers. What grows with the context S, in FLOPs a cached token.
struct AttentionFlops {
  Whole full = 0;     // x S
  Whole chosen = 0;   // x min(S, chosen_tokens)
  Whole sliding = 0;  // x min(S, window)
  Whole indexer = 0;  // x S
  Whole chosen_tokens = 0, window = 0;
  Whole linear = 0;        // whatever S is
  Whole not_absorbed = 0;  // x S: keys and values of a latent made for each head, as prefill does
};

struct ModelSizes {
  Whole embedding = 0;   // elements; the output head has as many
  Whole parameters = 0;  // of the main model
  Whole active = 0;  // that a token passes, on average: the head, but not the embedding, which is looked up
  Whole least_active = 0, most_active = 0;
  Whole draft_parameters = 0;  // of all draft layers; embedding and head are those of the main model

  Whole kv_bytes = 0;     // a token, BF16, of the main model
  Whole index_bytes = 0;  // a token, FP8, of indexers' keys, without scales
  Whole draft_kv_bytes = 0, draft_index_bytes = 0;
  Whole sliding_bytes = 0;  // a request, BF16, once it is as long as the window
  Whole state_bytes = 0;    // a request, of linear attentions

  Whole linear_flops = 0;  // a token
  Whole head_flops = 0;    // of these; prefill does without for tokens that need no logits
  AttentionFlops attention;
};
ModelSizes model_sizes(const Model& model);

}  // namespace cm384::models
