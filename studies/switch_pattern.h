// Where the packets of a synthetic load go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cm384::studies {

enum class Pattern : std::uint8_t {
  uniform,      // to all other ports alike
  permutation,  // each port to one other, drawn from the seed
  hotspot,      // a fifth to port 0, the rest to all other ports alike
  incast,       // all to port 0
  tornado       // each port to the one half way round
};
// In the order of the enumeration.
const std::vector<std::string>& pattern_names();
Pattern pattern(const std::string& name);

class Destinations {
 public:
  // At least 2 ports.
  Destinations(Pattern pattern, unsigned ports, std::uint64_t seed);

  bool sends(unsigned input) const { return pattern_ != Pattern::incast || input != 0; }
  // The output of a packet from an input that sends, by a random number of 64 bits.
  unsigned pick(unsigned input, std::uint64_t random) const;
  // The share of an input's packets that goes to an output.
  double share(unsigned input, unsigned output) const;

 private:
  unsigned other(unsigned input, std::uint64_t random) const;

  Pattern pattern_;
  unsigned ports_;
  std::vector<unsigned> fixed_;
};

}  // namespace cm384::studies
