// A controller's translations of remote addresses, as paths meet them: the first request for a page starts a
// walk, if one is free; it and all others for that page go on when it ends.
//
// The cache is the controller's own model, asked in the order in which requests are submitted.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "system/observe/explain/path.h"
#include "ub_fabric/translation_cache.h"

namespace cm384::observe {

class Walks {
 public:
  explicit Walks(const hw::UbTranslation& parameters);

  // A request for `address` is issued where `path` stands: brings it to where its translation is known.
  void translate(Path& path, std::uint64_t address);
  // The same of a request without a path: others find its page.
  void know(std::uint64_t address);
  // Time that its walks took since the last forget_busy(), ps; divided by how many it has.
  double busy() const { return busy_ / static_cast<double>(walks_); }
  void forget_busy() { busy_ = 0; }

 private:
  void walk(Path& path);

  ub::TranslationCache cache_;
  std::size_t walks_;
  double latency_;                                // ps
  std::unordered_map<std::uint64_t, Path> ends_;  // of walks, by page
  std::vector<double> free_;                      // by evaluation and walk: when it may start, ps
  std::vector<Path> last_;                        // by walk: where it ended in the run
  double busy_ = 0;
};

}  // namespace cm384::observe
