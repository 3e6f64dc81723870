#include "workloads/operators/reference/tokens.h"

#include <algorithm>

#include "traces/random.h"

namespace cm384::reference {

namespace {
// Sign, an exponent of 2^-12 .. 2^2 (small ones as likely as large ones), 7 bits of mantissa; one in 16 is
// zero.
std::uint16_t make_element(std::uint32_t random) {
  if ((random & 15) == 15) return 0;
  const std::uint32_t exponent = 127 - 12 + (random & 15);
  return static_cast<std::uint16_t>((random >> 4 & 1) << 15 | exponent << 7 | (random >> 5 & 0x7f));
}
}  // namespace

void make_token(std::uint64_t seed, int rank, int token, std::span<std::uint16_t> row) {
  const auto stream = static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint64_t>(token);
  traces::Random random(seed, stream);
  if (random.below(61) == 0) {
    std::fill(row.begin(), row.end(), std::uint16_t{0});
    return;
  }
  for (std::size_t i = 0; i < row.size(); i += 4) {
    std::uint64_t bits = random.next();
    for (std::size_t j = i; j < std::min(i + 4, row.size()); ++j, bits >>= 16) {
      row[j] = make_element(static_cast<std::uint32_t>(bits & 0xffff));
    }
  }
}

std::vector<std::uint16_t> make_tokens(std::uint64_t seed, int rank, int batch, int hidden) {
  std::vector<std::uint16_t> rows(static_cast<std::size_t>(batch) * static_cast<std::size_t>(hidden));
  for (int token = 0; token < batch; ++token) {
    make_token(seed, rank, token,
               std::span(rows).subspan(static_cast<std::size_t>(token) * static_cast<std::size_t>(hidden),
                                       static_cast<std::size_t>(hidden)));
  }
  return rows;
}

}  // namespace cm384::reference
