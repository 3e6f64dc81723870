// The parts of a training step on accelerators without cores: operators at grade formula
// (workloads/kernels/unit_run.h), messages by their transfers, packet by packet. Experts' rows go by DeepEP's
// normal exchange, for which units are kept while others compute.
#pragma once

#include "workloads/kernels/unit_run.h"
#include "workloads/moe/expert_messages.h"
#include "workloads/training/train_parts.h"

namespace cm384::studies {

class UnitTrainParts final : public TrainParts {
 public:
  // Throws InputError for products that it has not, and for groups of experts that do not fill servers.
  UnitTrainParts(const StudyContext& context, const training::Plan& plan, const TrainMeasures& measures,
                 StudyResult& result);

  // Rows that experts get are copied into their order, and outputs back.
  WorkTime measure_order(const models::Model& model) override;
  // Within a server.
  double exchange_us(int ranks, int stride, double bytes) override;
  // By a GPU's own network interface, which nobody else uses.
  double send_us(double bytes, bool between_supernodes) override;
  double stream_us(double bytes) override;

 private:
  OperatorTime product(const training::Operation& of) override;
  OperatorTime rows(const models::Model& model, const training::Operation& of) override;
  OperatorTime attention(const training::Operation& of) override;
  MessageTime message(const models::Model& model, const training::Message& of) override;
  double time_of(double operations, double bytes, NumberFormat format, bool attention = false) const;
  double collective_us(const char* name, reference::CollectiveKind kind, int ranks, double bytes);
  double rows_us(const models::Model& model, ExchangeDirection direction);

  hw::Machine computing_;   // with the units that do not exchange
  hw::Machine exchanging_;  // the servers of a group of experts
  StudyContext servers_;
};

}  // namespace cm384::studies
