// Makes the calls of a table of cases (forms.h), each core those of its number: areas of the UBuffer are
// filled from a pool, the call is made, and the destination goes to the case's row of the results.
#include <stdint.h>

#include "calls.h"

using namespace AscendC;

namespace {

struct Tiling {
  uint32_t cases;
};

#define FOR_TYPE(Name, tag, T) \
  case PAIR(k##Name, tag):     \
    return Do##Name<T>();
#define FLOATS(Name) FOR_TYPE(Name, kF32, float) FOR_TYPE(Name, kF16, half)
#define SIGNED(Name) FOR_TYPE(Name, kS32, int32_t) FOR_TYPE(Name, kS16, int16_t)
#define UNSIGNED(Name) FOR_TYPE(Name, kU32, uint32_t) FOR_TYPE(Name, kU16, uint16_t)
#define NUMBERS(Name) FLOATS(Name) SIGNED(Name)
#define BITS(Name) NUMBERS(Name) UNSIGNED(Name) FOR_TYPE(Name, kBF16, bfloat16_t)
#define BYTES(Name) FOR_TYPE(Name, kS8, int8_t) FOR_TYPE(Name, kU8, uint8_t)

void Make() {
  if (c->form == kCast) return DoCast();
  switch (PAIR(c->form, c->type)) {
    NUMBERS(Add)
    NUMBERS(Sub)
    NUMBERS(Mul)
    FLOATS(Div)
    NUMBERS(Max)
    NUMBERS(Min)
    BITS(And)
    BITS(Or)
    NUMBERS(MulAddDst)
    NUMBERS(Abs)
    NUMBERS(Relu)
    FLOATS(Exp)
    FLOATS(Ln)
    FLOATS(Sqrt)
    FLOATS(Rsqrt)
    FLOATS(Reciprocal)
    BITS(Not)
    BITS(Copy)
    NUMBERS(Adds)
    NUMBERS(Muls)
    NUMBERS(Maxs)
    NUMBERS(Mins)
    NUMBERS(Axpy)
    SIGNED(ShiftLeft)
    UNSIGNED(ShiftLeft)
    SIGNED(ShiftRight)
    UNSIGNED(ShiftRight)
    BITS(Duplicate)
    NUMBERS(CreateVecIndex)
    NUMBERS(Compare)
    NUMBERS(CompareScalar)
    BITS(Select)
    BITS(SelectScalar)
    NUMBERS(ReduceSum)
    NUMBERS(ReduceMax)
    NUMBERS(ReduceMin)
    NUMBERS(WholeReduceSum)
    NUMBERS(WholeReduceMax)
    NUMBERS(WholeReduceMin)
    NUMBERS(RepeatReduceSum)
    NUMBERS(BlockReduceSum)
    NUMBERS(BlockReduceMax)
    NUMBERS(BlockReduceMin)
    NUMBERS(PairReduceSum)
    NUMBERS(Sum)
    BITS(GatherMask)
    BITS(GatherMaskTensor)
    BITS(Gather)
    BITS(Brcb)
    FOR_TYPE(Transpose, kF16, half)
    FOR_TYPE(Transpose, kS16, int16_t)
    FLOATS(Sort32)
    FLOATS(Sort)
    FLOATS(MrgSort)
    FLOATS(Extract)
    BITS(DataCopy)
    BYTES(DataCopy)
    FOR_TYPE(DataCopy, kS64, int64_t)
    BITS(DataCopyOut)
    BYTES(DataCopyOut)
    FOR_TYPE(DataCopyOut, kS64, int64_t)
    BITS(DataCopyLocal)
    BITS(DataCopyPad)
    BYTES(DataCopyPad)
    BITS(DataCopyPadOut)
    BYTES(DataCopyPadOut)
    NUMBERS(AtomicCopy)
    FOR_TYPE(AtomicCopy, kBF16, bfloat16_t)
    FOR_TYPE(AtomicCopy, kS8, int8_t)
    default:
      Abort("no such case");
  }
}

bool ToMemory(uint32_t form) {
  return form == kDataCopyOut || form == kDataCopyPadOut || form == kAtomicCopy;
}

}  // namespace

extern "C" __global__ __aicore__ void call_forms(GM_ADDR cases, GM_ADDR pool, GM_ADDR results, GM_ADDR counts,
                                                 GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(Tiling);
  GET_TILING_DATA(data, tiling);
  for (uint32_t n = GetBlockIdx(); n < data.cases; n += GetBlockNum()) {
    c = reinterpret_cast<const Case*>(cases) + n;
    const auto source = [&](uint32_t area) {
      GlobalTensor<uint8_t> tensor;
      tensor.SetGlobalBuffer(pool + c->row[area] * AREA);
      return tensor;
    };
    for (uint32_t area = 0; area < AREAS; ++area) DataCopy(Area<uint8_t>(area), source(area), AREA);
    PipeBarrier<PIPE_ALL>();
    result.SetGlobalBuffer(results + n * AREA);
    if (ToMemory(c->form)) DataCopy(result, Area<uint8_t>(0), AREA);
    gm_source = source(1);
    PipeBarrier<PIPE_ALL>();
    kept = 0;
    Make();
    PipeBarrier<PIPE_ALL>();
    if (!ToMemory(c->form)) DataCopy(result, Area<uint8_t>(0), AREA);
    Area<uint64_t>(3).SetValue(0, kept);
    SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    SetFlag<HardEvent::S_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
    GlobalTensor<uint64_t> count;
    count.SetGlobalBuffer(reinterpret_cast<uint64_t*>(counts) + n);
    DataCopyPad(count, Area<uint64_t>(3), DataCopyExtParams{1, 8, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
  }
}
