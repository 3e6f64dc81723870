// Operators that treat tokens one by one on a die's vector cores: the gate with its choice of experts,
// rotation, and norm with rotation into the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/tokens.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/token_operators.h"

namespace cm384::operators {

// What they share: vector cores, one for each token as far as there are.
class TokenOperator : public KernelOperator {
 public:
  npu::KernelType type() const override { return npu::KernelType::aiv; }

 protected:
  virtual std::uint32_t tokens() const = 0;
  std::vector<std::uint16_t> cores() const override;
  // Memory for an input, tensor payload unless there are values.
  std::uint64_t input(const Site& site, std::uint64_t bytes);
  template <class T>
  void put(std::uint64_t at, const std::vector<T>& values) {
    runtime().copy_in(at, std::as_bytes(std::span(values)));
  }
};

class Gate final : public KernelWith<cm384_gate, TokenOperator> {
 public:
  explicit Gate(const reference::GateCase& gate) : case_(gate) {}
  const char* kernel() const override { return case_.of_eight() ? "gate" : "gate_any"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  std::uint32_t tokens() const override { return case_.tokens; }
  void lay_out(const Site& site) override;

  reference::GateCase case_;
  std::optional<reference::GateInputs> inputs_;
};

// Tokens of so many heads that a core rotates at a time: as many as fit the UBuffer. 1: one by one, where two
// do not fit, and where a core has one token at most.
std::uint32_t tokens_of_tile(std::uint32_t tokens, std::uint32_t heads, std::size_t cores);

class InterleaveRope final : public KernelWith<cm384_interleave_rope, TokenOperator> {
 public:
  explicit InterleaveRope(const reference::RopeCase& rope) : case_(rope) {}
  const char* kernel() const override { return arguments_.tile > 1 ? "rope_tiles" : "interleave_rope"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  std::uint32_t tokens() const override { return case_.tokens; }
  void lay_out(const Site& site) override;

  reference::RopeCase case_;
  std::optional<reference::RopeInputs> inputs_;
};

class KvNormRope final : public KernelWith<cm384_kv_norm_rope, TokenOperator> {
 public:
  explicit KvNormRope(const reference::KvCase& kv) : case_(kv) {}
  const char* kernel() const override { return "kv_norm_rope"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  std::uint32_t tokens() const override { return case_.tokens; }
  void lay_out(const Site& site) override;

  reference::KvCase case_;
  std::optional<reference::KvInputs> inputs_;
};

}  // namespace cm384::operators
