// Makes every block of dispatch and combine use the first half of its windows in its next call, as if there
// were no other: what tests of the second half run between calls. The argument is the own status window.
#include "firmware/abi/dispatch.h"
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR arguments) {
  const uint64_t status = *reinterpret_cast<const uint64_t*>(arguments);
  const uint64_t block = static_cast<uint64_t>(GetBlockIdx());
  const LocalTensor<uint32_t> zero(0);
  Duplicate(zero, uint32_t{0}, 8);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(GlobalAt<uint32_t>(status + CM384_STATUS_DISPATCH_STATE + block * 512), zero, 8);
  DataCopy(GlobalAt<uint32_t>(status + CM384_STATUS_COMBINE_STATE + block * 512), zero, 8);
}
