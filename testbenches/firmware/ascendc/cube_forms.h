/* The call forms of cube cores that generated cases are made of, and a case as the kernel reads it. Shared by
 * the kernel that makes the calls, and by the program that makes the cases and works out what should come
 * out.
 */
#pragma once

#include <cstdint>

#define CUBE_FORMS(FORM)                                                                   \
  FORM(Nd2Nz, "DataCopy(dst, src, Nd2NzParams), GM to A1, B1")                             \
  FORM(CopyIn, "DataCopy(dst, src, count or DataCopyParams), GM to A1, B1, C1")            \
  FORM(CopyOut, "DataCopy(dst, src, count or DataCopyParams), A1, B1 to GM")               \
  FORM(LoadGm, "LoadData(dst, src, LoadData2DParams), GM to A1, B1")                       \
  FORM(LoadA, "LoadData(dst, src, LoadData2DParams), A1, B1 to A2")                        \
  FORM(LoadB, "LoadData(dst, src, LoadData2DParams), A1, B1 to B2")                        \
  FORM(TurnA, "LoadDataWithTranspose(dst, src, LoadData2dTransposeParams), A1, B1 to A2")  \
  FORM(TurnB, "LoadDataWithTranspose(dst, src, LoadData2dTransposeParams), A1, B1 to B2")  \
  FORM(Mmad, "Mmad(dst, fm, filter, MmadParams), Mmad(dst, fm, filter, bias, MmadParams)") \
  FORM(Fixpipe, "Fixpipe<D, S, FixpipeConfig>(dst, src, FixpipeParamsV220), CO1 to GM")    \
  FORM(FixpipeQuant, "Fixpipe<D, S, FixpipeConfig>(dst, src, quant, FixpipeParamsV220)")   \
  FORM(FixpipeAtomic, "SetAtomicAdd: Fixpipe, CO1 to GM")

enum CubeForm {
#define FORM(name, text) k##name,
  CUBE_FORMS(FORM)
#undef FORM
      kCubeForms
};
enum CubeType { kS8, kF16, kBF16, kF32, kCubeTypes };
/* How C begins: from 0, from what a product before it left (cmatrixInitVal, isBias), from a bias. */
enum Start { kZero, kAdds, kIsBias, kBias, kStarts };

/* Bytes of an area in L1, a row of the pool, and a case's result. */
#define CUBE_AREA 16384
#define CUBE_AREAS 4

struct CubeCase {
  uint32_t form, type, variant;
  uint32_t row[CUBE_AREAS]; /* of the pool: result before, A, B, scales or bias */
  uint32_t p[16];
};
