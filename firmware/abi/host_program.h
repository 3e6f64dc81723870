/* What a host program (`kernel build --host`) asks of the emulator that runs it, over a socket: a request
   with `bytes` behind it, then a reply with `bytes` behind it, which are a sentence where status is not 0.
   Plain C. */
#ifndef CM384_ABI_HOST_PROGRAM_H
#define CM384_ABI_HOST_PROGRAM_H

#include <stdint.h>

/* Environment: the descriptor of the socket. */
#define CM384_HOST_SOCKET "CM384_HOST_SOCKET"

enum cm384_host_operation {
  CM384_HOST_DEVICES = 1, /* value: how many */
  CM384_HOST_ALLOCATE,    /* a bytes; value: GM address */
  CM384_HOST_FREE,        /* a address */
  CM384_HOST_WRITE,       /* a address, b length; that many bytes and the line of the call, as "x.cpp:7" */
  CM384_HOST_READ,        /* a address, b length; the line of the call; reply: bytes */
  CM384_HOST_COPY,        /* a to, b from, c length, between GM addresses; value: stream, or -1 at once, then
                             with the line of the call */
  CM384_HOST_STREAM,      /* value: a new one */
  CM384_HOST_WAIT_STREAM, /* a stream */
  CM384_HOST_WAIT_DEVICE, /**/
  CM384_HOST_LAUNCH, /* a stream, b blocks, c group; bytes: name, 0, struct cm384_host_argument and its bytes
                        .. */
  CM384_HOST_EVENT,  /* value: a new one */
  CM384_HOST_RECORD_EVENT,  /* a event, b stream */
  CM384_HOST_STREAM_AWAITS, /* a stream, b event */
  CM384_HOST_WAIT_EVENT,    /* a event */
  CM384_HOST_ELAPSED,       /* a event, b event; value: ns from one to the other */
  CM384_HOST_CORES,         /* a kind: 0 vector, 1 cube; value: how many a device has */
  CM384_HOST_GROUP          /* bytes: int32_t, the device of each rank; value: a communication group, not 0 */
};

struct cm384_host_request {
  uint32_t operation;
  int32_t device;
  uint64_t a, b, c;
  int64_t value;
  uint64_t bytes;
};
struct cm384_host_reply {
  int64_t status; /* 0, or 1: refused */
  int64_t value;
  uint64_t bytes;
};
/* One of a launch: a word, or so many bytes behind it, whose address in GM the kernel gets. */
struct cm384_host_argument {
  uint64_t word;  /* of a float its bits */
  uint64_t bytes; /* a multiple of 8 */
  uint64_t is_float;
};

#endif
