// Explains what a machine does: follows its trace log with requests in a thread of its own.
#pragma once

#include <memory>

#include "system/machine/supernode.h"
#include "system/observe/explain/explanation.h"
#include "system/observe/trace_thread.h"

namespace cm384::observe {

class Explainer {
 public:
  // Attaches to a machine before its first launch; the machine outlives the explainer's use.
  explicit Explainer(supernode::Supernode& machine);
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  // What ran before was warm-up.
  void begin_counted();
  Explanation finish();

 private:
  supernode::Supernode& machine_;
  std::unique_ptr<MachinePath> path_;
  TraceThread log_;  // the last: its thread uses the others
};

}  // namespace cm384::observe
