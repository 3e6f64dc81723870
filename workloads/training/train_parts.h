// The parts of a training step, measured on the machine: operators of a die by the firmware that runs on it,
// collectives by the dies of a group, each on a machine of its own. What no kernel does is taken from one
// that does, and says so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "workloads/frame/study.h"
#include "workloads/operators/reference/attention_reference.h"
#include "workloads/training/layer_work.h"

namespace cm384::studies {

// How operators and collectives are measured.
struct TrainMeasures {
  int rows = 2048;  // of a product, tokens of an attention, at most; longer ones are taken in proportion
  double imbalance = 1;
};

// Microseconds of an operator in one micro-batch.
struct OperatorTime {
  training::Operation operation;
  double forward = 0, inputs = 0, weights = 0;
  double share = 1;  // of it that was measured; the rest is in proportion
  bool backward =
      false;  // of attention: its own is measured, not that of heads of 128 over their forward pass
};
struct MessageTime {
  training::Message message;
  double us = 0;  // each way
};
struct WorkTime {
  std::vector<OperatorTime> operators;
  std::vector<MessageTime> messages;
};

class TrainParts {
 public:
  TrainParts(const StudyContext& context, const training::Plan& plan, const TrainMeasures& measures,
             StudyResult& result);

  // Not copied: its contexts refer to its own machines.
  TrainParts(const TrainParts&) = delete;
  TrainParts& operator=(const TrainParts&) = delete;

  bool interrupted() const { return interrupted_; }
  WorkTime measure(const models::Model& model, const training::Work& work);
  // Steps of the vector cores around an exchange of experts' rows: into the order of ranks and of experts,
  // and back.
  WorkTime measure_order(const models::Model& model);

  // Each member of a group sends `bytes` to each other one of it; ranks are `stride` dies apart, and all
  // groups between them do at the same time.
  double exchange_us(int ranks, int stride, double bytes);
  // Of `bytes` that every die has, a share for each member; the part between supernodes goes over the RDMA
  // plane, of what the supernode's members share. A gather takes as long.
  double scatter_us(int ranks, int stride, double bytes);
  // Time of a message to another supernode, or to a die of another node.
  double send_us(double bytes, bool between_supernodes);
  // Of vector cores that read and write so many bytes of HBM.
  double stream_us(double bytes);

 private:
  template <class Measure>
  double once(const std::string& what, Measure&& measure);
  template <class Measure>
  double in_proportion(const std::string& what, double bytes, double most, double unit, Measure&& measure);
  OperatorTime product(const training::Operation& of);
  OperatorTime rows(const models::Model& model, const training::Operation& of);
  OperatorTime attention(const training::Operation& of);
  double attention_us(const reference::AttentionCase& of, bool backward);
  double product_us(std::int64_t groups, std::int64_t m, std::int64_t n, std::int64_t k, bool weights,
                    double& share);
  double collective_us(const training::Message& message);

  const hw::Machine one_, two_;  // supernodes
  StudyContext context_, between_;
  const training::Plan& plan_;
  TrainMeasures measures_;
  StudyResult& result_;
  std::map<std::string, double> known_;
  bool interrupted_ = false;
};

}  // namespace cm384::studies
