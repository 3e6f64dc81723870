// GTKWave's writer of FST as Verilator brings it, in one piece as Verilator includes it.
#define FST_CONFIG_INCLUDE "fst_config.h"
// clang-format off
#include <gtkwave/fastlz.c>
#include <gtkwave/fstapi.c>
#include <gtkwave/lz4.c>
// clang-format on
