// The operators of `run op`, by name and shape.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "firmware/abi/flash_attention.h"
#include "workloads/collectives/transfer_collective.h"
#include "workloads/kernels/op_run.h"

namespace cm384::studies {

struct OpRequest {
  std::string name, shape;
  std::string type = "bf16";  // of a product's A and B
  std::string layout = "nz";  // of a product's B
  int split_k = 1;            // parts of a product's k
  bool basic_tile = false;    // of a product: operators::GemmSetting
  int buffers = 1;            // of operators that take whole rows
  double top_p = 0.95;        // sample: of what is kept at least this sum
  std::uint64_t seed = 1;
  std::string algorithm = "best";  // among ranks, as the four that follow
  std::string path = "aiv";
  bool reads = false;
  bool by_aicpu = false;
  bool graph = false;
  bool causal = true;                                // of grouped-attention
  std::uint32_t block_keys = CM384_FLASH_MOST_KEYS;  // of both kinds of attention
};

// Names, in the order of the help.
const std::vector<std::string_view>& op_names();
const std::vector<std::string_view>& product_names();
const std::vector<std::string_view>& collective_names();
// "256x7168": sizes with x between them. Throws InputError.
std::vector<std::uint32_t> parse_shape(std::string_view text);
// Buffers each way that an operator on rows has, if nobody says how many.
int usual_buffers(std::string_view name);
// Whether it is one among ranks: the first number of its shape is how many.
bool is_collective(std::string_view name);
int ranks_of(const OpRequest& request);
// Throw InputError, with the operator's name, where the shape does not suit it.
MakeOperator operator_of(const OpRequest& request);
// The run of copies that an algorithm of `run op` stands for.
CopyRun copies_of(const OpRequest& request, int cores, bool full, const hw::Machine& machine);
// Without cores, in one server.
TransferCollectiveCase transfers_of(const OpRequest& request, const hw::Machine& machine);
CollectiveRun collective_of(const OpRequest& request, int cores, bool full, const hw::Machine& machine);

}  // namespace cm384::studies
