// What a die computes and sends of a layer for one micro-batch, forward: operators with their shapes, and
// messages. What the backward pass adds follows from these by rules that whoever measures them has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/training/plan.h"

namespace cm384::training {

struct Operation {
  enum class Kind : std::uint8_t {
    product,    // groups of m x k by k x n, in BF16
    rows,       // an operator on rows x width, by its name in `run op`
    attention,  // of `heads` over a whole sequence
  };
  // Which tokens or words it has, where it stands.
  enum class Of : std::uint8_t { attention, dense, experts, head };
  std::string name;
  Kind kind = Kind::product;
  Of of = Of::attention;
  std::int64_t groups = 1, m = 0, n = 0, k = 0;
  std::string operation{};  // of rows
  std::int64_t rows = 0, width = 0;
  models::Attention attention{};                        // the whole layer's
  std::int64_t sequences = 0, heads = 0, kv_heads = 0;  // kv_heads 0: made from a latent
  double share = 1;                                     // of the sequence's pairs of tokens
  bool again = false;                                   // computed again by a selective recomputation
};

// Collective operation of a forward pass; backward a gather is a reduce-scatter and the other way round.
struct Message {
  enum class Kind : std::uint8_t { all_gather, reduce_scatter, all_to_all };
  enum class Among : std::uint8_t { tensor, context, expert };
  std::string name;
  Kind kind = Kind::all_gather;
  Among among = Among::tensor;
  std::int64_t bytes = 0;  // of a rank's part; of an all-to-all, of a rank for another one
};

struct Work {
  std::vector<Operation> operations;
  std::vector<Message> messages;
};
// `imbalance`: rows of the rank that gets most of its experts' group, over the mean.
Work work_of_layer(const models::Model& model, const models::Layer& layer, const Plan& plan,
                   double imbalance);
// Last norm, product with the words, and the softmax of the loss.
Work work_of_head(const models::Model& model, const Plan& plan);

// Bytes that a die sends to the next stage for a micro-batch, and gets back.
std::int64_t boundary_bytes(const models::Model& model, const Plan& plan);

// Of a token, forward and backward, as MFU counts them: no recomputation, no embedding, no draft layers.
struct TokenFlops {
  double linear = 0;
  double causal = 0, full = 0;  // of attention: pairs that a causal mask leaves, or all
};
TokenFlops token_flops(const models::Model& model, int sequence);
// What a full or selective recomputation adds, with a causal mask.
double recomputed_flops(const models::Model& model, const Plan& plan);

// Mean over a sequence of the tokens that a token sees.
double causal_tokens(const models::Attention& attention, double sequence);

}  // namespace cm384::training
