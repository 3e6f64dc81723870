/* The call forms of Ascend C that generated cases are made of, and a case as the kernel reads it. Shared by
 * the kernel that makes the calls, and by the program that makes the cases and works out what should come
 * out.
 *
 * FORM(name, family, text): a call, how its operands stand, and the call as docs/ascend-c.md has it.
 */
#pragma once

#include <cstdint>

#define ASCENDC_FORMS(FORM)                                                                                \
  FORM(Add, binary, "Add(dst, src0, src1, ...)")                                                           \
  FORM(Sub, binary, "Sub(dst, src0, src1, ...)")                                                           \
  FORM(Mul, binary, "Mul(dst, src0, src1, ...)")                                                           \
  FORM(Div, binary, "Div(dst, src0, src1, ...)")                                                           \
  FORM(Max, binary, "Max(dst, src0, src1, ...)")                                                           \
  FORM(Min, binary, "Min(dst, src0, src1, ...)")                                                           \
  FORM(And, binary, "And(dst, src0, src1, ...)")                                                           \
  FORM(Or, binary, "Or(dst, src0, src1, ...)")                                                             \
  FORM(MulAddDst, binary, "MulAddDst(dst, src0, src1, ...)")                                               \
  FORM(Abs, unary, "Abs(dst, src, ...)")                                                                   \
  FORM(Relu, unary, "Relu(dst, src, ...)")                                                                 \
  FORM(Exp, unary, "Exp(dst, src, ...)")                                                                   \
  FORM(Ln, unary, "Ln(dst, src, ...)")                                                                     \
  FORM(Sqrt, unary, "Sqrt(dst, src, ...)")                                                                 \
  FORM(Rsqrt, unary, "Rsqrt(dst, src, ...)")                                                               \
  FORM(Reciprocal, unary, "Reciprocal(dst, src, ...)")                                                     \
  FORM(Not, unary, "Not(dst, src, ...)")                                                                   \
  FORM(Copy, unary, "Copy(dst, src, ...)")                                                                 \
  FORM(Adds, scalar, "Adds(dst, src, scalar, ...)")                                                        \
  FORM(Muls, scalar, "Muls(dst, src, scalar, ...)")                                                        \
  FORM(Maxs, scalar, "Maxs(dst, src, scalar, ...)")                                                        \
  FORM(Mins, scalar, "Mins(dst, src, scalar, ...)")                                                        \
  FORM(Axpy, scalar, "Axpy(dst, src, scalar, ...)")                                                        \
  FORM(ShiftLeft, scalar, "ShiftLeft(dst, src, scalar, ...)")                                              \
  FORM(ShiftRight, scalar, "ShiftRight(dst, src, scalar, ...)")                                            \
  FORM(Duplicate, fill, "Duplicate(dst, scalar, ...)")                                                     \
  FORM(CreateVecIndex, fill, "CreateVecIndex(dst, first, ...)")                                            \
  FORM(Cast, cast, "Cast(dst, src, RoundMode, ...)")                                                       \
  FORM(Compare, compare, "Compare(dst, src0, src1, CMPMODE, ...)")                                         \
  FORM(CompareScalar, compare, "CompareScalar(dst, src, scalar, CMPMODE, ...)")                            \
  FORM(Select, select, "Select(dst, sel, src0, src1, SELMODE, ...)")                                       \
  FORM(SelectScalar, select, "Select(dst, sel, src0, scalar, SELMODE, ...)")                               \
  FORM(ReduceSum, reduce, "ReduceSum(dst, src, work, ...)")                                                \
  FORM(ReduceMax, reduce, "ReduceMax(dst, src, work, ..., calIndex)")                                      \
  FORM(ReduceMin, reduce, "ReduceMin(dst, src, work, ..., calIndex)")                                      \
  FORM(WholeReduceSum, whole, "WholeReduceSum(dst, src, mask, repeat, strides)")                           \
  FORM(WholeReduceMax, whole, "WholeReduceMax(dst, src, mask, repeat, strides, ReduceOrder)")              \
  FORM(WholeReduceMin, whole, "WholeReduceMin(dst, src, mask, repeat, strides, ReduceOrder)")              \
  FORM(RepeatReduceSum, whole, "RepeatReduceSum(dst, src, repeat, elements, strides)")                     \
  FORM(BlockReduceSum, whole, "BlockReduceSum(dst, src, repeat, mask, strides)")                           \
  FORM(BlockReduceMax, whole, "BlockReduceMax(dst, src, repeat, mask, strides)")                           \
  FORM(BlockReduceMin, whole, "BlockReduceMin(dst, src, repeat, mask, strides)")                           \
  FORM(PairReduceSum, whole, "PairReduceSum(dst, src, repeat, mask, strides)")                             \
  FORM(Sum, sum, "Sum(dst, src, SumParams)")                                                               \
  FORM(GatherMask, gather, "GatherMask(dst, src0, pattern, reduceMode, mask, GatherMaskParams, rsvdCnt)")  \
  FORM(GatherMaskTensor, gather,                                                                           \
       "GatherMask(dst, src0, tensor, reduceMode, mask, GatherMaskParams, rsvdCnt)")                       \
  FORM(Gather, gather, "Gather(dst, src, srcOffset, srcBaseAddr, ...)")                                    \
  FORM(Brcb, gather, "Brcb(dst, src, repeat, BrcbRepeatParams)")                                           \
  FORM(Transpose, gather, "Transpose(dst, src)")                                                           \
  FORM(Sort32, sort, "Sort32(dst, score, index, repeat)")                                                  \
  FORM(Sort, sort, "Sort<T, full>(dst, concat, index, tmp, repeat)")                                       \
  FORM(MrgSort, sort, "MrgSort(dst, MrgSortSrcList, ...)")                                                 \
  FORM(Extract, sort, "Extract(dstValue, dstIndex, sorted, repeat)")                                       \
  FORM(DataCopy, copy, "DataCopy(dst, src, count or DataCopyParams), GM to UBuffer")                       \
  FORM(DataCopyOut, copy, "DataCopy(dst, src, count or DataCopyParams), UBuffer to GM")                    \
  FORM(DataCopyPad, copy, "DataCopyPad(dst, src, DataCopyExtParams, DataCopyPadExtParams), GM to UBuffer") \
  FORM(DataCopyPadOut, copy, "DataCopyPad(dst, src, DataCopyExtParams), UBuffer to GM")                    \
  FORM(DataCopyLocal, copy, "DataCopy(dst, src, count or DataCopyParams), UBuffer to UBuffer")             \
  FORM(AtomicCopy, atomic, "SetAtomicAdd, SetAtomicMax, SetAtomicMin: DataCopyPad, UBuffer to GM")

enum Form {
#define FORM(name, family, text) k##name,
  ASCENDC_FORMS(FORM)
#undef FORM
      kForms
};

/* Ways to say which elements take part. */
enum Variant {
  kCount,         /* (..., count) */
  kNumber,        /* (..., mask, repeat, strides) */
  kWords,         /* (..., mask[], repeat, strides) */
  kPlaceholder,   /* SetVectorMask, then <T, false>(..., MASK_PLACEHOLDER, repeat, strides) */
  kCounter,       /* SetMaskCount and SetVectorMask, then <T, false>(...) */
  kCounterNumber, /* SetMaskCount, then (..., mask, repeat, strides) */
  kVariants
};

enum Type { kF32, kF16, kS32, kS16, kU32, kU16, kBF16, kS8, kU8, kS64, kTypes };

/* Bytes of each of the areas of a case in the UBuffer: destination, source 0, source 1, and a third one. */
#define AREA 4096
#define AREAS 4
#define POOL_ROWS 64

struct Case {
  uint32_t form, variant, type, type2;
  uint32_t mode;  /* CMPMODE, RoundMode, SELMODE, ReduceOrder, atomic kind, pattern */
  uint32_t count; /* elements, rows */
  uint32_t repeat;
  uint32_t block[3];  /* strides: destination, source 0, source 1 */
  uint32_t stride[3]; /* from repeat to repeat */
  uint32_t scalar;    /* bits */
  uint64_t mask[2];
  uint32_t row[AREAS]; /* of the pool that an area begins with */
  uint32_t extra[6];
};
