// Where the packets of a synthetic load go. Names and definitions are BookSim's where it has the pattern
// (Dally and Towles, section 3.2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cm384::studies {

enum class Pattern : std::uint8_t {
  uniform,      // to all other ports alike
  permutation,  // randperm: each port to one other, drawn from the seed
  hotspot,      // a fifth to the hot ports alike, the rest to all other ports alike
  incast,       // all to port 0
  tornado,      // in every dimension ceil(k / 2) - 1 of its k places further on
  neighbor,     // in every dimension one place further on
  transpose,  // the halves of the number's bits, or of its two digits to the base of the root, change places
  bitcomp,    // every bit of the number inverted: n to ports - 1 - n
  bitrev,     // the number's bits in reverse order
  shuffle,    // the number's bits rotated by one: n to 2 n mod (ports - 1)
  all_to_all  // each port to all others in turn, beginning with the next one
};
// Names that options take: one for each pattern in the order of the enumeration, then further ones for some
// of them.
const std::vector<std::string>& pattern_names();
Pattern pattern(const std::string& name);

// What a pattern needs to know of the ports.
struct PatternPorts {
  unsigned ports = 2;  // at least 2
  std::uint64_t seed = 1;
  unsigned hot = 1;  // hotspot: how many ports are hot, spread evenly over all; port 0 always is
  // tornado, neighbor: places per dimension, the first one's number changing fastest. Their product divides
  // `ports`: consecutive ports share a place. Empty: one dimension of all ports.
  std::vector<unsigned> lengths{};
};

class Destinations {
 public:
  // Throws InputError where the pattern is not defined for so many ports.
  Destinations(Pattern pattern, const PatternPorts& ports);
  Destinations(Pattern pattern, unsigned ports, std::uint64_t seed)
      : Destinations(pattern, PatternPorts{ports, seed}) {}

  unsigned ports() const { return ports_; }
  // Ports that a pattern maps to themselves send nothing.
  bool sends(unsigned input) const;
  // The output of the packet with this number, counted from 0 at its input, by a random number of 64 bits.
  unsigned pick(unsigned input, std::uint64_t number, std::uint64_t random) const;
  // The share of an input's packets that goes to an output.
  double share(unsigned input, unsigned output) const;

 private:
  unsigned other(unsigned input, std::uint64_t random) const;
  unsigned hot(std::uint64_t k) const { return static_cast<unsigned>(k * ports_ / hot_); }
  bool is_hot(unsigned port) const { return hot((std::uint64_t{port} * hot_ + ports_ - 1) / ports_) == port; }

  Pattern pattern_;
  unsigned ports_;
  unsigned hot_;
  std::vector<unsigned> fixed_;  // by input, where all of an input's packets go to one output
};

}  // namespace cm384::studies
