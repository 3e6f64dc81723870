// Explains what a machine does: follows its trace log with requests in a thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

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

  // Discards what ran before: it was warm-up.
  void begin_counted();
  Explanation finish();

 private:
  supernode::Supernode& machine_;
  std::unique_ptr<MachinePath> path_;
  TraceThread log_;  // the last: its thread uses the others
};

// How long what was counted took, as an explanation has it (`span_us`), at a tenth of its work: of runs with
// parameters changed nothing else is asked for.
class SpanWatch {
 public:
  // Attaches to a machine before its first launch; the machine outlives the watch's use.
  explicit SpanWatch(supernode::Supernode& machine);
  SpanWatch(const SpanWatch&) = delete;
  SpanWatch& operator=(const SpanWatch&) = delete;

  // What ran before was warm-up.
  void begin_counted();
  double finish_us();

 private:
  void play(std::span<const std::uint64_t> words);

  supernode::Supernode& machine_;
  bool begins_ = true;  // nothing has been counted yet
  std::int64_t begun_ps_ = 0, ended_ps_ = 0;
  TraceThread log_;  // the last: its thread uses the others
};

}  // namespace cm384::observe
