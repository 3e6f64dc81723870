// The feed-forward network of a rank's experts between a dispatch and a combine: it takes the rows where
// dispatch puts them, as many as that counts, and leaves them where combine looks. Or alone, on rows of its
// own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/combine.h"
#include "firmware/abi/dispatch.h"
#include "firmware/abi/ffn.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/expert_networks.h"

namespace cm384::operators {

struct ExpertFfnSetting {
  std::vector<std::uint32_t> expert_rows;  // of each expert; beside a dispatch what it is expected to bring
  std::uint32_t tile_rows = 0;             // of an expert, that tiles are chosen for
  std::uint32_t hidden = 7168, width = 2048;
  bool bf16 = false;  // weights and products; rows come in INT8 all the same
  bool int4 = false;  // weights, beside activations of INT8
};

class ExpertFfn final : public KernelOperator {
 public:
  explicit ExpertFfn(ExpertFfnSetting setting) : setting_(std::move(setting)) {}

  // Before place(): what stands before and behind it on its rank.
  void stand_between(const cm384_dispatch& dispatch, const cm384_combine& combine) {
    link_.emplace(Link{dispatch, combine});
  }

  const char* kernel() const override {
    return setting_.int4 ? "ffn_w4a8" : setting_.bf16 ? "ffn_bf16" : "ffn";
  }
  Work work() const override;
  std::string size() const override;
  // Nobody keeps its inputs: the operator behind compares.
  std::string check() const override { return {}; }
  const cm384_ffn& arguments() const { return arguments_.network; }
  // Arguments beside the network's, with weights of 4 bits.
  const cm384_ffn_w4a8& four_bits() const { return four_bits_; }

 private:
  struct Link {
    cm384_dispatch dispatch;
    cm384_combine combine;
  };
  void lay_out(const Site& site) override;
  std::uint64_t write_arguments(host::DeviceMemory& memory) const override {
    if (setting_.int4) {
      cm384_ffn_w4a8 made = four_bits_;
      made.network = arguments_.network;
      return memory.put(made);
    }
    return setting_.bf16 ? memory.put(arguments_) : memory.put(arguments_.network);
  }
  void place_four_bits(const Site& site, std::uint64_t x, std::uint64_t rows);
  cm384_gemm multiplication(const Site& site, std::uint32_t n, std::uint32_t k) const;
  std::uint64_t rows() const;

  ExpertFfnSetting setting_;
  std::optional<Link> link_;
  cm384_ffn_bf16 arguments_{};  // for INT8: the network of it
  cm384_ffn_w4a8 four_bits_{};  // all but the network
};

// Copies the weights of a rank's expert number `local` to where kernel `ffn` reads them, in payload mode
// full.
void copy_expert_weights(host::Runtime& runtime, const cm384_ffn& ffn, std::uint32_t local,
                         const reference::NetworkWeights& weights);

}  // namespace cm384::operators
