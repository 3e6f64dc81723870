#pragma once
#include "ascendc/host_api/tiling/template_argument.h"

// y = (NEGATE ? -x : x) * REPEAT * factor + bias + shift[2]
ASCENDC_TPL_ARGS_DECL(ScaleShift, ASCENDC_TPL_BOOL_DECL(NEGATE, 0, 1),
                      ASCENDC_TPL_UINT_DECL(REPEAT, ASCENDC_TPL_4_BW, ASCENDC_TPL_UI_LIST, 1, 2, 4));
ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_BOOL_SEL(NEGATE, 0, 1),
                                     ASCENDC_TPL_UINT_SEL(REPEAT, ASCENDC_TPL_UI_LIST, 1, 2)),
                ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_BOOL_SEL(NEGATE, 0),
                                     ASCENDC_TPL_UINT_SEL(REPEAT, ASCENDC_TPL_UI_LIST, 4)));
