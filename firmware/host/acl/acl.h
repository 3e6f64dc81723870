// The host's runtime as host programs of Ascend C samples call it: devices, memory, copies, streams, events.
// Written from call sites of open programs. Memory of the host is memory; of a device, an address that the
// host cannot read.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "cm384/device.h"
#include "kernel_operator.h"

using aclError = int;
using aclrtStream = void*;
using aclrtContext = void*;
using aclrtEvent = void*;
using aclFloat16 = uint16_t;
inline constexpr aclError ACL_SUCCESS = 0, ACL_ERROR_NONE = 0, ACL_ERROR_INVALID_PARAM = 100000,
                          ACL_ERROR_FAILURE = 500000;
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST,
  ACL_MEMCPY_HOST_TO_DEVICE,
  ACL_MEMCPY_DEVICE_TO_HOST,
  ACL_MEMCPY_DEVICE_TO_DEVICE
};
enum aclrtRunMode { ACL_DEVICE, ACL_HOST };

inline aclError cm384_done() {
  return cm384_host::connection().failed ? ACL_ERROR_FAILURE : ACL_SUCCESS;
}

inline aclError aclInit(const char*) {
  return ACL_SUCCESS;
}
inline aclError aclFinalize() {
  return ACL_SUCCESS;
}
inline const char* aclGetRecentErrMsg() {
  return "";
}
inline const char* aclrtGetSocName() {
  return "Ascend910_93";
}

inline aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = static_cast<uint32_t>(cm384_host::ask(CM384_HOST_DEVICES));
  return cm384_done();
}
inline aclError aclrtSetDevice(int32_t device) {
  if (device < 0 || device >= cm384_host::ask(CM384_HOST_DEVICES)) {
    std::fprintf(stderr, "aclrtSetDevice(%d): there are fewer devices; --devices says how many\n", device);
    return ACL_ERROR_INVALID_PARAM;
  }
  cm384_host::connection().device = device;
  return ACL_SUCCESS;
}
inline aclError aclrtGetDevice(int32_t* device) {
  *device = cm384_host::connection().device;
  return ACL_SUCCESS;
}
inline aclError aclrtResetDevice(int32_t) {
  return ACL_SUCCESS;
}
inline aclError aclrtGetRunMode(aclrtRunMode* mode) {
  *mode = ACL_HOST;
  return ACL_SUCCESS;
}
// A context is its device.
inline aclError aclrtCreateContext(aclrtContext* context, int32_t device) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(device) + 1);
  return aclrtSetDevice(device);
}
inline aclError aclrtSetCurrentContext(aclrtContext context) {
  return aclrtSetDevice(static_cast<int32_t>(reinterpret_cast<intptr_t>(context) - 1));
}
inline aclError aclrtGetCurrentContext(aclrtContext* context) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(cm384_host::connection().device) + 1);
  return ACL_SUCCESS;
}
inline aclError aclrtDestroyContext(aclrtContext) {
  return ACL_SUCCESS;
}

inline aclError aclrtMalloc(void** address, size_t bytes, aclrtMemMallocPolicy = ACL_MEM_MALLOC_HUGE_FIRST) {
  *address = nullptr;
  if (bytes == 0) return ACL_ERROR_INVALID_PARAM;
  const int64_t at = cm384_host::ask(CM384_HOST_ALLOCATE, bytes);
  if (!cm384_host::connection().failed) *address = reinterpret_cast<void*>(at);
  return cm384_done();
}
inline aclError aclrtFree(void* address) {
  cm384_host::ask(CM384_HOST_FREE, reinterpret_cast<uint64_t>(address));
  return cm384_done();
}
inline aclError aclrtMallocHost(void** address, size_t bytes) {
  *address = std::malloc(bytes);
  return *address == nullptr ? ACL_ERROR_FAILURE : ACL_SUCCESS;
}
inline aclError aclrtFreeHost(void* address) {
  std::free(address);
  return ACL_SUCCESS;
}
// Waits for itself, not for streams: what those still do with the memory is told with the line of the call.
inline aclError aclrtMemcpy(void* to, size_t most, const void* from, size_t bytes, aclrtMemcpyKind kind,
                            const char* file = __builtin_FILE(), int number = __builtin_LINE()) {
  if (bytes > most) return ACL_ERROR_INVALID_PARAM;
  if (bytes == 0) return ACL_SUCCESS;
  const std::string line = std::string(file) + ":" + std::to_string(number);
  const auto at = reinterpret_cast<uint64_t>(to), source = reinterpret_cast<uint64_t>(from);
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
      std::memcpy(to, from, bytes);
      return ACL_SUCCESS;
    case ACL_MEMCPY_HOST_TO_DEVICE:
      cm384_host::ask(CM384_HOST_WRITE, at, bytes, 0, 0, bytes, from, nullptr, line);
      return cm384_done();
    case ACL_MEMCPY_DEVICE_TO_HOST:
      cm384_host::ask(CM384_HOST_READ, source, bytes, 0, 0, 0, nullptr, to, line);
      return cm384_done();
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
      cm384_host::ask(CM384_HOST_COPY, at, source, bytes, -1, 0, nullptr, nullptr, line);
      return cm384_done();
  }
  return ACL_ERROR_INVALID_PARAM;
}
inline aclError aclrtSynchronizeStream(aclrtStream stream) {
  cm384_host::ask(CM384_HOST_WAIT_STREAM, cm384_host::stream_of(stream));
  return cm384_done();
}
// Between host and device the stream is waited for, and the copy takes no time; between devices it is a task
// of the stream.
inline aclError aclrtMemcpyAsync(void* to, size_t most, const void* from, size_t bytes, aclrtMemcpyKind kind,
                                 aclrtStream stream, const char* file = __builtin_FILE(),
                                 int number = __builtin_LINE()) {
  if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE && bytes <= most && bytes != 0) {
    cm384_host::ask(CM384_HOST_COPY, reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes,
                    static_cast<int64_t>(cm384_host::stream_of(stream)));
    return cm384_done();
  }
  if (const aclError error = aclrtSynchronizeStream(stream); error != ACL_SUCCESS) return error;
  return aclrtMemcpy(to, most, from, bytes, kind, file, number);
}
inline aclError aclrtMemset(void* address, size_t most, int32_t value, size_t count,
                            const char* file = __builtin_FILE(), int number = __builtin_LINE()) {
  if (count > most) return ACL_ERROR_INVALID_PARAM;
  const std::vector<unsigned char> bytes(count, static_cast<unsigned char>(value));
  return aclrtMemcpy(address, most, bytes.data(), count, ACL_MEMCPY_HOST_TO_DEVICE, file, number);
}
inline aclError aclrtMemsetAsync(void* address, size_t most, int32_t value, size_t count, aclrtStream stream,
                                 const char* file = __builtin_FILE(), int number = __builtin_LINE()) {
  if (const aclError error = aclrtSynchronizeStream(stream); error != ACL_SUCCESS) return error;
  return aclrtMemset(address, most, value, count, file, number);
}

inline aclError aclrtCreateStream(aclrtStream* stream) {
  *stream = reinterpret_cast<void*>(cm384_host::ask(CM384_HOST_STREAM));
  return cm384_done();
}
inline aclError aclrtDestroyStream(aclrtStream) {
  return ACL_SUCCESS;
}
inline aclError aclrtSynchronizeDevice() {
  cm384_host::ask(CM384_HOST_WAIT_DEVICE);
  return cm384_done();
}
inline aclError aclrtCreateEvent(aclrtEvent* event) {
  *event = reinterpret_cast<void*>(cm384_host::ask(CM384_HOST_EVENT));
  return cm384_done();
}
inline aclError aclrtDestroyEvent(aclrtEvent) {
  return ACL_SUCCESS;
}
inline aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  cm384_host::ask(CM384_HOST_RECORD_EVENT, reinterpret_cast<uint64_t>(event), cm384_host::stream_of(stream));
  return cm384_done();
}
inline aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  cm384_host::ask(CM384_HOST_STREAM_AWAITS, cm384_host::stream_of(stream), reinterpret_cast<uint64_t>(event));
  return cm384_done();
}
inline aclError aclrtSynchronizeEvent(aclrtEvent event) {
  cm384_host::ask(CM384_HOST_WAIT_EVENT, reinterpret_cast<uint64_t>(event));
  return cm384_done();
}
inline aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
  *ms = static_cast<float>(cm384_host::ask(CM384_HOST_ELAPSED, reinterpret_cast<uint64_t>(start),
                                           reinterpret_cast<uint64_t>(end))) *
        1e-6f;
  return cm384_done();
}
