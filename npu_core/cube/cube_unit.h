// What the instructions of a cube core do to its buffers: values and payload tags.
#pragma once

#include "npu_core/cube/cube_instruction.h"

namespace cm384::npu {

// An operand with a payload block in it makes all of the result payload.
void perform(const CubeLoad& load, CubeBuffers& buffers);
void perform(const FractalLoad& load, CubeBuffers& buffers);
void perform(const ImageLoad& load, CubeBuffers& buffers);
void perform(const BufferFill& fill, CubeBuffers& buffers);
void perform(const Mmad& mmad, CubeBuffers& buffers);
// The result as the engine writes it: row after row, each padded to 32 B; with NZ column of blocks after
// column.
void perform(const FixpipeCopy& copy, const CubeBuffers& buffers, LocalBuffer& result);

}  // namespace cm384::npu
