// Which buffer of a core a position stands for, and which pipes fill and empty it.
#pragma once

#include "cm384/types.h"

namespace cm384 {

using AscendC::TPosition;

enum LocalBuffer : uint8_t {
  kUBuffer,
  kL1,
  kL0A,
  kL0B,
  kL0C,
  kBiasTable,
  kFixpipeBuffer,
  kBuffers,
  kNoBuffer
};
struct BufferSize {
  uint32_t bytes;
  const char* full;
};
inline constexpr BufferSize kBufferSizes[kBuffers] = {
    {AscendC::kUBufferBytes, "TPipe: the buffers take more than the UBuffer's 192 KiB"},
    {512 * 1024, "TPipe: the buffers take more than L1's 512 KiB"},
    {64 * 1024, "TPipe: the buffers take more than L0A's 64 KiB"},
    {64 * 1024, "TPipe: the buffers take more than L0B's 64 KiB"},
    {128 * 1024, "TPipe: the buffers take more than L0C's 128 KiB"},
    {1024, "TPipe: the buffers take more than the bias table's 1 KiB"},
    {2048, "TPipe: the buffers take more than the fixpipe buffer's 2 KiB"}};

constexpr LocalBuffer LocalBufferOf(TPosition p) {
  switch (p) {
    case TPosition::VECIN:
    case TPosition::VECOUT:
    case TPosition::VECCALC:
      return kUBuffer;
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM:
      return kL1;
    case TPosition::A2:
      return kL0A;
    case TPosition::B2:
      return kL0B;
    case TPosition::CO1:
      return kL0C;
    case TPosition::C2:
      return kBiasTable;
    case TPosition::C2PIPE2GM:
      return kFixpipeBuffer;
    default:
      return kNoBuffer;
  }
}
constexpr uint32_t FillerOf(TPosition p) {
  switch (LocalBufferOf(p)) {
    case kUBuffer:
      return p == TPosition::VECIN ? PIPE_MTE2 : PIPE_V;
    case kL1:
      return PIPE_MTE2;
    case kL0C:
      return PIPE_M;
    case kFixpipeBuffer:
      return PIPE_FIX;
    default:
      return PIPE_MTE1;
  }
}
constexpr uint32_t EmptierOf(TPosition p) {
  switch (LocalBufferOf(p)) {
    case kUBuffer:
      return p == TPosition::VECOUT ? PIPE_MTE3 : PIPE_V;
    case kL1:
      return PIPE_MTE1;
    case kL0C:
    case kFixpipeBuffer:
      return PIPE_FIX;
    default:
      return PIPE_M;
  }
}

}  // namespace cm384
