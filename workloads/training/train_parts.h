// The parts of a training step, measured on the machine: operators of a die by the firmware that runs on it,
// collectives by the dies of a group, each on a machine of its own. What no kernel does is taken from one
// that does, and says so. Accelerators without cores: unit_train_parts.h.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workloads/frame/study.h"
#include "workloads/kernels/op_cases.h"
#include "workloads/operators/reference/attention_reference.h"
#include "workloads/training/layer_work.h"

namespace cm384::studies {

// How operators and collectives are measured.
struct TrainMeasures {
  int rows = 2048;  // of a product, tokens of an attention, at most; longer ones are taken in proportion
  double imbalance = 1;
  bool fp8 = false;  // products of layers but for the gate's, on accelerators that have it; otherwise BF16
};

// Microseconds of an operator in one micro-batch.
struct OperatorTime {
  training::Operation operation;
  double forward = 0, inputs = 0, weights = 0;
  double share = 1;   // of it that was measured; the rest is in proportion
  std::string how{};  // its time is known
};
struct MessageTime {
  training::Message message;
  double us = 0;  // each way
  std::string how{};
};
struct WorkTime {
  std::vector<OperatorTime> operators;
  std::vector<MessageTime> messages;
};

class TrainParts {
 public:
  TrainParts(const StudyContext& context, const training::Plan& plan, const TrainMeasures& measures,
             StudyResult& result);
  virtual ~TrainParts() = default;

  // Not copied: its contexts refer to its own machines.
  TrainParts(const TrainParts&) = delete;
  TrainParts& operator=(const TrainParts&) = delete;

  bool interrupted() const { return interrupted_; }
  WorkTime measure(const models::Model& model, const training::Work& work);
  // Steps of the vector cores around an exchange of experts' rows: into the order of ranks and of experts,
  // and back.
  virtual WorkTime measure_order(const models::Model& model);

  // Each member of a group sends `bytes` to each other one of it; ranks are `stride` dies apart, and all
  // groups between them do at the same time.
  virtual double exchange_us(int ranks, int stride, double bytes);
  // Of `bytes` that every die has, a share for each member; the part between supernodes goes over the RDMA
  // plane, of what the supernode's members share. A gather takes as long.
  double scatter_us(int ranks, int stride, double bytes);
  // Time of a message to another supernode, or to a die of another node.
  virtual double send_us(double bytes, bool between_supernodes);
  // Of vector cores that read and write so many bytes of HBM.
  virtual double stream_us(double bytes);

 protected:
  // What is measured more than once is measured once.
  template <class Measure>
  double once(const std::string& what, Measure&& measure) {
    if (interrupted_ || context_.interrupted != 0) {
      interrupted_ = true;
      return 0;
    }
    const auto found = known_.find(what);
    if (found != known_.end()) return found->second;
    const double us = measure();
    context_.progress.update(-1, result_.simulator.simulated, result_.simulator.events);
    known_.emplace(what, us);
    return us;
  }
  // Of more than `most`: measured for that and for half of it, and from there on along the line through both.
  template <class Measure>
  double in_proportion(const std::string& what, double size, double most, double unit, Measure&& measure) {
    const auto at = [&](double wanted) {
      const auto whole = static_cast<std::int64_t>(std::max(1.0, std::ceil(wanted / unit)) * unit);
      return once(fmt::format("{}, {}", what, whole), [&] { return measure(whole); });
    };
    if (size <= most) return at(size);
    const double half = at(most / 2), full = at(most);
    return full + (full - half) * (size - most) / (most / 2);
  }
  // An operator on as many of its rows as are measured, which are `share` of them.
  OpRequest request_of(const models::Model& model, const training::Operation& of, double& share) const;
  // Some of its heads over so many tokens, which are `share` of its work.
  reference::AttentionCase attention_case(const training::Operation& of, std::int64_t length,
                                          double& share) const;

  virtual OperatorTime product(const training::Operation& of);
  virtual OperatorTime rows(const models::Model& model, const training::Operation& of);
  virtual OperatorTime attention(const training::Operation& of);
  virtual MessageTime message(const models::Model& model, const training::Message& of);

  const hw::Machine one_, two_;  // supernodes
  StudyContext context_, between_;
  const training::Plan& plan_;
  TrainMeasures measures_;
  StudyResult& result_;
  bool interrupted_ = false;

 private:
  double attention_us(const reference::AttentionCase& of, bool backward);
  double product_us(std::int64_t groups, std::int64_t m, std::int64_t n, std::int64_t k, bool weights,
                    double& share);
  double collective_us(const training::Message& message);

  std::map<std::string, double> known_;
};

// Of dies, or of accelerators without cores. The plan outlives them. Throws InputError where they have no
// such products.
std::unique_ptr<TrainParts> make_train_parts(const StudyContext& context, const training::Plan& plan,
                                             const TrainMeasures& measures, StudyResult& result);
// The machine with so many supernodes.
hw::Machine with_supernodes(hw::Machine machine, int supernodes);

}  // namespace cm384::studies
