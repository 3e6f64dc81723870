// Input tensors of the operators: seeded, so that the host can make any row again instead of keeping it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cm384::reference {

// Row `token` of rank `rank`: finite bf16 of both signs, magnitudes from 2^-12 to below 8 and some zeros; one
// row in 61 is all zeros.
void make_token(std::uint64_t seed, int rank, int token, std::span<std::uint16_t> row);

// All rows of a rank, [batch][hidden].
std::vector<std::uint16_t> make_tokens(std::uint64_t seed, int rank, int batch, int hidden);

}  // namespace cm384::reference
