#include "hw/toml_depth.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace cm384::hw {

void refuse_deep_keys(std::string_view text, const std::string& file) {
  // A key stands on one line. Dots of sentences count too; no line of ours comes near.
  constexpr int kMostDots = 64;
  int line = 1, dots = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '.' && ++dots > kMostDots) {
      throw InputError(fmt::format("{}:{}: has more than {} dots; allowed are keys of a few parts", file,
                                   line, kMostDots));
    }
  }
}

}  // namespace cm384::hw
