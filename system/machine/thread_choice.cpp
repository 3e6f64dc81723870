#include "system/machine/thread_choice.h"

#include <algorithm>

namespace cm384::supernode {

void ThreadChoice::need_order(std::string_view whoever) {
  if (std::ranges::find(in_order_for_, whoever) == in_order_for_.end()) in_order_for_.emplace_back(whoever);
}

std::string ThreadChoice::why() const {
  if (in_order_for_.empty()) return why_;
  std::string text = "one order, for ";
  for (std::size_t n = 0; n < in_order_for_.size(); ++n) {
    if (n > 0) text += n + 1 < in_order_for_.size() ? ", " : " and ";
    text += in_order_for_[n];
  }
  return text;
}

}  // namespace cm384::supernode
