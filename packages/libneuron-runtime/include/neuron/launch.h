/* Extension of the NRT C API: what a framework needs to launch small programs fast. Everything here works on any
 * device; functions return NRT_STATUS and leave a sentence in nrtx_last_error() of the calling thread when they fail.
 */
#ifndef NEURON_LAUNCH_H
#define NEURON_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- Programs -------------------------------------------------------------------------------------------------- */

/* A model with its slots filled in: all extents, strides and offsets known, checked and prepared. Immutable; may be
 * launched from any thread. Keeps its model's program alive, so the model may be unloaded first. */
typedef struct nrtx_executable nrtx_executable_t;

typedef struct {
  uint32_t inputs, outputs; /* buffers of a launch */
  uint32_t slots;           /* int64 numbers that a bind must give */
  uint32_t scalars;         /* 8-byte numbers that a launch must give */
} nrtx_model_counts_t;

typedef struct {
  uint32_t dtype; /* schema code; see program.toml [enum.dtype] */
  uint32_t rank;
  int64_t dims[8];
  uint64_t nbytes; /* size that the buffer must have at least */
  int32_t alias;   /* outputs: number of the input it may share memory with, or -1 */
} nrtx_io_t;

NRT_STATUS nrtx_model_counts(const nrt_model_t* model, nrtx_model_counts_t* counts);

/* Fill in the slots. NRT_INVALID when slot_count is not the model's or a guard does not hold: *failed_guard then is
 * the guard's number, or -1 for any other reason. failed_guard may be NULL. */
NRT_STATUS nrtx_bind(const nrt_model_t* model, const int64_t* slots, size_t slot_count, nrtx_executable_t** executable,
                     int32_t* failed_guard);
void nrtx_executable_free(nrtx_executable_t* executable);
/* Input or output `position`; inputs first, then outputs. */
NRT_STATUS nrtx_executable_io(const nrtx_executable_t* executable, uint32_t position, nrtx_io_t* io);

/* Run on core vnc, in the calling thread, and wait for the end. buffers: device addresses of the inputs, then of the
 * outputs, in IO order, each at least nrtx_io_t.nbytes long (the caller's promise; not checked). One launch runs on a
 * core at a time; others wait. Takes no lock that Python code could hold. */
NRT_STATUS nrtx_execute(const nrtx_executable_t* executable, int vnc, void* const* buffers, const uint64_t* scalars);

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

typedef struct {
  uint64_t allocated, peak_allocated; /* bytes handed out */
  uint64_t reserved, peak_reserved;   /* bytes taken from the host */
  uint64_t limit;                     /* bytes the core may reserve */
  uint64_t allocations, frees, out_of_memory;
} nrtx_memory_stats_t;

/* 64-byte aligned device memory of core vnc; size 0 gives NULL. Contents are undefined. NRT_RESOURCE when the limit
 * would be passed. */
NRT_STATUS nrtx_memory_allocate(int vnc, size_t size, void** address);
NRT_STATUS nrtx_memory_free(void* address); /* NULL is allowed */
NRT_STATUS nrtx_memory_empty_cache(int vnc);
NRT_STATUS nrtx_memory_stats(int vnc, nrtx_memory_stats_t* stats);
NRT_STATUS nrtx_memory_reset_peak(int vnc);
/* Core that owns an address anywhere inside an allocation, or -1. */
int nrtx_memory_core(const void* address);

NRT_STATUS nrtx_copy_from_host(void* device, const void* host, size_t size);
NRT_STATUS nrtx_copy_to_host(void* host, const void* device, size_t size);
NRT_STATUS nrtx_copy_on_device(void* destination, const void* source, size_t size); /* may overlap */
/* Whether code outside the runtime may read and write device addresses (NEURON_SIM_HOST_VISIBLE, default 1). */
bool nrtx_host_visible(void);

/* ---- Process --------------------------------------------------------------------------------------------------- */

/* Threads that one launch may use, at least 1. Results do not depend on it. */
NRT_STATUS nrtx_set_threads(int threads);
int nrtx_get_threads(void);
/* Explanation of the last failure in this thread: never NULL; valid until the next call in this thread. */
const char* nrtx_last_error(void);
/* Version of this extension's binary interface; NEURON_LAUNCH_ABI of the headers must equal it. */
#define NEURON_LAUNCH_ABI 1
int nrtx_abi_version(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
