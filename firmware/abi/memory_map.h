/* Addresses as firmware and host see them. Plain C; the one header set that both sides include.
 *
 *   0x0000_1000_0000            UBuffer of the core itself, 192 KiB (scalar loads and stores, vector and MTE
 * operands)
 *   0x0000_8000_0000            private memory of the core: program image (copy on write), data, stack
 *   0x4000_0000_0000_0000 + ... global memory (GM): every die's HBM and every CPU socket's DRAM, the same for
 * all
 */
#ifndef CM384_ABI_MEMORY_MAP_H
#define CM384_ABI_MEMORY_MAP_H

#include <stdint.h>

#define CM384_UBUFFER_BASE UINT64_C(0x10000000)
#define CM384_UBUFFER_BYTES (192u * 1024u)

#define CM384_PRIVATE_BASE UINT64_C(0x80000000)
#define CM384_PRIVATE_BYTES UINT64_C(0x01000000) /* 16 MiB; the stack grows down from the end */

#define CM384_GM_BASE UINT64_C(0x4000000000000000)
#define CM384_GM_CPU_BIT UINT64_C(0x2000000000000000) /* set: the DRAM of a CPU socket */
#define CM384_GM_VIA_UB_BIT \
  UINT64_C(0x1000000000000000) /* set: reach the sibling die over UB, not the package link */
#define CM384_GM_VIA_RDMA_BIT \
  UINT64_C(0x0800000000000000) /* set: reach the die by the RDMA plane, not the Unified Bus */
#define CM384_GM_DIE_SHIFT 36  /* 64 GiB a die */
#define CM384_GM_CPU_SHIFT 38  /* 256 GiB a socket */

/* Global address of byte `offset` of die `die`'s HBM (offset < 64 GiB). */
static inline uint64_t cm384_gm_die(uint64_t die, uint64_t offset) {
  return CM384_GM_BASE + (die << CM384_GM_DIE_SHIFT) + offset;
}
/* Global address of byte `offset` of CPU socket `socket`'s DRAM (offset < 256 GiB). */
static inline uint64_t cm384_gm_cpu(uint64_t socket, uint64_t offset) {
  return CM384_GM_BASE + CM384_GM_CPU_BIT + (socket << CM384_GM_CPU_SHIFT) + offset;
}
static inline int cm384_is_gm(uint64_t address) {
  return (address & CM384_GM_BASE) != 0;
}
static inline int cm384_gm_is_cpu(uint64_t address) {
  return (address & CM384_GM_CPU_BIT) != 0;
}
static inline int cm384_gm_via_rdma(uint64_t address) {
  return (address & CM384_GM_VIA_RDMA_BIT) != 0;
}
/* Die (or CPU socket) that a GM address belongs to, and the offset in its memory. */
static inline uint64_t cm384_gm_unit(uint64_t address) {
  return cm384_gm_is_cpu(address) ? (address & (CM384_GM_VIA_RDMA_BIT - 1)) >> CM384_GM_CPU_SHIFT
                                  : (address & (CM384_GM_VIA_RDMA_BIT - 1)) >> CM384_GM_DIE_SHIFT;
}
static inline uint64_t cm384_gm_offset(uint64_t address) {
  return cm384_gm_is_cpu(address) ? address & ((UINT64_C(1) << CM384_GM_CPU_SHIFT) - 1)
                                  : address & ((UINT64_C(1) << CM384_GM_DIE_SHIFT) - 1);
}

#endif
