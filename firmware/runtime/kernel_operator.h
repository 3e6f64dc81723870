// Everything a kernel needs, under the name Ascend C gives it.
#pragma once

#include "cm384/convert.h"
#include "cm384/cube.h"
#include "cm384/data_copy.h"
#include "cm384/helpers.h"
#include "cm384/kernel.h"
#include "cm384/pipe.h"
#include "cm384/print.h"
#include "cm384/reduce.h"
#include "cm384/refused.h"
#include "cm384/scan.h"
#include "cm384/select.h"
#include "cm384/sort.h"
#include "cm384/sync.h"
#include "cm384/system.h"
#include "cm384/tensor.h"
#include "cm384/vector.h"
// Calls of the library, whose names this project's kernels have for their own.
#ifdef CM384_MASK_MODES
#include "cm384/choose.h"
#include "cm384/cube_forms.h"
#include "cm384/elementary.h"
#include "cm384/forms.h"
#include "cm384/fused.h"
#include "cm384/hccl.h"
#include "cm384/int4.h"
#include "cm384/intrinsics.h"
#include "cm384/layout.h"
#include "cm384/norms.h"
#include "cm384/quantise.h"
#include "cm384/rows.h"
#endif
