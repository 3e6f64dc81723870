// NPUs that several services share. Each has those of its deployment. Of all NPUs each is due a part by its
// weight; instances that its load asks for take what is free, beyond its part only where nobody else that
// wants instances is due to it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/service/training_beside.h"

namespace cm384::service {

class NpuBudget {
 public:
  struct Member {
    int npus = 0;      // that it has at the beginning
    double share = 1;  // weight
  };
  // `npus` are at least those of all members together.
  NpuBudget(int npus, const std::vector<Member>& members);

  // A pool of a member wants an instance of so many NPUs. False: too few are free, or those that are free are
  // due to other members.
  bool acquire(std::size_t member, bool prefill, int npus, Time now);
  // The pool wants no further instance now.
  void withdraw(std::size_t member, bool prefill) { shares_[member].wants[prefill ? 0 : 1] = 0; }
  void release(std::size_t member, int npus, Time now);
  // It has what is free until a member wants that; the member gets it at a later look.
  void set_training(TrainingBeside* training) { training_ = training; }

  int free() const { return free_; }
  int least_free() const { return least_free_; }  // so far
  std::int64_t denied(std::size_t member) const { return shares_[member].denied; }

 private:
  struct Share {
    int held = 0;
    double due = 0;              // of all NPUs
    std::array<int, 2> wants{};  // NPUs of an instance of each pool; 0: it wanted none at its last look
    std::int64_t denied = 0;
  };
  // NPUs of whole instances that it may take within its part, if it wants any.
  static int reserved_for(const Share& share);

  void set_free(int npus, Time now);

  int free_, least_free_ = 0;
  TrainingBeside* training_ = nullptr;
  std::vector<Share> shares_;
};

}  // namespace cm384::service
