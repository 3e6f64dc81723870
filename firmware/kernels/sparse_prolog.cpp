// Norms, projections and rotation before attention over chosen tokens: mla_prolog, but the cache has rows
// (sparse_mla.h), and heads may be of other widths. Arguments: firmware/abi/mla_prolog.h.
#include "firmware/abi/mla_prolog.h"
#include "firmware/abi/sparse_mla.h"
#include "kernel_operator.h"

namespace {

// Copies a token's part of the cache from the UBuffer; the rope stands between the halves of the latent.
class RowOfCache {
 public:
  CM384_INLINE RowOfCache(const cm384_mla_prolog& a, uint32_t slot)
      : row_(a.kv + static_cast<uint64_t>(slot) * CM384_SPARSE_ROW_BYTES) {}
  CM384_INLINE void operator()(uint32_t from, uint32_t element, uint32_t) const {
    using namespace AscendC;
    if (element == 0) {
      CopyBursts<CM384_MTE_UB_TO_GM>(row_, from, CM384_MLA_LATENT, 2, CM384_MLA_LATENT,
                                     CM384_SPARSE_FIRST_BYTES);
    } else {
      CopyBursts<CM384_MTE_UB_TO_GM>(row_ + CM384_MLA_LATENT, from, CM384_MLA_ROPE * 2);
    }
  }

 private:
  uint64_t row_;
};

CM384_INLINE uint32_t Nope(const cm384_mla_prolog& a) {
  return a.absorb.k;
}

}  // namespace

#define CM384_SPARSE_PROLOG
#include "mla_prolog.cpp"
