// Structures of tiling data as operator projects define them: on the cores they are plain structs. Fields
// stand as C++ has them; a structure's size is a multiple of 8 B (assumed).
#pragma once

#include <stdint.h>

#define BEGIN_TILING_DATA_DEF(Name) struct alignas(8) Name {
#define TILING_DATA_FIELD_DEF(type, name) type name;
#define TILING_DATA_FIELD_DEF_ARR(type, count, name) type name[count];
#define TILING_DATA_FIELD_DEF_STRUCT(type, name) type name;
#define END_TILING_DATA_DEF }
// `kernel build` reads which structure is the kernel's.
#define REGISTER_TILING_DATA_CLASS(operator_type, Name)
