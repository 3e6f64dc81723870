/* Arguments and results of kernel `p2p`: reads, writes, atomic adds and ping-pong between two memories. Plain
 * C.
 *
 * Block b of the launch uses [target + b * target_stride, + bytes). With buffers = 1 every MTE instruction is
 * waited for and timed alone, from just before its issue to its completion flag; with more, up to `buffers`
 * instructions of a block are under way. All blocks start together (all-core barrier).
 */
#ifndef CM384_ABI_P2P_H
#define CM384_ABI_P2P_H

#include <stdint.h>

enum cm384_p2p_mode {
  CM384_P2P_READ = 0,   /* MTE2: target memory -> UBuffer */
  CM384_P2P_WRITE = 1,  /* MTE3: UBuffer -> target memory; every 32-bit word written is `pattern` + block */
  CM384_P2P_ATOMIC = 2, /* MTE3 atomic add of int32: adds `pattern` to every word */
  CM384_P2P_PING = 3,   /* writes chunk_bytes, then a flag, then waits for the echo; one sample per round */
  CM384_P2P_ECHO = 4    /* the other side of PING */
};

/* Flags of PING and ECHO are 32 B, word 0 counts the rounds from 1; the host zeroes them before the launch.
 */
struct cm384_p2p {
  uint32_t mode;
  uint32_t buffers;     /* 1..8; buffers * chunk_bytes must fit CM384_P2P_BUFFER_BYTES */
  uint32_t chunk_bytes; /* of one MTE instruction, 4..; multiple of 4 */
  uint32_t pattern;
  uint32_t warmup;        /* buffers = 1, PING: the first this many samples are not counted */
  uint32_t rounds;        /* PING and ECHO: round trips, warm-up inside */
  uint64_t bytes;         /* moved per block, in chunks; the range is walked once */
  uint64_t target;        /* GM address, any memory */
  uint64_t target_stride; /* bytes from one block's range to the next one's */
  uint64_t target_flag;   /* PING, ECHO: where block b's flag goes: target_flag + b * 512 */
  uint64_t own_flag;      /* PING, ECHO: where block b's flag arrives, own die: own_flag + b * 512 */
  uint64_t keep; /* READ, own die, 0: none: block b stores its last chunk at keep + b * keep_stride */
  uint64_t keep_stride;
  uint64_t results; /* own die: one cm384_p2p_result per block, 512 B apart */
};

#define CM384_P2P_BUFFER_BYTES (184u * 1024u)
#define CM384_P2P_RESULT_STRIDE 512u

/* Cycles are core cycles since the start of the run, the same origin on all dies. */
struct cm384_p2p_result {
  uint64_t start_cycle; /* before the first issue */
  uint64_t end_cycle;   /* after the last completion */
  uint64_t start_sys;   /* the same in ticks of the system counter */
  uint64_t end_sys;
  uint64_t samples; /* instructions (or round trips) timed alone, without warm-up; 0 when buffers > 1 */
  uint64_t sum_cycles;
  uint64_t min_cycles;
  uint64_t max_cycles;
  uint64_t last_issue_cycle; /* before the issue of the last sample */
};

#endif
