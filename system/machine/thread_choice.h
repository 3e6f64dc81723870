// How many threads of the host run a machine's modules side by side, and why: the one place that decides.
// What is simulated does not depend on it. And what more threads would give.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "system/machine/threads_what_if.h"

namespace cm384::supernode {

class ThreadChoice {
 public:
  // `asked` threads, of which `shared` find modules to run. `why` says where the number asked for is from.
  // `what_if_threads`: reckoned with; 0: none.
  ThreadChoice(unsigned asked, unsigned shared, std::string why = "asked for", unsigned what_if_threads = 0)
      : shared_(shared),
        why_(shared < asked ? "as many as packages take part" : std::move(why)),
        what_if_(what_if_threads) {}

  // Modules run one after another on one thread, from the next window on and to the machine's end. `whoever`
  // looks at several of them or joins in, and needs one order of what they do: a noun, "a replay".
  void need_order(std::string_view whoever);
  // That run modules. Depends on what has been declared so far alone.
  unsigned threads() const { return in_order_for_.empty() ? shared_ : 1; }
  // For the result: "one per core of the host", "one order, for a replay and --gdb".
  std::string why() const;

  ThreadsWhatIf& what_if() { return what_if_; }
  const ThreadsWhatIf& what_if() const { return what_if_; }

 private:
  unsigned shared_;
  std::string why_;
  std::vector<std::string> in_order_for_;  // each once, in the order in which they came
  ThreadsWhatIf what_if_;
};

}  // namespace cm384::supernode
