// y = x * clip(x + 3, 0, 6) / 6 of any length: big and small cores, a last tile of any size.
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t BUFFER_NUM = 2;

struct HardSwishTiling {
  uint32_t bigCoreNum;    // cores with one tile more
  uint32_t bigTileNum;    // their tiles
  uint32_t smallTileNum;  // of the others
  uint32_t tileLength;    // elements
  uint32_t totalLength;
};

template <typename T>
class KernelHardSwish {
 public:
  __aicore__ inline KernelHardSwish() {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const HardSwishTiling& tiling) {
    ASSERT(GetBlockNum() != 0 && "block dim can not be zero!");
    const uint32_t core = GetBlockIdx();
    uint32_t before = core * tiling.bigTileNum;
    this->tileNum = tiling.bigTileNum;
    if (core >= tiling.bigCoreNum) {
      before -= (tiling.bigTileNum - tiling.smallTileNum) * (core - tiling.bigCoreNum);
      this->tileNum = tiling.smallTileNum;
    }
    this->tileLength = tiling.tileLength;
    const uint32_t offset = before * tileLength;
    const uint32_t rest = tiling.totalLength > offset ? tiling.totalLength - offset : 0;
    this->length = rest < tileNum * tileLength ? rest : tileNum * tileLength;
    xGm.SetGlobalBuffer((__gm__ T*)x + offset, length);
    yGm.SetGlobalBuffer((__gm__ T*)y + offset, length);
    pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
    pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
    pipe.InitBuffer(tmpBuf, tileLength * sizeof(T));
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < tileNum && i * tileLength < length; i++) {
      const uint32_t count = length - i * tileLength < tileLength ? length - i * tileLength : tileLength;
      CopyIn(i, count);
      Compute(count);
      CopyOut(i, count);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t progress, uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[progress * tileLength], copyParams, padParams);
    inQueueX.EnQue(xLocal);
  }
  __aicore__ inline void Compute(uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.DeQue<T>();
    LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
    LocalTensor<T> tmp = tmpBuf.Get<T>();
    const T three = 3.0, six = 6.0, zero = 0.0, sixth = 1.0 / 6.0;
    Adds(tmp, xLocal, three, count);
    Maxs(tmp, tmp, zero, count);
    Mins(tmp, tmp, six, count);
    Muls(tmp, tmp, sixth, count);
    Mul(yLocal, xLocal, tmp, count);
    outQueueY.EnQue<T>(yLocal);
    inQueueX.FreeTensor(xLocal);
  }
  __aicore__ inline void CopyOut(uint32_t progress, uint32_t count) {
    LocalTensor<T> yLocal = outQueueY.DeQue<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPad(yGm[progress * tileLength], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TPipe pipe;
  TQue<QuePosition::VECIN, BUFFER_NUM> inQueueX;
  TQue<QuePosition::VECOUT, BUFFER_NUM> outQueueY;
  TBuf<QuePosition::VECCALC> tmpBuf;
  GlobalTensor<T> xGm, yGm;
  uint32_t tileNum, tileLength, length;
};

extern "C" __global__ __aicore__ void hard_swish(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(HardSwishTiling);
  GET_TILING_DATA(tilingData, tiling);
  if (TILING_KEY_IS(1)) {
    KernelHardSwish<float> op;
    op.Init(x, y, tilingData);
    op.Process();
  } else if (TILING_KEY_IS(2)) {
    KernelHardSwish<half> op;
    op.Init(x, y, tilingData);
    op.Process();
  }
}
