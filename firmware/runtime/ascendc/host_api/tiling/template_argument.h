// Template arguments of kernels as operator projects declare them. `kernel build` reads the declarations
// behind the preprocessor, which then leaves them as they stand (CM384_TEMPLATE_SETS); to the cores they are
// nothing.
#pragma once

#ifndef CM384_TEMPLATE_SETS
#define ASCENDC_TPL_ARGS_DECL(...)
#define ASCENDC_TPL_SEL(...)
#endif

// Numbers of element types and formats in a key, as app/cli/kernel_project.cpp has them.
#define C_DT_FLOAT 0
#define C_DT_FLOAT16 1
#define C_DT_INT8 2
#define C_DT_INT32 3
#define C_DT_UINT8 4
#define C_DT_INT16 6
#define C_DT_UINT16 7
#define C_DT_UINT32 8
#define C_DT_INT64 9
#define C_DT_UINT64 10
#define C_DT_DOUBLE 11
#define C_DT_BOOL 12
#define C_DT_STRING 13
#define C_DT_COMPLEX64 16
#define C_DT_COMPLEX128 17
#define C_DT_BF16 27
#define C_DT_INT4 29
#define C_FORMAT_NCHW 0
#define C_FORMAT_NHWC 1
#define C_FORMAT_ND 2
#define C_FORMAT_NC1HWC0 3
#define C_FORMAT_FRACTAL_Z 4
#define C_FORMAT_HWCN 16
#define C_FORMAT_NDHWC 27
#define C_FORMAT_FRACTAL_NZ 29
#define C_FORMAT_NCDHW 30
