// Kernel `collective_rounds` behind other kernels: of the flag that it sends it clears what those left in the
// UBuffer, which may be tensor payload. Alone it needs no such thing, and the published figures are of it
// alone.
#define CM384_CLEARS_ITS_FLAG
#include "collective_rounds.cpp"
