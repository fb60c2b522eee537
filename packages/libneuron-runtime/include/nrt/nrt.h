/* The NRT C API: load a NEFF on a NeuronCore, give it tensors, run it.
 *
 * Every function may be called from any thread. Functions that return NRT_STATUS leave a sentence in nrtx_last_error()
 * (neuron/launch.h) of the calling thread when they fail. `vnc` counts the cores of this process from 0. */
#ifndef NRT_H
#define NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define NRT_MAJOR_VERSION 2
#define NRT_MINOR_VERSION 0

typedef struct nrt_model nrt_model_t;
typedef struct nrt_tensor nrt_tensor_t;
typedef void nrt_tensor_set_t;

typedef enum {
  NRT_TENSOR_PLACEMENT_DEVICE = 0, /* memory of a core */
  NRT_TENSOR_PLACEMENT_HOST = 1,   /* host memory owned by the runtime */
  NRT_TENSOR_PLACEMENT_VIRTUAL = 2 /* host memory; also a tensor without storage, or with the caller's buffer */
} nrt_tensor_placement_t;

typedef enum {
  NRT_FRAMEWORK_TYPE_INVALID = 0,
  NRT_FRAMEWORK_TYPE_NO_FW = 1,
  NRT_FRAMEWORK_TYPE_TENSORFLOW = 2,
  NRT_FRAMEWORK_TYPE_PYTORCH = 3,
  NRT_FRAMEWORK_TYPE_MXNET = 4,
  NRT_FRAMEWORK_TYPE_PRECHECK = 5
} nrt_framework_type_t;

typedef enum {
  NRT_DTYPE_UNKNOWN = 0x0,
  NRT_DTYPE_INVALID = 0x0,
  NRT_DTYPE_UINT64 = 0x1,
  NRT_DTYPE_INT8 = 0x2,
  NRT_DTYPE_UINT8 = 0x3,
  NRT_DTYPE_INT16 = 0x4,
  NRT_DTYPE_UINT16 = 0x5,
  NRT_DTYPE_BFLOAT16 = 0x6,
  NRT_DTYPE_FLOAT16 = 0x7,
  NRT_DTYPE_INT32 = 0x8,
  NRT_DTYPE_UINT32 = 0x9,
  NRT_DTYPE_FLOAT32 = 0xA,
  NRT_DTYPE_FP32R = 0xB,
  NRT_DTYPE_INT64 = 0xC,
  NRT_DTYPE_FP8_E3 = 0xD,
  NRT_DTYPE_FP8_E4 = 0xE,
  NRT_DTYPE_FP8_E5 = 0xF
} nrt_dtype_t;

typedef enum {
  NRT_INSTANCE_UNKNOWN = 0,
  NRT_INSTANCE_INF1 = 1,
  NRT_INSTANCE_TRN1 = 2,
  NRT_INSTANCE_TRN1N = 3,
  NRT_INSTANCE_INF2 = 4,
  NRT_INSTANCE_TRN2 = 5,
  NRT_INSTANCE_TRN2N = 6,
  NRT_INSTANCE_INF2E = 7,
  NRT_INSTANCE_TRN2P = 8,
  NRT_INSTANCE_TRN2U = 9,
  NRT_INSTANCE_TRN2E = 10,
  NRT_INSTANCE_TRN2EU = 11,
  NRT_INSTANCE_TRN2AC = 12,
  NRT_INSTANCE_TRN2UAC = 13,
  NRT_INSTANCE_TRN3 = 14,
  NRT_INSTANCE_TRN3PDS98 = 15
} nrt_instance_family_t;

typedef enum {
  NRT_INSTANCE_SIZE_1XL = 0,
  NRT_INSTANCE_SIZE_2XL = 1,
  NRT_INSTANCE_SIZE_4XL = 2,
  NRT_INSTANCE_SIZE_6XL = 3,
  NRT_INSTANCE_SIZE_8XL = 4,
  NRT_INSTANCE_SIZE_24XL = 5,
  NRT_INSTANCE_SIZE_32XL = 6,
  NRT_INSTANCE_SIZE_48XL = 7,
  NRT_INSTANCE_SIZE_3XL = 8,
  NRT_INSTANCE_SIZE_UNKNOWN = 9
} nrt_instance_size_t;

typedef struct {
  nrt_instance_family_t family;
  nrt_instance_size_t size;
  char arch_name[16];
  char device_revision[8];
} nrt_instance_info_t;

typedef struct {
  uint64_t offset; /* bytes into the tensor */
  uint64_t size;   /* bytes */
  void* buffer;
} nrt_tensor_batch_op_t;

typedef struct {
  nrt_tensor_t* tensor;
  const nrt_tensor_batch_op_t* ops;
  uint32_t num_ops;
} nrt_tensor_batch_t;

typedef struct {
  uint64_t bytes_used;
  uint64_t bytes_limit;
} nrt_vnc_memory_stats_t; /* grows at its end only */

/* ---- Process --------------------------------------------------------------------------------------------------- */

/* Takes the cores that NEURON_RT_VISIBLE_CORES or NEURON_RT_NUM_CORES names (environment, read here). A second call
 * without nrt_close between is NRT_SUCCESS and changes nothing. NRT_INVALID: a malformed variable. NRT_RESOURCE: too
 * few cores. */
NRT_STATUS nrt_init(nrt_framework_type_t framework, const char* fw_version, const char* fal_version);
/* Gives the cores back. Models and tensors that are still alive may only be freed afterwards. nrt_init may follow. */
void nrt_close(void);

/* What machine this is. Fills in the first `instance_info_len` bytes. May be called before nrt_init. */
NRT_STATUS nrt_get_instance_info(nrt_instance_info_t* info, size_t instance_info_len);

/* Cores of the machine, and cores that this process sees. May be called before nrt_init. "nc" and "vnc" are the same.
 */
NRT_STATUS nrt_get_total_nc_count(uint32_t* nc_count);
NRT_STATUS nrt_get_total_vnc_count(uint32_t* vnc_count);
NRT_STATUS nrt_get_visible_nc_count(uint32_t* nc_count);
NRT_STATUS nrt_get_visible_vnc_count(uint32_t* vnc_count);

/* Memory of a core. *stats_size_out (may be NULL) is the number of bytes written: at most stats_size_in. */
NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t* stats, size_t stats_size_in,
                                    size_t* stats_size_out);

/* ---- Models ---------------------------------------------------------------------------------------------------- */

/* Loads a NEFF from memory, which may be freed afterwards. vnc -1 takes core 0 first, then the others in turn;
 * vnc_count is -1 or 1. NRT_INVALID: malformed. NRT_UNSUPPORTED_NEFF_VERSION: well formed, but made for other hardware
 * or by another compiler. */
NRT_STATUS nrt_load(const void* neff_bytes, size_t size, int32_t vnc, int32_t vnc_count, nrt_model_t** model);
NRT_STATUS nrt_unload(nrt_model_t* model);
NRT_STATUS nrt_get_model_nc_count(const nrt_model_t* model, uint32_t* nc_count);
NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t* model, uint32_t* vnc_count);

/* Runs a model whose program has no slots, and waits for the end. Each input and output of the model must be in the
 * sets by name, with at least its size. NRT_INVALID: a tensor is missing, too small or on another core. An output may
 * be its aliased input. */
NRT_STATUS nrt_execute(nrt_model_t* model, const nrt_tensor_set_t* input_set, nrt_tensor_set_t* output_set);

/* ---- Tensors --------------------------------------------------------------------------------------------------- */

/* Zero-filled. name may be NULL. vnc counts for DEVICE only. NRT_RESOURCE: out of memory. */
NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t tensor_placement, int vnc, size_t size, const char* name,
                               nrt_tensor_t** tensor);
/* A tensor without storage: attach a buffer before use. */
NRT_STATUS nrt_tensor_allocate_empty(const char* name, nrt_tensor_t** tensor);
/* Uses the caller's buffer, which must outlive the tensor, in place of the tensor's storage. */
NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t* tensor, void* buffer, size_t size);
/* A view of `size` bytes from `offset`; keeps the storage alive. */
NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t* tensor_source, size_t offset, size_t size, const char* name,
                                     nrt_tensor_t** tensor_slice);
/* Sets *tensor to NULL. NULL is allowed. */
void nrt_tensor_free(nrt_tensor_t** tensor);

/* All offsets and sizes are bytes; NRT_INVALID when they leave the tensor. */
NRT_STATUS nrt_tensor_read(const nrt_tensor_t* tensor, void* buf, size_t offset, size_t size);
NRT_STATUS nrt_tensor_write(nrt_tensor_t* tensor, const void* buf, size_t offset, size_t size);
NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t* batches, uint64_t num_batches, bool unsafe);
NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t* batches, uint64_t num_batches, bool unsafe);
NRT_STATUS nrt_tensor_copy(const nrt_tensor_t* src, size_t src_offset, nrt_tensor_t* dst, size_t dst_offset,
                           size_t size);
NRT_STATUS nrt_tensor_memset(nrt_tensor_t* tensor, uint64_t offset, int value, size_t size);

/* Bytes; 0 on error. */
size_t nrt_tensor_get_size(const nrt_tensor_t* tensor);
/* Address of the first byte; NULL on error or without storage. */
void* nrt_tensor_get_va(const nrt_tensor_t* tensor);

/* Named references to tensors. A set does not own its tensors and never touches them when it is destroyed. */
NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t** result);
void nrt_destroy_tensor_set(nrt_tensor_set_t** tensor_set);
/* Replaces an entry of the same name. */
NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t* tensor_set, const char* tensor_name, nrt_tensor_t* tensor);
/* NRT_FAILURE when there is no such name; *tensor then keeps its value. */
NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t* tensor_set, const char* tensor_name, nrt_tensor_t** tensor);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
