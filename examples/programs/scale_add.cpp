// y = scale * x + y over tiles: a kernel, and the host's program that runs it, in one source.
//   cm384 kernel build --host scale_add.cpp
//   ./scale_add 8 4096
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "kernel_operator.h"

struct Tiling {
  uint32_t tiles, tile;  // of each block, in elements
  float scale;
  uint32_t reserved[2];
};

class ScaleAdd {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const Tiling& tiling) {
    tiling_ = tiling;
    const uint32_t each = tiling.tiles * tiling.tile;
    x_.SetGlobalBuffer((__gm__ float*)x + AscendC::GetBlockIdx() * each, each);
    y_.SetGlobalBuffer((__gm__ float*)y + AscendC::GetBlockIdx() * each, each);
    pipe_.InitBuffer(in_, 2, tiling.tile * sizeof(float));
    pipe_.InitBuffer(sums_, 2, tiling.tile * sizeof(float));
    pipe_.InitBuffer(out_, 2, tiling.tile * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint32_t t = 0; t < tiling_.tiles; ++t) {
      CopyIn(t);
      Compute();
      CopyOut(t);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t t) {
    AscendC::LocalTensor<float> x = in_.AllocTensor<float>(), y = sums_.AllocTensor<float>();
    AscendC::DataCopy(x, x_[t * tiling_.tile], tiling_.tile);
    AscendC::DataCopy(y, y_[t * tiling_.tile], tiling_.tile);
    in_.EnQue(x);
    sums_.EnQue(y);
  }
  __aicore__ inline void Compute() {
    AscendC::LocalTensor<float> x = in_.DeQue<float>(), y = sums_.DeQue<float>(),
                                z = out_.AllocTensor<float>();
    AscendC::Muls(z, x, tiling_.scale, tiling_.tile);
    AscendC::Add(z, z, y, tiling_.tile);
    out_.EnQue(z);
    in_.FreeTensor(x);
    sums_.FreeTensor(y);
  }
  __aicore__ inline void CopyOut(uint32_t t) {
    AscendC::LocalTensor<float> z = out_.DeQue<float>();
    AscendC::DataCopy(y_[t * tiling_.tile], z, tiling_.tile);
    out_.FreeTensor(z);
  }

  Tiling tiling_;
  AscendC::TPipe pipe_;
  AscendC::TQue<AscendC::TPosition::VECIN, 2> in_, sums_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 2> out_;
  AscendC::GlobalTensor<float> x_, y_;
};

extern "C" __global__ __aicore__ void scale_add(GM_ADDR x, GM_ADDR y, Tiling tiling) {
  ScaleAdd op;
  op.Init(x, y, tiling);
  op.Process();
}

int main(int argc, char** argv) {
  const uint32_t blocks = argc > 1 ? std::atoi(argv[1]) : 8, tile = argc > 2 ? std::atoi(argv[2]) : 2048;
  const Tiling tiling{4, tile, 3.0f, {}};
  const size_t count = size_t{blocks} * tiling.tiles * tile, bytes = count * sizeof(float);

  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  std::vector<float> x(count), y(count);
  for (size_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i % 1000);
    y[i] = 1.0f;
  }
  void *on_device_x = nullptr, *on_device_y = nullptr;
  aclrtMalloc(&on_device_x, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&on_device_y, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(on_device_x, bytes, x.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpy(on_device_y, bytes, y.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);

  scale_add<<<blocks, nullptr, stream>>>(static_cast<uint8_t*>(on_device_x),
                                         static_cast<uint8_t*>(on_device_y), tiling);
  aclrtSynchronizeStream(stream);

  aclrtMemcpy(y.data(), bytes, on_device_y, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += y[i] != 3.0f * x[i] + 1.0f;
  std::printf("%zu of %zu elements are wrong\n", wrong, count);
  aclrtFree(on_device_x);
  aclrtFree(on_device_y);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
  return wrong == 0 ? 0 : 1;
}
